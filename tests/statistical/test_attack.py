"""Attackers who see a whole masked table: none gets beyond what is claimed for the table, and what is not claimed is broken.

Secrets are fixed, so nothing is flaky; the figures of docs/measured.md are those of four times as many.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import get_args

import numpy as np
import pytest

from experiments.attack import (
    FEW_SECRETS,
    Individual,
    attack_patterns,
    attack_scales,
    attack_vectors,
    find_pair,
    log_likelihood,
    read_vectors,
    release,
)
from release_pipeline.mechanisms.vectors.vectors import Order, Statistic

pytestmark = pytest.mark.statistical

ROUNDING = 1e-9  # of float logarithms


@pytest.mark.parametrize("rows", [12, 13])
@pytest.mark.parametrize("statistic", ["plain", "trimmed"])
@pytest.mark.parametrize("order", ["corner", "hilbert"])
def test_no_release_of_a_table_claim_tells_more_than_epsilon(order: Order, statistic: Statistic, rows: int) -> None:
    """Every likelihood ratio of everything that can be seen, and every event's; a larger last cluster told apart or not."""
    found = attack_vectors(order, statistic, epsilon="3", rows=rows, secrets=300, steps=300)
    assert found.worst is not None
    assert 0.5 < found.worst <= 3 + ROUNDING  # so the pair of tables is not an easy one
    assert found.proved <= 3


@pytest.mark.parametrize("statistic", ["plain", "trimmed"])
@pytest.mark.parametrize("order", ["corner", "hilbert"])
def test_noise_of_one_centroid_is_caught_as_too_little_for_the_table(order: Order, statistic: Statistic) -> None:
    """The same attack has the power to see it: ratios of more than one and a half times epsilon."""
    found = attack_vectors(order, statistic, epsilon="3", noise="centroid", secrets=300, steps=300)
    assert found.worst is not None
    assert found.worst > 4.5
    assert found.right > 0.8


def test_the_likelihood_of_a_release_is_that_of_all_its_ways() -> None:
    """Against the sum over permutations as it stands, of what was read from shuffled rows."""
    for rows in (9, 11):
        pair = find_pair("corner", "trimmed", epsilon="1", rows=rows, k=3, noise="table", seed=2, steps=20)
        sums = np.stack([part.statistic for part in pair.one], axis=1).tolist()
        scales = np.stack([part.scale for part in pair.one], axis=1).tolist()
        for number in range(20):
            seen = read_vectors(release(pair.one, secret=bytes([number]) * 32, clamp=False), 3)
            free = len(sums) - (seen[1] is not None)
            assert len(seen[0]) == free
            total = 0.0
            for way in permutations(seen[0].tolist()):
                vectors = [*way, *([] if seen[1] is None else [seen[1].tolist()])]
                total += math.exp(
                    -sum(
                        abs(x - s) / t
                        for vector, of, by in zip(vectors, sums, scales, strict=True)
                        for x, s, t in zip(vector, of, by, strict=True)
                    )
                )
            assert log_likelihood(seen, pair.one) == pytest.approx(math.log(total))
    assert (11 % 3 != 0) == (seen[1] is not None)


@pytest.mark.parametrize("method", ["dp-um", "idp-cbls"])
@pytest.mark.parametrize("consistency", ["isotonic", "none"])
def test_which_rows_share_values_gives_column_claims_away(method: str, consistency: str) -> None:
    """The known weakness: 0.1 for each of two columns, and the table is worth more than ten times that."""
    found = attack_patterns(method, epsilon="0.1", consistency=consistency, secrets=400)
    assert found.claimed == 0.2
    assert found.proved > 2
    assert found.right == 1 if consistency == "none" else found.right > 0.95


@pytest.mark.parametrize("method", get_args(Individual))
def test_scales_that_are_calculated_anew_have_no_bound(method: Individual) -> None:
    """Under iDP: 40 people and a claim of 0.01, which holds with the scales of the actual data in both tables and is worth at
    least 4.8 without that clause. More secrets prove more, without end."""
    kept, broken = (attack_scales(method, anew=anew, epsilon="0.01") for anew in (False, True))
    assert kept.claimed == broken.claimed == 0.01
    assert kept.proved == 0
    assert kept.right == 0.5
    assert broken.proved >= 4.8
    assert broken.right == 1
    assert broken.secrets == FEW_SECRETS
    assert attack_scales(method, anew=True, secrets=100).proved < 3 < attack_scales(method, anew=True, secrets=300).proved
