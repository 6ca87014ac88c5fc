"""Which settings no other beats."""

from __future__ import annotations

import pytest

from release_pipeline.policy.plans.settings import Strength

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
