"""Choosing a method and its setting before anything is spent, and drafting a policy."""
