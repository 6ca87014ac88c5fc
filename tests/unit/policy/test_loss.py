"""What a release may cost at most: the public bounds, and that no exact loss is ever above them."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.mechanisms import Epsilon, mask_column
from release_pipeline.mechanisms.accounting.budget import NANO
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.loading.populations import Cap, Population
from release_pipeline.policy.plans.loss import LOSSES, Account, Loss, release_loss, wider_bound

SECRET = bytes(32)
KEPT = "  site: {role: quasi, do: keep, values: [1, 2], why: known}\n"


def policy_of(protect: str, *, columns: int = 1, kept: str = "", records: int = 1, width: int = 100) -> Policy:
    """A policy of this method with so many noise columns."""
    noise = "".join(
        f"  c{i}: {{role: confidential, do: noise, domain: [0, {width}], grid: 1, outside: clamp, why: known}}\n"
        for i in range(columns)
    )
    return parse_policy(
        "policy: people\nsteward: ana\npopulation: people\nsource: {path: people.csv}\nreleases: once\n"
        f"person: {{column: id, records_per_release: {records}}}\nprotect: {{{protect}}}\n"
        f"columns:\n  id: {{role: identifier, do: drop}}\n{noise}{kept}",
        name="p.yaml",
    )


def words(loss: Loss) -> list[float]:
    """dp and idp, each for centroid, column and table, as epsilon."""
    return [math.inf if part is None else part / NANO for part in (getattr(loss, name) for name in LOSSES[:6])]


INF = math.inf


@pytest.mark.parametrize(
    ("protect", "columns", "records", "expected"),
    [
        ("method: laplace, epsilon: 2", 4, 1, [0.5, 0.5, 0.5]),  # 4 x (1/2)^2 / 2
        ("method: laplace, epsilon: 2", 4, 3, [4.5, 4.5, 4.5]),  # 4 x (3/2)^2 / 2
        ("method: dp-um, epsilon: 2, k: 5", 1, 1, [2, 2, INF]),
        ("method: dp-cdf, epsilon: 2", 2, 1, [1, 1, INF]),
        ("method: dp-mdav, epsilon: 2, k: 5, order: corner", 2, 1, [2, 2, 2]),  # its columns are masked together
        ("method: dp-mdav, epsilon: 2, k: 50, order: corner, scope: centroid", 1, 1, [2, 8, 8]),
        ("method: idp-cbls, epsilon: 2, k: 5", 1, 1, [INF, INF, INF]),
    ],
)
def test_pure_releases_cost_rho(protect: str, columns: int, records: int, expected: list[float]) -> None:
    """Half the square of what each column's mechanism loses, added up; of all together where they are one mechanism."""
    loss = release_loss(policy_of(protect, columns=columns, records=records), records=100)
    assert [math.inf if part is None else part / NANO for part in (getattr(loss, name) for name in LOSSES[6:])] == expected


@pytest.mark.parametrize(
    ("policy", "records", "expected"),
    [
        (policy_of("method: laplace, epsilon: 2", columns=4), 100, [2, 2, 2, 2, 2, 2]),
        (policy_of("method: laplace, epsilon: 2", kept=KEPT), 100, [2, 2, INF, 2, 2, INF]),
        (policy_of("method: laplace, epsilon: 2", records=3), 100, [6, 6, 6, 6, 6, 6]),
        (policy_of("method: dp-um, epsilon: 2, k: 5"), 100, [2, 2, INF, 2, 2, INF]),
        (policy_of("method: dp-um, epsilon: 2, k: 5, scope: centroid", records=2), 100, [4, 4, INF, 4, 4, INF]),
        (policy_of("method: idp-cbls, epsilon: 2, k: 5"), 100, [INF, INF, INF, 2, 2, INF]),
        (policy_of("method: idp-cbls, epsilon: 2, k: 5, scope: centroid", columns=4), 104, [INF, INF, INF, 2, 40, INF]),
        (policy_of("method: idp-cbls, epsilon: 2, k: 5, scope: centroid"), 3, [INF, INF, INF, 2, 2, INF]),
        (policy_of("method: idp-ls, epsilon: 2, k: 5"), 100, [INF, INF, INF, 2, 2, INF]),
        (policy_of("method: idp-ls, epsilon: 2, k: 5, scope: centroid"), 100, [INF, INF, INF, 2, 3.386294362, INF]),
    ],
)
def test_bounds_by_method_and_scope(policy: Policy, records: int, expected: list[float]) -> None:
    """DP fills both definitions, iDP leaves DP infinite; wider scopes cost what can be proved, rounded up."""
    assert words(release_loss(policy, records=records)) == expected


