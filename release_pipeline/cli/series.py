"""Commands about the series of a policy: hold, resume, and `run --backfill`."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any

from release_pipeline.cli.options import Progress, add_home
from release_pipeline.cli.visible import print_lines
from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage


def add_commands(commands: Any) -> None:
    """Add these commands."""
    hold = commands.add_parser(
        "hold",
        help="stop a series: nothing of a policy is opened or charged until it is resumed",
        description="The timetable skips and says why, and `run` refuses what is not charged yet. What is charged goes on to its "
        "candidate; review and publication are not held.",
    )
    _add_common(hold, "why it is held")
    hold.set_defaults(run=_hold, stopped="`release-pipeline status` says whether it is held")
    resume = commands.add_parser(
        "resume",
        help="let a held series go on; what was missed comes oldest first",
        description="The timetable opens what was missed, one release at each tick, oldest first; "
        "`run POLICY --backfill` does so at once.",
    )
    _add_common(resume, "why it goes on")
    resume.set_defaults(run=_resume, stopped="`release-pipeline status` says whether it is held")


def _add_common(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("policy", metavar="POLICY", help="the name of a policy of the site")
    command.add_argument("--why", required=True, metavar="REASON", help=f"{what}; it stays in the registry")
    command.add_argument("--by", metavar="NAME", help="who says so (default: the account that gives the command)")
    add_home(command)


def _hold(options: argparse.Namespace) -> int:
    from release_pipeline.flow.holds import hold_series
    from release_pipeline.flow.site import find_site

    hold = hold_series(find_site(options.home), options.policy, why=options.why, by=_name_of(options))
    print_lines([f"{hold.policy}: held by {hold.by}: nothing is opened or charged until `release-pipeline resume {hold.policy}`"])
    return 0


def _resume(options: argparse.Namespace) -> int:
    from release_pipeline.flow.backfill import read_missed
    from release_pipeline.flow.holds import resume_series
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    hold = resume_series(site, options.policy, why=options.why, by=_name_of(options))
    print_lines([f"{hold.policy}: resumed; it was held since {hold.since[:10]}"])
    try:
        missed = read_missed(site, site.policy(options.policy))
    except ReleasePipelineError as error:  # the series goes on, and its policy cannot be read
        print_lines([f"what was missed cannot be told: {error}"])
        return 0
    if missed:
        print_lines([f"missed: {', '.join(missed)}; `release-pipeline run {hold.policy} --backfill` runs them in this order"])
    return 0


def run_backfill(options: argparse.Namespace) -> int:
    """`run --backfill`: what was missed, one after the other, up to the first that is refused."""
    from release_pipeline.flow.backfill import describe_left, read_missed
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.status.run import describe_run, tell_run

    scripts = "`release-pipeline status --json` tells scripts what became of them."
    for given, name in ((options.release, "--release"), (options.revise, "--revise"), (options.json or None, "--json")):
        if given is not None:
            what = f"--backfill takes every release that was missed, and no {name} beside it."
            raise WrongUsage(what, where="--backfill", remedy=scripts if name == "--json" else "Leave out one.")
    site, progress, done = find_site(options.home), Progress(), list[str]()
    while missed := [name for name in read_missed(site, site.policy(options.policy)) if name not in done]:
        name, *left = missed
        try:
            release = _run_one(options, name, progress)
        except ReleasePipelineError:
            print(f"the backfill stops at {options.policy}/{name}; {describe_left(left)}", file=sys.stderr)
            raise
        done.append(name)
        print_lines(describe_run(tell_run(site, release, served=False)))
    if not done:
        print_lines(["nothing was missed"])
    return 0


def _run_one(options: argparse.Namespace, name: str, progress: Progress) -> Any:
    """One release to its candidate, when its source has it: what has not arrived is not opened, and so not blocked."""
    from release_pipeline.flow.holds import check_not_held
    from release_pipeline.flow.opening import open_release
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.states import status_of
    from release_pipeline.flow.timetable import describe_missing

    site = find_site(options.home)
    flow = open_release(site, options.policy, name)
    with site.open_registry(read_only=True) as registry:
        uncharged = status_of(registry, flow.id).charge is None
        if uncharged:
            check_not_held(registry, flow.id)
    if uncharged and (missing := describe_missing(site, flow.policy, name)):
        raise Blocked(missing, where=str(flow.id), remedy="Repair the source, or run a later one by name: it is then left out.")
    progress(f"{flow.id}: ingest, validate, microaggregate, mask, suppress, audit, candidate")
    from release_pipeline.dagster_app.launch import run_release

    run_release(site, options.policy, name, progress=progress)
    return flow.id


def _name_of(options: argparse.Namespace) -> str:
    """Who gives the command, as they say or as their machine knows them."""
    if options.by is not None:
        return options.by
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise WrongUsage("this account has no name.", where="--by", remedy="Name who holds or resumes with --by NAME.") from None
