"""Whose word counts: keys, members, approvals, remarks."""
