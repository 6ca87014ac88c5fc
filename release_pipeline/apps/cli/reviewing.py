"""Commands of reviewers: bundles and statements, signing elsewhere, and votes and remarks that are signed here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import AGAIN, describe_approval, describe_release, print_lines
from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.ledger.exposure import warn_by_name
from release_pipeline.pipeline.opening import find_release
from release_pipeline.review.bundle import describe_review, find_subject, write_bundle
from release_pipeline.signer.command import document_file, remarks_file, sign_bundle
from release_pipeline.store.site import Site
from release_pipeline.trust import approvals
from release_pipeline.trust.approvals import Decision
from release_pipeline.trust.keys import read_key, read_statement
from release_pipeline.trust.remarks import KIND, read_document
from release_pipeline.verifier.documents import Fault
from release_pipeline.verifier.documents import WrongUsage as VerifiedWrongUsage

_NOT_SEEN = "note: signed as it was at this moment on this machine; `review export` and `sign` show what is signed."
_DEEDS = {"reject": "rejected", "return": "returned", "remarks": "remarked on"}


@cli.actions("review export people/1 -o bundle.zip")
def review() -> None:
    """People sign on their own machines what they have seen there: docs/reviewing.md."""


@review.command("export", example="review export people/1 -o bundle.zip")
@click.argument("target", metavar="TARGET", help="A candidate, policies/POLICY.yaml, or populations.yaml.")
@cli.output("BUNDLE.zip", "The file to write.")
@cli.path("--remarks", "REMARKS.json", "Remarks to be signed with it, as docs/formats.md describes.")
@cli.home
def export(target: str, output: Path, remarks: Path | None, site: Site) -> None:
    """Write a zip of what is to be signed, to judge it elsewhere."""
    document = None if remarks is None else read_document(remarks)
    file, digest = write_bundle(site, target, output, document)
    print(f"{file}: confidential; give it to whoever signs, and tell them the hash by another way\nhash {digest}")


@review.command("import", example="review import approve.json", stopped=AGAIN)
@click.argument("statements", type=cli.PATH, nargs=-1, required=True, metavar="STATEMENT.json...", help="Each with its .sig.")
@cli.path("--remarks", "DOCUMENT.json", "The remarks of a statement (default: the file next to it).")
@cli.home
def import_(statements: tuple[Path, ...], remarks: Path | None, site: Site) -> None:
    """Record signed statements, as if they were signed here."""
    remarked_with = [remarks_file(file) for file in statements if remarks_file(file).is_file()]
    files = list(dict.fromkeys([*remarked_with, *statements]))  # remarks first: the vote that they came with may end the review
    signed = [(file, read_statement(file)) for file in files]
    remarked = [file for file, content in signed if content["statement"]["kind"] == KIND]
    if remarks is not None and len(remarked) != 1:
        what = f"--remarks is the document of one statement of remarks, and here are {len(remarked)}."
        raise WrongUsage(what, remedy="Without it the document is looked for next to each statement.")
    for file, content in signed:
        document = read_document(remarks or document_file(file)) if file in remarked else None
        _print_decision(approvals.import_statement(site, content, document), content["statement"]["kind"])


@review.command("show", example="review show people/1")
@click.argument("target", metavar="TARGET", help="A candidate, or policies/POLICY.yaml.")
@cli.home
def show(target: str, site: Site) -> None:
    """Show the remarks, and the votes once all are in."""
    print_lines(describe_review(site, target))


@cli.command("sign bundle.zip --key reviewer", exclusive=("reject", "return", "remarks_only"))
@click.argument("bundle", type=cli.PATH, metavar="BUNDLE.zip", help="What `review export` wrote.")
@cli.key("Your key")
@cli.flag("--reject", "Reject the candidate for good, instead of approving it.")
@cli.flag("--return", "Return the candidate with reasons, instead of approving it.")
@cli.flag("--remarks-only", "Sign only the remarks in the bundle.")
@click.option("--why", default="", help="A remark, or the reason of a return or rejection, signed with it.")
@cli.output("STATEMENT.json", "Where to write the statement (default: here).", required=False)
@cli.flag("--yes", "Do not ask: you have seen what is in the bundle.")
def sign(**given: Any) -> None:
    """It shows what is in the bundle and what changes, computes the hash, asks, and writes a signed
    statement. It needs no site and no network."""
    options = argparse.Namespace(give_back=given.pop("return"), **given)
    try:
        sign_bundle(options)
    except VerifiedWrongUsage as error:
        raise WrongUsage(f"{error.what}.") from None
    except Fault as fault:
        raise ReleasePipelineError(f"{fault.what}.", where=str(options.bundle), remedy="Nothing was signed.") from None


@cli.command("approve people/1 --key reviewer", stopped=describe_approval)
@click.argument("target", metavar="TARGET", help="A candidate, policies/POLICY.yaml, or populations.yaml.")
@click.option("--why", default="", help="A remark, signed with it.")
@cli.key("Your key")
@cli.home
def approve(target: str, why: str, key: Path, site: Site) -> None:
    """A reviewer approves a candidate; the privacy officer approves a policy or populations.yaml.

    The command signs the file as it is now on this machine. It does not prove that you saw this
    content, if others can change the account or its files. `review export`, and `sign` on your own
    machine, do."""
    file = Path(target)
    if file.suffix == ".yaml":
        file = approvals.find_approvable(site, file)
        if file == site.populations_file:
            decision = approvals.approve_populations(site, key=read_key(key))
        else:
            _warn_of_same_people(site, file.stem)
            decision = approvals.approve_policy(site, file.stem, key=read_key(key))
        print(f"{file}: approved by {decision.name} (hash {decision.digest[:12]})")
    else:
        release = find_release(site, target)
        _warn_of_same_people(site, release.policy)
        _print_decision(approvals.approve_candidate(site, release, key=read_key(key), why=why), "approve")
    print(_NOT_SEEN, file=sys.stderr)


@cli.command('reject people/1 --why "gates misread" --key reviewer', stopped=describe_release)
@cli.target
@cli.why
@cli.key("Your key")
@cli.home
def reject(target: str, why: str, key: Path, site: Site) -> None:
    """To go on afterwards, open a revision with `run --revise`."""
    release = find_release(site, target)
    decision = approvals.reject_candidate(site, release, key=read_key(key), why=why)
    print(f"{decision.subject}: rejected by {decision.name}")


@cli.command('return people/1 --why "explain column income" --key reviewer', name="return", stopped=describe_release)
@cli.target
@click.option("--why", required=True, metavar="REASON", help="The reasons in one line, signed; `remark` has room for more.")
@cli.key("Your key")
@cli.home
def return_(target: str, why: str, key: Path, site: Site) -> None:
    """As long as your last vote returns it, the candidate is neither approved nor published. You may
    approve it later. Your vote stays secret until all votes are in."""
    release = find_release(site, target)
    decision = approvals.return_candidate(site, release, key=read_key(key), why=why)
    print(f"{decision.subject}: {'returned' if decision.new else 'was returned before'} by {decision.name}")
    print(_NOT_SEEN, file=sys.stderr)


@cli.command('remark people/1 --at columns.income --text "Why 3?" --key reviewer', stopped=AGAIN)
@click.argument("target", metavar="TARGET", help="A candidate, or policies/POLICY.yaml.")
@click.option("--at", default="", metavar="PASSAGE", help="A section of the page, or a path like columns.income (default: all).")
@click.option("--text", required=True, help="Your remark, signed; line breaks are kept.")
@cli.key("Your key")
@cli.home
def remark(target: str, at: str, text: str, key: Path, site: Site) -> None:
    """Reviewers, the officer and the policy's steward may remark. A reviewer's remarks on a candidate
    stay secret until all votes are in; `review show` then shows them."""
    remarks = find_subject(site, target).remark_on([(at, text)])
    decision = approvals.remark(site, remarks, key=read_key(key))
    print(f"{decision.subject}: {'remarked on' if decision.new else 'was remarked on before'} by {decision.name}")


def _print_decision(decision: Decision, kind: str) -> None:
    deed = _DEEDS.get(kind, "approved")
    deed = deed if decision.new else f"was {deed} before"
    count = f", {decision.count} of {decision.needed}" if kind == "approve" else ""
    count = f", {decision.count} {'passage' if decision.count == 1 else 'passages'}" if kind == "remarks" else count
    print(f"{decision.subject}: {deed} by {decision.name}{count} (hash {decision.digest[:12]})")


def _warn_of_same_people(site: Site, name: str) -> None:
    """Warn of other populations with the same people, before a signature; a policy that cannot be read is refused later."""
    for warning in warn_by_name(site, name):
        print(f"warning: {warning}", file=sys.stderr)
