"""The types of the figures on attacks that the reviewers' page shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareView:
    """A share between 0 and 1 with its 95% interval, from `tried` trials of `among` possible ones. If all were tried, low and
    high equal the value. `among` is None if the number of possible trials has no limit."""

    value: float
    low: float
    high: float
    tried: int
    among: int | None


@dataclass(frozen=True, slots=True)
class RungView:
    """The share of rows that somebody links who knows everybody's kept columns and `masked` of the masked ones: with the
    `columns` that link most, and the `median` over the `tried` sets of columns, out of `sets`. `control`: the share by guessing
    among records with the same kept columns, or, if only kept columns are compared, among all records."""

    masked: int
    columns: tuple[str, ...]
    linked: ShareView
    median: float
    control: float
    tried: int = 1
    sets: int = 1


@dataclass(frozen=True, slots=True)
class CriterionView:
    """One attack by the criterion that it is tried for (`privacy.attacks.CRITERIA`): how often it succeeds (`rate`), the same
    against its control group, and what is `beyond`, (attack - control) / (1 - control); None for record linkage, which has no
    control group. `worst`: the column that an attack on all is worst for. `words`: what the attacker knows and tries."""

    criterion: str
    attack: str
    rate: ShareView
    guess: float
    control: ShareView | None = None
    beyond: ShareView | None = None
    worst: str = ""
    words: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether it clearly does better than on the control group, and than a guess without any near row."""
        return self.beyond is not None and self.beyond.low > 0 and self.rate.low > self.guess


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two shares, with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClaimView:
    """The share of right values in the nearest row, for people that the rows were made from, and for strangers. `beyond` is the
    difference. `name` is empty for the mean over all columns."""

    name: str
    people: ShareView
    strangers: ShareView
    guess: float
    beyond: Difference


@dataclass(frozen=True, slots=True)
class NearView:
    """The information in the row nearest by the `known` columns, about people that synthetic rows were made from, compared with
    strangers: how often a row equals theirs in these columns, the median distance, and how often the nearest row's other columns
    are right (`claims`). If every column is known, each claim uses the row nearest by all other columns."""

    known: tuple[str, ...]
    equal: ShareView
    strangers_equal: ShareView
    beyond: Difference
    median: float
    strangers_median: float
    claims: tuple[ClaimView, ...] = ()
    overall: ClaimView | None = None

    @property
    def is_each_by_others(self) -> bool:
        """Return whether each column is guessed from all others, because there was no quasi-identifier."""
        return any(claim.name in self.known for claim in self.claims)
