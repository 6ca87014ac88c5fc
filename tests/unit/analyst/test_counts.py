"""Shares, quantiles and means from noisy counts: known answers, how often intervals hold, and what is declined."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from release_pipeline.analyst.counts import COUNTS, Counts, read_counts
from release_pipeline.analyst.facts import ColumnFacts, Facts, NoHonestAnswer
from release_pipeline.analyst.laws import quantile_of_gaussian
from release_pipeline.analyst.means import Interval
from release_pipeline.analyst.release import Release
from release_pipeline.errors import InvalidArgument, InvalidType, WrongUsage
from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.by_value.noise_laws import GaussianNoise, LaplaceNoise, Noise
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.mechanisms.whole_table.design import SummedNoise
from tests.unit.analyst.cards import make_facts, noise

SECRET = bytes(range(32))
GRID = Grid.declare((-10, 90), "0.5")
EDGES = np.array([0, 1, 10, 20, 21, 40, 80, 120, 160, 201])
TRUE = np.sort(np.random.default_rng(1).gamma(2, 20, 1000).round().astype(np.int64).clip(0, 200))
LAWS: dict[str, Noise] = {"Laplace": LaplaceNoise(7), "Gaussian": GaussianNoise(Fraction(81, 2))}
ASKED: dict[str, tuple[Callable[[Counts], Interval], float]] = {
    "an exact share": (lambda counts: counts.share(-10, 29.5, 0.9), float((TRUE < 80).mean())),
    "a share that cuts cells": (lambda counts: counts.share(-3, 15, 0.9), float(((TRUE >= 14) & (TRUE <= 50)).mean())),
    "the median": (lambda counts: counts.quantile(0.5, 0.9), float(TRUE[499]) / 2 - 10),
    "the mean": (lambda counts: counts.mean(0.9), float(TRUE.mean()) / 2 - 10),
}


def counts_of(law: str, number: int = 0, noisy: bool = True) -> Counts:
    """The cells of `TRUE`, with noise."""
    true = np.diff(np.searchsorted(TRUE, EDGES))
    noise_of_counts = LAWS[law]
    if noisy:
        true = true + noise_of_counts.draw(len(true), noise_stream(SECRET, law, number))
    return Counts(GRID, len(TRUE), EDGES[:-1], EDGES[1:] - 1, true, SummedNoise(noise_of_counts))


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("asked", ASKED)
def test_intervals_hold_as_often_as_they_say(law: str, asked: str) -> None:
    """Of 500 releases at a level of 0.9 at most 13.5% miss (more would in one of 200 cases); estimate and ends are in order."""
    ask, truth = ASKED[asked]
    found = [ask(counts_of(law, number)) for number in range(500)]
    assert all(one.low <= one.estimate <= one.high for one in found)
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.865


LACKING = (150, 40)  # of the first and the second reason, besides those of `TRUE`
ALL = len(TRUE) + sum(LACKING)
OF_VALUES: dict[str, tuple[Callable[[Counts], Interval], float]] = {
    "a share of all": (lambda counts: counts.share(-10, 29.5, 0.9), float((TRUE < 80).sum()) / ALL),
    "one reason": (lambda counts: counts.lacking("not asked", 0.9), 40 / ALL),
    "the median": (lambda counts: counts.quantile(0.5, 0.9), float(TRUE[499]) / 2 - 10),
    "the mean": (lambda counts: counts.mean(0.9), float(TRUE.mean()) / 2 - 10),
}


def counts_with_reasons(law: str, number: int = 0, *, noisy: bool = True) -> Counts:
    """Those cells, and one for each of two reasons."""
    plain, exact = counts_of(law, number, noisy=noisy), counts_of(law, noisy=False)
    drawn = counts_of(law, number + 10_000, noisy=noisy).count - exact.count
    missing = np.array(LACKING) + drawn[: len(LACKING)]
    reasons = ("refused", "not asked")
    return dataclasses.replace(plain, records=ALL, reasons=reasons, missing=missing)


@pytest.mark.statistical
@pytest.mark.parametrize("asked", OF_VALUES)
def test_intervals_of_records_with_a_value_hold_as_often_as_they_say(asked: str) -> None:
    """Means and quantiles are of those that have one, shares of all. Of 500 releases at a level of 0.9."""
    ask, truth = OF_VALUES[asked]
    found = [ask(counts_with_reasons("Gaussian", number)) for number in range(500)]
    assert all(one.low <= one.estimate <= one.high for one in found)
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.865


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(3), Fraction(500)])
@pytest.mark.parametrize("draws", [1, 3])
def test_the_quantile_of_gaussian_sums_is_exact(variance: Fraction, draws: int) -> None:
    """By the law, multiplied out term by term."""
    reach = int(20 * float(variance) ** 0.5) + 5
    z = np.arange(-reach, reach + 1)
    one = np.exp(-(z**2) / (2 * float(variance)))
    law = one = one / one.sum()
    for _ in range(draws - 1):
        law = np.convolve(law, one)
    middle = len(law) // 2
    for level in (0.8, 0.95, 0.999):
        m = quantile_of_gaussian(variance, draws, level)
        assert law[middle - m : middle + m + 1].sum() >= level - 1e-9
        assert m == 0 or law[middle - m + 1 : middle + m].sum() < level


CELLS = "income,1,0,49,70,Laplace 5\nincome,1,50,100,33,Laplace 5\nincome,2,0,9,30,Laplace 2\nincome,2,10,100,72,Laplace 2\n"
BROKEN = {
    "another header": "a,b\n1,2\n",
    "a gap": CELLS.replace("10,100,72", "12,100,72"),
    "no number": CELLS.replace(",72,", ",many,"),
    "two laws": CELLS.replace("72,Laplace 2", "72,Laplace 3"),
    "a value off the grid": CELLS.replace("0,9,30", "0,9.5,30"),
}


def facts_of(method: str = "dp-cdf", **changes: Any) -> Facts:
    return make_facts(method, noise("income", 100), ColumnFacts("town", "keep", "string"), **changes)


def test_counts_are_read_back(tmp_path: Path) -> None:
    """Those of the last stage; none of other methods, nor of random parts."""
    (tmp_path / COUNTS).write_text(f"column,stage,first,last,count,noise\n{CELLS}")
    found = read_counts(tmp_path, facts_of())["income"]
    assert (found.first.tolist(), found.last.tolist(), found.count.tolist()) == ([0, 10], [9, 100], [30, 72])
    assert (found.noise, found.records) == (SummedNoise(LaplaceNoise(2)), 100)
    (tmp_path / COUNTS).write_text(f"column,stage,first,last,count,noise\n{CELLS.replace('Laplace 2', 'Gaussian 9/4')}")
    assert read_counts(tmp_path, facts_of())["income"].noise == SummedNoise(GaussianNoise(Fraction(9, 4)))
    assert read_counts(tmp_path, facts_of("dp-um")) == {}
    (tmp_path / COUNTS).write_text("part,column,stage,first,last,count,noise\n1,income,1,0,100,5,Laplace 2\n")
    assert read_counts(tmp_path, facts_of(in_parts=True)) == {}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_are_no_counts_is_refused(tmp_path: Path, text: str) -> None:
    header = "" if text.startswith("a,b") else "column,stage,first,last,count,noise\n"
    (tmp_path / COUNTS).write_text(header + text)
    with pytest.raises(InvalidArgument, match="not the noisy counts"):
        read_counts(tmp_path, facts_of())
    (tmp_path / COUNTS).unlink()
    with pytest.raises(WrongUsage, match="cannot be read"):
        read_counts(tmp_path, facts_of())


def test_what_cannot_be_told_is_declined_in_words() -> None:
    """Columns without noise, methods without counts, random parts, and questions that are none."""
    release = Release(facts_of(), {"income": np.arange(100.0)}, counts={"income": counts_of("Laplace")})
    with pytest.raises(InvalidArgument, match="not masked"):
        release.share("town", 0, 1)
    with pytest.raises(InvalidType):
        release.quantile(["income"], 0.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NoHonestAnswer, match="counts nothing by value"):
        Release(facts_of("dp-um"), release.data).share("income", 0, 1)
    with pytest.raises(NoHonestAnswer, match="random parts"):
        Release(facts_of(in_parts=True), release.data).mean("income")
    for ask in (
        lambda: release.share("income", 5, 1),
        lambda: release.quantile("income", 0),
        lambda: release.quantile("income", 1.01),
        lambda: release.mean("income", level=2),
    ):
        with pytest.raises(InvalidArgument):
            ask()
