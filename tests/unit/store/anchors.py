"""What a vault would know of a registry, for tests of the registry without one."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac

from release_pipeline.store.registry import BEGIN


@dataclasses.dataclass
class Kept:
    """A key for the seals, the head if any was kept, and whether there is anything that a registry must know of."""

    head: tuple[int, str] | None = None
    records: bool = False
    key: bytes = b"the key of this vault"

    def seal(self, digest: str) -> str:
        """The seal of an event's hash."""
        return hmac.new(self.key, digest.encode(), hashlib.sha256).hexdigest()

    def has_records(self) -> bool:
        """As it was said."""
        return self.records

    def read(self) -> tuple[int, str] | None:
        """What was kept."""
        return self.head

    def write(self, number: int, digest: str) -> None:
        """Keep it."""
        self.head = (number, digest)


def kept_at_the_beginning() -> Kept:
    """A head that is behind every event: the file has to show by itself that it was changed."""
    return Kept((0, BEGIN))
