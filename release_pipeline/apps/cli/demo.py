"""The command demo: a new site, and three releases about two surveys."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import Progress, keep_line
from release_pipeline.errors import OverCap, ReleasePipelineError
from release_pipeline.ledger.states import list_statuses
from release_pipeline.operate.demo import (
    LICENSED_POLICY,
    PUBLIC_POLICY,
    REFUSED_POLICY,
    WAVES,
    Outcome,
    build_demo_site,
    list_outcomes,
    review_demo_release,
    trust_demo_people,
)
from release_pipeline.operate.overview import list_releases
from release_pipeline.pipeline.opening import find_release, revise_release
from release_pipeline.publish.verification import verify
from release_pipeline.sentences import DEMO
from release_pipeline.store.site import Site

HEAD = ("release", "for", "method", "guarantee", "linked", "error (worst column)", "state")
UNFINISHED = ("", "reserved", "drawn", "blocked")  # states from which a run goes on; the refused release stays blocked


def _describe_stop(params: cli.Params) -> str:
    if not params["folder"].exists():
        return "nothing was made"
    return f"what was made is kept in {params['folder']}: the same command, without --fresh, goes on from there"


@cli.command("demo --folder demo", stopped=_describe_stop)
@click.option("--folder", type=cli.PATH, default=Path("demo"), show_default=True, help="Where the demo's site is.")
@cli.flag("--all", "Make the other yearly waves too, and ask for more than the budget allows.")
@cli.flag("--fresh", "Start over instead of continuing with what is there.")
def demo(folder: Path, all: bool, fresh: bool) -> int:
    """Two public surveys play the part of confidential data. One release is published for everybody,
    one is refused because its rows could be linked to people, one waits for its reviewers."""
    waves = WAVES if all else WAVES[:1]
    with Progress() as progress:
        site = build_demo_site(folder, fresh=fresh)
        package, levels = _play(site, waves, progress)
        refusal = _ask_for_more(site) if all else ""
    program = cli.PROGRAM if shutil.which(cli.PROGRAM) else sys.argv[0]
    if program.endswith("__main__.py"):
        program = f"{sys.executable} -m release_pipeline.apps.cli"
    print(
        DEMO(
            "summary.text",
            table="\n".join(map(keep_line, _tabulate(list_outcomes(site)))),
            refused=_find_refusal(site),
            ledger=DEMO("summary.ledger", refusal=refusal) if refusal else "",
            package=package,
            passed=levels.count("ok"),
            failed=levels.count("FAIL"),
            program=program,
            folder=folder,
        )
    )
    return int("FAIL" in levels)


def _play(site: Site, waves: tuple[str, ...], progress: Progress) -> tuple[Path, list[str]]:
    """Make the missing releases and publish the first. Returns its folder and the levels of the findings of `verify`."""
    from release_pipeline.apps.dagster.launch import run_publication, run_release

    releases = [*((PUBLIC_POLICY, wave) for wave in waves), (REFUSED_POLICY, "once"), (LICENSED_POLICY, "once")]
    steps, steps_of = len(releases) + 2, DEMO.read_section("steps")
    progress(f"1 of {steps}: keys for five people; the officer signs policies and caps")
    keys = trust_demo_people(site)
    states = {str(release): status.state for release, status in list_statuses(site).items()}
    for number, (policy, partition) in enumerate(releases, 2):
        unfinished = UNFINISHED if policy != REFUSED_POLICY else ("",)
        if states.get(f"{policy}/{partition}/r1", "") not in unfinished:
            progress(f"{number} of {steps}: {policy}/{partition} is there already (demo --fresh starts over)")
            continue
        progress(f"{number} of {steps}: {policy}/{partition}: {steps_of[policy]}")
        try:
            run_release(site, policy, partition)
        except ReleasePipelineError:
            if policy != REFUSED_POLICY:
                raise
    first = find_release(site, f"{PUBLIC_POLICY}/1/r1")
    if list_statuses(site)[first].state in ("candidate", "approved"):
        progress(f"{steps} of {steps}: {PUBLIC_POLICY}/1: two reviewers sign, the service publishes, a stranger verifies")
        review_demo_release(site, first, keys)
    else:
        progress(f"{steps} of {steps}: {PUBLIC_POLICY}/1 is published already; a stranger verifies")
    run_publication(site, PUBLIC_POLICY, "1")
    package = site.package(str(first))
    return package, [finding.level for finding in verify(package, [str(site.officer)])]


def _find_refusal(site: Site) -> str:
    """Return the reason why the second release was refused, as its run recorded it."""
    lines, _ = list_releases(site)
    reason = next((line.reason or "" for line in lines if line.policy == REFUSED_POLICY), "")
    return ("\n" + " " * 19).join(textwrap.wrap(reason, 100))


def _ask_for_more(site: Site) -> str:
    """Ask for a correction that exceeds the remaining budget of the first population; returns the answer."""
    try:
        return f"{revise_release(site, PUBLIC_POLICY, '1', why='a correction, to see what the ledger says')}: opened."
    except OverCap as refused:
        return str(refused)


def _tabulate(outcomes: Iterator[Outcome]) -> Iterator[str]:
    rows = [HEAD, *map(astuple, outcomes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
