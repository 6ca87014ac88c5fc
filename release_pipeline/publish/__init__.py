"""Packages: publication of a release, its delivery, and its retraction or supersession."""
