"""Tables that count by weight: what a weight may be, what it bounds, and what is told of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.errors import InvalidArgument, PolicyInvalid
from release_pipeline.formats.package import render_table
from release_pipeline.masking import tables as stages
from release_pipeline.mechanisms.tables import sum_levels
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import parse_policy
from release_pipeline.policy.plans.plan import check_rows

HEAD = """policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-cdf, epsilon: 2}
columns:
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  note:   {role: confidential, do: drop}
  income: {role: confidential, do: noise, domain: [-500, 1000], grid: 0.5, outside: fail, why: known}
  w:      WEIGHT
tables:
"""
DROPPED = "{role: weight, do: drop, domain: [1, 400], grid: 0.25, outside: clamp}"
KEPT = "{role: weight, do: keep, values: [1.5, 10, 40], why: design weights}"
WHOLE = "{role: weight, do: keep, values: [10, 40, 25], why: design weights}"
MASKED = "{role: weight, do: noise, domain: [0, 400], grid: 0.25, outside: clamp, why: design weights}"
TWO = "  people: {by: town, weight: w, epsilon: 0.25}\n  wages: {by: town, sum: income, weight: w, epsilon: 0.5}\n"


def make(tables: str = TWO, *, weight: str = DROPPED) -> Policy:
    """The policy with these tables, and this weight."""
    return parse_policy(HEAD.replace("WEIGHT", weight) + tables, name="p")


@pytest.mark.parametrize(
    ("weight", "step", "ends"),
    [
        (DROPPED, Fraction(1, 4), (4, 1600)),
        (KEPT, Fraction(1, 2), (3, 80)),
        (WHOLE, Fraction(5), (2, 8)),
        (MASKED, Fraction(1, 4), (0, 1600)),
    ],
    ids=["dropped", "kept", "whole", "masked"],
)
def test_weights_are_whole_units_of_the_largest_step_that_does(weight: str, step: Fraction, ends: tuple[int, int]) -> None:
    """Of a list its common measure; a sum has the product of both steps, and the corners of both domains."""
    people, wages = make(weight=weight).tabulations.values()
    assert (people.step, people.ends) == (step, ends)
    assert (wages.step, wages.ends) == (step / 2, (-1000 * ends[1], 2000 * ends[1]))
    most = 2000 * ends[1]
    assert [(level.l1, level.l2_squared) for level in people.sensitivities] == [(2 * ends[1], 2 * ends[1] ** 2)]
    assert [(level.l1, level.l2_squared) for level in wages.sensitivities] == [
        (2 * most, max(2 * most**2, (3000 * ends[1]) ** 2))
    ]


@pytest.mark.parametrize("weight", [DROPPED, KEPT, WHOLE, MASKED], ids=["dropped", "kept", "whole", "masked"])
def test_cells_are_exact_sums(weight: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As exact fractions add up, record by record; what is outside of the domain is at its end."""
    policy = make(weight=weight)
    numbers = np.random.default_rng(3)
    given = [1.5, 10, 40] if weight == KEPT else [10, 25, 40] if weight == WHOLE else [0.25, 17.5, 399.75, 5000]
    weights = numbers.choice(given, 200)
    towns, incomes = numbers.choice(["north", "south", "east"], 200), numbers.integers(-1000, 2001, 200) / 2
    entries = pa.array([f"{each:g}" for each in weights]) if weight == KEPT else pa.array(weights)
    entries = entries.cast(pa.int64()) if weight == WHOLE else entries
    records = pa.table({"town": towns.tolist(), "income": incomes, "w": entries})
    monkeypatch.setattr(stages, "measure_levels", lambda cell, amounts, shape, _noise, _stream: sum_levels(cell, amounts, shape))
    cells = stages.measure_tables(
        policy, lambda _, names: records.select(names), secret=bytes(32), context=(), progress=lambda _: None
    )
    low, high = policy.tabulations["people"].weights.bounds  # pyright: ignore[reportOptionalMemberAccess]
    for name, tabulation in policy.tabulations.items():
        lines = render_table(tabulation, cells).splitlines()[1:]
        for town, line in zip(["north", "south", "east"], lines, strict=True):
            chosen = towns == town
            exact = sum(
                min(max(Fraction(mine), low), high) * (Fraction(income) if name == "wages" else 1)
                for mine, income in zip(weights[chosen].tolist(), incomes[chosen].tolist(), strict=True)
            )
            assert line.split(",")[0] == town
            assert {Fraction(cell) for cell in line.split(",")[1:]} == {exact}


WRONG = {
    "no weight": ("  t: {by: town, weight: income, epsilon: 1}", DROPPED, "'income' is no weight: its role is confidential"),
    "itself": ("  t: {by: town, sum: w, weight: w, epsilon: 1}", MASKED, "would be multiplied by itself"),
    "no domain": ("  t: {by: town, weight: w, epsilon: 1}", "{role: weight, do: drop}", "dropped without a domain and grid"),
    "below 0": (TWO, DROPPED.replace("[1,", "[-1,"), "a weight is no number below 0"),
    "off 0": (TWO.splitlines()[0], DROPPED.replace("[1, 400]", "[1.1, 400.1]"), "does not begin at a multiple of its grid"),
    "a domain of nothing": ("  t: {by: town, epsilon: 1}", DROPPED, "no table counts by it: its domain says nothing"),
    "too large": (
        "  t: {by: town, weight: w, epsilon: 0.00000001}",
        DROPPED.replace("0.25", "0.0000001"),
        "does not fit into 64 bits",
    ),
    "all alike": (
        "  t: {by: {column: town, groups: {all: [north, south, east]}, levels: [1]}, weight: w, epsilon: 1}".replace(
            "{column", "[{column"
        ).replace("[1]}", "[1]}]"),
        KEPT.replace("1.5, 10, 40", "10"),
        "to which every record adds the same",
    ),
}


@pytest.mark.parametrize(("tables", "weight", "words"), WRONG.values(), ids=WRONG)
def test_what_is_no_weight_of_a_table_is_told(tables: str, weight: str, words: str) -> None:
    """One error each, with a way out."""
    with pytest.raises(PolicyInvalid) as caught:
        make(tables, weight=weight)
    [problem] = caught.value.problems
    assert words in problem


def test_sums_by_weight_that_may_not_fit_are_refused_before_the_charge() -> None:
    """By the number of records, and the largest weight times the largest number."""
    check_rows(make(), 10**9)
    with pytest.raises(InvalidArgument, match="might not fit into 64 bits"):
        check_rows(make(), 2**41)
