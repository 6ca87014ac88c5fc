"""A site's assets in a team's process and executor, which are not the site's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.runs import PROCESS
from release_pipeline.pipeline import validate as validate_stage
from tests.integration.sites import GX_WARNINGS, QUIET, TinySite, failures, make_site

pytestmark = [GX_WARNINGS, pytest.mark.slow]
CANARY = "kanarie"  # no word of the project
HOME = "TEAM_HOME"  # where the process of a step finds the site


def team_job() -> dg.JobDefinition:
    """A job of the team's own, as each process of a step makes it anew."""
    chosen = dg.AssetSelection.assets(dg.AssetKey(["health", "people", "ingested"]))
    team = dg.Definitions(jobs=[dg.define_asset_job("team", selection=chosen)], executor=dg.multiprocess_executor)
    return dg.Definitions.merge(team, build_defs(Path(os.environ[HOME]), prefix="health")).resolve_job_def("team")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinySite:
    """A site where nothing has run, in a process whose error texts Dagster does not redact."""
    tiny = make_site(tmp_path / "site")
    monkeypatch.setenv(HOME, str(tiny.home))
    monkeypatch.delenv("DAGSTER_REDACT_USER_CODE_ERRORS", raising=False)
    return tiny


def test_a_step_in_a_process_of_its_own(tiny: TinySite, tmp_path: Path) -> None:
    """It leaves in the vault what it would leave anywhere, and does not say that the run is its process: that has ended long
    before the run, which would be taken for dead."""
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        job = dg.reconstructable(team_job)
        with dg.execute_job(job, instance=instance, tags={"dagster/partition": "1"}, run_config=QUIET) as result:
            assert result.success
        [run] = instance.get_runs()
        assert PROCESS not in run.tags
        assert instance.get_materialized_partitions(dg.AssetKey(["health", "people", "ingested"])) == {"1"}


def test_errors_are_told_in_words_without_redaction(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library says of a cell does not get into Dagster's records, nor does its error."""

    def fail(*_: Any) -> Any:
        raise KeyError(CANARY)

    monkeypatch.setattr(validate_stage, "collect_facts", fail)
    with dg.DagsterInstance.ephemeral() as instance:
        result = (
            build_defs(tiny.home, prefix="health")
            .resolve_job_def("health_release_people")
            .execute_in_process(partition_key="1", instance=instance, raise_on_error=False, run_config=QUIET)
        )
        [said] = failures(result)
        assert said.startswith("Internal error: KeyError at validate.py:")
        [run] = instance.get_runs()
        assert PROCESS in run.tags
        assert CANARY not in " ".join(map(str, instance.all_logs(run.run_id)))
