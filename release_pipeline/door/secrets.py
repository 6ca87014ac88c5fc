"""What is kept of a secret that somebody shows later: a hash, always as long, so that nothing is told by comparing it."""

from __future__ import annotations

import hashlib


def hash_secret(secret: str) -> str:
    """The hash of a secret that was drawn at random: what can be guessed has to be kept otherwise."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
