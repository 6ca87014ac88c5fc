"""Commands that change the releases of a site: run, hold, resume, ui, prune."""

from __future__ import annotations

import sys
from typing import Any

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import Progress, describe_stopped_run, print_lines
from release_pipeline.apps.cli.options import print_document, read_name
from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage
from release_pipeline.ledger.states import check_not_held, hold_series, resume_series, status_of
from release_pipeline.operate.retention import prune as prune_vault
from release_pipeline.operate.run import describe_run, is_drawn, view_run
from release_pipeline.operate.timetable import describe_left, describe_missing, read_missed
from release_pipeline.pipeline.opening import last_revision, open_release, revise_release
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site

_STEPS = "ingest, validate, microaggregate, mask, suppress, audit, candidate"
_policy = click.argument("policy", metavar="POLICY", help="The name of a policy of the site.")
_why = click.option("--why", required=True, metavar="REASON", help="The reason, which the registry keeps.")
_HELD = "`release-pipeline status` says whether it is held"


@cli.command("run people --release 2", stopped=describe_stopped_run, exclusive=("release", "backfill"))
@_policy
@click.option("--release", help="Which release, where there are several: 2, or 2/r1 for a revision.")
@click.option("--revise", metavar="REASON", help="Open the next revision first, which spends budget again.")
@cli.flag("--backfill", "Run every missed release, oldest first; stops at the first refusal.")
@cli.as_json("the release")
@cli.home
def run(policy: str, release: str | None, revise: str | None, backfill: bool, json: bool, site: Site) -> None:
    """The run goes through Dagster and ends before review. Repeating the command spends nothing
    more: it continues, or serves what is there."""
    if backfill:
        if revise is not None or json:
            what = "--backfill takes every release that was missed, and neither --revise nor --json."
            raise WrongUsage(what, remedy="`release-pipeline status --json` tells scripts what became of them.")
        _run_missed(site, policy)
        return
    if revise is not None:
        click.get_current_context().params["before"] = last_revision(site, policy, release)
        id = revise_release(site, policy, release, why=revise)
        earlier = f"{id.policy}/{id.release}/r{id.revision - 1}"
        message = f"{id}: opened, to be charged again; {earlier} stands if it is published, and is given up if not"
        print(message, file=sys.stderr)
    else:
        id = open_release(site, policy, release).id
    before = is_drawn(site, id)
    with Progress() as progress:
        _run_release(site, id, progress)
        progress("served as it is: the noise of this release was drawn before, and nothing is charged" if before else "done")
        done = view_run(site, id, served=before)
        progress(f"for the reviewers: {done.report}")
    if json:
        print_document(done)
    else:
        print_lines(describe_run(done))


def _run_release(site: Site, release: ReleaseId, progress: Progress) -> None:
    from release_pipeline.apps.dagster.launch import run_release  # seconds to import: errors of usage come before

    progress(f"{release}: {_STEPS}")
    run_release(site, release.policy, release.release, progress=progress)


def _run_missed(site: Site, policy: str) -> None:
    """Run the missed releases, one after the other, up to the first that is refused."""
    done = list[str]()
    with Progress() as progress:
        while missed := [name for name in read_missed(site, site.policy(policy)) if name not in done]:
            name, *left = missed
            try:
                release = _open_missed(site, policy, name)
                _run_release(site, release, progress)
            except ReleasePipelineError:
                print(f"the backfill stops at {policy}/{name}; {describe_left(left)}", file=sys.stderr)
                raise
            done.append(name)
            print_lines(describe_run(view_run(site, release, served=False)))
    if not done:
        print("nothing was missed")


def _open_missed(site: Site, policy: str, name: str) -> ReleaseId:
    """Return the release if its source has it. A release whose data have not arrived is not opened, and so not blocked."""
    context = open_release(site, policy, name)
    with site.open_registry(read_only=True) as registry:
        is_uncharged = status_of(registry, context.id).charge is None
        if is_uncharged:
            check_not_held(registry, context.id)
    if is_uncharged and (missing := describe_missing(site, context.policy, name)):
        remedy = "Repair the source, or run a later one by name: it is then left out."
        raise Blocked(missing, where=str(context.id), remedy=remedy)
    return context.id


@cli.command('hold people --why "the source is wrong"', stopped=_HELD)
@_policy
@_why
@cli.by
@cli.home
def hold(policy: str, why: str, by: str | None, site: Site) -> None:
    """The timetable skips the series, and `run` refuses releases that have not spent budget yet.
    The others go on to their candidate; review and publication are not held."""
    held = hold_series(site, policy, why=why, by=read_name(by))
    print(f"{held.policy}: held by {held.by}: nothing is opened or charged until `release-pipeline resume {held.policy}`")


@cli.command('resume people --why "the source is repaired"', stopped=_HELD)
@_policy
@_why
@cli.by
@cli.home
def resume(policy: str, why: str, by: str | None, site: Site) -> None:
    """The timetable opens missed releases one at each tick, oldest first; `run POLICY --backfill`
    runs them at once."""
    held = resume_series(site, policy, why=why, by=read_name(by))
    print(f"{held.policy}: resumed; it was held since {held.since[:10]}")
    try:
        missed = read_missed(site, site.policy(policy))
    except ReleasePipelineError as error:  # the series goes on, and its policy cannot be read
        print_lines([f"missed releases cannot be listed: {error}"])
        return
    if missed:
        print(f"missed: {', '.join(missed)}; `release-pipeline run {held.policy} --backfill` runs them in this order")


@cli.command("prune --dry-run", stopped="what was emptied is noted, and the same command goes on")
@cli.flag("--dry-run", "Only list what would be removed.")
@cli.home
def prune(dry_run: bool, site: Site) -> None:
    """It removes the intermediate tables of finished releases older than their policy's `retain`,
    and rewrites the files that held them. Candidates, spent budget and the exposure of people stay."""
    emptied = prune_vault(site, dry_run=dry_run)
    for each in emptied:
        verb = "would be emptied" if dry_run else "emptied, and the file rewritten"
        print(f"{each.population}: {verb}: {', '.join(str(release) for release in each.releases)}")
    if not emptied:
        print("nothing is older than its policy retains it")


@cli.command("ui --port 3000 --read-only", stopped="nothing was started", exclusive=("allow_hosts", "trusted_proxy"))
@click.option("--port", type=cli.PORT, default=3000, show_default=True, help="The port on this machine.")
@cli.uds
@cli.flag("--read-only", "For auditors: nobody can start or change anything.")
@cli.allow_host
@cli.proxy
@cli.home
def ui(site: Site, **serving: Any) -> int:
    """It listens on this machine only."""
    from release_pipeline.apps.dagster.launch import open_ui

    return open_ui(site, **serving)
