"""The command demo: a site of its own, from nothing to a published package."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from release_pipeline.cli import commands as cli
from release_pipeline.cli.visible import Progress, keep_line
from release_pipeline.errors import OverCap
from release_pipeline.flow.demo import COLUMNS_DEMO, TABLE_DEMO, Demo, build_demo_site, review_demo_wave, trust_demo_people
from release_pipeline.flow.opening import find_release, revise_release
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import list_statuses
from release_pipeline.flow.status.candidates import describe_candidates, describe_synthetic
from release_pipeline.flow.status.overview import list_releases
from release_pipeline.policy.words import describe_headline
from release_pipeline.sentences import DEMO


def _describe_stop(params: cli.Params) -> str:
    folder = params["folder"] or Path((TABLE_DEMO if params["table"] else COLUMNS_DEMO).folder)
    if not folder.exists():
        return "nothing was made"
    return f"what was made is kept in {folder}: the same command, without --fresh, goes on from there"


@cli.command("demo --folder demo", stopped=_describe_stop)
@cli.flag("--table", "Build the second demo: synthetic rows by dp-table, one claim for everything.")
@click.option("--folder", type=cli.PATH, help="Where the demo's site is (default: demo; with --table: demo-table).")
@cli.flag("--fresh", "Start over instead of continuing with what is there.")
def demo(table: bool, folder: Path | None, fresh: bool) -> int:
    """The data are from the RAND Health Insurance Experiment. Every yearly wave becomes a candidate,
    and the first is published. Columns are masked by two methods; with --table rows are synthetic."""
    chosen = TABLE_DEMO if table else COLUMNS_DEMO
    folder = folder or Path(chosen.folder)
    with Progress() as progress:
        site = build_demo_site(chosen, folder, fresh=fresh)
        package, levels = _take_through(chosen, site, progress)
        refusal = _ask_for_more(site, chosen.policy)
        progress("done")
    program = cli.PROGRAM if shutil.which(cli.PROGRAM) else sys.argv[0]
    if program.endswith("__main__.py"):
        program = f"{sys.executable} -m release_pipeline.cli"
    texts = DEMO.read_phrases("table") if table else DEMO.read_phrases("columns")
    figures = describe_synthetic(site) if table else describe_candidates(site)
    print(
        DEMO(
            "summary.text",
            head=texts["head"],
            figures="\n".join(map(keep_line, figures)),
            policy=chosen.policy,
            refusal=refusal,
            package=package,
            passed=levels.count("ok"),
            failed=levels.count("FAIL"),
            words=texts["text"].format(headline=describe_headline(site.policy(chosen.policy))),
            program=program,
            folder=folder,
            desk=texts.get("desk", "").format(program=program, folder=folder),
            evidence=texts.get("evidence", ""),
        )
    )
    return int("FAIL" in levels)


def _take_through(demo: Demo, site: Site, progress: Progress) -> tuple[Path, list[str]]:
    """Every release to a candidate that is none yet, and the first one to a package; its folder, and what verifying it found."""
    from release_pipeline.dagster_app.launch import check_policies, run_publication, run_release

    progress("five people with keys; the officer approves policy and cap")
    keys = trust_demo_people(demo, site)
    for line in list_releases(site)[0]:
        if line.id is not None and line.state not in ("reserved", "drawn", "blocked"):
            progress(f"{line.release}: served as it is (--fresh starts over)")
            continue
        policy, partition, *_ = line.release.split("/")
        progress(f"{policy}/{partition}: {demo.steps}")
        run_release(site, policy, partition)
    check_policies(site)
    progress(f"{demo.policy}/1: two reviewers approve, the service publishes, a stranger verifies")
    first = find_release(site, f"{demo.policy}/1/r1")
    if list_statuses(site)[first].state in ("candidate", "approved"):
        review_demo_wave(site, first, keys)
    run_publication(site, demo.policy, "1")
    package = site.package(str(first))
    return package, [finding.level for finding in verify(package, [str(site.officer)])]


def _ask_for_more(site: Site, policy: str) -> str:
    """Ask for the next revision of the demo's first wave, which its people have no budget left for; returns the answer."""
    try:
        return f"{revise_release(site, policy, '1', why='a correction, to see what the ledger says')}: opened."
    except OverCap as refused:
        return str(refused)
