"""What the door says when it does not let something through."""

from __future__ import annotations


class Refused(Exception):
    """A request that goes no further, with the status of HTTP and words that repeat nothing that was sent."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words
