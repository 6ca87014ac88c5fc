"""A source that is delivered anew: refused while it is read, and what was read of it before is stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import SiteResource
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.pipeline import ingest as ingest_stage
from release_pipeline.pipeline.ingest import ingest
from tests.integration.sites import GX_WARNINGS, QUIET, make_rows, make_site

pytestmark = GX_WARNINGS
INGESTED = dg.AssetKey(["people", "ingested"])


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of each version would be a third."""
    tiny = make_site(tmp_path / "site")
    begin_run = ingest_stage.begin_run

    def change(*arguments: Any, **options: Any) -> None:
        begin_run(*arguments, **options)
        tiny.write_rows(make_rows(seed=1))

    with monkeypatch.context() as patched:
        patched.setattr(ingest_stage, "begin_run", change)
        with pytest.raises(ReleasePipelineError, match="was changed while it was read"):
            ingest(tiny.flow())
    assert ingest(tiny.flow()).source


def test_what_was_read_of_an_older_version_is_stale(tmp_path: Path) -> None:
    """Once `watch` observes the source again; and fresh after the next run."""
    tiny = make_site(tmp_path / "site")
    defs = build_defs(tiny.home)
    repository, graph = defs.get_repository_def(), defs.resolve_asset_graph()
    [stage] = [each for each in defs.assets or () if isinstance(each, dg.AssetsDefinition) and INGESTED in each.keys]

    with dg.DagsterInstance.ephemeral() as instance:

        def ingest_again() -> None:
            resources = {"site": SiteResource(str(tiny.home))}
            assert dg.materialize([stage], instance=instance, partition_key="1", resources=resources, run_config=QUIET).success

        def observe() -> int:
            site = {"site": SiteResource(str(tiny.home))}
            with dg.build_sensor_context(instance=instance, repository_def=repository, resources=site) as context:
                events = repository.get_sensor_def("watch").evaluate_tick(context).asset_events
            for event in events:
                instance.report_runless_asset_event(event)
            return len(events)

        def read_staleness() -> StaleStatus:
            return CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance)).get_status(INGESTED, "1")

        assert read_staleness() == StaleStatus.MISSING
        ingest_again()
        assert not observe()  # `ingested` observed this version itself
        assert read_staleness() == StaleStatus.FRESH
        tiny.write_rows(make_rows(seed=1))
        assert observe()
        assert read_staleness() == StaleStatus.STALE
        ingest_again()
        assert read_staleness() == StaleStatus.FRESH
