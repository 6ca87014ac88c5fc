"""What a tombstone says to people, by language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from release_pipeline.flow.publication.withdrawal import _find_language, _tell  # pyright: ignore[reportPrivateUsage]
from release_pipeline.flow.states import RETRACTED, SUPERSEDED
from release_pipeline.sentences import speaking

SIGNED = {"subject": "people/1", "at": "2026-11-26T10:00:00+00:00", "name": "Ana", "why": "people/1.r2: *late* rows"}


def test_english_tombstones_are_what_they_were() -> None:
    """Byte by byte, with the reason as a text that does nothing."""
    start = "\n\nOn 2026-11-26T10:00:00+00:00, by Ana: people/1.r2: \\*late\\* rows\n\n"
    assert _tell(RETRACTED, SIGNED, file="RETRACTED.json") == (
        f"# people/1 was retracted{start}The data were removed from this package. Do not use copies of them.\n\n"
        "Signed in RETRACTED.json.\n"
    )
    assert _tell(SUPERSEDED, SIGNED, file="SUPERSEDED.json") == (
        f"# people/1 was superseded{start}Use the later release instead: ../1.r2/\n\nSigned in SUPERSEDED.json.\n"
    )


def test_german_tombstones_are_in_german() -> None:
    """With the moment as it is written there."""
    with speaking("de"):
        said = _tell(RETRACTED, SIGNED, file="RETRACTED.json")
    assert said.startswith("# people/1 wurde zurückgezogen\n\nAm 26.11.2026, 10:00 UTC, durch Ana: ")


@pytest.mark.parametrize(
    ("card", "language"),
    [({}, "en"), ({"language": "de"}, "de"), ({"language": "xx"}, "en"), ({"language": ["de"]}, "en"), ([], "en"), (None, "en")],
)
def test_the_language_is_that_of_the_card(tmp_path: Path, card: object, language: str) -> None:
    """English where there is none, or none that is spoken."""
    if card is not None:
        (tmp_path / "privacy-card.json").write_text(json.dumps(card), encoding="utf-8")
    assert _find_language(tmp_path) == language
