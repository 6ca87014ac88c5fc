"""Commands that keep a site: backup, restore, head; and alert, for sites without a daemon."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import keep_line, print_lines
from release_pipeline.errors import WrongUsage
from release_pipeline.ledger.office import load_head, read_head
from release_pipeline.operate.alerts.look import describe_preview, find_warnings, preview
from release_pipeline.operate.alerts.sending import NOBODY, describe_sent, send_alerts
from release_pipeline.operate.backup import describe_restored, write_backup
from release_pipeline.operate.backup import restore as put_back
from release_pipeline.operate.survivors import accept, read_named
from release_pipeline.store.files import PUBLIC, check_output, write_text
from release_pipeline.store.site import Site, find_site
from release_pipeline.trust.keys import read_key


@cli.command("backup -o site.tar --home site")
@cli.output("FILE.tar", "The file to write.")
@cli.overwrite
@cli.home
def backup(output: Path, overwrite: bool, site: Site) -> None:
    """The copy is of one moment, while runs go on. It is confidential: it has the vault and its
    key. It leaves out private keys of people, sources and dagster/."""
    made = write_backup(site, output, overwrite=overwrite)
    print(f"{output}: {len(made.files)} files as of event {made.head.number}")
    print(f"SHA-256 {made.sha256}: keep it elsewhere; it shows whether this file was changed (restore --sha256)")
    print("Confidential: it has the vault and its key, so anyone who has this file has everything.")


@cli.command("restore site.tar --into site", exclusive=("charged", "nothing_else"))
@click.argument("backup", type=cli.PATH, required=False, metavar="BACKUP", help="What `backup` wrote.")
@cli.path("--into", "HOME", "A new folder, or the site that is to be replaced.")
@cli.path("--survived", "FOLDER", "Where else a site or packages remain. Repeatable.", multiple=True)
@click.option("--sha256", metavar="HASH", help="The hash that `backup` printed: another file is refused.")
@cli.path("--since", "FILE", "What `head export` wrote last.")
@cli.flag("--accept", "As the officer, sign what was spent after the backup.")
@cli.path("--charged", "FILE", "What else was spent: POLICY/RELEASE/rN: {records: N}.")
@cli.flag("--nothing-else", "Nothing was spent except what was found.")
@cli.key("The officer's key", required=False)
@cli.home_path
def restore(**given: Any) -> None:
    """First run BACKUP --into HOME, while nothing else runs: a site that is there is moved aside.
    Then the officer runs --accept: until then no budget is spent and nothing is published.
    docs/restoring.md explains both steps."""
    options = SimpleNamespace(**given)
    parts = (options.backup is not None, options.into is not None, not options.accept)
    if len(set(parts)) > 1:
        raise WrongUsage("a backup is put back with BACKUP --into HOME, and then accepted with --accept.")
    if options.accept:
        _accept(options)
    else:
        _put_back(options)


def _put_back(options: SimpleNamespace) -> None:
    if options.key is not None or options.charged is not None or options.nothing_else:
        raise WrongUsage("--key, --charged and --nothing-else go with --accept.")
    witnessed = None if options.since is None else load_head(options.since)
    done = put_back(options.backup, options.into, survived=options.survived, witnessed=witnessed, sha256=options.sha256)
    print_lines(describe_restored(done, options.into))


def _accept(options: SimpleNamespace) -> None:
    if options.sha256 is not None or options.since is not None or options.survived:
        raise WrongUsage("--sha256, --since and --survived go with BACKUP --into HOME.")
    if options.key is None or (options.charged is None and not options.nothing_else):
        raise WrongUsage("the officer names --key, and --charged FILE or --nothing-else.")
    named = {} if options.charged is None else read_named(options.charged)
    entered = accept(find_site(options.home), key=read_key(options.key), named=named, show=print)
    for sentence in entered.overdrawn:
        print(f"{sentence}. Nothing more is charged to it until the officer raises the cap")
    print(f"accepted; {len(entered.charges)} charges entered")


@cli.actions("head export -o head.json")
def head() -> None:
    """Somebody else keeps the event. `verify SITE --since FILE` then shows whether the registry still
    has it."""


@head.command("export", example="head export -o head.json")
@cli.output("FILE.json", "Default: it is printed.", required=False)
@cli.overwrite
@cli.home
def export(output: Path | None, overwrite: bool, site: Site) -> None:
    """Write the last event's number, hash and moment."""
    if output is not None:
        check_output(output, endings=(".json",), overwrite=overwrite)
    event = read_head(site)
    if output is None:
        print(event.text, end="")
    else:
        write_text(output, event.text, mode=PUBLIC)
        print(f"{output}: event {event.number}")


@cli.command("alert --dry-run")
@cli.flag("--dry-run", "Print what would be sent; send and remember nothing.")
@cli.home
def alert(dry_run: bool, site: Site) -> int:
    """Use it from cron, where no daemon runs: the daemon does this twice a minute. Each alert is sent
    once; failed deliveries are retried next time. The exit code is 1 if something could not be
    sent."""
    for warning in find_warnings(site):
        print(f"{cli.PROGRAM}: warning: {keep_line(warning)}", file=sys.stderr)
    if dry_run:
        print_lines(describe_preview(preview(site)))
        return 0
    sent = send_alerts(site)
    print_lines(describe_sent(sent) if sent else [NOBODY])
    return 1 if any(each.left for each in sent) else 0
