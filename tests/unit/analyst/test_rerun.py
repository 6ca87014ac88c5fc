"""The method run again on released rows: what it is rebuilt from, what it answers, and what it declines."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.benchmarks.coverage import TABLES, Table, make_rows, make_up, measure_release, publish
from release_pipeline.analyst import NoHonestAnswer, Release, Rerun
from release_pipeline.analyst.rerun import (
    IN_CELLS,
    IN_GROUPS,
    LEAST_TIMES,
    RAISED,
    Groups,
    find_design,
    find_entries,
    find_noise,
    rerun,
)
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.by_value.noise_laws import LaplaceNoise
from release_pipeline.mechanisms.whole_table.design import SummedNoise
from tests.unit.analyst.cards import make_facts

pytestmark = pytest.mark.slow  # each run takes about as long as a release
TIMES = LEAST_TIMES


def small_table() -> Table:
    """Three of the columns that are made up: listed values, a spike at zero, and reasons to have none."""
    columns = tuple(known for known in make_up().columns if known.name in ("job", "wage", "hours"))
    return Table("three columns", tuple(dataclasses.replace(known, entries=known.entries[:1200]) for known in columns))


@pytest.fixture(scope="module")
def table() -> Table:
    return small_table()


@pytest.fixture(scope="module")
def release(table: Table, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One release of it."""
    measured = measure_release(table, "dp", 0)
    return publish(table, "dp", measured, make_rows(table, "dp", measured, 0), tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def again(release: Release) -> Rerun:
    return release.rerun(times=TIMES, seed=1)


@pytest.mark.parametrize("definition", ["dp", "zcdp"])
@pytest.mark.parametrize("name", TABLES)
def test_the_design_is_rebuilt_from_what_is_public(name: str, definition: str, tmp_path: Path) -> None:
    """As the release had it, with its budget, spikes, reasons and slots; and the released rows as its entries."""
    table = TABLES[name]()
    measured = measure_release(table, definition, 0)
    rows = [known.entries for known in table.columns]
    release = publish(table, definition, measured, rows, tmp_path)
    design = dataclasses.replace(measured.design, in_blocks=bool(measured.blocks))
    assert find_design(release.facts, release.counts, release.pairs) == design
    assert find_noise(release.facts, release.pairs) == measured.noise
    found = find_entries(release.facts, release.data, release.counts)
    assert all((one == other).all() for one, other in zip(found, rows, strict=True))


def test_a_seed_gives_the_same_answers_and_fresh_noise_others(release: Release, again: Rerun) -> None:
    told: list[str] = []
    same = release.rerun(times=TIMES, seed=1, progress=told.append)
    assert same.mean("wage") == again.mean("wage")
    assert same.means("wage", by="job") == again.means("wage", by="job")
    assert release.rerun(times=TIMES, seed=2).mean("wage") != again.mean("wage")
    assert (told[0], told[-1]) == ("running the method again: 1 of 10", "running the method again: 10 of 10")


def sums_of(mean: float, inside: float = 0.0) -> dict[tuple[int, int | None], Groups]:
    """100 records with a mean of this, of all and of one group."""
    one = Groups(np.array([100]), np.array([100 * mean]), np.array([inside]))
    others = Groups(np.array([100, 0, 0]), np.array([100 * mean, 0, 0]), np.array([inside, 0, 0]))
    return {(2, None): one, (2, 1): others}


def test_an_interval_is_of_one_more_run_and_of_what_no_count_says(again: Rerun) -> None:
    """Known numbers: runs of 200 and 210 in turn from a released 220: off by -15 on average, so that 235 is in the middle."""
    runs = tuple(sums_of(200 + 10 * (number % 2)) for number in range(10))
    known = dataclasses.replace(again, released=sums_of(220, inside=40), again=runs)
    interval = known.mean("wage")
    deviation = math.sqrt(25 * 10 / 9 * 1.1 + 15**2)
    half = RAISED * 2.262157 * deviation + IN_CELLS * 40
    assert (interval.estimate, interval.low, interval.high) == pytest.approx((235, 235 - half, 235 + half), rel=1e-6)
    groups = known.means("wage", by="job")
    assert list(groups) == ["manual"]
    assert groups["manual"].width == pytest.approx(2 * (half + (IN_GROUPS - IN_CELLS) * 40), rel=1e-6)
    far = dataclasses.replace(again, released=sums_of(9_999, inside=40), again=runs).mean("wage")
    assert far.high == far.estimate == 10_000


def run(release: Release, **changes: Any) -> Rerun:
    parts: dict[str, Any] = {
        "facts": release.facts,
        "data": release.data,
        "counts": release.counts,
        "pairs": release.pairs,
        "times": TIMES,
        "seed": 1,
    }
    return rerun(**{**parts, **changes})


def test_a_release_whose_design_nobody_outside_can_tell_is_declined(release: Release) -> None:
    """Another method; a card without its total; no counts; noise that the card's claim would not have; more than it claims."""
    facts, counts = release.facts, release.counts
    with pytest.raises(NoHonestAnswer, match="laplace makes no synthetic rows"):
        run(release, facts=make_facts("laplace"))
    with pytest.raises(NoHonestAnswer, match="does not say what the release loses in all"):
        run(release, facts=dataclasses.replace(facts, total=None))
    with pytest.raises(NoHonestAnswer, match="counts are missing"):
        run(release, counts={})
    for changed in (
        {"counts": {**counts, "wage": dataclasses.replace(counts["wage"], noise=SummedNoise(LaplaceNoise(99)))}},
        {"facts": dataclasses.replace(facts, total=Epsilon.of(1))},
        {"facts": dataclasses.replace(facts, total=Epsilon.of("0.000000001"))},
        {"pairs": {}},
        {
            "pairs": {
                pair: dataclasses.replace(own, law=dataclasses.replace(own.law, noise=SummedNoise(LaplaceNoise(1))))
                for pair, own in release.pairs.items()
            }
        },
    ):
        with pytest.raises(NoHonestAnswer, match="not what this version of the package would draw"):
            run(release, **changed)


def test_rows_that_are_not_those_of_the_release_are_refused(release: Release) -> None:
    data = release.data
    with pytest.raises(NoHonestAnswer, match="all rows of the release"):
        run(release, data={name: column[:-1] for name, column in data.items()})
    job = data["job"].copy()
    job[3] = "dean"
    with pytest.raises(InvalidArgument, match="none that the card declares"):
        run(release, data={**data, "job": job})
    with pytest.raises(InvalidArgument, match="no such column"):
        run(release, data={name: column for name, column in data.items() if name != "hours_missing"})
