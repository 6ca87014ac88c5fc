"""What an attacker knows of released rows, and which of them are nearest to a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.attacks.table import AttackedColumn, Rows
from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.neighbours import Nearest, Neighbours

_AT_ONCE = 16  # targets whose lists of ties are held together


class View:
    """The released rows that are left, as points of the columns that an attacker knows."""

    def __init__(self, columns: Sequence[AttackedColumn], left: Rows) -> None:
        self._numbers: list[tuple[AttackedColumn, float, float]] = []
        self._constant: list[tuple[AttackedColumn, float]] = []
        self._codes = [column for column in columns if not column.is_numeric]
        for column in columns:
            if column.is_numeric:
                released = column.released[left]
                least, most = float(released.min()), float(released.max())
                if most > least:
                    self._numbers.append((column, least, most - least))
                else:
                    self._constant.append((column, least))
        known = np.empty((len(left), len(self._numbers)))
        for place, (column, least, width) in enumerate(self._numbers):
            known[:, place] = (column.released[left] - least) / width
        codes = np.empty((len(left), len(self._codes)), dtype=np.int64)
        for place, column in enumerate(self._codes):
            codes[:, place] = column.released[left]
        self.neighbours = Neighbours(known, power=1, codes=codes, consume=True)

    def search(self, people: Rows, secret: AttackedColumn) -> Iterator[tuple[Nearest, npt.NDArray[Any]]]:
        """The rows nearest to the originals of some people, and these people's values of the secret."""
        points, codes = self._points(people)
        for near in self.neighbours.search(points, codes):
            yield near, secret.of_people(people[near.first : near.first + len(near.distance)])

    def nearest(self, people: Rows) -> FloatArray:
        """How far the nearest rows are from the originals of some people. A column without any range has no distance, but
        people who have another value there are like no row: they are at least a column away."""
        distance, _ = self.neighbours.count(*self._points(people))
        for column, only in self._constant:
            distance = distance + (column.of_people(people) != only)
        return distance

    def lists(self, people: Rows) -> Iterator[IntArray]:
        """For each of some people the distinct points that are nearest."""
        for start in range(0, len(people), _AT_ONCE):
            for near in self.neighbours.search(*self._points(people[start : start + _AT_ONCE])):
                yield from np.split(near.member, near.start[1:-1])

    def _points(self, people: Rows) -> tuple[FloatArray, IntArray]:
        points = np.empty((len(people), len(self._numbers)))
        for place, (column, least, width) in enumerate(self._numbers):
            points[:, place] = (column.of_people(people) - least) / width
        codes = np.empty((len(people), len(self._codes)), dtype=np.int64)
        for place, column in enumerate(self._codes):
            codes[:, place] = column.of_people(people)
        return points, codes
