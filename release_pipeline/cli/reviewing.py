"""Detached review: what is to be signed leaves as a bundle, is signed elsewhere, and comes back as a statement."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.cli.options import add_home
from release_pipeline.cli.stopping import AGAIN
from release_pipeline.cli.visible import print_lines
from release_pipeline.errors import ReleasePipelineError, WrongUsage

if TYPE_CHECKING:
    from release_pipeline.flow.trust.approvals import Decision


def add_commands(commands: Any) -> None:
    """Add these commands."""
    review = commands.add_parser(
        "review",
        help="a bundle to be signed elsewhere, and the statements that come back",
        description="People sign on machines of their own what they have seen there: docs/reviewing.md.",
    )
    actions = review.add_subparsers(title="actions", metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write what is to be signed, and what one needs to judge it, as one zip")
    export.add_argument("target", metavar="TARGET", help="a candidate, policies/NAME.yaml, or populations.yaml")
    export.add_argument("-o", "--output", type=Path, required=True, metavar="BUNDLE.zip")
    export.add_argument(
        "--remarks",
        type=Path,
        metavar="REMARKS.json",
        help="remarks to be signed with it: docs/formats.md has their form",
    )
    add_home(export)
    export.set_defaults(run=_export)

    take = actions.add_parser("import", help="note signed statements: they approve, return, reject or remark, as if signed here")
    take.add_argument(
        "statements",
        type=Path,
        nargs="+",
        metavar="STATEMENT.json",
        help="with its .sig, and remarks, beside it",
    )
    take.add_argument(
        "--remarks", type=Path, metavar="DOCUMENT.json", help="what a statement of remarks is of (default: what lies beside it)"
    )
    add_home(take)
    take.set_defaults(run=_import, stopped=AGAIN)

    show = actions.add_parser("show", help="the votes on a candidate as far as they may be told, and the remarks")
    show.add_argument("target", metavar="TARGET", help="a candidate, or policies/NAME.yaml")
    add_home(show)
    show.set_defaults(run=_show)

    alone = commands.add_parser(
        "sign",
        help="look at a bundle on a machine of your own, offline, and sign it; needs no site",
        description="Shows what is in a bundle and what changes, computes the hash, asks, and writes a signed statement.",
    )
    from release_pipeline.sign import add_arguments

    add_arguments(alone)
    alone.set_defaults(run=_sign)


def _export(options: argparse.Namespace) -> int:
    from release_pipeline.flow.reviewing.bundle import write_bundle
    from release_pipeline.flow.reviewing.remarks import read_document
    from release_pipeline.flow.site import find_site

    remarks = None if options.remarks is None else read_document(options.remarks)
    file, digest = write_bundle(find_site(options.home), options.target, options.output, remarks)
    print(f"{file}: confidential; give it to whoever signs, and tell them the hash by another way\nhash {digest}")
    return 0


def _import(options: argparse.Namespace) -> int:
    from release_pipeline.flow.reviewing.remarks import KIND, read_document
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.approvals import import_statement
    from release_pipeline.flow.trust.keys import read_statement
    from release_pipeline.sign import document_file, remarks_file

    site = find_site(options.home)
    beside = [remarks_file(file) for file in options.statements if remarks_file(file).is_file()]
    files = list(dict.fromkeys([*beside, *options.statements]))  # remarks first: the vote that they came with may end the review
    statements = [(file, read_statement(file)) for file in files]
    remarked = [file for file, signed in statements if signed["statement"]["kind"] == KIND]
    if options.remarks is not None and len(remarked) != 1:
        raise WrongUsage(
            f"--remarks is the document of one statement of remarks, and here are {len(remarked)}.",
            remedy="Without it the document is looked for beside each statement.",
        )
    for file, signed in statements:
        document = read_document(options.remarks or document_file(file)) if file in remarked else None
        _print_decision(import_statement(site, signed, document), signed["statement"]["kind"])
    return 0


_DEEDS = {"reject": "rejected", "return": "returned", "remarks": "remarked on"}


def _print_decision(decision: Decision, kind: str) -> None:
    deed = _DEEDS.get(kind, "approved")
    deed = deed if decision.new else f"was {deed} before"
    count = f", {decision.count} of {decision.needed}" if kind == "approve" else ""
    count = f", {decision.count} {'passage' if decision.count == 1 else 'passages'}" if kind == "remarks" else count
    print(f"{decision.subject}: {deed} by {decision.name}{count} (hash {decision.digest[:12]})")


def _show(options: argparse.Namespace) -> int:
    from release_pipeline.flow.reviewing.subjects import describe_review
    from release_pipeline.flow.site import find_site

    print_lines(describe_review(find_site(options.home), options.target))
    return 0


def _sign(options: argparse.Namespace) -> int:
    from release_pipeline import sign, verify

    try:
        sign.sign_bundle(options)
    except verify.WrongUsage as error:
        raise WrongUsage(f"{error.what}.") from None
    except verify.Fault as fault:
        raise ReleasePipelineError(f"{fault.what}.", where=str(options.bundle), remedy="Nothing was signed.") from None
    return 0
