"""All Dagster definitions of a site: a check for every policy, and a chain for every valid one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from release_pipeline.apps.dagster.names import OFF, SiteResource, fix_site, read_automations, read_prefix, stamp_files
from release_pipeline.apps.dagster.operations import build_arrival, build_prune, build_timetable, build_watch
from release_pipeline.apps.dagster.publication import build_publication
from release_pipeline.apps.dagster.releases import build_policy_asset, build_release_assets
from release_pipeline.apps.dagster.sensors import build_delivery, build_telling
from release_pipeline.policy.loading.load import list_policies
from release_pipeline.store.site import find_site


def build_defs(
    home: Path,
    *,
    prefix: str | Sequence[str] = (),
    automations: str = "off",
    say: Callable[[str], None] = lambda _: None,
    only: str | None = None,
) -> dg.Definitions:
    """Return the definitions of the site at `home`. A broken policy has a failing check and no chain; the others are
    untouched. Raises where there is no site.

    They merge with others (`dg.Definitions.merge`): they name no executor, since each of their jobs has its own. All names carry
    the `prefix`, if any, so that a project can have several sites. `automations`: `on` or `off`, how schedules and sensors begin.
    `say` gets steps and warnings of releases that are made in this process. `only`: the one policy that a run of one release
    needs.
    """
    site = find_site(home)
    home, names, begin = site.home, read_prefix(prefix), read_automations(automations)
    loaded = stamp_files(home)
    policy_files = [build_policy_asset(file, names) for file in list_policies(home) if only in (None, file.stem)]
    checking = dg.define_asset_job(
        names.name("check_policies"),
        selection=dg.AssetSelection.assets(*policy_files),
        executor_def=dg.in_process_executor,
        description="Read every policy of the site and say what is wrong with it, or what it will do.",
    )
    assets: list[Any] = [*policy_files]
    jobs: list[Any] = [checking]
    pruning, daily = build_prune(names, begin)
    delivering, hourly = build_delivery(names, begin)
    policies = site.read_policies()[0] if only is None else [site.policy(only)]
    publications: list[Any] = []
    for policy in policies:
        chain, job = build_release_assets(policy, names, say=say)
        published, publishing, publication = build_publication(policy, names, begin if site.publishes_by_itself else OFF)
        assets += [*chain, published]
        jobs += [job, publishing]
        publications.append(publication)
    return dg.Definitions(
        assets=assets,
        jobs=[*jobs, pruning, delivering],
        schedules=[daily, hourly, *publications, *(build_timetable(policy, names, begin) for policy in policies if policy.cron)],
        sensors=[
            build_watch(policies, names, loaded, begin),
            build_telling(names, begin),
            *(build_arrival(policy, names, begin if policy.cron else OFF) for policy in policies),
        ],
        resources={names.resource: fix_site(SiteResource(str(home)))},
    )
