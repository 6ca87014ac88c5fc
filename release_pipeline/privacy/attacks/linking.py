"""Linking: whether the released table joins what two sources know about the same person (GEM23)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.attacks.control import Attack, People, draw_people, judge
from release_pipeline.privacy.attacks.table import Attacked
from release_pipeline.privacy.attacks.view import View
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.neighbours import Neighbours
from release_pipeline.privacy.noise import NoiseStream

TARGETS = 1_000  # people attacked, at most, and as many in the control group


def link(
    table: Attacked,
    *,
    stream: NoiseStream,
    known: tuple[Sequence[str], Sequence[str]] | None = None,
    people: People | None = None,
) -> Attack:
    """How often the released table joins what two sources know about the same person, who is in both under different names.

    `known` names the columns of the one source and those of the other; without it, every other column each. The attacker takes
    one of the rows nearest by the first source's columns, one of those nearest by the second's, and wins if it is the same row:
    with sets A and B of rows equally near, the chance is |A and B| / (|A| |B|). Without ties this is GEM23's attack with one
    neighbour; k equal rows, however near, link with 1/k, while with ties broken by the order of rows they would always. Two rows
    at random are the same one once in as many as there are: that is `guess`. `people`: who is attacked, where the table was made
    without the control group.
    """
    names = [column.name for column in table.columns]
    sources = (names[::2], names[1::2]) if known is None else (list(known[0]), list(known[1]))
    if set(sources[0]) & set(sources[1]) or not set(sources[0]) | set(sources[1]) <= set(names):
        raise InvalidArgument("the two sources share a column, or know one that the table does not have.", where="known")
    people = people or draw_people(len(table), stream, most=TARGETS)
    one, other = (View([column for column in table.columns if column.name in source], people.left) for source in sources)
    join = _Join(one.neighbours, other.neighbours)
    tried = [
        np.array([join.chance(*lists) for lists in zip(one.lists(some), other.lists(some), strict=True)])
        for some in (people.targets, people.control)
    ]
    return judge("linking", tried[0], tried[1], guess=1 / len(people.left), among=len(table))


class _Join:
    """Which rows are at a point of the one view and at a point of the other."""

    def __init__(self, one: Neighbours, other: Neighbours) -> None:
        self._one, self._other = one, other
        self._pairs = np.sort(one.place * len(other.weight) + other.place)
        self._rows: tuple[IntArray, IntArray] | None = None
        self._marked = np.zeros(len(other.weight), dtype=np.bool_)

    def chance(self, one: IntArray, other: IntArray) -> float:
        """|A and B| / (|A| |B|) for the rows A at some points of the one view and the rows B at some of the other."""
        sizes = int(self._one.weight[one].sum()), int(self._other.weight[other].sum())
        if len(one) * len(other) <= sizes[0]:
            wanted = (one[:, np.newaxis] * len(self._marked) + other).reshape(-1)
            first, last = (np.searchsorted(self._pairs, wanted, side=side) for side in ("left", "right"))
            both = int(np.sum(last - first))
        else:
            self._marked[other] = True
            both = sum(int(np.count_nonzero(self._marked[self._other.place[rows]])) for rows in self._rows_at(one))
            self._marked[other] = False
        return both / (sizes[0] * sizes[1])

    def _rows_at(self, points: IntArray) -> Iterator[IntArray]:
        if self._rows is None:
            order = np.argsort(self._one.place, kind="stable")
            self._rows = order, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._one.weight)])
        rows, start = self._rows
        yield from (rows[start[point] : start[point + 1]] for point in points.tolist())
