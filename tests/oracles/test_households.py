"""What `dp-cdf` loses of a household with slots, by trying everything: all tables of two households of one or two people on 0..1,
filled up as the pipeline does it, every household replaced by every other one, all noisy counts that decide on cells."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import duckdb
import numpy as np
import pytest

from release_pipeline.flow.reading import fill_slots, typed_column
from release_pipeline.policy import Policy
from release_pipeline.policy.families.by_value import ByValueFamily
from release_pipeline.policy.load import parse_policy
from release_pipeline.policy.options import ByValueOptions
from release_pipeline.privacy.by_value.facts import Stage
from release_pipeline.privacy.by_value.mechanism import next_stage
from release_pipeline.privacy.by_value.noise_laws import LaplaceNoise
from release_pipeline.store.raw import RawTable

SLOTS, HOUSEHOLDS = 2, 2
TOP = 1  # of the domain
INFINITE = Fraction(10**9)
Household = tuple[int, ...]
SOME = [one for size in range(1, SLOTS + 1) for one in itertools.combinations_with_replacement(range(TOP + 1), size)]
SEEN = range(-1, SLOTS * HOUSEHOLDS + 2)  # noisy counts that are tried
POLICY = f"""
policy: homes
steward: ana
population: folk
source: {{path: homes.csv}}
person: {{column: home, unit: household, slots: {SLOTS}}}
releases: once
protect: {{method: dp-cdf, epsilon: EPSILON, k: 1}}
columns:
  home: {{role: identifier, do: drop}}
  income: {{role: confidential, do: noise, domain: [0, {TOP}], grid: 1, outside: fail, why: known}}
"""


def fill(policy: Policy, households: tuple[Household, ...]) -> tuple[int, ...]:
    """The records that the method sees, in grid units."""
    with duckdb.connect() as connection:
        rows = [(str(home), income) for home, people in enumerate(households) for income in people]
        connection.execute(
            "CREATE TABLE raw AS SELECT unnest($1) AS home, unnest($2) AS income", [*map(list, zip(*rows, strict=True))]
        )
        table = RawTable(connection, "homes.csv")
        fill_slots(policy, table, "homes.csv")
        read = typed_column(policy, "income", table)
        assert read is not None
        return tuple(policy.noise_columns["income"].coded_grid.quantise(read.to_numpy(zero_copy_only=False)).tolist())


def leave_empty(policy: Policy, households: tuple[Household, ...]) -> tuple[int, ...]:
    """The fault: nobody fills anything up."""
    return tuple(income for people in households for income in people)


def count(units: tuple[int, ...], edges: tuple[int, ...]) -> tuple[int, ...]:
    """How many records are in each cell, by looking."""
    return tuple(sum(low <= value < high for value in units) for low, high in itertools.pairwise(edges))


def worst_loss(policy: Policy, read: Callable[[Policy, tuple[Household, ...]], tuple[int, ...]]) -> Fraction:
    """The largest log ratio of the probabilities of any outcome, over all tables and neighbours, as in `test_by_value`. The
    number of rows is public: where it differs, the tables are told apart."""
    declared = ByValueFamily(ByValueOptions).declare(policy, "income")
    tables = {homes: read(policy, homes) for homes in itertools.product(SOME, repeat=HOUSEHOLDS)}

    @cache
    def stages(rows: int) -> tuple[tuple[int, ...], int]:
        found = next_stage([], declared.facts(rows), declared.budget)
        assert found is not None
        assert isinstance(found[1], LaplaceNoise)
        return tuple(found[0].tolist()), found[1].scale

    @cache
    def after(rows: int, noisy: tuple[int, ...]) -> tuple[tuple[int, ...], int] | None:
        edges, scale = stages(rows)
        first = Stage(np.array(edges), np.array(noisy), LaplaceNoise(scale))
        found = next_stage([first], declared.facts(rows), declared.budget)
        return None if found is None else (tuple(found[0].tolist()), found[1].scale)  # type: ignore[union-attr]

    worst = Fraction(0)
    for homes, place, other in itertools.product(tables, range(HOUSEHOLDS), SOME):
        one, two = tables[homes], tables[(*homes[:place], other, *homes[place + 1 :])]
        if len(one) != len(two):
            return INFINITE
        edges, scale = stages(len(one))
        mine, theirs = count(one, edges), count(two, edges)
        for noisy in itertools.product(SEEN, repeat=len(mine)):
            lost = Fraction(sum(abs(y - b) - abs(y - a) for y, a, b in zip(noisy, mine, theirs, strict=True)), scale)
            following = after(len(one), noisy)
            if following is not None:
                finer = (count(one, following[0]), count(two, following[0]))
                lost += Fraction(sum(abs(a - b) for a, b in zip(*finer, strict=True)), following[1])
            worst = max(worst, lost)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 3])
def test_a_household_loses_no_more_than_it_is_charged(epsilon: int) -> None:
    """R slots, R epsilon; and more than R - 1 of them would be charged: all are replaced."""
    policy = parse_policy(POLICY.replace("EPSILON", str(epsilon)), name="homes")
    assert policy.epsilon == SLOTS * epsilon * 10**9
    worst = worst_loss(policy, fill)
    assert (SLOTS - 1) * epsilon < worst <= SLOTS * epsilon


def test_the_number_of_rows_would_tell() -> None:
    """Whatever is spent on a table that nobody filled up."""
    policy = parse_policy(POLICY.replace("EPSILON", "3"), name="homes")
    assert worst_loss(policy, leave_empty) == INFINITE
