"""The figures of docs/multivariate.md, and what the page says in words of clusters of several columns and of random parts.

The secrets are those of the page, so that figures are its own: equal where all is in integers, and within a few percent where
scales come from powers of real numbers, which may differ between processors. What is said in words is tested with margins.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from pathlib import Path

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.experiments.multivariate import (
    BEGIN,
    CLAIMS,
    CLUSTERS,
    END,
    KS,
    METHODS,
    NOISY_ORDERS,
    PARTS,
    Experiment,
    main,
    measure_alone,
    measure_noisy,
    measure_partitioned,
    rewrite,
    show,
)
from release_pipeline.experiments.tables import MADE_UP, Source, make_up, read_source
from release_pipeline.privacy import mdav

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "multivariate.md"
NEAR = 0.05  # for what depends on powers of real numbers, and on a logarithm's last digit in the made-up table


@pytest.fixture(scope="module")
def wine(reference_data: Path) -> Source:
    return read_source(reference_data, "wine")


@pytest.fixture(scope="module")
def census(reference_data: Path) -> Source:
    return read_source(reference_data, "census")


@pytest.fixture(scope="module")
def made_up() -> Source:
    return make_up(100_000)


@pytest.fixture(scope="module")
def printed() -> dict[tuple[str, ...], str]:
    """Every cell of the page's tables, by its heading, what its row begins with, and its column."""
    return dict(_cells(PAGE.read_text(encoding="utf-8")))


def _cells(page: str) -> Iterator[tuple[tuple[str, ...], str]]:
    heading, head = "", list[str]()
    for line in page.partition(BEGIN)[2].partition(END)[0].splitlines():
        if line.startswith("### "):
            heading, head = line[4:], []
        elif line.startswith("| ---"):
            continue
        elif line.startswith("|"):
            row = [cell.strip() for cell in line.strip("|").split("|")]
            if not head:
                head = row
                continue
            first = sum(name in ("k", "epsilon", "clusters", "method") for name in head)
            for column, cell in zip(head[first:], row[first:], strict=True):
                yield (heading, *row[:first], column), cell


def _numbers(cell: str) -> list[float]:
    return [float(part) for part in cell.split(" / ")]


@pytest.mark.parametrize("k", KS)
def test_clusters_without_noise_are_those_of_the_page(
    k: int, wine: Source, census: Source, printed: dict[tuple[str, ...], str]
) -> None:
    """All of them again; along the curve wine is grouped better than by corner at every k, by a sixth to a half."""
    for source in (wine, census):
        for clusters in ("mdav", "corner", "corner, log", "hilbert", "hilbert, log"):
            found = measure_alone(source, k, clusters)
            assert f"{show(found.mean)} / {show(found.median)}" == printed[f"{source.name}, without noise", str(k), clusters]
    corner, hilbert, alike = (measure_alone(wine, k, clusters).mean for clusters in ("corner", "hilbert", "mdav"))
    assert alike < hilbert < 0.84 * corner
    for source in (wine, census):  # the logarithm helps the corner on wine, and nothing else
        for order in ("corner", "hilbert"):
            plain, log = (measure_alone(source, k, clusters).mean for clusters in (order, f"{order}, log"))
            assert (log < plain) == (source is wine and order == "corner")


def test_where_the_curve_is_worse_is_said(census: Source) -> None:
    """Census: better than by corner at k = 20 and 50, worse from k = 100 on. MDAV makes two clusters of it at k = 400."""
    for k in KS:
        corner, hilbert = (measure_alone(census, k, clusters).mean for clusters in ("corner", "hilbert"))
        assert (hilbert < 0.96 * corner) if k < 100 else (hilbert > 1.05 * corner)
    assert measure_alone(census, 400, "mdav").mean > 1.3 * measure_alone(census, 400, "corner").mean
    assert mdav(census.units, 400).max() == 1


def test_the_mean_is_sse_over_sst(census: Source) -> None:
    """100 SSE / SST is on z-scores, as the literature has it: a sum by hand."""
    cluster = mdav(census.units, 10)
    z = (census.values - census.values.mean(axis=0)) / census.values.std(axis=0)
    within = sum(float(np.sum((z[cluster == one] - z[cluster == one].mean(axis=0)) ** 2)) for one in range(cluster.max() + 1))
    assert measure_alone(census, 10, "mdav").mean == pytest.approx(within / float(np.sum(z**2)))


