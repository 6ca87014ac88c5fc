"""The officers of a site, as the events of a chain prove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from release_pipeline.verifier.chain import Event, History, Known, find_known
from release_pipeline.verifier.report import Report
from release_pipeline.verifier.statements import Key
from release_pipeline.verifier.succession import Revocation


@dataclass(frozen=True)
class Office:
    """The officers of a site, as the events of a chain prove them. `lists`: the number of the event of each valid list of keys,
    with the keys; `links`: the numbers of the events by which the officers followed each other; `faults`: what is invalid."""

    chain: tuple[str, ...]
    lists: tuple[tuple[int, Mapping[str, Key]], ...]
    links: tuple[int, ...]
    known: Known
    holders: Mapping[str, Key]
    threshold: int
    faults: tuple[str, ...]

    @property
    def revoked(self) -> tuple[Revocation, ...]:
        """Return every valid revocation."""
        return tuple(self.known.revoked)

    def is_taken_back(self, number: int, signer: str) -> bool:
        """Return whether what a key signed in an event no longer counts."""
        over = [each for each in self.revoked if each.key == signer]
        return any(number > each.event or self.known.moments[number] >= each.since for each in over)

    def moment(self, number: int) -> datetime:
        """Return the latest moment that an event can be from."""
        return self.known.moments[number]


def read_office(events: list[Event], *, revoked: Sequence[Revocation] = ()) -> Office:
    """Return the office by the events of a chain; `revoked`: as if the holders of recovery keys had revoked these too."""
    known, report = find_known(events), Report(None)
    known = Known([*revoked, *known.revoked], known.doubted, known.moments)
    history = History(report, events, known, office_alone=True)
    stand = {number for number, _, _ in history.lists}
    begun = [number for number in sorted(stand) if "succession" not in events[number - 1].content][:1]
    links = [event.number for event in events if event.number in stand and "succession" in event.content]
    named = [number for number, signed in history.signed if signed.kind == "recovery"]
    return Office(
        tuple(history.chain),
        tuple((number, keys) for number, _, keys in history.lists),
        tuple(sorted({*begun, *links, *named})),
        known,
        history.office.holders,
        history.office.threshold,
        tuple(finding.words for finding in report.findings if finding.level == "FAIL"),
    )
