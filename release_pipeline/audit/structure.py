"""What became of tables of a few columns, and of columns that are tied by a rule.

How far synthetic tables of one, two and three columns are from the original ones: total variation distances, beside
those of as many original records drawn anew with replacement, which is what chance alone would do to the very table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.mechanisms.basis.counting import GroupsOfEntries, plan_tables
from release_pipeline.mechanisms.basis.dates import Unit, seconds_of
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import column_error, variance_of
from release_pipeline.mechanisms.noise.unclaimed import Random
from release_pipeline.mechanisms.whole_table.design import cover_pairs
from release_pipeline.mechanisms.whole_table.measure import Counting
from release_pipeline.policy import Policy
from release_pipeline.policy.file.derivations import Between, Derived, moment_of
from release_pipeline.policy.file.words import Tie, find_ties
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.rows.suppress import make_column, read_numbers

GROUPS = 12  # of a column of numbers, of about as many original records each; so many values of others, the rare ones together
MOST_TRIPLES = 100  # drawn at random, where there are more
WORST = 5  # pairs that are named


Table: TypeAlias = tuple[int, ...]  # its columns


def measure_structure(
    sizes: Mapping[str, int], before: Counting, after: Counting, nominal: Sequence[str], random: Random
) -> dict[str, Any]:
    """Of every column, every pair, and some sets of three: the mean distance, and that of records drawn anew; of pairs
    also the worst."""
    names = list(sizes)
    groups = [
        _find_groups(before.tally(place), size, is_nominal=name in nominal) for place, (name, size) in enumerate(sizes.items())
    ]
    columns, pairs, triples = (list[Table](combinations(range(len(names)), count)) for count in (1, 2, 3))
    drawn: list[int] = np.sort(random.permutation(len(triples))[:MOST_TRIPLES]).tolist()
    chosen = [triples[place] for place in drawn]
    of_each = [GROUPS] * len(names)
    plan = plan_tables(groups, of_each, [*columns, *pairs, *chosen], cover_pairs(of_each))
    was, now = (plan.split(side.count(plan)) for side in (before, after))
    distances = {table: _compare(own, other, random) for table, own, other in zip(plan.wanted, was, now, strict=True)}
    worst = sorted(pairs, key=lambda pair: -distances[pair][0])[:WORST]
    of_pairs, of_triples = _average(distances, pairs), _average(distances, chosen)
    return {
        "columns": {names[place]: distances[place,][0] for (place,) in columns},
        "columns_by_chance": _average(distances, columns)[1],
        "pairs": of_pairs[0],
        "pairs_by_chance": of_pairs[1],
        "worst_pairs": [{"one": names[one], "other": names[other], "distance": distances[one, other][0]} for one, other in worst],
        "triples": of_triples[0],
        "triples_by_chance": of_triples[1],
        "triples_tried": len(chosen),
    }


def _average(distances: Mapping[Table, tuple[float, float]], tables: Iterable[Table]) -> tuple[float | None, float | None]:
    """The mean distance of these tables, and of records drawn anew."""
    own = [distances[table] for table in tables]
    if not own:
        return None, None
    distance, by_chance = np.mean(own, axis=0).tolist()
    return distance, by_chance


def _compare(was: IntArray, now: IntArray, random: Random) -> tuple[float, float]:
    """Half the sum of the differences of the shares of all cells, of synthetic records and of originals drawn anew."""
    shares, records = (was / was.sum()).ravel(), int(was.sum())
    anew = random.multinomial(records, shares / shares.sum()) / records
    return float(np.abs(shares - (now / now.sum()).ravel()).sum() / 2), float(np.abs(shares - anew).sum() / 2)


def _find_groups(before: Tally, size: int, *, is_nominal: bool) -> GroupsOfEntries:
    """The group of each entry: by the ranks of originals, or the commonest entries alone and the others together."""
    if not is_nominal and len(before.entries) > GROUPS:
        cuts = np.unique(before.at(len(before) * np.arange(1, GROUPS) // GROUPS))
        return GroupsOfEntries.of(np.append(0, cuts), np.arange(len(cuts) + 1), size)
    common = np.sort(before.entries[np.argsort(-before.counts, kind="stable")[: GROUPS - 1]])
    firsts = np.unique(np.concatenate([[0], common, common + 1]))
    place = np.searchsorted(common, firsts).clip(max=len(common) - 1)
    return GroupsOfEntries.of(firsts, np.where(common[place] == firsts, place, len(common)), size)


# What became of columns that are tied by a rule: how many published records break it, before and
# after; and how far recomputed columns lie from what the original records make.


Flags = npt.NDArray[np.bool_]


def measure_ties(
    policy: Policy, came: pa.Table, seen: pa.Table, released: pa.Table, *, are_nobodys: bool = False
) -> dict[str, Any]:
    """Of three published forms of the same records, in the same order: as they came, as the method saw them, and as they are
    released. Nothing where there is neither. Where released ones `are_nobodys`, no row is another's, and means alone tell."""
    found: dict[str, Any] = {}
    if ties := find_ties(policy):
        found["ties"] = [
            {
                "name": tie.name,
                "words": tie.words,
                "before": count_broken(policy, tie, came),
                "after": count_broken(policy, tie, released),
            }
            for tie in ties
        ]
    if made := policy.recomputed_columns:
        found["recomputed"] = {
            name: _compare_rule(seen.column(name), released.column(name), are_nobodys=are_nobodys) for name in made
        }
    return found


