"""The disk of a site: files, databases, sources, and the registry of events."""
