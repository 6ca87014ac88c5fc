"""Settings measured and put into tables, and what is said of ratios: verdicts, bests, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pandas as pd
import pytest

from experiments.papers.reporting import (
    Chapter,
    Claim,
    average_logs,
    divide,
    divide_ends,
    divide_steps,
    pick,
    spread_out,
    take_best,
    write_best,
    write_page,
    write_table,
)
from experiments.papers.runs import Setting, make_secrets, measure_all, tabulate

SETTINGS = [
    Setting.of("error", 3, table=table, method=method, k=k)
    for table in ("census", "wine")
    for method in ("one", "two")
    for k in (2, 10)
]


def measure(_: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """Twice as much by the second method, ten times less at k 10, and a little more in each run."""
    error = (2 if setting.text("method") == "two" else 1) * 20 / setting.number("k")
    return [{"error": error + secret[-1] / 1000} for secret in secrets]


@pytest.fixture(scope="module")
def error() -> pd.Series:
    """What the settings gave."""
    measured = measure_all(SETTINGS, measure, Path(), seed=1, jobs=1, progress=lambda _: None)
    return tabulate(measured)["error"]["error"]


def test_processes_give_the_same_in_the_same_order(error: pd.Series) -> None:
    measured = measure_all(SETTINGS, measure, Path(), seed=1, jobs=2, progress=lambda _: None)
    assert tabulate(measured)["error"]["error"].equals(error)
    assert [one.setting for one in measured] == SETTINGS


def test_secrets_differ_by_run_and_seed() -> None:
    secrets = [*make_secrets(1, 5), *make_secrets(2, 5)]
    assert len(set(secrets)) == 10
    assert {len(secret) for secret in secrets} == {32}
    assert make_secrets(1, 9)[:5] == secrets[:5]  # more runs begin as fewer do


def test_ratios_are_taken_run_by_run(error: pd.Series) -> None:
    twice = divide(error, "method", "two", "one")
    assert twice.index.names == ["table", "k", "run"]
    assert twice["wine", 10, 2] == pytest.approx((4 + 0.002) / (2 + 0.002))
    assert divide_ends(error, "k")["census", "one", 0] == 5
    assert divide_steps(error, "k")["wine", "two", 0, 2] == 5
    assert len(divide(error, "method", "two", "three")) == 0
    assert pick(error, table="wine", method="one", k=2).tolist() == [10, 10.001, 10.002]
    assert set(pick(error, k=(2,)).index.get_level_values("k")) == {2}


def test_the_best_is_of_each_other_field(error: pd.Series) -> None:
    best = take_best(error, "k")
    assert len(best) == 4 * 3
    assert set(best.index.get_level_values("k")) == {10}
    assert set(take_best(error, "k", most=True).index.get_level_values("k")) == {2}
    alone = pick(error, method="one", k=2)
    assert spread_out(alone, error.to_frame())["wine", "two", 10, 1] == 10.001
    assert average_logs(pick(error, run=0), "table")["census"] == pytest.approx((10 * 2 * 20 * 4) ** 0.25)
    assert write_best(error, "k", "method", "table").splitlines()[2] == "| census | 2.00 (k 10) | 4.00 (k 10) |"


@pytest.mark.parametrize(
    ("least", "most", "verdict", "share"),
    [
        (1.9, inf, "holds", "4 of 4"),
        (1.9999, inf, "holds by the median", "4 of 4"),
        (1.9997, 2, "holds in part", "2 of 4"),
        (2, inf, "does not hold", "0 of 4"),
    ],
)
def test_verdicts_are_of_runs_and_medians(error: pd.Series, least: float, most: float, verdict: str, share: str) -> None:
    """At k 2 the ratios of three runs are 2, 1.9999 and 1.9998; at k 10 they are 2, 1.9995 and 1.999."""
    ratios = divide(error, "method", "two", "one")
    if verdict == "holds by the median":
        ratios = ratios + 0.0005
        ratios[ratios.index.get_level_values("run") == 2] = 1.0
    found = Claim("Two is twice one.", "here", ratios, least, most, "Two over one", "Luck.").judge()
    assert found[:2] == (verdict, share)
    assert "Two over one; holds above" in found[2]
    assert ("Luck." in found[2]) == (verdict != "holds")


def test_what_was_not_measured_is_not_judged(error: pd.Series) -> None:
    assert Claim("x", "here", error[:0]).judge()[0] == "not measured"


def test_tables_have_means_over_runs(error: pd.Series) -> None:
    lines = write_table(error, "k").splitlines()
    assert lines[0] == "| table | method | k 2 | k 10 |"
    assert lines[2] == "| census | one | 10.0 | 2.00 |"
    assert len(lines) == 6


def test_the_page_has_each_claim_twice_and_what_departs(error: pd.Series) -> None:
    claim = Claim("Two is twice one.", "here", divide(error, "method", "two", "one"), note="Two over one")
    page = write_page(
        {"made": ("First line.\n\nWhat it is.", Chapter("Made: up", [claim], {"Errors": "a table"}))}, "hand", 9, ["that"]
    )
    assert "| [made](#made-up) | Two is twice one. | holds | 4 of 4 |" in page
    assert "- **Two is twice one.** (here) *holds*. Two over one; holds above 1." in page
    assert "8 of 9 figures agree" in page
    assert "- that" in page
    assert "## Made: up\n\nWhat it is." in page
