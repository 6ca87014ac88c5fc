"""The audit of a release and the page that reviewers decide from: of a candidate, and of what gates stop."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.errors import Blocked, GateFailed
from release_pipeline.formats.evidence import read_evidence
from release_pipeline.formats.internal_view import InternalView
from release_pipeline.mechanisms.catalogue.spec import SCALES_FIXED
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.plans.plan import describe_plan, make_plan, state_claim
from release_pipeline.report.page import build_internal_view
from tests.integration.sites import TinySite, make_rows, make_site

FORBIDDEN = re.compile(r"<script|<link|<img|<iframe|<object|@import|url\((?!#)|(?:src|href)=[\"'](?!#)", re.IGNORECASE)


def evidence_of(tiny: TinySite, release: str = "1") -> dict[str, Any]:
    """What a candidate says of itself."""
    return json.loads((tiny.folder(release) / "evidence.json").read_text(encoding="utf-8"))


def policy_of(tiny: TinySite) -> Policy:
    """The policy as it stands."""
    return load_policy(tiny.home / "policies" / "people.yaml")


def view_of(tiny: TinySite, release: str = "1") -> InternalView:
    """What the page of a candidate says."""
    return build_internal_view(policy_of(tiny), read_evidence(evidence_of(tiny, release), where="here"))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """Two releases with all that an audit can measure."""
    tiny = make_site(
        tmp_path_factory.mktemp("report") / "site",
        rows=make_rows(240),
        suppress="{quasi_groups_below: 5, at_most: 5%}",
        gates="{min_rows: 20, expected_error: {income: 100}, anonymity_k: 10}",
        audit="{predict: {income: {above: 500}}}",
    )
    for release in ("1", "2"):
        run_release(tiny.flow(release))
    return tiny


def test_the_view_has_what_was_measured(released: TinySite) -> None:
    """Gates with what they are of, columns with expectation and outcome, attacks with controls, models, groups and budget."""
    view, audit = view_of(released, "2"), evidence_of(released, "2")["audit"]
    assert (view.scales, view.statement) == (SCALES_FIXED, state_claim(policy_of(released)))
    gates = {gate.name: gate for gate in view.gates}
    assert set(gates) == {
        "number of records",
        "share of records of rent clamped",
        "expected error of income",
        "smallest group of released quasi-identifiers",
    }
    assert gates["smallest group of released quasi-identifiers"].value == 40 == audit["groups"]["smallest"]
    assert gates["expected error of income"].error_of == "income"
    checked = "\n".join(describe_plan(make_plan(policy_of(released), rows=240)))
    for column in view.columns:
        assert column.expected_low is not None
        assert column.expected_high is not None
        assert column.partitioned == (not column.expected_low * 0.99 <= column.actual_error <= column.expected_high * 1.01)
        assert column.forecast.startswith("at most ")
        assert f"noise {column.forecast};" in checked
        assert column.actual_error == audit["error"][column.name]
    names = [attack.attack for attack in view.criteria]
    inferring = [f"inferring {name}" for name in ("town", "sex", "income", "rent")]
    assert names == ["singling out by one column", "singling out by several columns", "linking", "record linkage", *inferring]
    assert [model.model for model in view.predictions[0].models] == ["random forest", "gradient boosting"]
    assert f"models learn to predict: {view.predictions[0].target}\n" in checked
    assert view.budget is not None
    assert [step.release for step in view.budget.steps] == ["people/1/r1", "people/2/r1"]
    assert view.budget.remaining == 6_000_000_000
    assert view.suppression is not None
    assert (view.suppression.rows_in, view.suppression.rows_out) == (240, 240)


def test_a_gate_on_the_expected_error_leaves_a_picture_and_no_charge(tmp_path: Path) -> None:
    """The page shows figure and limit; the refusal names the page and no figure; a policy that passes removes it."""
    tiny = make_site(tmp_path / "site", gates="{min_rows: 20, expected_error: {income: 0.000001, rent: 100}}")
    with pytest.raises(GateFailed) as caught:
        run_release(tiny.flow())
    page = tiny.site.vault / "refused" / "people~1~r1.html"
    assert "vault/refused/people~1~r1.html" in caught.value.in_full
    text = page.read_text(encoding="utf-8")
    value = json.loads(page.with_suffix(".json").read_text())["gates"][0]["value"]
    assert page.stat().st_mode & 0o077 == 0
    assert "expected error of income" in text
    assert f"{value:.3g}" in text
    assert f"{value:.3g}" not in caught.value.in_full
    assert not FORBIDDEN.search(text)
    assert (tiny.status().state, tiny.charges()) == ("blocked", [])
    tiny.write_policy(gates="{min_rows: 20, expected_error: {income: 100}}")
    run_release(tiny.flow())
    assert not list(page.parent.iterdir())


def test_a_gate_on_the_released_table_blocks_after_the_charge(tmp_path: Path) -> None:
    """Groups of 10 where 11 are asked for: blocked, with a page that has everything, and no candidate; likewise when repeated."""
    tiny = make_site(tmp_path / "site", gates="{min_rows: 20, anonymity_k: 11}")
    for _ in range(2):
        with pytest.raises(Blocked) as caught:
            run_release(tiny.flow())
        assert "a limit on the groups of the released table is not met" in caught.value.in_full
        assert "The release is charged" in caught.value.in_full
        assert "under the limit" not in caught.value.in_full
    assert tiny.status().state == "blocked"
    assert len(tiny.charges()) == 1
    assert not tiny.folder().exists()
    text = (tiny.site.vault / "refused" / "people~1~r1.html").read_text(encoding="utf-8")
    assert "after the budget was spent" in text
    assert "smallest group of released quasi-identifiers" in text
    assert "record linkage" in text.lower()
