"""What the public gets of a release, and what becomes of it."""
