"""Commands about a policy file: init, check, diff, mask."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import Progress, print_lines
from release_pipeline.apps.cli.options import check_input, print_document, read_name
from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.pipeline.check import check_policy, describe_check, describe_obstacles, view_check, view_refusal
from release_pipeline.policy import load_policy
from release_pipeline.policy.plans.diff import describe_diff
from release_pipeline.policy.plans.skeleton import draft_unsaid
from release_pipeline.store.files import PUBLIC, check_output, write_text
from release_pipeline.verifier.documents import NAME


@cli.command("init people --from people.csv -o policies/people.yaml")
@click.argument("name", metavar="POLICY", help="The name of the policy.")
@click.option(
    "--from", "file", type=cli.PATH, required=True, metavar="FILE", help=f"A file: {cli.FILES}; or a folder with Parquet files."
)
@click.option("--columns", metavar="A,B,...", help="The columns that you need; the others go to `drop` (default: all).")
@cli.flag("--header", "Confirm that the first line of FILE names its columns: you have looked.")
@cli.output("FILE.yaml", "Where to write it (default: standard output).", required=False)
def init(name: str, file: Path, columns: str | None, header: bool, output: Path | None) -> None:
    """A person fills in what the header does not say."""
    from release_pipeline.explore.draft import draft_policy  # it reads files, which the other commands here do not

    if NAME.fullmatch(name) is None:
        raise WrongUsage("this is not a name for a policy.", where=name, remedy="Use lower-case letters, digits, hyphens.")
    text = draft_policy(
        name,
        check_input(file, or_folder=True),
        header=header,
        columns=None if columns is None else [part.strip() for part in columns.split(",") if part.strip()],
        policy_file=output,
    )
    if output is None:
        print(text, end="")
        return
    check_output(output, endings=(".yaml",), overwrite=False, hint=False)
    write_text(output, text, mode=PUBLIC)  # so that the operator's account can read the files of the steward's
    print(f"{output}: fill in what is empty, then run 'release-pipeline check {output}'")


@cli.command("check policies/people.yaml", exclusive=("json", "skeleton"))
@click.argument("policy", type=cli.PATH, metavar="POLICY.yaml", help="The policy file.")
@click.option("--rows", type=cli.ROWS, help="Plan for this many records (default: the policy's min_rows).")
@cli.as_json("the plan or the errors")
@cli.flag("--skeleton", "Print only what the policy must still say before it can be approved, to paste.")
@cli.policy_home
@click.option("--source/--no-source", default=None, help="Read the source's header (default: if it is a readable file).")
def check(policy: Path, rows: int | None, json: bool, skeleton: bool, home: Path | None, source: bool | None) -> int:
    """The plan shows the method, the guarantee and its scope, and epsilon and noise per column. In
    a site the command also predicts whether a run would be refused: because the source is missing
    or has other columns, or because the budget is spent. The exit code is then 1. It reads no
    record."""
    try:
        checked = check_policy(policy, rows=rows, home=home, header=source is not False, everywhere=source is True)
    except PolicyInvalid as error:
        if not json:
            raise
        print_document(view_refusal(error))
        return error.exit_code
    if json:
        view = view_check(checked)
        print_document(view)
        return 1 if view.refusals else 0
    if skeleton:
        print_lines(list(draft_unsaid(checked.plan.policy)) or ["nothing is missing: it says what its data and columns are"])
        return 0
    refusals = checked.refusals
    print_lines([*describe_check(checked), *describe_obstacles(checked.same_people, refusals)])
    return 1 if refusals else 0


@cli.command("diff old.yaml policies/people.yaml")
@click.argument("old", type=cli.PATH, metavar="OLD.yaml", help="The policy as it was.")
@click.argument("new", type=cli.PATH, metavar="NEW.yaml", help="The policy as it is to be.")
def diff(old: Path, new: Path) -> None:
    """It names each change and what it means for the guarantee."""
    print_lines(list(describe_diff(load_policy(old), load_policy(new))) or ["no change: both have the same hash"])


@cli.command("mask people.csv --policy people.yaml --unaccounted -o out.csv")
@click.argument("input", type=cli.PATH, metavar="INPUT", help=f"A file: {cli.FILES}.")
@click.option("--policy", type=cli.PATH, required=True, help="The policy file.")
@cli.output("OUT", "A .csv or .parquet file to write.")
@click.option("--release", help="Which release of the policy, where it has several.")
@cli.flag("--unaccounted", "Required: confirm that no ledger records this exposure.")
@cli.path("--evidence", "FILE", "Write internal figures as .json; confidential.")
@cli.overwrite
@cli.by
@cli.quiet
def mask(
    input: Path, policy: Path, output: Path, evidence: Path | None, unaccounted: bool, by: str | None, quiet: bool, **more: Any
) -> None:
    """This is for scripts and benchmarks. The output is not a release, because no ledger records
    what people are exposed to."""
    if not unaccounted:
        what = "mask keeps no account of what people were exposed to."
        raise WrongUsage(what, remedy="Add --unaccounted if this is not a release.")
    from release_pipeline.pipeline.mask_file import (
        check_masking,
        mask_file,
        note_masking,  # heavy; `check` starts without it
    )

    loaded, name = load_policy(policy), read_name(by)
    check_masking(check_input(input), output, evidence, overwrite=more["overwrite"])
    note_masking(loaded, policy, input, by=name, evidence=evidence is not None)
    with Progress(quiet=quiet) as progress:
        masked = mask_file(loaded, input, output, evidence=evidence, progress=progress, **more)
    for warning in masked.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{output}: {masked.records:,} records, {masked.claim}")
    print(f"not a release: no {', '.join(masked.not_applied)}")
