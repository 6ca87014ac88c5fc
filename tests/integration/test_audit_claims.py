"""The command `audit-claims`: what it prints, its exit codes, and what the dossiers of a policy have of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.claims import list_suite
from release_pipeline.apps.cli import main
from release_pipeline.claims.audit import Finding
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.pipeline import claims
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.store.registry import ReleaseId
from release_pipeline.verifier.command import verify_path
from tests.integration.publishing import Keys, make_trusted_site, publish_release, read_zip
from tests.integration.sites import TinySite

POLICY = Path(__file__).resolve().parents[2] / "policies" / "election-public.yaml"
FOUND = Finding("the list of income", "idp", "epsilon", 0.5, 0.41, 1000, "made up", "values, sorted")


@pytest.fixture
def published(keys: Keys, tmp_path: Path) -> TinySite:
    """A site with one published release."""
    tiny = make_trusted_site(tmp_path / "site", keys)
    publish_release(tiny, keys, "1")
    return tiny


def test_the_suite_has_every_method_scope_and_definition() -> None:
    """A method that is not in the suite would be a claim that nobody attacks."""
    policies = list_suite().values()
    assert {policy.protect.method for policy in policies} == set(METHODS)
    assert {policy.definition for policy in policies} == {"dp", "zcdp", "idp", "k-epsilon", "k-anonymity"}
    of_ranks = {(policy.protect.method, policy.protect.scope) for policy in policies if policy.protect.method.startswith("idp")}
    assert of_ranks == {(method, scope) for method in ("idp-ls", "idp-cbls") for scope in ("centroid", "column")}
    of_vectors = {(policy.protect.scope, policy.definition) for policy in policies if policy.protect.method == "dp-mdav"}
    assert of_vectors == {(scope, definition) for scope in ("centroid", "table") for definition in ("dp", "idp")}


@pytest.mark.slow
def test_a_policy_is_audited_and_its_dossier_has_it(
    published: TinySite, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A row for every promise, by machine and by eye; the dossier of the site has the findings, and verifies."""
    site = published.site
    before = read_zip(write_dossier(site, ReleaseId("people", "1"), tmp_path / "before.zip"))
    assert "claims.json" not in before
    assert b"nobody has run it" in before["README.md"]

    assert main(["audit-claims", str(site.policy_file("people")), "--quick", "--json"]) == 0
    said = capsys.readouterr()
    content: dict[str, Any] = json.loads(said.out)
    assert content["format"] == "release-pipeline/audit-claims/1"
    assert content["holds"]
    [policy] = content["policies"]
    assert policy["hash"] == site.policy("people").canonical_hash()
    assert policy["claims"][0]["promise"] == "the list of income"
    for number, claim in enumerate(policy["claims"], 1):
        assert f"{number} of {len(policy['claims'])}: people: " in said.err
        assert f"people: {claim['promise']}" in said.err
    assert all(0 <= claim["proved"] <= claim["claimed"] for claim in policy["claims"] if claim["measure"] == "epsilon")

    after = read_zip(write_dossier(site, ReleaseId("people", "1"), tmp_path / "after.zip"))
    assert json.loads(after["claims.json"])["policies"] == content["policies"]
    assert b"nobody has run it" not in after["README.md"]
    findings = verify_path(tmp_path / "after.zip", [str(site.officer)])
    assert not [finding for finding in findings if finding.level == "FAIL"]


@pytest.mark.parametrize(("proved", "code"), [(0.41, 0), (0.53, 1)])
def test_a_broken_claim_is_exit_code_1(
    proved: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the table says which one."""
    policy = tmp_path / POLICY.name
    policy.write_bytes(POLICY.read_bytes())
    audited = claims.Audited({"idp-cbls": [replace(FOUND, proved=proved)]}, True, {"idp-cbls": "0" * 64})
    monkeypatch.setattr("release_pipeline.apps.cli.verifying.audit_policies", lambda *_, **__: audited)
    assert main(["audit-claims", str(policy), "--quick"]) == code
    assert ("| BROKEN |" in capsys.readouterr().out) == bool(code)
