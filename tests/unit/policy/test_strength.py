"""Which settings no other beats."""

from __future__ import annotations

import pytest

from release_pipeline.policy.strength import Strength, find_best

DP, IDP, ZCDP = (Strength(definition, "column") for definition in ("dp", "idp", "zcdp"))
WHOLE = Strength("dp", "table", covers_table=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [(DP, IDP), (DP, ZCDP), (WHOLE, DP), (WHOLE, IDP), (DP, Strength("dp", "centroid")), (DP, DP)],
)
def test_a_claim_covers_what_is_weaker(one: Strength, other: Strength) -> None:
    """And not the other way round, unless they are the same."""
    assert one.covers(other)
    assert other.covers(one) == (one == other)


def test_where_k_is_the_promise_fewer_records_are_a_weaker_one() -> None:
    """A smaller k has a smaller error, and is no better for it."""
    few, many = (Strength("k-anonymity", "class", k=k) for k in (3, 30))
    assert many.covers(few)
    assert not few.covers(many)
    assert find_best([few, many], [None, None], [0.1, 0.2]) == [True, True]


def test_the_best_are_compared_with_what_claims_as_much() -> None:
    """An epsilon of iDP is no epsilon of DP; what has no figure is not among the best."""
    claims, epsilons = [DP, IDP, DP], [2.0, 1.0, 1.0]
    assert find_best(claims, epsilons, [0.5, 0.1, 0.6]) == [True, True, True]
    assert find_best(claims, epsilons, [0.5, 0.1, 0.4]) == [False, True, True]
    assert find_best(claims, epsilons, [None, 0.1, 0.4]) == [False, True, True]
    assert find_best(claims, epsilons, [0.5, 0.4, 0.1]) == [False, False, True]
