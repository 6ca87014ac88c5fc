"""A method is its entry in the catalogue: a whole one is enough for policy, plan and words, and with half of one nothing is
promised, charged or drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from release_pipeline.errors import InvalidArgument, PolicyInvalid
from release_pipeline.mechanisms import mask_column
from release_pipeline.mechanisms.catalogue import METHODS, MethodSpec, find_method
from release_pipeline.mechanisms.catalogue.spec import DP, IDP, UNBOUNDED
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.plans.loss import release_loss
from release_pipeline.policy.plans.plan import check_rows, describe_claim, make_plan, state_claim

PLAIN = find_method("dp-um")
TOY = replace(PLAIN, name="dp-invented", summary="a toy of individual ranking")
SECRET = bytes(range(32))


def policy_of(method: str, more: str = ", k: 5", atoms: str = "") -> Policy:
    return parse_policy(
        f"""\
policy: toy
steward: ana
population: folk
source: {{path: toy.csv}}
person: each-row
releases: once
protect: {{method: {method}, epsilon: 2{more}}}
columns:
  income: {{role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known{atoms}}}
""",
        name="toy",
    )


def _without_rule(spec: MethodSpec) -> MethodSpec:
    return replace(spec, claims=tuple(replace(claim, rule=None) for claim in spec.claims))


def _unbounded(spec: MethodSpec) -> MethodSpec:
    return replace(spec, claims=tuple(replace(claim, lists=UNBOUNDED) for claim in spec.claims))


HALVES: dict[str, Callable[[MethodSpec], MethodSpec]] = {
    "no claims": lambda spec: replace(spec, claims=()),
    "no rule of scales": _without_rule,
    "the same claim twice": lambda spec: replace(spec, claims=spec.claims * 2),
    "no sums": lambda spec: replace(spec, sums=None),
    "nothing said of lists": _unbounded,
    "a rule that its family does not ask": lambda spec: replace(spec, family="vectors"),
}


@pytest.mark.parametrize("halve", HALVES.values(), ids=HALVES)
def test_half_an_entry_is_none(halve: Callable[[MethodSpec], MethodSpec]) -> None:
    """It cannot be made, so that nobody can draw too little noise under its name."""
    with pytest.raises(InvalidArgument, match="dp-invented"):
        halve(TOY)


USES: dict[str, Callable[[Policy], Any]] = {
    "plan": lambda policy: make_plan(policy, rows=700),
    "rows": lambda policy: check_rows(policy, 700),
    "claim": describe_claim,
    "statement": state_claim,
    "charge": lambda policy: release_loss(policy, records=700),
}


@contextmanager
def left_out(name: str) -> Iterator[None]:
    """The catalogue without a method. Alone it would come back as the last one, and messages list them in their order."""
    before = dict(METHODS)
    del METHODS[name]
    try:
        yield
    finally:
        METHODS.clear()
        METHODS.update(before)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_policy_whose_method_left_the_catalogue_is_for_nothing(
    use: Callable[[Policy], Any],
) -> None:
    """Whatever let the name through: no plan, no claim, no charge, and no noise."""
    policy = policy_of("dp-um")
    with left_out("dp-um"):
        with pytest.raises(InvalidArgument, match="the method is none of"):
            use(policy)
        with pytest.raises(InvalidArgument, match="the method is none of"):
            mask_column([1.0] * 50, domain=(0, 1000), grid=1, method="dp-um", epsilon=2, k=5, secret=SECRET)


@pytest.mark.parametrize("family", ["vectors", "new"])
def test_an_entry_of_a_family_that_does_not_compute_it_is_no_method(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What computes dp-mdav knows dp-mdav alone, and would give another method its noise."""
    spec = replace(find_method("dp-mdav"), name="dp-invented", family=cast(Any, family))
    monkeypatch.setitem(METHODS, "dp-invented", spec)
    with pytest.raises(PolicyInvalid) as refused:
        policy_of("dp-invented", ", k: 5, order: corner")
    assert "'dp-invented' is not a method" in str(refused.value.problems)


def test_a_claim_of_an_unknown_definition_is_refused_and_never_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition that nobody knows how to add up would be charged as another one."""
    monkeypatch.setitem(METHODS, "dp-invented", TOY)
    policy = policy_of("dp-invented")
    strange = replace(IDP, key="strange", short="strange privacy")
    claims = tuple(replace(claim, definition=strange) for claim in TOY.claims)
    monkeypatch.setitem(METHODS, "dp-invented", replace(TOY, claims=claims))
    with pytest.raises(InvalidArgument, match="how strange privacy is charged"):
        release_loss(policy, records=700)
    with pytest.raises(PolicyInvalid) as refused:
        policy_of("dp-invented")
    assert "the definition is none of dp, zcdp, idp, k-epsilon, k-anonymity" in str(refused.value.problems)


def test_a_claim_for_all_tables_needs_scales_that_no_table_decides() -> None:
    """A DP claim with calibrated scales is no entry."""
    spec = METHODS["idp-ls"]
    with pytest.raises(InvalidArgument, match="scales that follow from the data"):
        replace(spec, claims=tuple(replace(claim, definition=DP) for claim in spec.claims))
