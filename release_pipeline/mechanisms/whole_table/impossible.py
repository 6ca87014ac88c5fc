"""Combinations that cannot occur: declared, public, and so free. Nothing is measured for them, and nothing that is measured has
less noise; their ends are edges of cells and groups, whatever the data are, and no row that is made has one.

A cell, and a group of the tables of pairs, lies wholly inside or wholly outside of what a rule says of its column. Rows are made
of groups and then of cells in them: that no made-up record of groups meets a rule is enough for the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import IntArray

MOST_PARTS = 12  # into which rules may put a column: each is a group of its own, at the least
_DRAWS = 8  # of a pool, at the most, until half of it is possible
_STEPS = 100_000  # of the search for a combination that is left, after which one is taken to be

Ends = tuple[int, int]  # the first and the last of some entries
Groups = Mapping[int, npt.NDArray[np.bool_]]  # of each column that a rule is about, which of its groups meet it


@dataclass(frozen=True, slots=True)
class Impossible:
    """A rule: of each column that it is about, by its place, the entries that meet it. No record meets all of a rule. A reason to
    have no value meets none."""

    entries: Mapping[int, tuple[Ends, ...]]

    def meet(self, place: int, entries: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these entries of a column meet it."""
        found = np.zeros(len(entries), dtype=np.bool_)
        for first, last in self.entries[place]:
            found |= (entries >= first) & (entries <= last)
        return found


def find_edges(rules: Sequence[Impossible], place: int, width: int) -> tuple[int, ...]:
    """The entries of a column with an order that are the first on their side of an end of a rule.

    >>> find_edges([Impossible({0: ((0, 14),), 1: ((2, 2),)}), Impossible({0: ((15, 20),), 1: ((1, 1),)})], 0, 110)
    (15, 21)
    """
    ends = {edge for rule in rules for first, last in rule.entries.get(place, ()) for edge in (first, last + 1)}
    return tuple(sorted(ends - {0, width + 1}))


def find_sides(rules: Sequence[Impossible], place: int, width: int) -> tuple[int, ...]:
    """Of each entry of a column without an order the number of its side: entries that meet the same rules are on one, and 0 is
    the side of those that meet none. Nothing where no rule is about the column.

    >>> find_sides([Impossible({0: ((1, 1), (3, 3)), 1: ((0, 4),)})], 0, 3)
    (0, 1, 0, 1)
    """
    about = [rule for rule in rules if place in rule.entries]
    if not about:
        return ()
    met = np.array([rule.meet(place, np.arange(width + 1)) for rule in about]).T
    known: dict[tuple[bool, ...], int] = {(False,) * len(about): 0}
    return tuple(known.setdefault(tuple(row), len(known)) for row in met.tolist())


def find_groups(rule: Impossible, firsts: Sequence[IntArray], groups: Sequence[IntArray]) -> Groups:
    """Which groups of the columns of a rule meet it, by the first entry of each cell that has entries."""
    found: dict[int, npt.NDArray[np.bool_]] = {}
    for place in rule.entries:
        found[place] = np.zeros(int(groups[place].max()) + 1, dtype=np.bool_)
        own = groups[place][: len(firsts[place])]
        found[place][own[rule.meet(place, firsts[place])]] = True
    return found


def find_barred(rules: Sequence[Groups], one: int, other: int) -> npt.NDArray[np.bool_] | None:
    """The cells of the table of two columns that rules about these two alone leave empty; None where there is no such rule."""
    found = [np.outer(rule[one], rule[other]) for rule in rules if set(rule) == {one, other}]
    return np.logical_or.reduce(found) if found else None


def find_met(rules: Sequence[Groups], rows: IntArray) -> npt.NDArray[np.bool_]:
    """Which of these records of groups, columns by records, meet a rule."""
    found = np.zeros(rows.shape[1], dtype=np.bool_)
    for rule in rules:
        found |= np.logical_and.reduce([meets[rows[place]] for place, meets in rule.items()])
    return found


def draw_possible(rules: Sequence[Groups], draw: Callable[[], IntArray]) -> IntArray:
    """A pool without the records that meet a rule: drawn again, and added, until half as many are left as one has. Where there
    are no rules it is the pool."""
    pool = draw()
    if not rules:
        return pool
    kept = pool[:, ~find_met(rules, pool)]
    for _ in range(_DRAWS - 1):
        if 2 * kept.shape[1] >= pool.shape[1]:
            break
        more = draw()
        kept = np.concatenate([kept, more[:, ~find_met(rules, more)]], axis=1)
    if not kept.shape[1]:
        raise InvalidArgument(
            "by the noisy counts nearly every row would have a combination that cannot occur, so that none is left to make.",
            where="never",
            remedy="Declare fewer combinations in the next revision: it is charged anew.",
        )
    return kept


def is_anything_left(rules: Sequence[Impossible], widths: Mapping[int, int], may_lack: Mapping[int, bool]) -> bool:
    """Whether there is a combination that meets no rule. `may_lack`: whether a record may have no value in a column.

    >>> halves = [Impossible({0: ((half, half),), 1: ((0, 1),)}) for half in (0, 1)]
    >>> is_anything_left(halves, {0: 1, 1: 1}, {0: False, 1: False}), is_anything_left(halves, {0: 1, 1: 1}, {0: True, 1: False})
    (False, True)
    """
    about = sorted({place for rule in rules for place in rule.entries})
    sides = {place: list(_list_sides(rules, place, widths[place], lacks=may_lack[place])) for place in about}
    free = {place for place in about if frozenset() in sides[place]}  # what is there meets no rule at all
    left = [number for number, rule in enumerate(rules) if not free & rule.entries.keys()]
    places = sorted({place for number in left for place in rules[number].entries})
    for step, choice in enumerate(product(*(sides[place] for place in places))):
        met = dict(zip(places, choice, strict=True))
        if not any(all(number in met[place] for place in rules[number].entries) for number in left):
            return True
        if step == _STEPS:
            return True
    return False


def _list_sides(rules: Sequence[Impossible], place: int, width: int, *, lacks: bool) -> Iterator[frozenset[int]]:
    """The rules that each kind of entry of a column meets."""
    if lacks:
        yield frozenset()
    about = [number for number, rule in enumerate(rules) if place in rule.entries]
    firsts = np.array([0, *find_edges(rules, place, width)], dtype=np.int64)
    met = np.array([rules[number].meet(place, firsts) for number in about]).T
    yield from {frozenset(number for number, does in zip(about, row, strict=True) if does) for row in met.tolist()}
