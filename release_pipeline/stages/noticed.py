"""What was noticed in the data of a release that stops nothing and deserves a word: kept as counts, and told in any language.

Columns, names of the policy and counts alone: never a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from release_pipeline.privacy.figures import (
    LEAST_SHARE,
    count_things,
    format_count,
    format_percent,
    join_names,
    percent,
    show_share,
)
from release_pipeline.sentences import REVIEWERS

CLAMPED, CODED, BLANK, FILLED, TIES = "clamped", "coded", "blank", "filled", "ties"
HEAVILY_CLAMPED, OF_OTHER_RELEASES, EXPECTATION = "heavily clamped", "of other releases", "expectation"
SOME = -1  # instead of a count that nobody may be told


@dataclass(frozen=True, slots=True)
class Noticed:
    """One thing. `name`: the column, or the expectation, which is about `columns`; `count`: of how many records, of so many in
    all (`among`). `at_most`: how many may, as a number, or as a share of all with its sign; `share`: of the variance."""

    kind: str
    name: str
    count: int = 0
    among: int = 0
    at_most: str = ""
    columns: tuple[str, ...] = ()
    share: float = 0.0

    @property
    def words(self) -> str:
        """It in a sentence, in the language that is spoken."""
        return _WORDS[self.kind](self)

    def to_json(self) -> dict[str, Any]:
        """As evidence keeps it: without what does not belong to its kind."""
        return {name: value for name, value in asdict(self).items() if value}


def _describe_clamped(noticed: Noticed) -> str:
    share = noticed.count / noticed.among
    words = format_percent(share, 2) if share >= LEAST_SHARE else show_share(share)
    return REVIEWERS("warning.clamped", column=noticed.name, records=_count(noticed), share=words)


def _describe_other_releases(noticed: Noticed) -> str:
    if noticed.count == SOME:
        return REVIEWERS("warning.some_of_other_releases", column=noticed.name)
    return REVIEWERS("warning.of_other_releases", column=noticed.name, records=_count(noticed))


def _describe_expectation(noticed: Noticed) -> str:
    name, columns, broken = noticed.name, join_names(noticed.columns), format_count(noticed.count)
    if noticed.at_most.endswith("%"):
        share = percent(Decimal(noticed.at_most.removesuffix("%")) / 100)
        return REVIEWERS("warning.expectation_share", name=name, columns=columns, broken=broken, share=share)
    most = count_things(int(noticed.at_most), "record")
    return REVIEWERS("warning.expectation", name=name, columns=columns, broken=broken, most=most)


def _count(noticed: Noticed) -> str:
    return count_things(noticed.count, "record")


_WORDS: dict[str, Callable[[Noticed], str]] = {
    CLAMPED: _describe_clamped,
    CODED: lambda noticed: REVIEWERS("warning.coded", column=noticed.name, records=_count(noticed)),
    BLANK: lambda noticed: REVIEWERS("warning.blank", column=noticed.name, records=_count(noticed)),
    FILLED: lambda noticed: REVIEWERS("warning.filled", column=noticed.name, records=_count(noticed)),
    TIES: lambda noticed: REVIEWERS("warning.ties", column=noticed.name),
    HEAVILY_CLAMPED: lambda noticed: REVIEWERS(
        "warning.heavily_clamped", column=noticed.name, share=format_percent(noticed.share, 0)
    ),
    OF_OTHER_RELEASES: _describe_other_releases,
    EXPECTATION: _describe_expectation,
}
