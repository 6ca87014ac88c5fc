"""What people are told unasked."""
