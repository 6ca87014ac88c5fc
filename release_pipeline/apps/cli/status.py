"""Commands that show the state of a site: status, ledger. They import nothing heavy."""

from __future__ import annotations

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import print_lines, table_drawer
from release_pipeline.apps.cli.options import print_document
from release_pipeline.ledger.account import describe_exposure, describe_ledger, read_ledgers, view_ledgers
from release_pipeline.ledger.exposure import describe_overlap, read_overlap
from release_pipeline.operate.overview import describe_status, view_status
from release_pipeline.store.site import Site


@cli.command("status --home site")
@cli.as_json("the releases")
@cli.flag("--health", "Check only whether the site is well; exit code 1 if not.")
@cli.home
def status(json: bool, health: bool, site: Site) -> int:
    """It also shows what each series releases next, trials on confidential data, outstanding
    deliveries, and what is broken."""
    if health:
        return _show_health(site, json=json)
    if json:
        print_document(view_status(site))
    else:
        print_lines(describe_status(site, draw=table_drawer()))
    return 0


def _show_health(site: Site, *, json: bool) -> int:
    from release_pipeline.apps.dagster.runs import read_heartbeat
    from release_pipeline.operate.health import check_health, describe_health

    health = check_health(site, heartbeat=lambda: read_heartbeat(site))
    if json:
        print_document(health)
    else:
        print_lines(describe_health(health))
    return 0 if health.ok else 1


@cli.command("ledger people --home site")
@click.argument("population", required=False, metavar="[POPULATION]", help="Default: all that are declared or ever spent budget.")
@cli.flag("--exposure", "Count people by how much they were exposed to; confidential.")
@cli.flag("--overlap", "Count people who are in two populations or policies; confidential.")
@cli.as_json("the ledgers")
@cli.home
def ledger(population: str | None, exposure: bool, overlap: bool, json: bool, site: Site) -> None:
    """For each population it lists what each release spent, what the policies plan, and what
    remains."""
    ledgers = read_ledgers(site, population)
    overlaps = read_overlap(site) if overlap else None
    if json:
        print_document(view_ledgers(site, ledgers, exposure=exposure, overlap=overlaps))
        return
    for each in ledgers:
        print_lines(describe_ledger(each, draw=table_drawer()))
        if exposure:
            print_lines(describe_exposure(site, each))
    if overlaps is not None:
        print_lines(describe_overlap(overlaps))
