"""All that Dagster shows of a site: for every policy its check, and for every valid one its chain."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from release_pipeline.dagster_app.delivering import build_delivery
from release_pipeline.dagster_app.names import read_prefix
from release_pipeline.dagster_app.operations import build_arrival, build_prune, build_timetable, build_watch
from release_pipeline.dagster_app.policies import build_policy_asset
from release_pipeline.dagster_app.publication import build_publication
from release_pipeline.dagster_app.releases import build_release_assets
from release_pipeline.dagster_app.reloading import stamp_files
from release_pipeline.dagster_app.site import SiteResource, fix_site
from release_pipeline.dagster_app.telling import build_telling
from release_pipeline.flow.site import Site
from release_pipeline.policy.load import list_policies


def build_defs(
    home: Path,
    *,
    prefix: str | Sequence[str] = (),
    resource_overrides: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dg.Definitions:
    """The definitions of the site at `home`. A broken policy has a failing check and no chain; the others are untouched.

    They merge with others (`dg.Definitions.merge`): they name no executor, for every job of theirs brings its own, and under a
    `prefix` all names carry it, so that several sites stand side by side. `say` is told steps and warnings of releases that are
    made in this process."""
    names, loaded = read_prefix(prefix), stamp_files(home)
    files = [build_policy_asset(file, names) for file in list_policies(home)]
    checking = dg.define_asset_job(
        names.name("check_policies"),
        selection=dg.AssetSelection.assets(*files),
        executor_def=dg.in_process_executor,
        description="Read every policy of the site and say what is wrong with it, or what it will do.",
    )
    assets: list[Any] = [*files]
    jobs: list[Any] = [checking]
    pruning, daily = build_prune(names)
    delivering, hourly = build_delivery(names)
    site = Site(home, os.environ)
    policies, _ = site.read_policies()
    publications: list[Any] = []
    for policy in policies:
        chain, job = build_release_assets(policy, names, upstream=site.upstream_of(policy.policy), say=say)
        published, publishing, publication = build_publication(policy, names, by_itself=site.publishes_by_itself)
        assets += [*chain, published]
        jobs += [job, publishing]
        publications.append(publication)
    return dg.Definitions(
        assets=assets,
        jobs=[*jobs, pruning, delivering],
        schedules=[daily, hourly, *publications, *(build_timetable(policy, names) for policy in policies if policy.cron)],
        sensors=[
            build_watch(policies, names, loaded),
            build_telling(names),
            *(build_arrival(policy, names) for policy in policies),
        ],
        resources=_fix_sites({names.resource: SiteResource(str(home.resolve())), **(resource_overrides or {})}),
    )


def _fix_sites(resources: Mapping[str, Any]) -> dict[str, Any]:
    """The resources; of a bare object Dagster would take any config."""
    return {name: fix_site(value) if isinstance(value, SiteResource) else value for name, value in resources.items()}
