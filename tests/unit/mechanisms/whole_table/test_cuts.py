"""Cut points: their masses by adding up, draws by their law, and where they come to lie."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from release_pipeline.mechanisms.basis.grid import MAX_WIDTH
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.mechanisms.whole_table.cuts import CutLaw, Places

SECRET = bytes(range(32))


@given(st.integers(1, 300), st.data())
def test_masses_add_up(width: int, data: st.DataObject) -> None:
    """Cut by cut: even ones and shells of doubling width, and a mass leads back to its cut."""
    places = Places(width, data.draw(st.integers(0, width)))
    total = 0
    for cut in range(1, width + 1):
        distance = cut - places.centre if cut > places.centre else places.centre - cut + 1
        mass = places.even + (1 << 56) // (1 << (distance.bit_length() - 1))
        assert places.find(0, width, total) == cut
        total += mass
        assert places.up_to(cut) == total
        assert places.find(0, width, total - 1) == cut


@given(st.sampled_from([1, 2, 7, 2**31, MAX_WIDTH - 1, MAX_WIDTH]) | st.integers(1, MAX_WIDTH), st.data())
def test_many_masses_are_those_of_each(width: int, data: st.DataObject) -> None:
    """Also of the widest domain, with its centre at an end: no sum is too large for its type."""
    places = Places(width, data.draw(st.sampled_from([0, width]) | st.integers(0, width)))
    near = [0, width, places.centre, max(places.centre - 1, 0), min(places.centre + 1, width)]
    cuts = [*near, *data.draw(st.lists(st.integers(0, width), max_size=20))]
    assert places.all_up_to(np.array(cuts, dtype=np.int64)).tolist() == [places.up_to(cut) for cut in cuts]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("faster", [1.0, 1.3])
def test_cuts_are_drawn_by_their_law(faster: float) -> None:
    """20,000 draws from a node; weights that fall a third faster are rejected."""
    values = np.array([3, 3, 4, 7, 7, 7, 12], dtype=np.int64)
    law = CutLaw(Places(15, 5), Fraction(1))
    stream = noise_stream(SECRET, "cuts")
    drawn = Counter(law.draw(Tally.of(values), (2, 14), stream) for _ in range(20_000))
    weights = {
        cut: (law.places.up_to(cut) - law.places.up_to(cut - 1)) * math.exp(-faster / 2 * abs(2 * int((values < cut).sum()) - 7))
        for cut in range(3, 14)
    }
    assert set(drawn) == set(weights)
    expected = [20_000 * weights[cut] / sum(weights.values()) for cut in weights]
    fits = stats.chisquare([drawn[cut] for cut in weights], expected).pvalue
    assert fits > 1e-4 if faster == 1 else fits < 1e-12
