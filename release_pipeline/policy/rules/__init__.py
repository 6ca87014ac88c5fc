"""Consistency rules across the parts of a policy."""
