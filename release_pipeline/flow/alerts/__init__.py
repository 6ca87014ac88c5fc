"""What people are told without asking: settings, what there is to tell, the queue of what is not sent yet, and who takes it."""
