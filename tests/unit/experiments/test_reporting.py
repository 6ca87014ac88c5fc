"""Settings measured and put into tables, and what is said of ratios: verdicts, bests, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pandas as pd
import pytest

from experiments.papers.reporting import (
    Claim,
    divide,
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


def test_secrets_differ_by_run_and_seed() -> None:
    secrets = [*make_secrets(1, 5), *make_secrets(2, 5)]
    assert len(set(secrets)) == 10
    assert {len(secret) for secret in secrets} == {32}
    assert make_secrets(1, 9)[:5] == secrets[:5]  # more runs begin as fewer do


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
