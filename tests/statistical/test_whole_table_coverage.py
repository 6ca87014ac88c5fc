"""How often 95% intervals of releases by dp-table hold: part of what `python -m experiments.benchmarks.coverage` measures, whose
tables are in docs/measured.md.

Of N answers as many must hold as would in one of a hundred cases if 88% did: kinds that are said to have the exact law of their
noise must also miss as often as they would in one of a hundred cases if 98.5% held.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from functools import cache

import pytest
from scipy.stats import binom

from experiments.benchmarks import coverage
from experiments.benchmarks.coverage import Asked, Table, make_up, try_release

pytestmark = [pytest.mark.slow, pytest.mark.statistical]
COUNTED, AGAIN, TIMES = 80, 14, 10
LAW = {"single counts": ("missing", "share_of"), "ranges": ("share, whole cells",), "pairs": ("pair: cells",)}
BOUND = {"share, any range", "quantile", "mean", "pair: means"}


def part_of(name: str, *columns: str, records: int) -> Table:
    """Some columns of the table that is made up."""
    made = [known for known in make_up().columns if known.name in columns]
    return Table(name, tuple(dataclasses.replace(known, entries=known.entries[:records]) for known in made))


@pytest.fixture(scope="module", autouse=True)
def tables() -> None:
    """The two that are tried here."""
    three, two = (
        part_of("three columns", "job", "hours", "wage", records=1200),
        part_of("two columns", "job", "wage", records=2000),
    )
    coverage.TABLES.update({table.name: cache(lambda table=table: table) for table in (three, two)})


def count_held(asked: list[Asked]) -> dict[str, tuple[int, int]]:
    """By kind: how many answers held, and how many there were."""
    held: dict[str, list[bool]] = defaultdict(list)
    for kind, _, holds in asked:
        held[kind].append(holds)
    return {kind: (sum(known), len(known)) for kind, known in held.items()}


def check_held(held: int, of: int, *, exact: bool) -> None:
    """Not as few as of 88%, and not as many as of 98.5%."""
    assert held > binom.ppf(0.99, of, 0.88), f"{held} of {of}"
    if exact:
        assert held < binom.ppf(0.01, of, 0.985), f"{held} of {of}"


@pytest.mark.parametrize("definition", coverage.DEFINITIONS)
def test_intervals_from_counts_hold(definition: str) -> None:
    found = count_held([one for number in range(COUNTED) for one in try_release("three columns", definition, 0, number)])
    assert {kind for kinds in LAW.values() for kind in kinds} | BOUND == set(found)
    for kinds in LAW.values():
        check_held(sum(found[kind][0] for kind in kinds), sum(found[kind][1] for kind in kinds), exact=True)
    for kind in BOUND:
        check_held(*found[kind], exact=False)


def test_means_by_running_the_method_again_hold() -> None:
    """Of a column and by group, over releases of one table."""
    found = count_held([one for number in range(AGAIN) for one in try_release("two columns", "dp", TIMES, number)])
    assert set(found) == {"rerun: mean", "rerun: means"}
    assert found["rerun: means"][1] >= 3 * AGAIN - 5
    check_held(sum(held for held, _ in found.values()), sum(of for _, of in found.values()), exact=False)
