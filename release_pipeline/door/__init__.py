"""What every web page of ours asks before it answers: by which name it is reached, from which page, and who a proxy says it is.

Dagster's UI has more of it in `dagster_app/door`, the desk in `desk/web`.
"""

from __future__ import annotations

import hashlib


class Refused(Exception):
    """A request that goes no further: the status of HTTP, and a message that repeats nothing that was sent."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


def hash_secret(secret: str) -> str:
    """The hash of a secret that was drawn at random: what can be guessed has to be kept otherwise."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
