"""What the events of the registry say: states, policies, populations, charges, and who looked at what."""
