"""Means and errors of declared groups, against plain sums over dictionaries."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from release_pipeline.audit.subgroups import GroupedColumn, measure_subgroups

Rows = list[tuple[str, str, float, float]]  # true group, released group, value, released value


def number(*labels: Any) -> tuple[list[str], Any]:
    """The names of groups, and the place of each label among them."""
    names = sorted({str(label) for side in labels for label in side} - {""})
    return names, tuple(np.array([names.index(label) if label else -1 for label in side], dtype=np.int32) for side in labels)


def measure(rows: Rows) -> list[dict[str, Any]]:
    """Of a release with all of its records, one column."""
    own, after = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    x, y = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    return measure_subgroups(*number(own, after, own), [("income", GroupedColumn(x, y, x, float(np.var(x))))])


def rows_of(seed: int) -> Rows:
    """Three groups, the last with ten times the noise; some records are released as of another group."""
    rng = random.Random(seed)  # noqa: S311
    rows: Rows = []
    for label, noise in (("a", 1.0), ("b", 1.0), ("c", 10.0)):
        for _ in range(60):
            value = rng.uniform(0, 100)
            rows.append((label, rng.choice("abc") if rng.random() < 0.1 else label, value, value + rng.gauss(0, noise)))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_plain_sums(seed: int) -> None:
    """Means by what readers see, errors by who people are."""
    rows = rows_of(seed)
    values = [row[2] for row in rows]
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    found = {group["label"]: group for group in measure(rows)}
    for label in "abc":
        was = [x for true, _, x, _ in rows if true == label]
        said = [y for _, shown, _, y in rows if shown == label]
        off = [(y - x) ** 2 for true, _, x, y in rows if true == label]
        one = found[label]
        assert (one["records"], one["released"]) == (len(was), len(said))
        assert one["columns"]["income"] == {
            "original": pytest.approx(sum(was) / len(was)),
            "released": pytest.approx(sum(said) / len(said)),
            "error": pytest.approx(sum(off) / len(off) / variance),
        }
