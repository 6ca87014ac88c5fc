"""The Dagster definitions: every policy of a site is there, and a broken one only fails its own check."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import SiteResource
from release_pipeline.operate.demo import find_demo_data

POLICIES = Path(__file__).resolve().parents[2] / "policies"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with the shipped policies and a broken one."""
    shutil.copytree(POLICIES, tmp_path / "policies")
    (tmp_path / "policies" / "broken.yaml").write_text("policy: broken\nprotect: {method: magic}\n")
    return tmp_path


def test_definitions_load_and_checks_tell_the_broken_policy_from_the_good_ones(site: Path) -> None:
    """The good policies' checks pass with their claim; the broken one's fails and names its errors."""
    defs = build_defs(site)
    dg.Definitions.validate_loadable(defs)
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_job_def("check_policies").execute_in_process(instance=instance)
    found = {evaluation.asset_key.path[-1]: evaluation for evaluation in result.get_asset_check_evaluations()}
    assert {name: evaluation.passed for name, evaluation in found.items()} == {
        "adult_k_epsilon": True,
        "adult_table": True,
        "broken": False,
        "census_once": True,
        "census_together": True,
        "election_licensed": True,
        "election_public": True,
        "rand_hie": True,
        "rand_hie_dp": True,
        "rand_hie_table": True,
    }
    assert "magic" in str(found["broken"].metadata["errors"].value)
    made = {
        event.materialization.asset_key.path[-1]: event.materialization for event in result.get_asset_materialization_events()
    }
    assert set(made) == set(found) - {"broken"}
    assert str(made["rand_hie"].metadata["claim"].value).startswith("epsilon 2 in all (0.5 for each of 4 columns), iDP")


def test_a_shipped_timetable_opens_its_waves_one_by_one(site: Path, tmp_path: Path) -> None:
    """The only one that is shipped, switched on as `release-pipeline ui` does: each tick asks for the next wave."""
    (tmp_path / "data").mkdir()
    shutil.copyfile(find_demo_data(), tmp_path / "data" / "randhie.csv")
    shutil.copy(POLICIES.parent / "populations.yaml", tmp_path)
    (tmp_path / "dagster").mkdir()
    repository = build_defs(site, automations="on").get_repository_def()
    [timetable] = [each for each in repository.schedule_defs if each.name.startswith("timetable_")]
    assert (timetable.name, timetable.cron_schedule) == ("timetable_rand_hie_table", "0 6 2 1 *")
    assert timetable.default_status == dg.DefaultScheduleStatus.RUNNING
    resources = {"site": SiteResource(str(site))}
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        for wave in ("1", "2"):
            with dg.build_schedule_context(instance=instance, repository_def=repository, resources=resources) as context:
                found = timetable.evaluate_tick(context)
            assert [request.partition_key for request in found.run_requests or ()] == [wave], found.skip_message
            job, tags = repository.get_job("release_rand_hie_table"), {"dagster/partition": wave}
            instance.create_run_for_job(job, tags=tags, status=dg.DagsterRunStatus.SUCCESS)


def test_workspace_and_instance_files_work_at_the_top_level() -> None:
    """The module that workspace.yaml names has definitions, and dagster.yaml holds no reference to the environment."""
    from release_pipeline.apps.dagster import definitions

    root = POLICIES.parent
    assert "release_pipeline.apps.dagster.definitions" in (root / "workspace.yaml").read_text()
    assert isinstance(definitions.defs, dg.Definitions)
    lines = [line.split("#")[0] for line in (root / "dagster.yaml").read_text().splitlines()]
    assert not any("env:" in line for line in lines)