def test_only_laplace_without_kept_columns_covers_the_table() -> None:
    """Rank patterns and kept columns are not covered."""
    assert policy_of("method: laplace, epsilon: 1").covers_table
    assert not policy_of("method: laplace, epsilon: 1", kept=KEPT).covers_table
    assert not policy_of("method: dp-um, epsilon: 1, k: 5").covers_table


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.sampled_from(["dp-um", "idp-ls", "idp-cbls", "laplace"]),
    st.sampled_from(["centroid", "column"]),
    st.integers(3, 6),
    st.sampled_from(["0.3", "1", "2.5"]),
    st.sampled_from([3, 20, 1000]),
    st.data(),
)
def test_exact_loss_is_never_above_the_bound(
    method: str, scope: str, k: int, epsilon: str, width: int, data: st.DataObject
) -> None:
    """For any data: the worst loss of a centroid and of the column's list, over every neighbour, within what is charged."""
    values = data.draw(st.lists(st.integers(0, width), min_size=2 * k, max_size=40))
    size = "" if method == "laplace" else f", k: {k}"
    policy = policy_of(f"method: {method}, epsilon: {epsilon}{size}, scope: {scope}", width=width)
    masked = mask_column(
        np.array(values, dtype=np.float64),
        domain=(0, width),
        grid=1,
        method=method,
        epsilon=epsilon,
        k=None if method == "laplace" else k,
        scope=scope,
        secret=SECRET,
    )
    bound = release_loss(policy, records=len(values))
    definition = masked.claim.definition
    for reach in ("centroid", "column"):
        nano = bound.of(definition, reach)
        assert nano is not None
        assert masked.loss[reach] <= nano / NANO * (1 + 1e-9)


@given(st.integers(1, 8), st.integers(1, 10**6), st.integers(1, 5))
def test_columns_add_up_to_the_release(columns: int, micro: int, records: int) -> None:
    """However epsilon is split, the columns' parts are the release's loss, to the last nano-epsilon."""
    policy = policy_of(f"method: dp-um, epsilon: {micro / 10**6 + 1:.6f}, k: 5", columns=columns, records=records)
    total = sum(part.nano for part in policy.column_epsilon.values()) * records
    assert release_loss(policy, records=10).dp_column == total


def account(cap: Cap, *charged: int | None) -> Account:
    """A population with these idp column losses charged."""
    return Account("folk", Population(cap=cap), tuple(Loss(None, None, None, 0, one, None) for one in charged))


def test_an_account_is_exact_and_takes_no_infinity() -> None:
    """Sums of nano-epsilon: exactly the cap fits, a billionth more does not, infinity never."""
    cap = Cap(epsilon=Epsilon.of("0.3"), definition="idp", scope="column")
    third = Loss(None, None, None, 0, 10**8, None)
    assert account(cap, 10**8, 10**8).admits(third)
    assert not account(cap, 10**8, 10**8 + 1).admits(third)
    assert account(cap, 10**8, 10**8).after(third) == "0.3"
    infinite = Loss(None, None, None, None, None, None)
    assert not account(Cap(epsilon=Epsilon.of(10**6), definition="idp", scope="column")).admits(infinite)
    assert not account(cap, None).admits(third)
    assert account(cap, None).spent == account(cap).after(infinite) == "infinity"
    assert account(cap).unit == "epsilon, iDP, column"


def test_several_losses_are_admitted_together_or_not() -> None:
    """What each alone would fit must fit in sum; what is left is told exactly, and is never below nothing."""
    cap = Cap(epsilon=Epsilon.of("0.3"), definition="idp", scope="column")
    tenth = Loss(None, None, None, 0, 10**8, None)
    assert account(cap).admits(tenth, tenth, tenth)
    assert not account(cap, 1).admits(tenth, tenth, tenth)
    assert account(cap).admits()
    assert not account(cap, 3 * 10**8 + 1).admits(), "the cap was lowered below what is spent"
    assert [account(cap, *spent).left for spent in ((), (10**8, 1), (4 * 10**8,), (None,))] == ["0.3", "0.199999999", "0", "0"]
    assert account(Cap(releases=2), None).left == "1"


@given(st.integers(1, 10**15))
def test_the_bound_of_a_list_of_centroids_is_rounded_up_exactly(nano: int) -> None:
    """idp-ls: (1 + ln 2) epsilon, in whole nano-epsilon: never below it, and less than one above it, however large."""
    policy = policy_of("method: idp-ls, epsilon: 2, k: 5, scope: centroid")
    with localcontext(prec=60):
        exact = nano * (1 + Decimal(2).ln())
        assert 0 <= wider_bound(policy, nano, records=100) - exact < 1


def test_a_cap_of_releases_counts_releases() -> None:
    """Whatever they cost, infinite or not."""
    cap = Cap(releases=2)
    infinite = Loss(None, None, None, None, None, None)
    assert account(cap, None).admits(infinite)
    assert not account(cap, None, 5).admits(infinite)
    assert (account(cap, None).spent, account(cap, None).limit, account(cap).unit) == ("1", "2", "releases")


@pytest.mark.parametrize("definition", ["dp", "idp"])
@pytest.mark.parametrize("scope", ["centroid", "column", "table"])
def test_a_cap_looks_at_its_own_definition_and_scope(definition: str, scope: str) -> None:
    """One of six losses is above the cap: it is refused there alone."""
    for name in LOSSES:
        loss = Loss(**{one: 2 * NANO if one == name else 0 for one in LOSSES})
        cap = Cap(epsilon=Epsilon.of(1), definition=definition, scope=scope)
        assert account(cap).admits(loss) == (name != f"{definition}_{scope}")
