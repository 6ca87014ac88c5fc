"""What a tombstone says to people."""

from __future__ import annotations

from release_pipeline.ledger.states import RETRACTED, SUPERSEDED
from release_pipeline.publish.publish import _tell  # pyright: ignore[reportPrivateUsage]

SIGNED = {"subject": "people/1", "at": "2026-11-26T10:00:00+00:00", "name": "Ana", "why": "people/1.r2: *late* rows"}


def test_a_tombstone_says_when_by_whom_and_why() -> None:
    """Byte by byte, with the reason as a text that does nothing."""
    start = "\n\nOn 2026-11-26T10:00:00+00:00, by Ana: people/1.r2: \\*late\\* rows\n\n"
    assert _tell(RETRACTED, SIGNED, file="RETRACTED.json") == (
        f"# people/1 was retracted{start}The data were removed from this package. Do not use copies of them.\n\n"
        "Signed in RETRACTED.json.\n"
    )
    assert _tell(SUPERSEDED, SIGNED, file="SUPERSEDED.json") == (
        f"# people/1 was superseded{start}Use the later release instead: ../1.r2/\n\nSigned in SUPERSEDED.json.\n"
    )
