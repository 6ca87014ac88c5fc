"""Recomputed columns in the analyst's kit: their means are put together, all else is declined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from release_pipeline.analyst.facts import ColumnFacts, Facts, MadeFacts, NoHonestAnswer
from release_pipeline.analyst.release import Release
from tests.unit.analyst.cards import make_facts, noise
from tests.unit.analyst.releasing import release_like

ROWS = 120


def made(name: str, by: str, *of: str) -> ColumnFacts:
    """A recomputed column."""
    return ColumnFacts(name, "recompute", "number", made=MadeFacts(by, of))


COLUMNS = (
    noise("a", 100, epsilon="2"),
    noise("b", 50, grid="0.5", epsilon="1"),
    ColumnFacts("n", "keep", "number"),
    made("sum", "sum", "a", "b"),
    made("rest", "difference", "sum", "n"),
    made("band", "bands", "a"),
    made("twice", "sum", "n", "n2"),
    ColumnFacts("n2", "keep", "number"),
)
GENERATOR = np.random.default_rng(7)
TRUTH = {
    "a": GENERATOR.integers(0, 101, ROWS).astype(float),
    "b": GENERATOR.integers(0, 101, ROWS) / 2,
    "n": GENERATOR.integers(0, 9, ROWS).astype(float),
    "n2": GENERATOR.integers(0, 9, ROWS).astype(float),
}


def facts_of(*columns: ColumnFacts, **changes: Any) -> Facts:
    """A release of these; of Laplace noise that stays where it is."""
    return make_facts("laplace", *(columns or COLUMNS), rows=ROWS, **changes)


def draw(number: int) -> Release:
    """A release of the made-up records."""
    return release_like(TRUTH, facts_of(), secret=number.to_bytes(32, "big"))


def test_intervals_of_sums_are_those_of_the_parts() -> None:
    """Each part with noise at 1 - 0.05/2; what has none adds no width."""
    release = draw(1)
    a, b = (release.mean(name, level=0.975) for name in "ab")
    found = release.mean("sum")
    assert (found.estimate, found.low, found.high) == pytest.approx((a.estimate + b.estimate, a.low + b.low, a.high + b.high))
    assert found.kind == "bound"
    rest = release.mean("rest")
    assert rest.estimate == pytest.approx(found.estimate - TRUTH["n"].mean())
    assert (rest.low, rest.high) == pytest.approx((found.low - TRUTH["n"].mean(), found.high - TRUTH["n"].mean()))
    exact = release.mean("twice")
    assert (exact.kind, exact.low, exact.estimate) == ("exact", exact.high, pytest.approx((TRUTH["n"] + TRUTH["n2"]).mean()))


@pytest.mark.statistical
def test_they_cover_as_often_as_they_say() -> None:
    """Over 300 releases, at 80%, where Bonferroni is not far from exact; narrower by half they would not."""
    truth = (TRUTH["a"] + TRUTH["b"]).mean()
    found = [draw(number).mean("sum", level=0.8) for number in range(300)]
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.8
    assert np.mean([abs(one.estimate - truth) <= one.width / 4 for one in found]) < 0.8


def test_what_does_not_follow_is_declined() -> None:
    """With the reason; a reason for no value in a part, too."""
    release = draw(2)
    bands = Release(facts_of(), {**release.data, "band": np.zeros(ROWS)})
    with pytest.raises(NoHonestAnswer, match="whose mean does not follow"):
        bands.mean("band")
    for ask in (
        lambda: release.noise_of("sum"),
        lambda: release.quantile("sum", 0.5),
        lambda: release.mean("n", weights="sum"),
    ):
        with pytest.raises(NoHonestAnswer):
            ask()
    reasons = facts_of(*COLUMNS, ColumnFacts("b_missing", "missing", "string"))
    with pytest.raises(NoHonestAnswer, match="records may have no value in b"):
        Release(reasons, {**release.data, "b_missing": np.array([""] * ROWS)}).mean("sum")
