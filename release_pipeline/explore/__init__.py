"""Choosing a method and its setting before any budget is spent, and drafting a policy."""
