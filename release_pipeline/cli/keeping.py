"""What keeps a site from being lost unseen: backup, restore, head export."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import add_home, add_key, read_key_of
from release_pipeline.errors import WrongUsage


def add_commands(commands: Any) -> None:
    """Add these commands."""
    backup = commands.add_parser(
        "backup",
        help="the whole site in one file, as it is at one moment, while runs go on",
        description="Confidential: it has the vault and its key. Private keys of people, sources and dagster/ are not in it.",
    )
    backup.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.tar")
    backup.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    add_home(backup)
    backup.set_defaults(run=_backup)
    _add_restore(commands)
    head = commands.add_parser("head", help="the last event of the registry, to be kept by somebody else")
    export = head.add_subparsers(title="commands", metavar="COMMAND", dest="what", required=True).add_parser(
        "export",
        help="its number, hash and moment, for a mail or another machine",
        description="Whoever keeps it finds out with `verify SITE --since FILE` whether the registry still has that event.",
    )
    export.add_argument("-o", "--output", type=Path, metavar="FILE.json", help="default: it is printed")
    export.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    add_home(export)
    export.set_defaults(run=_export)


def _add_restore(commands: Any) -> None:
    restore = commands.add_parser(
        "restore",
        help="put a backup back, and enter what was charged after it",
        description="First BACKUP --into HOME, while nothing runs: a site that is there is moved aside. Then the officer, with "
        "--accept: until then nothing is charged or published. docs/restoring.md goes through it.",
    )
    restore.add_argument("backup", type=Path, nargs="?", metavar="BACKUP", help="what `backup` wrote")
    restore.add_argument("--into", type=Path, metavar="HOME", help="a new folder, or the site that is to be replaced")
    restore.add_argument(
        "--survived", type=Path, action="append", default=[], metavar="FOLDER", help="where else a site or packages are left"
    )
    restore.add_argument("--sha256", metavar="HASH", help="what `backup` printed: another file is refused")
    restore.add_argument("--since", type=Path, metavar="FILE", help="what `head export` wrote last")
    restore.add_argument("--accept", action="store_true", help="the officer signs what was charged after the backup")
    named = restore.add_mutually_exclusive_group()
    named.add_argument("--charged", type=Path, metavar="FILE", help="what else was charged: POLICY/RELEASE/rN: {records: N}")
    named.add_argument("--nothing-else", action="store_true", help="nothing was charged but what was found")
    add_key(restore, "the officer's key", required=False)
    add_home(restore)
    restore.set_defaults(run=_restore)


def _backup(options: argparse.Namespace) -> int:
    from release_pipeline.flow.backup import write_backup
    from release_pipeline.flow.site import find_site

    made = write_backup(find_site(options.home), options.output, overwrite=options.overwrite)
    print(f"{options.output}: {len(made.files)} files as of event {made.head.number}")
    print(f"SHA-256 {made.sha256}: kept elsewhere, it tells whether this file was changed (restore --sha256)")
    print("Confidential, as the vault is, whose key is in it: whoever has this file has everything.")
    return 0


def _restore(options: argparse.Namespace) -> int:
    given = (options.backup is not None, options.into is not None, not options.accept)
    if len(set(given)) > 1:
        raise WrongUsage("a backup is put back with BACKUP --into HOME, and then accepted with --accept.")
    return _accept(options) if options.accept else _put_back(options)


def _put_back(options: argparse.Namespace) -> int:
    from release_pipeline.flow.restoring import restore
    from release_pipeline.flow.witness import load_head

    if options.key is not None or options.charged is not None or options.nothing_else:
        raise WrongUsage("--key, --charged and --nothing-else go with --accept.")
    witnessed = None if options.since is None else load_head(options.since)
    done = restore(options.backup, options.into, survived=options.survived, witnessed=witnessed, sha256=options.sha256)
    print(f"{options.into}: as it was at {done.backup.made}, up to event {done.backup.head.number}")
    if done.aside is not None:
        print(f"{done.aside}: what was there before; confidential, and yours to delete")
    for entry in done.lost:
        print(f"{entry['release']}: lost; it is never made under this name again")
    for words in done.again:
        print(f"done after the backup, and to be done again: {words}")
    if not done.all_known:
        print("What was charged after the backup is not known from the registry: the officer must find out, and name it.")
        print("Looks at the data after the backup may be lost with it: the cards of later releases say so.")
    for entry in done.doubted:
        print(f"{entry['release']}: it may have been charged, and what tells of it is not believed: {entry['why']}")
        print("  The officer decides whether it was charged, in the file that --charged names.")
    print("Nothing is charged or published until the officer has run `restore --accept`.")
    return 0


def _accept(options: argparse.Namespace) -> int:
    from release_pipeline.flow.entering import accept, read_named
    from release_pipeline.flow.site import find_site

    if options.sha256 is not None or options.since is not None or options.survived:
        raise WrongUsage("--sha256, --since and --survived go with BACKUP --into HOME.")
    if options.key is None or (options.charged is None and not options.nothing_else):
        raise WrongUsage("the officer names --key, and --charged FILE or --nothing-else.")
    named = {} if options.charged is None else read_named(options.charged)
    entered = accept(find_site(options.home), key=read_key_of(options), named=named, show=print)
    for words in entered.overdrawn:
        print(f"{words}. Nothing more is charged to it until the officer raises the cap")
    print(f"accepted; {len(entered.charges)} charges entered")
    return 0


def _export(options: argparse.Namespace) -> int:
    from release_pipeline.flow.files import PUBLIC, check_output, write_text
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.witness import read_head

    if options.output is not None:
        check_output(options.output, endings=(".json",), overwrite=options.overwrite)
    head = read_head(find_site(options.home))
    if options.output is None:
        print(head.text, end="")
    else:
        write_text(options.output, head.text, mode=PUBLIC)
        print(f"{options.output}: event {head.number}")
    return 0
