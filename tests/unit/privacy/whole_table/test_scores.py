"""The order of rows within groups: by the groups of other columns, too, and without reasons in it."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table.links import Link
from release_pipeline.privacy.whole_table.pool import Linked
from release_pipeline.privacy.whole_table.rows import score_rows

RECORDS = 6_000
KEY = b"s" * 32


def draw_groups() -> tuple[IntArray, IntArray, FloatArray]:
    """Five kinds, whose scores have different means; two groups of these scores, the lower and the upper half; the scores."""
    draw = np.random.default_rng(8)
    kinds = draw.integers(0, 5, RECORDS)
    scores = 0.6 * (kinds - 2) / np.sqrt(2) + 0.8 * draw.standard_normal(RECORDS)
    return kinds, (scores > np.median(scores)).astype(np.int64), scores


def make_linked(kinds: IntArray, halves: IntArray, deviation: float) -> Linked:
    """The true table of both."""
    table = np.bincount(kinds * 2 + halves, minlength=10).reshape(5, 2).astype(np.float64)
    return Linked([table.sum(axis=1), table.sum(axis=0)], {(0, 1): Link(table, None, 1.0, deviation)}, {1: 2})


def find_profile(kinds: IntArray, scores: FloatArray) -> FloatArray:
    """The mean score of each kind, less that of all."""
    return np.bincount(kinds, scores - scores.mean()) / np.bincount(kinds)


def test_what_groups_show_goes_on_within_groups() -> None:
    """Halves at random have less than two thirds of the profile; most of the rest is found."""
    kinds, halves, scores = draw_groups()
    true = find_profile(kinds, scores)
    random = np.random.default_rng(1).standard_normal(RECORDS)
    flat = find_profile(kinds, np.where(halves == 1, np.abs(random), -np.abs(random)))
    made = score_rows(np.stack([kinds, halves]), make_linked(kinds, halves, 5.0), make_random(KEY, "rows"))[0]
    assert (made > 0).astype(np.int64) == pytest.approx(halves)
    assert float(flat @ true / (true @ true)) < 0.7
    assert float(find_profile(kinds, made) @ true / (true @ true)) == pytest.approx(0.9, abs=0.12)


def test_what_noise_may_have_made_goes_on_nowhere() -> None:
    """Within each half rows are as at random, where noise would make as much of a profile."""
    kinds, halves, _ = draw_groups()
    made = score_rows(np.stack([kinds, halves]), make_linked(kinds, halves, 400.0), make_random(KEY, "rows"))[0]
    for half in (0, 1):
        own = halves == half
        assert np.abs(find_profile(kinds[own], made[own])).max() < 0.1
