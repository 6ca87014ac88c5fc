"""The method run again on released rows: what it is rebuilt from, what it answers, and what it declines."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.benchmarks.coverage import TABLES, Known, Table, make_rows, make_up, measure_release, publish
from release_pipeline.analyst import Interval, NoHonestAnswer, Release, Rerun
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
from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy import Epsilon
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


def test_means_are_near_those_of_the_confidential_table(table: Table, release: Release, again: Rerun) -> None:
    """As intervals in the column's unit, inside its domain; narrower than those from counts alone; groups by their values."""
    hours, wage = (known for known in table.columns if known.name != "job")
    job = next(known for known in table.columns if known.name == "job")
    numbers, valued = wage.restore(wage.entries), hours.entries <= 60
    found = again.mean("wage"), again.mean("hours")
    for interval, truth in zip(found, (numbers.mean(), hours.entries[valued].mean()), strict=True):
        assert interval.kind == "rerun"
        assert interval.low <= truth <= interval.high
        assert "run on them 10 times" in interval.words
        assert "not proved" in interval.words
    assert found[0].width < release.mean("wage").width / 2
    groups = again.means("wage", by="job")
    assert list(groups) == ["manual", "office", "lead"]
    for entry, interval in enumerate(groups.values()):
        assert interval.low <= numbers[job.entries == entry].mean() <= interval.high
        assert "Conservative" in interval.words
    assert groups["manual"].high < groups["lead"].low
    wider = again.mean("wage", level=0.99)
    assert wider.low < found[0].low < found[0].high < wider.high


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


def test_how_far_values_are_apart_is_that_within_cells_and_groups(release: Release, again: Rerun) -> None:
    """The standard deviation of the released values of each, on average over records: none where a cell has one value."""
    wage, first = release.data["wage"], release.counts["wage"].first
    cells = np.searchsorted(first, wage, side="right") - 1
    apart = np.array([wage[cells == cell].std() for cell in cells])
    names = ("hours", "job", "wage")
    released = again.released[names.index("wage"), None]
    assert released.inside == pytest.approx([apart.mean()])
    assert again.released[names.index("hours"), None].inside == pytest.approx([0.0])
    ends = sorted(group.first for group in release.pair("wage", "job").groups_of_one if group.first is not None)
    groups = np.searchsorted(ends, wage, side="right") - 1
    apart = np.array([wage[groups == group].std() for group in groups])
    held = release.data["job"] == "office"
    assert again.released[names.index("wage"), names.index("job")].inside[1] == pytest.approx(apart[held].mean())


def test_groups_that_are_small_or_were_counted_together_are_left_out(again: Rerun) -> None:
    """Most hours were counted in ranges; a group needs three standard deviations of the noise on its count."""
    assert set(again.means("wage", by="hours")) <= {"0"}
    place = again.released[2, 1]
    few = dataclasses.replace(place, held=np.array([5, 600, 595]))
    known = dataclasses.replace(again, released={**again.released, (2, 1): few})
    assert list(known.means("wage", by="job")) == ["office", "lead"]
    with pytest.raises(NoHonestAnswer, match="too few records"):
        dataclasses.replace(
            again, released={**again.released, (2, 1): dataclasses.replace(place, held=np.array([5, 6, 7]))}
        ).means("wage", by="job")


DECLINED: dict[str, Callable[[Rerun], object]] = {
    "correlations": lambda again: again.correlation("wage", "hours"),
    "slopes": lambda again: again.slope("wage", ["hours"]),
    "84 to 88%": lambda again: again.deviation("wage"),
    "65 values": lambda again: again.means("hours", by="wage"),
}


@pytest.mark.parametrize("words", DECLINED)
def test_what_the_model_decides_is_declined_in_words(again: Rerun, words: str) -> None:
    with pytest.raises(NoHonestAnswer, match=words):
        DECLINED[words](again)


WRONG: dict[str, Callable[[Rerun], object]] = {
    "no such column": lambda again: again.mean("rent"),
    "not masked": lambda again: again.mean("job"),
    "by itself": lambda again: again.means("wage", by="wage"),
    "no values to group by": lambda again: again.means("wage", by="hours_missing"),
    "level": lambda again: again.mean("wage", level=2),
}


@pytest.mark.parametrize("words", WRONG)
def test_questions_that_make_no_sense_are_refused(again: Rerun, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        WRONG[words](again)


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
        {"counts": {**counts, "wage": dataclasses.replace(counts["wage"], laplace=99)}},
        {"facts": dataclasses.replace(facts, total=Epsilon.of(1))},
        {"facts": dataclasses.replace(facts, total=Epsilon.of("0.000000001"))},
        {"pairs": {}},
        {
            "pairs": {
                pair: dataclasses.replace(own, law=dataclasses.replace(own.law, laplace=1)) for pair, own in release.pairs.items()
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


@pytest.mark.parametrize("times", [9, 1001, 2.5, True])
def test_the_number_of_runs_has_bounds(release: Release, times: Any) -> None:
    with pytest.raises(InvalidArgument, match="from 10 to 1,000 times"):
        run(release, times=times)


def test_a_seed_is_a_whole_number(release: Release) -> None:
    with pytest.raises(InvalidType, match="whole number"):
        run(release, seed="today")  # type: ignore[arg-type]


def test_slots_that_nobody_fills_stay_empty_in_all_runs(tmp_path: Path) -> None:
    """Means are of people; how many there are is another question."""
    table = TABLES["households"]()
    measured = measure_release(table, "zcdp", 0)
    release = publish(table, "zcdp", measured, make_rows(table, "zcdp", measured, 0), tmp_path)
    again = release.rerun(times=TIMES, seed=1)
    age: Known = table.columns[0]
    filled = age.entries <= 90
    interval = again.mean("age")
    assert isinstance(interval, Interval)
    assert interval.low <= age.entries[filled].mean() <= interval.high
    assert interval.width < 5
    held = [int(sums[0, None].held[0]) for sums in again.again]
    assert all(abs(number - filled.sum()) < 300 for number in held)
