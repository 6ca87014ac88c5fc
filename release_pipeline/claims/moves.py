"""Hostile moves for methods that count by value: one record goes from one cell to another, and the cells are few and small.

Wherever a record goes, two counts of a stage change by one. What may be wrong is elsewhere: with counts of nobody or of very
many, at the ends of the domain, at atoms and beside the centre, where cells are finest; where most records are in one cell, which
is looked at closer; and where one record decides which cells true counts would have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy import Policy
from release_pipeline.policy.families.by_value import ByValueFamily
from release_pipeline.policy.options import ByValueOptions
from release_pipeline.privacy.by_value import LEAST_STRENGTH, ByValue, Stage
from release_pipeline.privacy.by_value.mechanism import next_stage

Ints: TypeAlias = npt.NDArray[np.int64]
MOST_RECORDS = 20_000  # of a part: with fewer than a release needs cells are coarser, and the claim is the same
_FAMILY = ByValueFamily(ByValueOptions)


@dataclass(frozen=True, slots=True)
class Move:
    """A column's numbers in grid units, and the number that those of the first person become. `words`: what it is."""

    words: str
    units: Ints
    to: int


def list_moves(policy: Policy) -> Iterator[dict[str, Move]]:
    """Moves of the same kind in each column, one kind after the other."""
    declared = {name: _FAMILY.declare(policy, name) for name in policy.noise_columns}
    has_labels = any(column.labels for column in declared.values())
    people = policy.records_per_person
    needed = max(math.ceil(LEAST_STRENGTH / column.budget.strength) for column in declared.values())
    records = max(min(needed, MOST_RECORDS), 4 * people)
    for moves in zip(*(_list_of_column(column, records, people, has_labels) for column in declared.values()), strict=True):
        yield {name: _spread_over(policy.parts, move, people) for name, move in zip(declared, moves, strict=True)}


def _list_of_column(declared: ByValue, records: int, people: int, has_labels: bool) -> Iterator[Move]:
    """So many records, the first `people` of them one person's. `has_labels`: whether some column has reasons for no value."""
    width, centre = declared.grid.width, declared.centre
    far = width if 2 * centre <= width else 0
    atom = next((atom for atom in declared.atoms if atom != centre), centre)
    heavy = _find_heavy(declared, records)

    def place(first: int, others: Sequence[int]) -> Ints:
        return np.append(np.full(people, first), np.resize(others, records - people)).astype(np.int64)

    yield Move("one leaves many at the centre for the far end", place(centre, [centre]), far)
    yield Move("one goes from an empty cell to the one beside it", place(centre, [far]), _beside(centre, width))
    yield Move("one leaves an atom for the number beside it", place(atom, [atom, centre, far]), _beside(atom, width))
    yield Move("one leaves a cell with most records", place(heavy, [*[heavy] * 9, centre]), far if heavy == centre else centre)
    spread = np.rint(np.linspace(0, width, records - people)).astype(np.int64)
    yield Move("one moves past all of an even spread", place(0, spread.tolist()), width)
    stays = _count_before_other_cells(declared, records, people, far) * people
    others = [*[far] * stays, *[centre] * (records - people - stays)]
    if has_labels:
        none = width + declared.labels
        yield Move("one leaves many at the centre for no value", place(centre, [centre]), none)
        yield Move("one has a value where nobody else has", place(none, [none]), far)
    yield Move("one moves where true counts would then have other cells", place(centre, others), far)


def _spread_over(parts: int, move: Move, people: int) -> Move:
    """As many records for each random part, everybody else that many times."""
    others = move.units[people:]
    wanted = len(move.units) * parts - people
    return replace(move, units=np.append(move.units[:people], others[np.arange(wanted) * len(others) // wanted]))


def _beside(unit: int, width: int) -> int:
    return unit + 1 if unit < width else unit - 1


def _find_heavy(declared: ByValue, records: int) -> int:
    """The middle of the widest cell that is counted first."""
    edges = _count_first(declared, np.zeros(records, dtype=np.int64)).edges
    widest = int(np.diff(edges).argmax())
    return int(edges[widest] + edges[widest + 1] - 1) // 2


def _count_before_other_cells(declared: ByValue, records: int, people: int, far: int) -> int:
    """How many persons have left the centre for the far end when one more would change the cells that true counts ask for."""

    def cells(persons: int) -> list[int]:
        units = np.full(records, declared.centre, dtype=np.int64)
        units[: persons * people] = far
        following = next_stage([_count_first(declared, units)], declared.facts(records), declared.budget)
        return following[0].tolist() if following is not None else []

    low, high, first = 0, records // people, cells(0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cells(middle) == first else (low, middle)
    return min(low, records // people - 1)


def _count_first(declared: ByValue, units: Ints) -> Stage:
    """The first stage as it would be without noise."""
    following = next_stage([], declared.facts(len(units)), declared.budget)
    if following is None:
        raise InvalidArgument("nothing is counted.", where="counts")
    edges, noise = following
    return Stage(edges, np.histogram(units, edges)[0].astype(np.int64), noise)
