"""What the reviewers' page says of attacks, as types."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareView:
    """A share between 0 and 1 with its 95% interval: `tried` of `among` were tried. Where all were, low and high are the value.
    `among` is None where there is no end of what could be tried."""

    value: float
    low: float
    high: float
    tried: int
    among: int | None


@dataclass(frozen=True, slots=True)
class RungView:
    """What somebody links who knows the kept columns of everybody and so many of the `masked` ones: with the `columns` that link
    most, and in the `median` of the sets of columns that were `tried`, of so many `sets`. `control`: by guessing among records
    with the same kept columns; of kept columns only, among all."""

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
    against its control group, and what is `beyond`, (attack - control) / (1 - control); None of record linkage, which has no
    control group. `worst`: the column that an attack on all is worst for. `words`: what the attacker knows and tries."""

    criterion: str
    attack: str
    rate: ShareView
    guess: float
    control: ShareView | None = None
    beyond: ShareView | None = None
    worst: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One share less another, with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClaimView:
    """How often a value of the nearest row is right of people that rows were made of, and of strangers; `beyond`: how much more
    often of the first. `name` is empty for the mean over all columns."""

    name: str
    people: ShareView
    strangers: ShareView
    guess: float
    beyond: Difference


@dataclass(frozen=True, slots=True)
class NearView:
    """What the row nearest by the columns `known` says of people that synthetic rows were made of, and of strangers: how often
    a row is just like them there, the median distance, and what the other columns of the nearest row say of them (`claims`);
    where every column is known, what each says whose row is nearest by all others."""

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
        """Whether no column is sought by fixed others, but each by all others: there was no quasi-identifier."""
        return any(claim.name in self.known for claim in self.claims)