def count_broken(policy: Policy, tie: Tie, table: pa.Table) -> int:
    """How many records break the rule; none where something that it is about is missing."""
    return int(np.count_nonzero(_breaks(policy, tie, table)))


def _breaks(policy: Policy, tie: Tie, table: pa.Table) -> Flags:
    match tie.rule:
        case Between(between=dates, unit=unit):
            first, last = (count_units(table.column(name).combine_chunks(), unit) for name in dates)
            return _lie_apart(policy, tie.name, last - first, table.column(tie.name).combine_chunks())
        case Derived() as how:
            made = make_column(how, [table.column(name).combine_chunks() for name in how.inputs])
            return _differ(policy, tie.name, made, table.column(tie.name).combine_chunks())


def _differ(policy: Policy, name: str, made: Any, published: Any) -> Flags:
    """Where a column is not what was made; numbers lie on its grid. Where one of both is missing nothing is compared."""
    if policy.derive[name].is_text:
        pairs = zip(made.to_pylist(), published.to_pylist(), strict=True)
        return np.array([None not in pair and pair[0] != pair[1] for pair in pairs], dtype=np.bool_)
    return _lie_apart(policy, name, made.to_numpy(zero_copy_only=False), published)


def _lie_apart(policy: Policy, name: str, made: FloatArray, published: Any) -> Flags:
    """Where numbers are not what was made, on the grid of their column; with NaN nothing is."""
    column = policy.columns[name]
    half = float(column.grid) / 2 if isinstance(column, NoiseColumn) else 0.0
    return np.abs(made - read_numbers(published)) > half


def _read_moments(column: Any) -> FloatArray:
    found = [None if entry is None else moment_of(entry) for entry in column.cast(pa.string()).to_pylist()]
    return np.array([np.nan if moment is None else moment.timestamp() for moment in found], dtype=np.float64)


def count_units(column: Any, unit: Unit) -> FloatArray:
    """The unit that each date or time lies in, counted from 1970."""
    return np.floor(_read_moments(column) / seconds_of(unit))


def _compare_rule(before: pa.ChunkedArray, after: pa.ChunkedArray, *, are_nobodys: bool) -> dict[str, float | None]:
    """Error over variance, mean absolute error, and means, of the records that have a value in both; of texts the share that has
    another one. Of nobody's rows the means."""
    one: Any = before.combine_chunks()
    other: Any = after.combine_chunks()
    there = one.is_valid().to_numpy(zero_copy_only=False) & other.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_string(one.type):
        if are_nobodys:
            return {"changed": None}
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        changed = sum(None not in pair and pair[0] != pair[1] for pair in pairs)
        return {"changed": changed / int(there.sum()) if there.any() else None}
    if are_nobodys:
        sides = [numbers[~np.isnan(numbers)] for numbers in map(read_numbers, (one, other))]
        means = (float(np.mean(numbers)) if len(numbers) else None for numbers in sides)
        return {"error": None, "absolute_error": None, **dict(zip(("original", "released"), means, strict=True))}
    x, y = (read_numbers(column)[there] for column in (one, other))
    if not len(x):
        return dict.fromkeys(("error", "absolute_error", "original", "released"))
    return {
        "error": column_error(x, y, variance=variance_of(x)),
        "absolute_error": float(np.mean(np.abs(x - y))),
        "original": float(np.mean(x)),
        "released": float(np.mean(y)),
    }
