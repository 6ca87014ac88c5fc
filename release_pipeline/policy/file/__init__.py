"""The policy file: its sections, and the one frozen object that is made of them."""
