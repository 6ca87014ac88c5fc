"""The definitions that workspace.yaml loads: for every policy of the site its check, and for every valid one its chain."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from release_pipeline.dagster_app.operations import build_arrival, build_prune, build_timetable, build_watch
from release_pipeline.dagster_app.policies import GROUP, build_policy_asset
from release_pipeline.dagster_app.publication import build_publication
from release_pipeline.dagster_app.records import report_in_words
from release_pipeline.dagster_app.releases import build_release_assets
from release_pipeline.dagster_app.site import SiteResource, fix_site
from release_pipeline.flow.site import HOME, Site
from release_pipeline.policy.load import list_policies

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes of runs, as in `cli.program`


def build_defs(
    home: Path, *, resource_overrides: Mapping[str, Any] | None = None, say: Callable[[str], None] = lambda _: None
) -> dg.Definitions:
    """The definitions of the site at `home`. A broken policy has a failing check and no chain; the others are untouched. `say` is
    told steps and warnings of releases that are made in this process."""
    files = list_policies(home)
    assets: list[Any] = [build_policy_asset(file) for file in files]
    jobs: list[Any] = [
        dg.define_asset_job(
            "check_policies",
            selection=dg.AssetSelection.groups(GROUP),
            description="Read every policy of the site and say what is wrong with it, or what it will do.",
        )
    ]
    pruning, daily = build_prune()
    site = Site(home, os.environ)
    policies, _ = site.read_policies()
    publications: list[Any] = []
    for policy in policies:
        chain, job = build_release_assets(policy, say=say)
        published, publishing, publication = build_publication(policy, by_itself=site.publishes_by_itself)
        assets += [*chain, published]
        jobs += [job, publishing]
        publications.append(publication)
    return dg.Definitions(
        assets=assets,
        jobs=[*jobs, pruning],
        schedules=[daily, *publications, *(build_timetable(policy) for policy in policies if policy.cron)],
        sensors=[build_watch(policies), *(build_arrival(policy) for policy in policies)],
        resources=_fix_sites({"site": SiteResource(str(home.resolve())), **(resource_overrides or {})}),
        executor=dg.in_process_executor,
    )


def _fix_sites(resources: Mapping[str, Any]) -> dict[str, Any]:
    """The resources; of a bare object Dagster would take any config."""
    return {name: fix_site(value) if isinstance(value, SiteResource) else value for name, value in resources.items()}


# Error texts of libraries may quote cells: Dagster keeps them out of its records, and here out of the console too.
os.environ["DAGSTER_REDACT_USER_CODE_ERRORS"] = "1"
_redacted = logging.getLogger("dagster.redacted_errors")
_redacted.addHandler(logging.NullHandler())
_redacted.propagate = False
report_in_words()

defs = build_defs(Path(os.environ.get(HOME) or "."))
