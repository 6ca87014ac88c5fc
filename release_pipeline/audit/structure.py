"""The effect of a release on tables of a few columns.

How far synthetic tables of one, two and three columns are from the original ones: total variation distances, next to
those of as many original records drawn again with replacement, which shows the effect of only chance on the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from release_pipeline.mechanisms.basis.counting import GroupsOfEntries, plan_tables
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.noise.unclaimed import Random
from release_pipeline.mechanisms.whole_table.design import cover_pairs
from release_pipeline.mechanisms.whole_table.measure import Counting

GROUPS = 12  # of a column of numbers, of about equal size by original records; others have so many values, rare ones together
MOST_TRIPLES = 100  # drawn at random, where there are more
WORST = 5  # pairs that are named


Table: TypeAlias = tuple[int, ...]  # its columns


def measure_structure(
    sizes: Mapping[str, int], before: Counting, after: Counting, nominal: Sequence[str], random: Random
) -> dict[str, Any]:
    """Return, for every column, every pair, and some sets of three, the mean distance and that of records drawn again; for pairs
    also the worst."""
    names = list(sizes)
    groups = [
        _find_groups(before.tally(index), size, is_nominal=name in nominal) for index, (name, size) in enumerate(sizes.items())
    ]
    columns, pairs, triples = (list[Table](combinations(range(len(names)), count)) for count in (1, 2, 3))
    drawn: list[int] = np.sort(random.permutation(len(triples))[:MOST_TRIPLES]).tolist()
    chosen = [triples[index] for index in drawn]
    of_each = [GROUPS] * len(names)
    plan = plan_tables(groups, of_each, [*columns, *pairs, *chosen], cover_pairs(of_each))
    was, now = (plan.split(side.count(plan)) for side in (before, after))
    distances = {table: _compare(own, other, random) for table, own, other in zip(plan.wanted, was, now, strict=True)}
    worst = sorted(pairs, key=lambda pair: -distances[pair][0])[:WORST]
    of_pairs, of_triples = _average(distances, pairs), _average(distances, chosen)
    return {
        "columns": {names[index]: distances[index,][0] for (index,) in columns},
        "columns_by_chance": _average(distances, columns)[1],
        "pairs": of_pairs[0],
        "pairs_by_chance": of_pairs[1],
        "worst_pairs": [{"one": names[one], "other": names[other], "distance": distances[one, other][0]} for one, other in worst],
        "triples": of_triples[0],
        "triples_by_chance": of_triples[1],
        "triples_tried": len(chosen),
    }


def _average(distances: Mapping[Table, tuple[float, float]], tables: Iterable[Table]) -> tuple[float | None, float | None]:
    """Return the mean distance of these tables, and of records drawn again."""
    own = [distances[table] for table in tables]
    if not own:
        return None, None
    distance, by_chance = np.mean(own, axis=0).tolist()
    return distance, by_chance


def _compare(was: IntArray, now: IntArray, random: Random) -> tuple[float, float]:
    """Return half the sum of the differences of the shares of all cells, for synthetic records and for originals drawn again."""
    shares, records = (was / was.sum()).ravel(), int(was.sum())
    anew = random.multinomial(records, shares / shares.sum()) / records
    return float(np.abs(shares - (now / now.sum()).ravel()).sum() / 2), float(np.abs(shares - anew).sum() / 2)


def _find_groups(before: Tally, size: int, *, is_nominal: bool) -> GroupsOfEntries:
    """Return the group of each entry: by the ranks of originals, or each of the commonest entries and one group of all others."""
    if not is_nominal and len(before.entries) > GROUPS:
        cuts = np.unique(before.at(len(before) * np.arange(1, GROUPS) // GROUPS))
        return GroupsOfEntries.of(np.append(0, cuts), np.arange(len(cuts) + 1), size)
    common = np.sort(before.entries[np.argsort(-before.counts, kind="stable")[: GROUPS - 1]])
    firsts = np.unique(np.concatenate([[0], common, common + 1]))
    place = np.searchsorted(common, firsts).clip(max=len(common) - 1)
    return GroupsOfEntries.of(firsts, np.where(common[place] == firsts, place, len(common)), size)
