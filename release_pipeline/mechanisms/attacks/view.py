"""The attacked table: columns before and after, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.basis.samples import Share, difference_beyond, measure_share
from release_pipeline.mechanisms.noise import NoiseStream, shuffled_positions
from release_pipeline.mechanisms.risk.neighbours import Nearest, Neighbours

Rows: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, repr=False)
class AttackedColumn:
    """One column before and after: float64 for numbers, or integers that number categories (-1: blank) in the same way in
    both. `original_rows`: the row of the original of each released row, if they are not in the same order."""

    name: str
    original: npt.NDArray[Any]
    released: npt.NDArray[Any]
    original_rows: Rows | None = None

    def of_people(self, people: Rows) -> npt.NDArray[Any]:
        """Return the originals of some released rows."""
        rows: Rows = people if self.original_rows is None else self.original_rows[people]
        return np.take(self.original, rows)

    @property
    def is_numeric(self) -> bool:
        """Return whether it holds numbers rather than categories."""
        return self.original.dtype.kind == "f"


@dataclass(frozen=True, slots=True, repr=False)
class Attacked:
    """A released table and its originals: row i of every released column comes from row i of every original column, or from its
    row original_rows[i]."""

    columns: tuple[AttackedColumn, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidArgument("there is no column to attack.")
        for column in self.columns:
            kinds = {column.original.dtype.kind, column.released.dtype.kind}
            if kinds != {"f"} and not kinds <= {"i", "u"}:
                raise InvalidType("a column is neither float64 nor integer codes, before and after.", where=column.name)
            rows = column.original if column.original_rows is None else column.original_rows
            if {rows.shape, column.released.shape} != {(len(self),)}:
                raise InvalidArgument("the columns do not have equally many rows.", where=column.name)
            if column.is_numeric and not (np.isfinite(column.original).all() and np.isfinite(column.released).all()):
                raise InvalidArgument(
                    "there are missing or infinite numbers.",
                    where=column.name,
                    remedy="Leave these records out, or give the column as codes, -1 for blank.",
                )
        if len(self) < 3:
            raise InvalidArgument("fewer than three records leave nobody to compare with.")

    def __len__(self) -> int:
        return len(self.columns[0].released)


# The attacked people, the control group, and the result of an attack compared with it.


@dataclass(frozen=True, slots=True)
class People:
    """The attacked people, as rows of a table: `targets`, and as many in the `control` group; and the released rows that are
    `left` to the attacker. If rows are synthetic, the table was made from the first and without the second."""

    targets: Rows
    control: Rows
    left: Rows


@dataclass(frozen=True, slots=True)
class Attack:
    """The result of an attack.

    attack   the share of successes against people whose own rows were there
    control  the share against people whose own rows had been removed
    guess    the share of successes of somebody who does not use near rows
    risk     the attack's successes beyond the control group's, as a share of what was left to gain (`difference_beyond`)
    worst    the column with most of the risk, if the attack shows it; empty otherwise, or without risk
    """

    name: str
    attack: Share
    control: Share
    guess: float
    risk: Share
    worst: str


def draw_people(n: int, stream: NoiseStream, *, most: int) -> People:
    """Return at most so many of n at random, as many for the control group, and all rows except those of the latter, in order."""
    order = shuffled_positions(n, stream)
    size = min(most, n // 3)
    return People(order[size : 2 * size], order[:size], np.sort(order[size:]))


def judge(
    name: str, tried: npt.NDArray[Any], control: npt.NDArray[Any], *, guess: float, among: int | None, worst: str = ""
) -> Attack:
    """Return the result from the successes of each person (`tried`, `control`); `among`: how many people they were drawn from."""
    attack, of_control = (measure_share(successes.astype(np.float64), among=among) for successes in (tried, control))
    risk = difference_beyond(attack, of_control)
    return Attack(name, attack, of_control, guess, risk, worst if risk.value > 0 else "")


# The released rows as an attacker knows them, and which of them are nearest to a person.


_AT_ONCE = 16  # targets whose lists of ties are held together


class View:
    """The released rows left to the attacker, as points of the columns that the attacker knows."""

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
        for index, (column, least, width) in enumerate(self._numbers):
            known[:, index] = (column.released[left] - least) / width
        codes = np.empty((len(left), len(self._codes)), dtype=np.int64)
        for index, column in enumerate(self._codes):
            codes[:, index] = column.released[left]
        self.neighbours = Neighbours(known, power=1, codes=codes)

    def search(self, people: Rows, secret: AttackedColumn) -> Iterator[tuple[Nearest, npt.NDArray[Any]]]:
        """Yield the rows nearest to the originals of some people, and these people's values of the secret."""
        points, codes = self._points(people)
        for near in self.neighbours.search(points, codes):
            yield near, secret.of_people(people[near.first : near.first + len(near.distance)])

    def nearest(self, people: Rows) -> FloatArray:
        """Return how far the nearest rows are from the originals of some people. A column without any range has no distance, but
        people with a different value there equal no row: they are at least one column away."""
        distance, _ = self.neighbours.count(*self._points(people))
        for column, only in self._constant:
            distance = distance + (column.of_people(people) != only)
        return distance

    def lists(self, people: Rows) -> Iterator[IntArray]:
        """Yield for each of some people the distinct points that are nearest."""
        for start in range(0, len(people), _AT_ONCE):
            for near in self.neighbours.search(*self._points(people[start : start + _AT_ONCE])):
                yield from np.split(near.member, near.start[1:-1])

    def _points(self, people: Rows) -> tuple[FloatArray, IntArray]:
        points = np.empty((len(people), len(self._numbers)))
        for index, (column, least, width) in enumerate(self._numbers):
            points[:, index] = (column.of_people(people) - least) / width
        codes = np.empty((len(people), len(self._codes)), dtype=np.int64)
        for index, column in enumerate(self._codes):
            codes[:, index] = column.of_people(people)
        return points, codes
