"""What ranks are given: in order, inside the domain, k alike, and atoms whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.privacy.by_value.fit import Masses
from release_pipeline.privacy.by_value.quantiles import Quantiles, release_values


def masses(edges: list[int], share: list[float]) -> Masses:
    """Masses that nobody fitted."""
    parts = np.array(share)
    return Masses(np.array(edges), parts / parts.sum(), np.zeros(len(share)))


ATOMIC = masses([0, 1, 11], [0.6, 0.4])


@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda share: sum(share) > 0.1),
    st.integers(1, 60),
    st.integers(1, 9),
)
def test_values_ascend_inside_the_domain(share: list[float], records: int, k: int) -> None:
    """Each group of k has one value."""
    if records < k:
        return
    released = release_values(Quantiles.of(masses([0, 1, 2, 8, 30], share)), records, k, ())
    assert len(released) == records // k
    assert (np.diff(released) >= 0).all()
    assert released.min() >= 0
    assert released.max() <= 29


@pytest.mark.parametrize(("k", "expected"), [(2, [0, 0, 0, 3, 8]), (4, [0, 6]), (5, [0, 6]), (10, [0])])
def test_the_majority_decides_at_the_edge_of_an_atom(k: int, expected: list[int]) -> None:
    """A group is at the atom, or at the mean of those that are not."""
    assert release_values(Quantiles.of(ATOMIC), 10, k, (0,)).tolist() == expected