@pytest.mark.parametrize(
    ("name", "k", "epsilon", "order", "claim"),
    [
        ("wine", 50, "10", "hilbert", "centroid, DP"),
        ("wine", 400, "1", "corner", "table, DP"),
        ("wine", 200, "10", "hilbert, log", "table, iDP"),
        ("census", 100, "1", "corner", "table, iDP"),
        ("census", 200, "1", "hilbert", "table, DP"),
        ("census", 20, "0.1", "corner", "centroid, DP"),
    ],
)
def test_noisy_figures_are_those_of_the_page(
    name: str,
    k: int,
    epsilon: str,
    order: str,
    claim: str,
    request: pytest.FixtureRequest,
    printed: dict[tuple[str, ...], str],
) -> None:
    found = measure_noisy(request.getfixturevalue(name), k, epsilon, order, claim)
    cell = printed[f"{name}, with noise", epsilon, str(k), f"{claim}: {order}"]
    if claim.endswith(" iDP"):
        assert [found.mean, found.median] == pytest.approx(_numbers(cell), rel=NEAR)
    else:
        assert f"{show(found.mean)} / {show(found.median)}" == cell


@pytest.mark.parametrize("order", NOISY_ORDERS)
def test_trimmed_sums_are_better_for_the_whole_table(order: str, wine: Source) -> None:
    """At scope table on wine: many times at k = 100 and epsilon 1, and hundreds of times at epsilon 10."""
    for epsilon, factor in (("1", 5), ("10", 200)):
        plain, trimmed = (measure_noisy(wine, 100, epsilon, order, f"table, {kind}", secrets=3).mean for kind in ("DP", "iDP"))
        assert factor * trimmed < plain


@pytest.mark.parametrize("order", ["corner", "hilbert"])
def test_at_small_epsilon_more_k_is_less_error(order: str, wine: Source, census: Source) -> None:
    """From k = 100 on; with less, values lie anywhere in the domain. So they do on wine with plain sums for the whole table at
    epsilon 0.1 whatever k is, and at epsilon 1 they no longer do."""
    cases = [(source, "0.1", claim) for source in (wine, census) for claim in ("centroid, DP", "table, iDP")]
    for source, epsilon, claim in (*cases, (census, "0.1", "table, DP"), (wine, "1", "table, DP")):
        errors = [measure_noisy(source, k, epsilon, order, claim, secrets=9).mean for k in (100, 200, 400)]
        assert all(one > 1.1 * more for one, more in pairwise(errors))


def test_every_printed_figure_is_finite_and_none_is_missing(printed: dict[tuple[str, ...], str]) -> None:
    for name in ("wine", "census"):
        assert len([key for key in printed if key[0] == f"{name}, without noise"]) == len(KS) * 5
        assert len([key for key in printed if key[0] == f"{name}, with noise"]) == len(KS) * 3 * len(CLAIMS) * len(NOISY_ORDERS)
    assert len([key for key in printed if key[0] == "Random parts, without noise"]) == len(CLUSTERS) * len(PARTS)
    assert len([key for key in printed if key[0] == "Random parts, with noise"]) == len(METHODS) * 3 * len(PARTS)
    assert all(isfinite(number) and number > 0 for cell in printed.values() for number in _numbers(cell))


def test_the_printed_figures_say_what_the_page_says(printed: dict[tuple[str, ...], str]) -> None:
    """The curve's bound is no better than the corner's with 12 columns: equal scales, so that only the grouping differs. And on
    wine nothing below epsilon 10 is better than publishing means."""
    for epsilon in ("0.1", "1", "10"):
        for k in KS:
            cells = [_numbers(printed["wine, with noise", epsilon, str(k), f"table, DP: {order}"])[0] for order in NOISY_ORDERS]
            assert max(cells) < 1.01 * min(cells)
    noisy = {key: _numbers(cell) for key, cell in printed.items() if key[0] == "wine, with noise"}
    assert min(mean for key, (mean, _) in noisy.items() if key[1] != "10") > 3
    assert min(median for key, (_, median) in noisy.items() if key[1] != "10") > 1
    assert min(mean for key, (mean, _) in noisy.items() if key[1] == "10") < 0.8


