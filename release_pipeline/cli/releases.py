"""Commands about the releases of a site: run, status, ledger, prune, ui."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.cli.options import Progress, add_home, add_json, add_uds, print_json, whole_number
from release_pipeline.cli.stopping import tell_run
from release_pipeline.cli.visible import print_lines
from release_pipeline.errors import WrongUsage

if TYPE_CHECKING:
    from release_pipeline.flow.site import Site


def add_commands(commands: Any) -> None:
    """Add these commands."""
    run = commands.add_parser("run", help="one release from its source to the candidate, through Dagster")
    run.add_argument("policy", metavar="POLICY", help="the name of a policy of the site")
    run.add_argument("--release", help="which release, where there are several: 2, or 2/r1 for a revision")
    run.add_argument("--revise", metavar="REASON", help="open the next revision first, which is charged anew")
    run.add_argument(
        "--backfill",
        action="store_true",
        help="every release that was missed, oldest first; it stops at the first that is refused",
    )
    add_json(run, "the release")
    add_home(run)
    run.set_defaults(run=_run, stopped=tell_run)

    status = commands.add_parser("status", help="the releases of a site and their states")
    form = status.add_mutually_exclusive_group()
    add_json(form, "the releases")
    form.add_argument("--metrics", action="store_true", help="counts and ages as OpenMetrics text, for who watches many sites")
    status.add_argument("--health", action="store_true", help="only whether the site is well; exit code 1 if not")
    add_home(status)
    status.set_defaults(run=_status)

    ledger = commands.add_parser(
        "ledger",
        help="what people were exposed to: spent, reserved, planned, remaining",
        description="What was charged to each population for which release, what its policies plan, and what is left.",
    )
    ledger.add_argument("population", nargs="?", metavar="POPULATION", help="default: all that are declared or were ever charged")
    ledger.add_argument("--exposure", action="store_true", help="person by person too, in counts of people; confidential")
    ledger.add_argument("--overlap", action="store_true", help="who is in two populations or policies, in counts; confidential")
    add_json(ledger, "the ledgers")
    add_home(ledger)
    ledger.set_defaults(run=_ledger)

    prune = commands.add_parser(
        "prune",
        help="empty the vault of finished releases that are older than their policy retains",
        description="Remove the intermediate tables of finished releases older than their policy's 'retain', and rewrite "
        "the files that held them. Candidates, charges and the exposure of people stay.",
    )
    prune.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    add_home(prune)
    prune.set_defaults(run=_prune, stopped="what was emptied is noted, and the same command goes on")

    ui = commands.add_parser("ui", help="the Dagster UI of a site behind a login, on this machine only")
    ui.add_argument("--port", type=whole_number(1, 65535, "a port"), default=3000, help="default: 3000")
    add_uds(ui)
    ui.add_argument("--read-only", action="store_true", help="for auditors: nobody can start or change anything")
    way = ui.add_mutually_exclusive_group()
    way.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME:PORT",
        help="another name under which it is reached, say by a tunnel; may be given again",
    )
    way.add_argument(
        "--trusted-proxy", type=Path, metavar="FILE", help="who somebody is says a reverse proxy, as this file describes it"
    )
    add_home(ui)
    ui.set_defaults(run=_ui, stopped="nothing was started")


def _run(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import last_revision, open_release, revise_release
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.status.run import describe_run, is_drawn, tell_run
    from release_pipeline.policy.documents import to_json

    site = find_site(options.home)
    if options.backfill:
        from release_pipeline.cli.series import run_backfill

        return run_backfill(options)
    if options.revise is not None:
        options.before = last_revision(site, options.policy, options.release)
        release = revise_release(site, options.policy, options.release, why=options.revise)
        earlier = f"{release.policy}/{release.release}/r{release.revision - 1}"
        print(
            f"{release}: opened, to be charged anew; {earlier} stands if it is published, and is given up if not", file=sys.stderr
        )
    else:
        release = open_release(site, options.policy, options.release).id
    before = is_drawn(site, release)
    progress = Progress()
    progress(f"{release}: ingest, validate, microaggregate, mask, suppress, audit, candidate")
    from release_pipeline.dagster_app.launch import run_release

    run_release(site, release.policy, release.release, progress=progress)
    progress("served as it is: the noise of this release was drawn before, and nothing is charged" if before else "done")
    done = tell_run(site, release, served=before)
    progress(f"for the reviewers: {done.report}")
    if options.json:
        print_json(to_json(done))
    else:
        print_lines(describe_run(done))
    return 0


def _status(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.status.overview import describe_status, view_status
    from release_pipeline.policy.documents import to_json

    site = find_site(options.home)
    if options.health:
        return _health(options, site)
    if options.metrics:
        from release_pipeline.flow.status.metrics import write_metrics

        print(write_metrics(site), end="")
    elif options.json:
        print_json(to_json(view_status(site)))
    else:
        print_lines(describe_status(site))
    return 0


def _health(options: argparse.Namespace, site: Site) -> int:
    from release_pipeline.flow.status.health import check_health, describe_health
    from release_pipeline.policy.documents import to_json

    if options.metrics:
        raise WrongUsage("--health goes alone, or with --json.")

    def ask() -> datetime | None:
        from release_pipeline.dagster_app.heartbeat import read_heartbeat

        return read_heartbeat(site)

    found = check_health(site, heartbeat=ask)
    if options.json:
        print_json(to_json(found))
    else:
        print_lines(describe_health(found))
    return 0 if found.ok else 1


def _ledger(options: argparse.Namespace) -> int:
    from release_pipeline.flow.exposure import describe_overlap, read_overlap
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.status.ledger import describe_exposure, describe_ledger, read_ledgers
    from release_pipeline.flow.status.ledger_document import view_ledgers
    from release_pipeline.policy.documents import to_json

    site = find_site(options.home)
    ledgers = read_ledgers(site, options.population)
    overlap = read_overlap(site) if options.overlap else None
    if options.json:
        print_json(to_json(view_ledgers(site, ledgers, exposure=options.exposure, overlap=overlap)))
        return 0
    for ledger in ledgers:
        print_lines(describe_ledger(ledger))
        if options.exposure:
            print_lines(describe_exposure(site, ledger))
    if overlap is not None:
        print_lines(describe_overlap(overlap))
    return 0


def _prune(options: argparse.Namespace) -> int:
    from release_pipeline.flow.retention import prune
    from release_pipeline.flow.site import find_site

    done = prune(find_site(options.home), dry_run=options.dry_run)
    for pruned in done:
        verb = "would be emptied" if options.dry_run else "emptied, and the file written anew"
        print(f"{pruned.population}: {verb}: {', '.join(str(release) for release in pruned.releases)}")
    if not done:
        print("nothing is older than its policy retains it")
    return 0


def _ui(options: argparse.Namespace) -> int:
    from release_pipeline.dagster_app.launch import open_ui
    from release_pipeline.flow.site import find_site

    return open_ui(
        find_site(options.home),
        port=options.port,
        uds=options.uds,
        read_only=options.read_only,
        allow_hosts=options.allow_host,
        trusted_proxy=options.trusted_proxy,
    )
