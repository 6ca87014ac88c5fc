"""Means and errors of declared groups, against plain sums over dictionaries."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from release_pipeline.stages.measures import subgroups
from release_pipeline.stages.measures.subgroups import GroupedColumn, measure_subgroups

Rows = list[tuple[str, str, float, float]]  # true group, released group, value, released value


def number(*labels: Any) -> tuple[list[str], Any]:
    """The names of groups, and the place of each label among them."""
    names = sorted({str(label) for side in labels for label in side} - {""})
    return names, tuple(np.array([names.index(label) if label else -1 for label in side], dtype=np.int32) for side in labels)


def measure(rows: Rows, *, weights: list[float] | None = None) -> list[dict[str, Any]]:
    """Of a release with all of its records, one column."""
    own, after = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    x, y = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    given = None if weights is None else np.array(weights)
    column = GroupedColumn(x, y, x, float(np.var(x)))
    return measure_subgroups(
        *number(own, after, own), [("income", column)], weights_before=given, weights_after=given, weights_own=given
    )


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
    """Means by what readers see, errors by who people are; weighted ones beside them where weights are given."""
    rows = rows_of(seed)
    weights = [1.0 + place % 3 for place in range(len(rows))]
    values = [row[2] for row in rows]
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    for heft in (None, weights):
        found = {group["label"]: group for group in measure(rows, weights=heft)}
        used = heft or [1.0] * len(rows)
        for label in "abc":
            was = [(w, x) for w, (true, _, x, _) in zip(used, rows, strict=True) if true == label]
            said = [(w, y) for w, (_, shown, _, y) in zip(used, rows, strict=True) if shown == label]
            off = [(y - x) ** 2 for true, _, x, y in rows if true == label]
            heavy = [(w, (y - x) ** 2) for w, (true, _, x, y) in zip(used, rows, strict=True) if true == label]
            squares = [(y - x) ** 2 / variance for _, _, x, y in rows]
            whole = sum(squares) / len(squares)
            spread = sum((square - whole) ** 2 for square in squares) / (len(squares) - 1)
            chance = math.sqrt(spread * (1 / len(off) - 1 / len(squares)))
            one = found[label]
            assert (one["records"], one["released"]) == (len(was), len(said))
            expected = {
                "original": pytest.approx(sum(x for _, x in was) / len(was)),
                "released": pytest.approx(sum(y for _, y in said) / len(said)),
                "error": pytest.approx(sum(off) / len(off) / variance),
                "chance": pytest.approx(chance),
                "above": pytest.approx((sum(off) / len(off) / variance - whole) / chance),
                "absolute": pytest.approx(sum(abs(y - x) for true, _, x, y in rows if true == label) / len(off)),
            }
            assert (one.get("weight"), one.get("released_weight")) == (
                (pytest.approx(sum(w for w, _ in was)), pytest.approx(sum(w for w, _ in said))) if heft else (None, None)
            )
            if heft:
                error = sum(w * square for w, square in heavy) / sum(w for w, _ in heavy) / variance
                expected["weighted_error"] = pytest.approx(error)
                expected["weighted_original"] = pytest.approx(sum(w * x for w, x in was) / sum(w for w, _ in was))
                expected["weighted_released"] = pytest.approx(sum(w * y for w, y in said) / sum(w for w, _ in said))
            assert one["columns"]["income"] == expected


def test_random_groups_are_all_that_could_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean and standard deviation over every choice of three records out of eight, one of them without a value."""
    monkeypatch.setattr(subgroups, "LEAST", 1)
    x = np.array([0.0, 4, 1, 7, 9, 2, 5, np.nan])
    y = x + np.array([1.0, -3, 0, 2, 8, 1, 0, 0])
    labels = np.array(list("aaabbbbb"))
    column = GroupedColumn(x, y, x, 2.0)
    found = {
        group["label"]: group["columns"]["c"] for group in measure_subgroups(*number(labels, labels, labels), [("c", column)])
    }
    squares = (y - x)[:7] ** 2 / 2.0
    drawn = [np.mean(chosen) for chosen in itertools.combinations(squares, 3)]
    assert found["a"]["chance"] == pytest.approx(np.std(drawn))
    assert found["a"]["above"] == pytest.approx((squares[:3].mean() - np.mean(drawn)) / np.std(drawn))
    others = [np.mean(chosen) for chosen in itertools.combinations(squares, 4)]  # five records, of which four have a value
    assert found["b"]["chance"] == pytest.approx(np.std(others))
