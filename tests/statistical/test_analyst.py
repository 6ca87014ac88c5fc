"""The kit's intervals over 1000 simulated releases of census: they cover what they promise, those of a reader who knows nothing
of the noise do not, and noise scales taken 30% too small or too large are told.

Columns and domains as in methods.md section 6 (domain [0, 1.5 max], grid half of the resolution). With 1000 releases a true 95%
comes out between 93% and 97% with probability 0.996; secrets are fixed, so nothing is flaky.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.analyst import Facts, Interval, Release
from release_pipeline.analyst.facts import ColumnFacts
from release_pipeline.mechanisms import Epsilon, Grid
from tests.unit.analyst.releasing import release_like

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

RELEASES = 1000
LOW, HIGH = 0.93, 0.97
Floats = npt.NDArray[np.float64]
Columns = dict[str, tuple[Floats, Decimal]]
Table = dict[str, Floats]


@pytest.fixture(scope="module")
def census(reference_columns: Callable[[str], Columns]) -> Columns:
    return reference_columns("census")


def declare(census: Columns, name: str, epsilon: str) -> ColumnFacts:
    """The column with domain [0, 1.5 max] and a grid of half its resolution."""
    values, resolution = census[name]
    step = Fraction(resolution) / 2
    top = math.ceil(Fraction(float(values.max())) * Fraction(3, 2) / step) * step
    return ColumnFacts(name, "noise", "number", Grid.declare((0, top), step), Epsilon.of(epsilon))


def make_facts(census: Columns, method: str, epsilon: str, names: Sequence[str], **options: Any) -> Facts:
    """A release of these columns, each with this epsilon, unclamped unless `options` say otherwise."""
    rows = len(census[names[0]][0])
    fields: dict[str, Any] = {"k": None, "scope": "column", "consistency": "none", "clamped": False, "in_parts": False}
    columns = {name: declare(census, name, epsilon) for name in names}
    return Facts(**{"method": method, "rows_in": rows, "rows_out": rows, "columns": columns} | fields | options)


def on_grid(census: Columns, facts: Facts, name: str) -> Floats:
    """The confidential values as the release sees them."""
    grid = facts.columns[name].grid
    assert grid is not None
    return grid.restore(grid.quantise(census[name][0]).astype(np.float64))


def release_often(census: Columns, facts: Facts, ask: Callable[[Release], Any], releases: int = RELEASES) -> list[Any]:
    """What `ask` gets from so many releases of the same table, each with a secret of its own."""
    table: Table = {name: census[name][0] for name in facts.columns}
    return [ask(release_like(table, facts, secret=number.to_bytes(32, "big"))) for number in range(releases)]


def coverage(intervals: Sequence[Interval], truth: float) -> float:
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


def naive_mean(release: Release, name: str) -> Interval:
    """What a reader computes who takes released values for a sample of exact ones."""
    values = release.data[name]
    centre, half = float(values.mean()), 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval(centre, centre - half, centre + half, 0.95, "law", "")


def shares(census: Columns, facts: Facts, name: str) -> tuple[float, float, float]:
    """Coverage of the kit's mean and of the naive one, and the mean width over that of the domain."""
    truth = float(on_grid(census, facts, name).mean())
    asked = release_often(census, facts, lambda release: (release.mean(name), naive_mean(release, name)))
    grid = facts.columns[name].grid
    assert grid is not None
    width = float(np.mean([kit.width for kit, _ in asked])) / float(grid.hi - grid.lo)
    return coverage([kit for kit, _ in asked], truth), coverage([naive for _, naive in asked], truth), width


@pytest.mark.parametrize(("name", "epsilon"), [("AGI", "1"), ("FICA", "0.2")])
def test_means_under_unclamped_laplace(census: Columns, name: str, epsilon: str) -> None:
    """93 to 97%. The naive interval is no worse here: the released spread has the noise in it, and the values' own spread, which
    is small beside it, only makes it wider."""
    kit, naive, _ = shares(census, make_facts(census, "laplace", epsilon, [name]), name)
    assert LOW <= kit <= HIGH
    assert naive >= LOW


@pytest.mark.parametrize("consistency", ["none", "isotonic"])
@pytest.mark.parametrize(("name", "epsilon", "k"), [("AGI", "0.1111", 20), ("EMCONTRB", "0.1111", 100)])
def test_means_under_unclamped_dp_um(census: Columns, name: str, epsilon: str, k: int, consistency: str) -> None:
    """93 to 97%, order restored or not: a mean does not feel it. The naive interval counts records that share their noise as
    independent ones, and misses far more often."""
    kit, naive, width = shares(census, make_facts(census, "dp-um", epsilon, [name], k=k, consistency=consistency), name)
    assert LOW <= kit <= HIGH
    assert naive < 0.9
    assert width < 1


@pytest.mark.parametrize(
    ("method", "scope", "at_most"),
    [("idp-cbls", "column", 2.4), ("idp-cbls", "centroid", 0.5), ("idp-ls", "column", 2.4), ("idp-ls", "centroid", 1.0001)],
)
def test_means_under_idp_with_their_bound(
    census: Columns, method: str, scope: str, at_most: float, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """At least 95%, and usually all: the bound is for the worst data. Its width is at most so many times that of dp-um with the
    same epsilon and k (the law of idp-ls by centroid is bounded by that of dp-um itself)."""
    consistency = "isotonic" if scope == "column" else "none"
    facts = make_facts(census, method, "1", ["AGI"], k=20, scope=scope, consistency=consistency)
    kit, _, width = shares(census, facts, "AGI")
    assert kit >= 0.95
    other = make_facts(census, "dp-um", "1", ["AGI"], k=20)
    wide = float(np.mean([i.width for i in release_often(census, other, lambda release: release.mean("AGI"), 1)]))
    ratio = width * float(other.columns["AGI"].grid.hi) / wide
    record_testsuite_property(f"{method} {scope}: width over the domain, over dp-um's", f"{width:.4f}, {ratio:.2f}")
    assert ratio <= at_most


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_scales_30_percent_off_are_told(census: Columns, factor: float) -> None:
    """Releases whose noise has the declared epsilon, read with facts that claim another one: coverage leaves 93 to 97% in every
    case that the tests above let through."""

    def wrong(facts: Facts, release: Release) -> Release:
        columns = {
            name: dataclasses.replace(column, epsilon=Epsilon(int(column.epsilon.nano / factor)))
            for name, column in facts.columns.items()
            if column.epsilon is not None
        }
        return Release(dataclasses.replace(facts, columns=columns), release.data)

    for method, epsilon, options in (("laplace", "1", {}), ("dp-um", "0.1111", {"k": 20, "consistency": "isotonic"})):
        facts = make_facts(census, method, epsilon, ["AGI"], **options)
        truth = float(on_grid(census, facts, "AGI").mean())
        asked = release_often(census, facts, lambda release, facts=facts: wrong(facts, release).mean("AGI"), 500)
        assert not LOW <= coverage(asked, truth) <= HIGH
