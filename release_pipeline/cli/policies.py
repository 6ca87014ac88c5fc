"""Commands about a policy file alone: init, check, diff; and mask, the method alone on a file."""

from __future__ import annotations

import argparse
import getpass
import re
import sys
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import KINDS_OF_FILES, Progress, add_json, check_input, positive, print_json
from release_pipeline.cli.visible import print_lines
from release_pipeline.errors import PolicyInvalid, WrongUsage


def add_commands(commands: Any) -> None:
    """Add these commands."""
    init = commands.add_parser("init", help="a policy skeleton from a header, for a person to fill")
    init.add_argument("name", metavar="NAME", help="the name of the policy")
    init.add_argument("--from", dest="file", type=Path, required=True, metavar="FILE", help=f"a file: {KINDS_OF_FILES}")
    init.add_argument(
        "--columns",
        metavar="A,B,...",
        help="the columns that you want to work with; the others of FILE go to `drop` (default: all)",
    )
    init.add_argument("--header", action="store_true", help="you have looked: the first line of FILE names its columns")
    init.add_argument("-o", "--output", type=Path, help="where to write it (default: standard output)")
    init.set_defaults(run=_init)

    check = commands.add_parser(
        "check",
        help="all errors of a policy at once, then its plan; reads no record",
        description="All errors of a policy at once, with their places; when there are none, what it will do: method, claim and "
        "wider scopes, epsilon and noise per column. In a site it also says whether a run would be refused: because the source "
        "is missing or has other columns, or because the ledger has no room. Then the exit code is 1. Reads no record.",
    )
    check.add_argument("policy", type=Path, metavar="POLICY", help="the policy file")
    check.add_argument("--rows", type=positive, help="plan for this many records (default: the policy's min_rows)")
    form = check.add_mutually_exclusive_group()
    add_json(form, "the plan or the errors")
    form.add_argument(
        "--skeleton",
        action="store_true",
        help="only what it must still say of its data and columns before an officer can approve it, to be pasted and filled",
    )
    check.add_argument("--home", type=Path, help="the site whose ledger is shown (default: the one that the policy lies in)")
    check.add_argument(
        "--source",
        action=argparse.BooleanOptionalAction,
        help="read the source's header wherever it is, and refuse what cannot be read; with --no-source leave it alone (default: "
        "read it where it is a file that this account can read)",
    )
    check.set_defaults(run=_check)

    diff = commands.add_parser("diff", help="the change of a policy in plain words")
    diff.add_argument("old", type=Path, metavar="OLD", help="the policy as it was")
    diff.add_argument("new", type=Path, metavar="NEW", help="the policy as it is to be")
    diff.set_defaults(run=_diff)

    mask = commands.add_parser(
        "mask",
        help="the method of a policy on a file; not a release",
        description="Apply the method of a policy to a file, for scripts and benchmarks. There is no ledger here: what comes "
        "out is not a release, and --unaccounted says that you know.",
    )
    mask.add_argument("input", type=Path, metavar="INPUT", help=f"a file: {KINDS_OF_FILES}")
    mask.add_argument("--policy", type=Path, required=True, help="the policy file")
    mask.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="a .csv or .parquet file to write")
    mask.add_argument("--release", help="which release of the policy, where it has several")
    mask.add_argument("--unaccounted", action="store_true", help="required: no ledger adds up what this exposes")
    mask.add_argument("--evidence", type=Path, metavar="FILE", help="internal figures as .json; confidential")
    mask.add_argument("--overwrite", action="store_true", help="replace OUT and FILE if they exist")
    mask.add_argument("--by", default="", metavar="NAME", help="who looks, where INPUT is a site's source (default: the account)")
    mask.add_argument("--quiet", action="store_true", help="no progress")
    mask.set_defaults(run=_mask)


def _init(options: argparse.Namespace) -> int:
    from release_pipeline.flow.init import draft_policy

    if re.fullmatch(r"[a-z][a-z0-9-]{0,62}", options.name) is None:
        raise WrongUsage(
            "this is not a name for a policy.", where=options.name, remedy="Use lower-case letters, digits, hyphens."
        )
    text = draft_policy(
        options.name,
        check_input(options.file),
        header=options.header,
        columns=None if options.columns is None else [name.strip() for name in options.columns.split(",") if name.strip()],
        place=options.output,
    )
    if options.output is None:
        print(text, end="")
        return 0
    from release_pipeline.flow.files import PUBLIC, check_output, write_text

    check_output(options.output, endings=(".yaml",), overwrite=False, hint=False)
    write_text(options.output, text, mode=PUBLIC)  # the operator's account reads what the steward's writes
    print(f"{options.output}: fill in what is empty, then run 'release-pipeline check {options.output}'")
    return 0


def _check(options: argparse.Namespace) -> int:
    from release_pipeline.flow.status.check import check_policy, describe_check, describe_obstacles, view_check, view_refusal
    from release_pipeline.policy.documents import to_json

    try:
        check = check_policy(
            options.policy,
            rows=options.rows,
            home=options.home,
            header=options.source is not False,
            everywhere=options.source is True,
        )
    except PolicyInvalid as error:
        if not options.json:
            raise
        print_json(to_json(view_refusal(error)))
        return error.exit_code
    if options.json:
        view = view_check(check)
        print_json(to_json(view))
        return 1 if view.refusals else 0
    if options.skeleton:
        from release_pipeline.policy.skeleton import draft_unsaid

        print_lines(list(draft_unsaid(check.plan.policy)) or ["nothing is missing: it says what its data and columns are"])
        return 0
    refusals = check.refusals
    print_lines([*describe_check(check), *describe_obstacles(check.same_people, refusals)])
    return 1 if refusals else 0


def _diff(options: argparse.Namespace) -> int:
    from release_pipeline.policy import load_policy
    from release_pipeline.policy.diff import describe_diff

    lines = list(describe_diff(load_policy(options.old), load_policy(options.new)))
    print_lines(lines or ["no change: both have the same hash"])
    return 0


def _mask(options: argparse.Namespace) -> int:
    if not options.unaccounted:
        raise WrongUsage(
            "mask keeps no account of what people were exposed to.",
            remedy="Add --unaccounted if this is not a release.",
        )
    from release_pipeline.flow.mask import check_masking, mask_file, note_masking
    from release_pipeline.policy import load_policy

    policy, by = load_policy(options.policy), options.by or getpass.getuser()
    check_masking(check_input(options.input), options.output, options.evidence, overwrite=options.overwrite)
    note_masking(policy, options.policy, options.input, by=by, evidence=options.evidence is not None)
    masked = mask_file(
        policy,
        options.input,
        options.output,
        release=options.release,
        evidence=options.evidence,
        overwrite=options.overwrite,
        progress=(lambda _: None) if options.quiet else Progress(),
    )
    for warning in masked.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{options.output}: {masked.records:,} records, {masked.claim}")
    print(f"not a release: no {', '.join(masked.not_applied)}")
    return 0
