"""What the public gets of a release, what becomes of it, and how anybody checks it."""
