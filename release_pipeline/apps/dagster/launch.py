"""Runs of a site's jobs from the command line, and its UI, both with the site's own Dagster records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import AUTOMATIONS, Names
from release_pipeline.apps.dagster.process import set_up_process
from release_pipeline.apps.dagster.publication import PUBLISHED, describe_package
from release_pipeline.apps.dagster.runs import (
    RecordsUnreadable,
    find_cause,
    find_unfinished_run,
    free_dead_runs,
    opened_records,
    process_tags,
)
from release_pipeline.apps.dagster.serving import serve, stopping_after
from release_pipeline.apps.door import opened_listener
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.operate.timetable import record_policies
from release_pipeline.policy.loading.load import read_text
from release_pipeline.policy.values.text import read_yaml
from release_pipeline.store.files import PUBLIC, own_folder, write_bytes
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import HOME, Site

set_up_process()

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_NAMES = Names()  # of the site's own records, which have no other site
_FOLDERS = ("schedules", "history", "history/runs", "logs", ".logs_queue")


class RunFailed(ReleasePipelineError):
    """A run of the job ended without a candidate; its message is that of the failed step."""


def run_release(site: Site, policy: str, release: str, *, progress: Callable[[str], None] = lambda _: None) -> None:
    """Run the policy's job once for one release, recorded in the site's Dagster; raises `RunFailed` with the reason."""
    _run(site, _NAMES.job(policy), _NAMES.chain(policy), policy, release, progress)


def run_publication(site: Site, policy: str, release: str) -> None:
    """Run the job that publishes an approved release with the key named in site.yaml; raises `RunFailed` with the reason."""
    _run(site, _NAMES.publishing_job(policy), [_NAMES.stage(policy, PUBLISHED)], policy, release, lambda _: None)


def _run(site: Site, job: str, assets: Sequence[dg.AssetKey], policy: str, release: str, progress: Callable[[str], None]) -> None:
    """Run a job for one release. It waits for other commands of this site, and is refused while the daemon runs the same."""
    with (
        site.running_alone(waiting=lambda: progress("waiting for another run of this site")),
        _instance(site) as instance,
    ):
        free_dead_runs(instance)
        other = find_unfinished_run(instance, assets, partition=release)
        if other is not None:
            raise RunFailed(
                f"it is being made by another run ({other.run_id[:8]}).",
                where=f"{policy}/{release}",
                remedy="Wait for it; `release-pipeline status` and the UI say how far it is.",
            )
        if (known := site.policy(policy)).every:
            instance.add_dynamic_partitions(_NAMES.releases(known.policy), [release])
        with stopping_after():
            result = (
                build_defs(site.home, say=progress, only=policy)
                .resolve_job_def(job)
                .execute_in_process(
                    partition_key=release, instance=instance, raise_on_error=False, run_config=_QUIET, tags=process_tags()
                )
            )
        if result.success:
            return
        description, cause = find_cause(result)
    failed = RunFailed(description or f"{policy}/{release}: the run failed; its events in the UI say where.")
    failed.cause = cause
    raise failed


def record_published(site: Site, release: ReleaseId) -> None:
    """Record in the site's Dagster that a package was published by command, so that the lineage in its UI ends there too."""
    with _instance(site) as instance:
        instance.report_runless_asset_event(describe_package(site, release, _NAMES))


def record_withdrawn(site: Site, release: ReleaseId, description: str) -> None:
    """Record in the site's Dagster that a package was retracted or superseded: an observation of the published asset."""
    with _instance(site) as instance:
        instance.report_runless_asset_event(
            dg.AssetObservation(_NAMES.stage(release.policy, PUBLISHED), partition=release.release, description=description)
        )


def check_policies(site: Site) -> None:
    """Run the job that checks every policy of the site; the UI shows its findings."""
    with _instance(site) as instance:
        job = build_defs(site.home).resolve_job_def("check_policies")
        job.execute_in_process(instance=instance, raise_on_error=False, run_config=_QUIET)


def open_ui(
    site: Site,
    *,
    port: int,
    uds: Path | None = None,
    read_only: bool,
    allow_hosts: Sequence[str] = (),
    trusted_proxy: Path | None = None,
) -> int:
    """Serve the UI of a site behind its door until it is stopped, and return the exit code; every process that it started has
    ended then. It runs the daemon unless it is read-only, and listens at the Unix socket `uds`, or else at the port."""
    from release_pipeline.apps.dagster.door import read_proxy
    from release_pipeline.apps.dagster.webserver import Opening

    with opened_listener(port, uds):  # refused here, before anything starts; the process that serves opens it again
        pass
    if trusted_proxy is not None:
        read_proxy(trusted_proxy)  # refused here; the process that serves reads it again
    print(f"starting the UI of {site.home}: the links to log in follow in half a minute", flush=True)
    prepare(site)
    check_environment(site)
    record_policies(site)
    opening = Opening(
        port,
        uds=None if uds is None else str(uds.absolute()),
        read_only=read_only,
        allow_hosts=tuple(allow_hosts),
        trusted_proxy=None if trusted_proxy is None else str(trusted_proxy.resolve()),
    )
    code = serve(
        opening.command(),
        folder=site.dagster_home,
        environment={**os.environ, HOME: str(site.home), "DAGSTER_HOME": str(site.dagster_home), AUTOMATIONS: "on"},
    )
    if code:
        raise RunFailed(
            f"Dagster ended by itself (exit code {code}).", where=str(site.dagster_home), remedy="What it printed above says why."
        )
    print("stopped, with everything that it had started; a release that was being made goes on when it is run again", flush=True)
    return 0


def prepare(site: Site) -> None:
    """Make the site's Dagster folder with its instance and workspace files, unless they are there."""
    own_folder(site.dagster_home)
    for name in _FOLDERS:  # Dagster would make them with the mode of the umask
        own_folder(site.dagster_home / name)
    here = Path(__file__).resolve()
    for name in ("dagster.yaml", "workspace.yaml"):
        target, inside = site.dagster_home / name, here.with_name(name)
        if not target.exists():
            shipped = inside if inside.is_file() else here.parents[3] / name
            write_bytes(target, shipped.read_bytes(), mode=PUBLIC)  # written whole or not at all


@contextmanager
def _instance(site: Site) -> Iterator[dg.DagsterInstance]:
    prepare(site)
    check_environment(site)
    with opened_records(site) as instance:
        yield instance


def check_environment(site: Site) -> None:
    """Refuse when the site's dagster.yaml takes something from an environment variable that is not set, or keeps records where
    this installation cannot."""
    file = site.dagster_home / "dagster.yaml"
    settings: Any = read_yaml(read_text(file)).value
    storage = settings.get("storage") if isinstance(settings, dict) else None
    if isinstance(storage, dict) and "postgres" in storage and find_spec("dagster_postgres") is None:
        raise RecordsUnreadable(
            "Dagster's records in Postgres need dagster-postgres.",
            where=str(file),
            remedy="pip install 'release-pipeline[postgres]'",
        )
    missing = sorted(name for name in _variables(settings) if name not in os.environ)
    if missing:
        raise RecordsUnreadable(
            f"it needs {', '.join(missing)} from the environment.", where=str(file), remedy="Set it, then start again."
        )


def _variables(value: Any) -> Iterator[str]:
    """Yield the name in every {env: NAME} of a value."""
    if isinstance(value, dict):
        if set(value) == {"env"}:
            yield str(value["env"])
        for part in value.values():
            yield from _variables(part)
    elif isinstance(value, list):
        for part in value:
            yield from _variables(part)
