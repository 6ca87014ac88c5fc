"""Detached review: what is to be signed leaves as a bundle, is signed elsewhere, and comes back as a statement."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import add_home
from release_pipeline.cli.stopping import AGAIN
from release_pipeline.errors import ReleasePipelineError, WrongUsage


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
    add_home(export)
    export.set_defaults(run=_export)

    take = actions.add_parser("import", help="note signed statements: they approve or reject, as if signed here")
    take.add_argument("statements", type=Path, nargs="+", metavar="STATEMENT.json", help="with its .sig beside it")
    add_home(take)
    take.set_defaults(run=_import, stopped=AGAIN)

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
    from release_pipeline.flow.site import find_site

    file, digest = write_bundle(find_site(options.home), options.target, options.output)
    print(f"{file}: confidential; give it to whoever signs, and tell them the hash by another way\nhash {digest}")
    return 0


def _import(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.approvals import import_statement
    from release_pipeline.flow.trust.keys import read_statement

    site = find_site(options.home)
    for signed in [read_statement(file) for file in options.statements]:
        decision, kind = import_statement(site, signed), signed["statement"]["kind"]
        deed = "rejected" if kind == "reject" else "approved" if decision.new else "was approved before"
        count = f", {decision.count} of {decision.needed}" if kind == "approve" else ""
        print(f"{decision.subject}: {deed} by {decision.name}{count} (hash {decision.digest[:12]})")
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
