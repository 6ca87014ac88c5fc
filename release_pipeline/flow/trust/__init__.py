"""Whose word counts: keys, the list of who has which, and what they approved."""
