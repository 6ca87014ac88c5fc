"""What every method owes: a walk through the catalogue, from the plan of each claim to the dossier of a published release.

A method that is added is walked through without a word here, as long as its family is one of those that there are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from release_pipeline.analyst import explain_kit, read_release
from release_pipeline.claims.promises import list_promises
from release_pipeline.mechanisms.catalogue import METHODS, ClaimSpec, MethodSpec
from release_pipeline.mechanisms.catalogue.spec import ZCDP
from release_pipeline.policy import parse_policy
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.plans.loss import release_loss
from release_pipeline.policy.plans.plan import (
    check_rows,
    describe_claim,
    describe_plan,
    describe_scopes,
    make_plan,
    not_covered_words,
    state_claim,
)
from release_pipeline.policy.plans.views import view_plan
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.public import CARD_SCHEMA
from release_pipeline.store.registry import ReleaseId
from release_pipeline.verifier.command import verify_path
from tests.integration.publishing import Keys, failures_of, make_trusted_site, publish_release
from tests.integration.sites import GX_WARNINGS, PARTS, make_rows, policy_text

ROWS = 60
NUMBERS = """
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
MASKED = f"""
  person: {{role: identifier, do: drop}}{NUMBERS}"""
GENERALISED = f"""
  person: {{role: identifier, do: drop}}
  town:   {{role: quasi, do: generalise, hierarchy: {{groups: [north, south, east]}}}}{NUMBERS}"""
SYNTHETIC = (
    NUMBERS.replace("do: noise", "do: synthesise")
    + """
  person: {role: identifier, do: drop}
  town:   {role: quasi, do: synthesise, values: [north, south, east]}
  sex:    {role: quasi, do: synthesise, values: [0, 1]}"""
)
RECORDS = {"whole-table": 1_000}  # of a family that is refused with as few as others do with
FAMILIES = {  # options that methods of a family need beside their claim, columns, and what is not read
    "columns": ("", PARTS["columns"], "[name]"),
    "by-value": ("", PARTS["columns"], "[name]"),
    "whole-table": ("", SYNTHETIC, "[name, remark]"),
    "vectors": ("", MASKED, "[town, sex, name, remark]"),
    "mdav": ("", MASKED, "[town, sex, name, remark]"),
    "classes": (", grouping: ola", GENERALISED, "[sex, name, remark]"),
}
CLAIMS = {
    " ".join((spec.name, claim.scope, *claim.options.values())): (spec, claim)
    for spec in METHODS.values()
    for claim in spec.claims
}


def parts_of(spec: MethodSpec, claim: ClaimSpec) -> dict[str, str]:
    """The parts of a policy that makes this claim."""
    more, columns, drop = FAMILIES[spec.family]
    named = {"scope": claim.scope} if len(spec.scopes) > 1 else {}
    options = "".join(f", {name}: {value}" for name, value in {**named, **claim.options}.items())
    options += ", epsilon: 8" if spec.is_noisy else ""
    options += ", delta: 0.000001" if claim.definition is ZCDP else ""
    options += f", k: {max(spec.least_k, 5)}" if spec.takes_k else ""
    gates = f"{{min_rows: {RECORDS.get(spec.family, 20)}, linkage: 100%}}"
    return {"protect": f"{{method: {spec.name}{options}{more}}}", "columns": columns, "drop": drop, "gates": gates}


@pytest.mark.parametrize(("spec", "claim"), CLAIMS.values(), ids=CLAIMS)
def test_every_claim_is_planned_charged_and_said(spec: MethodSpec, claim: ClaimSpec) -> None:
    """Under the policy that names it, from declared facts alone."""
    policy = parse_policy(policy_text(**parts_of(spec, claim)), name="people")
    assert policy.claim is claim
    rows = RECORDS.get(spec.family, ROWS)
    check_rows(policy, rows)
    plan = make_plan(policy, rows=rows)
    assert describe_claim(policy) in " ".join(" ".join(describe_plan(plan)).split())
    shown: dict[str, Any] = to_json(view_plan(plan))
    assert (shown["method"], shown["definition"], shown["scope"]) == (spec.name, claim.definition.key, claim.scope)
    assert [column["name"] for column in shown["columns"]] == ["income", "rent"]
    assert state_claim(policy).startswith(claim.statement)
    assert list(not_covered_words(policy))
    assert list_promises(policy)
    bound = {scope for scope, words in describe_scopes(plan) if words != "not bounded"}
    loss = release_loss(policy, records=rows)
    if claim.definition.composes:
        assert loss.of(claim.definition.key, claim.scope) == policy.epsilon
        assert bound == {scope for scope in ("column", "table") if scope in bound and loss.of(claim.definition.key, scope)}
    else:
        assert not bound
        assert loss.of("dp", "table") is loss.of("idp", "centroid") is None


@GX_WARNINGS
@pytest.mark.slow
@pytest.mark.parametrize("spec", METHODS.values(), ids=METHODS)
def test_every_method_is_released(spec: MethodSpec, keys: Keys, tmp_path: Path) -> None:
    """Run, approved and published; its card is what the schema says, the analyst's kit reads it, and its dossier verifies."""
    parts = parts_of(spec, spec.claims[-1])
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(RECORDS.get(spec.family, ROWS)), cap="releases: 2", **parts)
    package = publish_release(tiny, keys)

    card = json.loads((package / "privacy-card.json").read_text())
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(card)
    policy = tiny.site.policy("people")
    assert card["method"]["name"] == spec.name
    assert card["claim"]["statement"] == state_claim(policy)

    release = read_release(package)
    assert release.facts.method == spec.name
    assert tuple(card["analysis"]) == release.explain() == tuple(explain_kit(release.facts))

    dossier = write_dossier(tiny.site, ReleaseId("people", "1"), tmp_path / "dossier.zip")
    assert not failures_of(verify_path(dossier, [str(tiny.site.officer)]))
