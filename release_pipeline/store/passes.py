"""What is done to arrays on disk, cut into tasks. Each reads and writes parts of arrays, may be done by another process and in
any order, and gives the same when it is done again, since no task writes what one of the same pass reads: but for `SortedRuns`
and `OrderedRuns` where pieces are sorted in their places, which only one process does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.arrays import Places, pieces

Scalar = TypeVar("Scalar", bound=np.generic)
_SIDES: tuple[Literal["left"], Literal["right"]] = "left", "right"


class Target(Protocol):
    """What a task writes a part of an array through: the array itself, or one that lies elsewhere."""

    def __setitem__(self, part: slice, values: npt.NDArray[Any], /) -> None: ...


@dataclass(frozen=True, slots=True)
class Filled:
    """An array that a function makes piece by piece: a task makes so many pieces."""

    function: Callable[[slice], npt.NDArray[Any]]
    count: int
    size: int
    each: int
    out: Target

    def __call__(self, number: int) -> None:
        first = number * self.each * self.size
        for part in pieces_of(first, min(first + self.each * self.size, self.count), self.size):
            self.out[part] = self.function(part)


@dataclass(frozen=True, slots=True)
class Chained:
    """Parts that a function makes of every piece, one after the other; `ends`: where each begins and the last one ends."""

    function: Callable[[slice], npt.NDArray[Any]]
    ends: Places
    count: int
    size: int
    each: int
    out: Target

    def __call__(self, number: int) -> None:
        place = number * self.each
        for part in pieces_of(place * self.size, min((place + self.each) * self.size, self.count), self.size):
            self.out[slice(int(self.ends[place]), int(self.ends[place + 1]))] = self.function(part)
            place += 1


@dataclass(frozen=True, slots=True)
class Looked:
    """What a function gives of some slices of so many entries."""

    function: Callable[[slice], Any]
    count: int
    step: int
    each: int

    def __call__(self, number: int) -> list[Any]:
        """Of those of one task."""
        first = number * self.each * self.step
        return list(map(self.function, pieces_of(first, min(first + self.each * self.step, self.count), self.step)))


def pieces_of(first: int, beyond: int, size: int | None = None) -> Iterator[slice]:
    """Those that lie between two places."""
    return (slice(first + part.start, first + part.stop) for part in pieces(beyond - first, size))


@dataclass(frozen=True, slots=True)
class Runs:
    """Pieces of an array that are sorted by themselves, and every how many of their values one is drawn."""

    starts: Sequence[int]
    count: int
    piece: int
    step: int

    def __getitem__(self, number: int) -> slice:
        return slice(self.starts[number], min(self.starts[number] + self.piece, self.count))


@dataclass(frozen=True, slots=True)
class SortedRuns:
    """Each piece sorted; gives some of its values."""

    values: npt.NDArray[Any]
    into: Target
    runs: Runs

    def __call__(self, number: int) -> npt.NDArray[Any]:
        run = self.runs[number]
        one = np.array(self.values[run])
        one.sort()
        self.into[run] = one
        return one[:: self.runs.step].copy()


@dataclass(frozen=True, slots=True)
class OrderedRuns:
    """The same, with the place that each value had."""

    values: npt.NDArray[Any]
    into: Target
    places: Target
    runs: Runs

    def __call__(self, number: int) -> npt.NDArray[Any]:
        run = self.runs[number]
        one = np.array(self.values[run])
        order = np.argsort(one, kind="stable")
        one = one[order]
        self.into[run], self.places[run] = one, order + run.start
        return one[:: self.runs.step].copy()


@dataclass(frozen=True, slots=True)
class CutRuns:
    """Where borders lie in each sorted piece: before and behind what is equal to them."""

    values: npt.NDArray[Any]
    runs: Runs
    borders: npt.NDArray[Any]

    def __call__(self, number: int) -> Places:
        run = self.runs[number]
        sides = [np.searchsorted(self.values[run], self.borders, side=side) for side in _SIDES]
        return np.concatenate([[0], np.stack(sides, axis=1).ravel(), [run.stop - run.start]]) + run.start


@dataclass(frozen=True, slots=True)
class Buckets:
    """What lies between two borders of all pieces, bucket by bucket: from `cuts[run, bucket]` to the next of each piece, and to
    be written from `places[bucket]` on. Every other one has what is equal to a border. `groups`: those of one task."""

    cuts: Places
    places: Places
    groups: Sequence[slice]

    @classmethod
    def of(cls, runs: Runs, cuts: Places) -> Buckets:
        """So many that a task has about a piece."""
        places = np.concatenate([[0], np.cumsum((cuts[:, 1:] - cuts[:, :-1]).sum(axis=0))])
        first = np.unique(np.searchsorted(places, range(0, runs.count, runs.piece), side="right") - 1)
        ends = [*first[1:].tolist(), len(places) - 1]
        return cls(cuts, places, [slice(int(one), end) for one, end in zip(first, ends, strict=True)])

    def parts(self, bucket: int) -> list[slice]:
        """The parts of the pieces that come there."""
        ends = zip(self.cuts[:, bucket].tolist(), self.cuts[:, bucket + 1].tolist(), strict=True)
        return [slice(first, beyond) for first, beyond in ends if first < beyond]


@dataclass(frozen=True, slots=True)
class Merged:
    """What lies between two borders, put together and sorted: the values, or the places that they had."""

    values: npt.NDArray[Any]
    places: Places | None
    out: Target
    buckets: Buckets
    piece: int

    def __call__(self, number: int) -> None:
        wanted = self.values if self.places is None else self.places
        for bucket in range(*self.buckets.groups[number].indices(len(self.buckets.places))):
            parts, place = self.buckets.parts(bucket), int(self.buckets.places[bucket])
            if bucket % 2:  # all of them are one value, of which there may be any number
                _write_all(self.out, place, (wanted[part] for part in parts), self.piece)
            elif parts:
                between = np.concatenate([self.values[part] for part in parts])
                if self.places is None:
                    between.sort()
                else:
                    between = np.concatenate([self.places[part] for part in parts])[np.argsort(between, kind="stable")]
                self.out[slice(place, place + len(between))] = between


@dataclass(frozen=True, slots=True)
class Moves:
    """So many places, in pieces, and the pieces of an array of `among` entries that they lie in. Gathered by these, those of each
    begin at `starts`, and those that one piece of places has there at `at[piece, there]`."""

    piece: int
    count: int
    among: int
    starts: Places
    at: Places

    def whole(self, number: int, count: int) -> slice:
        """A piece of so many entries."""
        return slice(number * self.piece, min((number + 1) * self.piece, count))

    def order(self, places: Places) -> tuple[Places, Places]:
        """Some places in the order of the pieces that they lie in, and where the places of each begin."""
        within, parts = places // self.piece, len(self.starts) - 1
        narrow = within.astype(np.uint16) if parts <= 1 << 16 else within  # of so few NumPy counts instead of comparing
        return np.argsort(narrow, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(within, minlength=parts))])


@dataclass(frozen=True, slots=True)
class CountedPlaces:
    """How many of a piece of places lie in each piece of an array."""

    places: Places
    piece: int
    parts: int

    def __call__(self, number: int) -> Places:
        part = slice(number * self.piece, min((number + 1) * self.piece, len(self.places)))
        return np.bincount(self.places[part] // self.piece, minlength=self.parts)


@dataclass(frozen=True, slots=True)
class Gathered:
    """A piece of places, or what is made of it, by where they lie."""

    places: Places
    function: Callable[[slice], npt.NDArray[Any]] | None
    moves: Moves
    out: Target

    def __call__(self, number: int) -> None:
        part = self.moves.whole(number, self.moves.count)
        order, cuts = self.moves.order(self.places[part])
        if self.function is None:
            moved = self.places[part][order]
        else:
            moved = np.concatenate([self.function(own) for own in pieces_of(part.start, part.stop)])[order]
        for there in np.flatnonzero(np.diff(cuts)):
            first, last, at = int(cuts[there]), int(cuts[there + 1]), int(self.moves.at[number, there])
            self.out[slice(at, at + last - first)] = moved[first:last]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The values at the places that lie in one piece."""

    values: npt.NDArray[Any]
    gathered: Places
    moves: Moves
    out: Target

    def __call__(self, number: int) -> None:
        within = self.moves.whole(number, self.moves.among)
        near = np.array(self.values[within])
        for part in pieces_of(int(self.moves.starts[number]), int(self.moves.starts[number + 1])):
            self.out[part] = near[self.gathered[part] - within.start]


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """What was found for a piece of places, in their order."""

    places: Places
    found: npt.NDArray[Any]
    moves: Moves
    out: Target

    def __call__(self, number: int) -> None:
        part = self.moves.whole(number, self.moves.count)
        order, cuts = self.moves.order(self.places[part])
        one = np.empty(len(order), dtype=self.found.dtype)
        starts = zip(self.moves.at[number].tolist(), np.diff(cuts).tolist(), strict=True)
        one[order] = np.concatenate([self.found[at : at + count] for at, count in starts])
        self.out[part] = one


@dataclass(frozen=True, slots=True)
class PutDown:
    """One piece of an array of what was gathered for it."""

    there: Places
    moved: npt.NDArray[Any]
    moves: Moves
    out: Target

    def __call__(self, number: int) -> None:
        within = self.moves.whole(number, self.moves.among)
        mine = slice(int(self.moves.starts[number]), int(self.moves.starts[number + 1]))
        one = np.empty(within.stop - within.start, dtype=self.moved.dtype)
        one[self.there[mine] - within.start] = self.moved[mine]
        self.out[within] = one


def take(values: npt.NDArray[Scalar], places: Places, part: slice) -> npt.NDArray[Scalar]:
    return values[places[part]]


def _write_all(out: Target, place: int, parts: Iterator[npt.NDArray[Any]], piece: int) -> None:
    """These one after the other, from a place on."""
    for values in parts:
        for part in pieces(len(values), piece):
            out[slice(place + part.start, place + part.stop)] = values[part]
        place += len(values)
