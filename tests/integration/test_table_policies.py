"""dp-table by the commands and in Dagster: the shipped example, and a policy with combinations that cannot occur."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest

from release_pipeline.cli import main
from release_pipeline.dagster_app.definitions import build_defs
from release_pipeline.flow.site import find_site
from tests.integration.people import PEOPLE
from tests.integration.sites import GX_WARNINGS, QUIET, STAGES, failures, make_site, materializations, run_job
from tests.integration.test_whole_table import CAP, NEVER, PARTS, find_impossible, make_people, obey

pytestmark = [pytest.mark.slow, GX_WARNINGS]
Command = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path, key_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command at the site `site`, signed with the key of `who` where it is; it must end well. What it printed."""
    monkeypatch.setenv("RELEASE_PIPELINE_HOME", str(tmp_path / "site"))

    def run(*words: str | Path, who: str = "") -> str:
        signs = ["--key", key_folder / who] if who else []
        code = main([str(word) for word in (*words, *signs)])
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out

    return run


def take_to_candidate(command: Command, keys: Path, policy: str, *which: str) -> None:
    """The officer trusts and approves, and the steward runs."""
    for name, role in PEOPLE.items():
        command("trust", name, "--role", role, "--public", keys / f"{name}.pub", who="olga")
    command("check", find_site().home / "policies" / f"{policy}.yaml")
    command("approve", f"policies/{policy}.yaml", who="olga")
    command("approve", "populations.yaml", who="olga")
    command("run", policy, *which)


def take_to_the_public(command: Command, release: str) -> Path:
    """Two reviewers approve, the service publishes, and a stranger verifies, as the site does: the package."""
    site = find_site()
    for reviewer in ("ben", "cleo"):
        command("approve", release, who=reviewer)
    command("publish", release, who="robot")
    package = site.home / "releases" / release / "r1"
    for found in (command("verify", package, "--officer", str(site.officer)), command("verify", site.home)):
        assert "Verified: nothing failed." in found
    return package


def list_recorded(policy: str, release: str) -> set[str]:
    """The stages that the site's own Dagster has of a release, the published package among them."""
    with dg.DagsterInstance.from_config(str(find_site().dagster_home)) as instance:
        keys = {stage: dg.AssetKey([policy.replace("-", "_"), stage]) for stage in (*STAGES, "published")}
        return {stage for stage, key in keys.items() if release in instance.get_materialized_partitions(key)}


def test_what_cannot_occur_is_published_by_its_commands(tmp_path: Path, command: Command, key_folder: Path) -> None:
    """The first release by commands, the second by Dagster's job from its source: no row of either has what cannot occur, and a
    check of its own says that no record has."""
    tiny = make_site(tmp_path / "site", rows=obey(make_people()), **{"cap": CAP, **PARTS, "protect": NEVER})
    take_to_candidate(command, key_folder, "people", "--release", "1")
    package = take_to_the_public(command, "people/1")
    assert not find_impossible(pd.read_csv(package / "data.csv")).any()
    assert list_recorded("people", "1") == {*STAGES, "published"}
    with dg.DagsterInstance.ephemeral() as instance:
        checked = build_defs(tiny.home).resolve_job_def("check_policies").execute_in_process(instance=instance, run_config=QUIET)
        made = run_job(tiny, "2", instance=instance)
    assert {one.check_name: one.passed for one in checked.get_asset_check_evaluations()} == {"policy_is_valid": True}
    assert made.success, failures(made)
    assert tuple(materializations(made)) == STAGES
    found = {evaluation.check_name: evaluation for evaluation in made.get_asset_check_evaluations()}
    assert {name for name, evaluation in found.items() if not evaluation.passed} == {"warnings"}  # of incomes that are blank
    assert "impossible" in found
    assert not find_impossible(pd.read_csv(tiny.folder("2") / "data.csv")).any()
