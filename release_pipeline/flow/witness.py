"""The last event of the registry, told to somebody outside: whoever keeps it sees later that the registry still has it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from release_pipeline import verify
from release_pipeline.errors import WrongUsage
from release_pipeline.flow.site import Site
from release_pipeline.store.registry import Event


@dataclass(frozen=True, slots=True)
class Head:
    """Number and hash of an event, and when it was noted."""

    number: int
    hash: str
    noted: str = ""

    @classmethod
    def of(cls, event: Event) -> Head:
        """That an event was the last."""
        return cls(event.number, event.hash, event.noted)

    @property
    def text(self) -> str:
        """It as a line of JSON."""
        content = {"format": verify.HEAD_FORMAT, "event": self.number, "hash": self.hash, "noted": self.noted}
        return json.dumps(content) + "\n"


def read_head(site: Site) -> Head:
    """The last event of a site."""
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    if not events:
        raise WrongUsage("nothing has happened at this site that could be witnessed.", where=str(site.home))
    return Head.of(events[-1])


def load_head(file: Path) -> Head:
    """What `head export` wrote."""
    try:
        return Head(*verify.read_head(file.read_bytes()))
    except (OSError, verify.Fault):
        raise WrongUsage(
            "this is not what `head export` writes.", where=str(file), remedy="Name the file that was kept."
        ) from None
