"""The policy file: its sections, and the one frozen object that is made from them."""
