"""Bundles that people take away to sign, and requests that wait for the privacy officer."""
