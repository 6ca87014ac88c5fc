"""From what was seen of two tables to an epsilon that the release must have at the least.

An event whose probability is p under one table and p' under the other proves a loss of at least ln(p / p'). Which event tells
most is learnt from some of the draws, and others count how often it happens: bounds on both counts by Clopper and Pearson (CP34),
each wrong with a probability of 0.05% at the most, so that a figure is proved with a confidence of 99.9%. What is chosen by
looking cannot flatter itself, because it is counted anew.

Of a claim by rho the same two bounds prove a rho: the divergence of order 1 of the two tables' outcomes is at most rho, and no
less than that of whether the event happened, p ln(p/p') + (1 - p) ln((1 - p)/(1 - p')) (data processing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.shares import bound_share

DOUBT = 0.0005  # of each of the two bounds
RANKED, CHOSEN = 0.15, 0.35  # shares of the draws that rank what can be seen, and that choose; the rest proves
Proof: TypeAlias = Callable[["npt.NDArray[np.int64]", int, "npt.NDArray[np.int64]"], "npt.NDArray[np.float64]"]
Codes: TypeAlias = npt.NDArray[np.int64]  # what was seen in each draw, by number; -1: nothing that counts
Flags: TypeAlias = npt.NDArray[np.bool_]
Both: TypeAlias = tuple[Codes, Codes]


@dataclass(frozen=True, slots=True)
class Event:
    """What an attacker looks at (`view`), the numbers that count as yes, and under which of the two tables they are likelier."""

    view: str
    codes: frozenset[int]
    of_other: bool

    def bound(self, seen: Both, prove: Proof) -> float:
        """What these draws prove."""
        of, against = (seen[1], seen[0]) if self.of_other else seen
        wanted = np.fromiter(self.codes, dtype=np.int64, count=len(self.codes))
        return float(
            prove(
                np.array([np.count_nonzero(np.isin(of, wanted))]), len(of), np.array([np.count_nonzero(np.isin(against, wanted))])
            )[0]
        )


def prove(happened: npt.NDArray[np.int64], draws: int, against: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """For events that happened so often in so many draws of each table: the loss that is proved, 0 where none is.

    >>> [round(float(loss), 2) for loss in prove(np.array([500, 0]), 1000, np.array([100, 0]))]
    [1.2, 0.0]
    """
    lower, _ = bound_share(happened, draws, DOUBT)
    _, upper = bound_share(against, draws, DOUBT)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(lower / upper), 0.0)


def prove_rho(happened: npt.NDArray[np.int64], draws: int, against: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The same for rho: 0 where the bounds do not tell the tables apart.

    >>> [round(float(loss), 2) for loss in prove_rho(np.array([500, 0]), 1000, np.array([100, 0]))]
    [0.29, 0.0]
    """
    lower, _ = bound_share(happened, draws, DOUBT)
    _, upper = bound_share(against, draws, DOUBT)
    with np.errstate(divide="ignore", invalid="ignore"):
        happens = np.where(lower > 0, lower * np.log(lower / upper), 0.0)
        rest = np.where(lower < 1, (1 - lower) * np.log((1 - lower) / (1 - upper)), 0.0)
    return np.where(lower > upper, happens + rest, 0.0)


def choose_event(views: Mapping[str, Both], prove: Proof) -> tuple[Event, float]:
    """The event that tells the two tables apart best, by the first half of the draws, and what it would prove by its looks. All
    views are of the same draws."""
    best, most = Event(next(iter(views)), frozenset(), of_other=False), -1.0
    for view, seen in views.items():
        for of_other in (False, True):
            event, found = _choose(view, seen, prove, of_other=of_other)
            if found > most:
                best, most = event, found
    return best, most


def left_to_prove(seen: Both) -> Both:
    """The draws that neither ranked nor chose."""
    first = count_learnt(len(seen[0]))
    return seen[0][first:], seen[1][first:]


def count_learnt(draws: int) -> int:
    """How many of so many draws rank and choose: nothing may be learnt from the others."""
    return int(draws * (RANKED + CHOSEN))


def _cut(seen: Both) -> tuple[int, int]:
    draws = len(seen[0])
    return int(draws * RANKED), count_learnt(draws)


def _choose(view: str, seen: Both, prove: Proof, *, of_other: bool) -> tuple[Event, float]:
    """Codes ranked by how much likelier they are under one table, by some draws; how many of the first to take, by others."""
    of, against = (seen[1], seen[0]) if of_other else seen
    ranking, choosing = _cut(seen)
    count = int(max(of.max(initial=0), against.max(initial=0))) + 1
    ranked = [np.bincount(codes[:ranking][codes[:ranking] >= 0], minlength=count) for codes in (of, against)]
    tried = [np.bincount(codes[ranking:choosing][codes[ranking:choosing] >= 0], minlength=count) for codes in (of, against)]
    known = np.flatnonzero(ranked[0] + ranked[1])
    order = known[np.argsort(-(ranked[0][known] + 1) / (ranked[1][known] + 1), kind="stable")]
    found = prove(np.cumsum(tried[0][order]), choosing - ranking, np.cumsum(tried[1][order]))
    if not len(found):
        return Event(view, frozenset(), of_other), 0.0
    last = int(found.argmax())
    return Event(view, frozenset(order[: last + 1].tolist()), of_other), float(found[last])
