"""The command for choosing before anything is spent: explore."""

from __future__ import annotations

import argparse
import getpass
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import KINDS_OF_FILES, Progress, add_json, check_input, positive, print_json
from release_pipeline.cli.visible import print_lines
from release_pipeline.errors import Blocked, WrongUsage


def add_commands(commands: Any) -> None:
    """Add this command."""
    explore = commands.add_parser(
        "explore",
        help="what methods, k, epsilons and swapping would leave of the data, before anything is spent",
        description="Try other methods, epsilons, cluster sizes and swapping for the columns of a policy, by simulated releases "
        "that nobody gets: errors with their range, means by group, correlations, who is linked, and what the ledger would have "
        "left. On a public file, such as a published one (--like FILE --public WHERE), or on a table made up of what the policy "
        "believes (--shape). "
        "--write --choose N reads nothing: it puts setting N of the same list into the policy file.",
    )
    explore.add_argument("policy", type=Path, metavar="POLICY", help="the policy file")
    on = explore.add_mutually_exclusive_group()
    on.add_argument("--like", type=Path, metavar="FILE", help=f"a public file that is like the source: {KINDS_OF_FILES}")
    on.add_argument("--shape", action="store_true", help="a table that is made up of the policy's `shape`")
    on.add_argument("--choose", type=positive, metavar="N", help="with --write: setting N of the list that these options make")
    explore.add_argument("--public", default="", metavar="WHERE", help="of --like: where anybody finds this file")
    explore.add_argument(
        "--release", help="which release's records, where the file or the source has several (default: the first)"
    )
    explore.add_argument(
        "--rows", type=positive, metavar="N", help="how many records a release will have (default: as there are)"
    )
    explore.add_argument(
        "--methods", default="", metavar="A,B,...", help="methods to try (default: what is usual for the policy)"
    )
    explore.add_argument("--epsilons", default="", metavar="X,Y,...", help="of a release (default: 1/4 to 4 times the policy's)")
    explore.add_argument("--k", default="", metavar="K,L,...", help="records per cluster (default: the policy's, 3, 10, 30, 100)")
    explore.add_argument(
        "--swap", default="", metavar="K,L,...", help="people per block of swapped values; 0 for none (default: as the policy)"
    )
    explore.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="FIGURE:COLUMN=MOST",
        help="which setting surely gives this with the least epsilon that was tried: error:income=10%%, mean:..., "
        "group-mean:..., correlation=0.02 (several: all of them)",
    )
    explore.add_argument("-o", "--output", type=Path, metavar="PAGE.html", help="a page")
    explore.add_argument("--overwrite", action="store_true", help="replace PAGE.html if it exists")
    explore.add_argument(
        "--write", action="store_true", help="put the setting that meets the targets, or --choose N, into the policy file"
    )
    explore.add_argument("--refused", action="store_true", help="try the settings, too, that the ledger would refuse")
    explore.add_argument("--all", action="store_true", help="list every setting, not the best alone")
    explore.add_argument("--home", type=Path, help="the site whose ledger is asked (default: the one that the policy lies in)")
    explore.add_argument("--by", default="", metavar="NAME", help="who says that FILE is public (default: the account)")
    explore.add_argument("--quiet", action="store_true", help="no progress")
    add_json(explore, "all figures")
    explore.set_defaults(run=_explore)


def _explore(options: argparse.Namespace) -> int:
    from release_pipeline.flow.exploring.data import Asked
    from release_pipeline.flow.exploring.explore import choose_met, describe_explored, explore, write_page
    from release_pipeline.policy.documents import to_json
    from release_pipeline.policy.load import read_policy
    from release_pipeline.policy.settings import Axes

    axes = Axes(
        methods=_split(options.methods),
        epsilons=[_read_number(text, "--epsilons") for text in _split(options.epsilons)],
        sizes=[_read_whole(text, "--k") for text in _split(options.k)],
        swaps=[_read_whole(text, "--swap", least=0) for text in _split(options.swap)],
    )
    _check(options)
    if options.choose is not None:
        _write(options, axes, options.choose)
        return 0
    asked = Asked(
        like=options.like,
        public=options.public.strip(),
        shape=options.shape,
        release=options.release,
        rows=options.rows,
        axes=axes,
        targets=options.target,
        home=options.home,
        by=options.by or getpass.getuser(),
        refused=options.refused,
        output=options.output,
        overwrite=options.overwrite,
    )
    before = read_policy(options.policy)
    explored = explore(options.policy, asked, progress=(lambda _: None) if options.quiet else Progress())
    if options.json:
        print_json(to_json(explored.document))
    else:
        print_lines(describe_explored(explored, every=options.all))
    if options.output is not None:
        print(f"{write_page(explored, asked)} is written", file=sys.stderr if options.json else sys.stdout)
    if options.write:
        _write(options, axes, choose_met(explored), before)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    has_data = options.like is not None or options.shape
    if options.choose is not None:
        given = [name for name in ("output", "target", "json", "public", "release", "rows", "all") if getattr(options, name)]
        if not options.write or given:
            raise WrongUsage(
                "setting N of a list is written without reading anything.",
                where="--choose",
                remedy="Give it with --write, and with the options that make the list: --methods, --epsilons, --k, --swap.",
            )
    elif not has_data:
        raise WrongUsage(
            "it is not said what settings are tried on.",
            where="explore",
            remedy="Use --like FILE or --shape; or --write --choose N for a setting that was tried.",
        )
    elif options.write and not options.target:
        raise WrongUsage(
            "it does not follow which setting is meant.",
            where="--write",
            remedy="Name its number with --choose, as the list of settings has it, or what it must give with --target.",
        )
    if options.like is not None:
        check_input(options.like)
    if options.public and options.like is None:
        raise WrongUsage("only a file can be public.", where="--public", remedy="Name it with --like.")
    if options.like is not None and not options.public.strip():
        raise WrongUsage(
            "settings are tried on public files only, and it is not said where anybody finds this one.",
            where=str(options.like),
            remedy="Say it with --public WHERE, or use --shape.",
        )


def _write(options: argparse.Namespace, axes: Any, number: int, before: str | None = None) -> None:
    """Put a setting into the policy file, and tell the difference. `before`: the file as it was
    when settings were tried."""
    from release_pipeline.flow.exploring.explore import write_choice
    from release_pipeline.flow.exploring.simulating import Written
    from release_pipeline.flow.files import write_text
    from release_pipeline.policy import load_policy
    from release_pipeline.policy.diff import describe_diff

    policy, written = load_policy(options.policy), Written.of(options.policy)
    setting, text = write_choice(written, policy, axes, number)
    if before is not None and written.text != before:
        raise Blocked(
            "the policy was changed while settings were tried. Nothing was written.",
            where=str(options.policy),
            remedy=f"Explore again, or write it yourself: {setting.block}",
        )
    write_text(options.policy, text, mode=None)
    out = sys.stderr if options.json else sys.stdout
    print(f"{options.policy}: setting {number} ({setting.words}) is written. The difference:", file=out)
    for line in describe_diff(policy, load_policy(options.policy)):
        print(f"  {line}", file=out)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _read_number(text: str, where: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0:
        raise WrongUsage(
            f"'{text}' is no number above 0.", where=where, remedy="Write numbers with commas between, like 0.5,1,2."
        )
    return value


def _read_whole(text: str, where: str, *, least: int = 1) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= 10**9:
        what = "above 0" if least else "from 0 on"
        raise WrongUsage(
            f"'{text}' is no whole number {what}.", where=where, remedy="Write numbers with commas between, like 3,10."
        )
    return int(text)
