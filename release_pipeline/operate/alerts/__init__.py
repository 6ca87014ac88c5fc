"""Alerts: what a site sends to people by itself."""
