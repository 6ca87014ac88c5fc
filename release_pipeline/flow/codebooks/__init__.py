"""Readers of codebooks, a kind a file: none opens another file, and none keeps more than is shown of it."""
