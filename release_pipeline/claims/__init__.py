"""Attacks on every claim: hostile tables from declared domains, the real stages, and the best event that can be found. No
data."""
