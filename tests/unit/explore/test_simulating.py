"""Settings tried side by side: refused in words, alike whoever tries them, linked and told as people are."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.explore import simulating
from release_pipeline.explore.document import SettingView, view_setting
from release_pipeline.explore.simulating import Bench, Tried, Written, try_settings
from release_pipeline.masking.simulation import Records
from release_pipeline.policy import parse_policy
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.plans.settings import Axes, Setting, list_settings
from tests.unit.masking.test_simulation import make_records

TEXT = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: laplace, epsilon: 4, clamp: no}
columns:
  town:   {role: quasi, do: keep, values: [north, south], why: needed}
  income: {role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}
gates: {min_rows: 1000}
"""
LAPLACE = "method: laplace, epsilon: 4, clamp: no"


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulating, "MOST", 6)


def make_bench(text: str = TEXT, *, records: Records | None = None, rows: int | None = None, **changes: object) -> Bench:
    """Four thousand records."""
    records = records or make_records()
    policy = parse_policy(text, name="people.yaml")
    bench = Bench(Written(text, "people.yaml", {}), policy, records, rows or records.count, bytes(32))
    return replace(bench, **changes)  # pyright: ignore[reportArgumentType]


def quiet(_: str) -> None:
    """Nothing is told."""


def list_of(bench: Bench, **axes: object) -> list[Setting]:
    """The settings of its policy."""
    return list_settings(bench.written.raw, bench.policy, Axes(**axes))  # pyright: ignore[reportArgumentType]


def try_own(bench: Bench) -> Tried:
    """The policy as it is."""
    [found] = try_settings(bench, list_of(bench)[:1], workers=1, progress=quiet)
    assert isinstance(found, Tried)
    return found


def view_own(bench: Bench) -> SettingView:
    """What a document says of that."""
    return view_setting(try_own(bench), 1)


@pytest.mark.slow
def test_two_workers_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own, in whatever order they end."""
    bench = make_bench(rows=500)
    monkeypatch.undo()  # a new process has the usual number of draws
    monkeypatch.setattr(simulating, "WORTH_A_PROCESS", 0)
    settings = list_of(bench, methods=["dp-cdf", "dp-um"], epsilons=[Decimal(2)], sizes=[10])
    found = [
        [view_setting(one, number) for number, one in enumerate(results) if isinstance(one, Tried)]
        for results in (try_settings(bench, settings, workers=workers, progress=quiet) for workers in (1, 2))
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_the_error_of_plain_noise_is_what_its_law_says() -> None:
    """A known answer: Laplace noise that nothing moves back has an error of twice its scale's square over the variance."""
    bench = make_bench()
    view = view_own(bench)
    income = bench.records.columns["income"].to_numpy()
    expected = 2 * (20_000 / 2) ** 2 / income.var()
    error = view.columns["income"].error
    assert error.middle == pytest.approx(expected, rel=0.1)
    assert (error.low or 0) < expected < (error.high or 0)
    assert view.error == error
    assert (view.linkage_ladder[-1].columns, view.draws) == (("income", "rent"), 6)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [None, 2_000, 9_000])
def test_linkage_is_of_records_that_are_there_once(rows: int | None) -> None:
    """Of a file that is not the source every draw has records drawn anew, some of them twice, who are linked half as often; what
    is linked has each once, so that a release of these people is linked as often as is said."""
    text = TEXT.replace(LAPLACE, "method: dp-cdf, epsilon: 40")
    drawn = make_bench(text, rows=rows)
    linked, said = (one.simulated.linkage[-1].linked.value for one in map(try_own, (make_bench(text), drawn)))
    assert linked > 0.4
    assert said > linked - 0.12  # fewer records are linked more easily
    assert rows == 2_000 or said < linked + 0.12
    assert drawn.linked.records.count == min(rows or 4_000, 4_000)


def test_no_value_of_the_data_is_in_a_setting() -> None:
    """Every income is a canary; all figures are distances, shares and counts, and none is one of these values."""
    canaries = np.arange(4_000) * 3 + 1_000_003.0
    text = TEXT.replace(LAPLACE, "method: dp-cdf, epsilon: 40").replace("[0, 20000]", "[1000000, 1020000]")
    records = make_records()
    bench = make_bench(text, records=Records({**records.columns, "income": pa.array(canaries)}))
    told = str(to_json(view_own(bench)))
    assert not re.search(r"\b10[01]\d{4}\b", told), told