@pytest.mark.parametrize(
    ("method", "epsilon", "parts"),
    [
        ("rank clusters", None, 10),
        ("mdav, k = 25", None, 10),
        ("hilbert, k = 25", None, 1),
        ("laplace", "1", 2),
        ("dp-um, isotonic", "1", 10),
        ("idp-cbls", "1", 1),
        ("dp-mdav, hilbert, DP, k = 400", "1", 10),
        ("dp-mdav, corner, iDP, k = 400", "10", 2),
    ],
)
def test_figures_of_parts_are_those_of_the_page(
    method: str, epsilon: str | None, parts: int, made_up: Source, printed: dict[tuple[str, ...], str]
) -> None:
    found = measure_partitioned(made_up, method, epsilon, parts)
    column = "1 part" if parts == 1 else f"{parts} parts"
    key = (
        ("Random parts, without noise", method, column)
        if epsilon is None
        else ("Random parts, with noise", method, epsilon, column)
    )
    assert found.mean == pytest.approx(_numbers(printed[key])[0], rel=NEAR)


def test_random_parts_cost_what_the_page_says(made_up: Source) -> None:
    """Rank methods hardly notice ten parts; isotonic means do, for there are fewer to smooth; clusters of several columns lose
    homogeneity; and dp-mdav for the whole table gains, where noise is what it suffers from."""

    def error(method: str, epsilon: str | None, parts: int) -> float:
        return measure_partitioned(made_up, method, epsilon, parts, secrets=1).mean

    for method in ("laplace", "dp-um", "idp-ls", "idp-cbls"):
        assert 0.9 < error(method, "1", 10) / error(method, "1", 1) < 1.15
    for method in ("dp-um, isotonic", "idp-cbls, isotonic"):
        assert error(method, "1", 10) > 3 * error(method, "1", 1)
    assert 2 < error("mdav, k = 25", None, 10) / error("mdav, k = 25", None, 1) < 5
    assert 7 < error("mdav, k = 25", None, 100) / error("mdav, k = 25", None, 1) < 14
    assert error("hilbert, k = 25", None, 10) > 2 * error("hilbert, k = 25", None, 1)
    for method in (name for name in METHODS if name.startswith("dp-mdav") and name.endswith("k = 400")):
        assert error(method, "0.1", 10) < 0.9 * error(method, "0.1", 1)
    assert error("dp-mdav, hilbert, DP, k = 400", "1", 10) < 0.2 * error("dp-mdav, hilbert, DP, k = 400", "1", 1)
    assert error("dp-mdav, hilbert, iDP, k = 400", "10", 10) > 1.5 * error("dp-mdav, hilbert, iDP, k = 400", "10", 1)


def test_the_made_up_table_is_skewed_correlated_and_within_its_domains(made_up: Source) -> None:
    assert made_up.values.shape == (100_000, len(MADE_UP))
    assert np.array_equal(made_up.values, np.rint(made_up.values))
    for column, grid in zip(made_up.values.T, made_up.grids, strict=True):
        assert 0 <= column.min() < column.max() <= float(grid.hi)
        assert np.mean(column == float(grid.hi)) < 0.001
        assert np.mean(column) > 1.15 * np.median(column)
    logs = np.log(np.maximum(made_up.values, 1))
    shares = [share for _, _, share, _ in MADE_UP.values()]
    expected = np.outer(shares, shares)
    np.fill_diagonal(expected, 1)
    assert np.abs(np.corrcoef(logs.T) - expected).max() < 0.03
    assert np.array_equal(make_up(1_000).values, make_up(1_000).values)


def test_the_command_rewrites_the_page_between_its_marks(
    reference_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is around the marks stays; a page without them is refused before anything is measured."""
    found = Experiment((measure_alone(read_source(reference_data, "census"), 100, "corner"),), (), ())
    asked: list[Path] = []

    def run(data: Path, **_: object) -> Experiment:
        asked.append(data)
        return found

    monkeypatch.setattr("release_pipeline.experiments.multivariate.run", run)
    page = tmp_path / "page.md"
    page.write_text("before\n", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="no place for the tables"):
        main([str(reference_data), "--page", str(page)])
    assert asked == []
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    main([str(reference_data), "--page", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text == f"before\n{BEGIN}\n\n{found.markdown}\n{END}\nafter\n"
    assert rewrite(text, found.markdown) == text
    assert found.markdown in capsys.readouterr().out
    assert dict(_cells(text)) == {("census, without noise", "100", "corner"): "0.513 / 0.414"}
