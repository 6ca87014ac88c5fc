"""The command that brings published packages to targets, and what others say when they do so."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from release_pipeline.cli.options import add_home
from release_pipeline.cli.stopping import AGAIN

if TYPE_CHECKING:
    from release_pipeline.flow.publication.delivery import Outcome
    from release_pipeline.flow.site import Site
    from release_pipeline.flow.states import ReleaseId


def add_commands(commands: Any) -> None:
    """Add these commands."""
    deliver = commands.add_parser(
        "deliver",
        help="bring what is published to the targets of site.yaml, and tell them what was retracted or superseded",
        description="Does what `status` says is outstanding at targets; `publish`, `retract` and `supersede` do so by "
        "themselves. Stopped or failed, the same command finishes it; nothing is sent twice.",
    )
    deliver.add_argument("target_release", nargs="?", metavar="RELEASE", help="default: all that are published")
    deliver.add_argument("--target", metavar="NAME", help="one target of site.yaml alone")
    add_home(deliver)
    deliver.set_defaults(run=_deliver, stopped=AGAIN)


def deliver_release(site: Site, release: ReleaseId | None, *, only: str | None = None) -> bool:
    """Do what is outstanding, and print what was done; gives whether there was anything."""
    from release_pipeline.flow.publication.delivery import deliver

    done: list[bool] = []

    def tell(outcome: Outcome) -> None:
        done.append(True)
        print(outcome.words)
        if outcome.undone:
            print(f"  to be done by a person: {outcome.undone}")
        sys.stdout.flush()

    deliver(site, release, only=only, tell=tell, waiting=lambda: print("another command is delivering: waiting", file=sys.stderr))
    return bool(done)


def _deliver(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    release = None if options.target_release is None else find_release(site, options.target_release)
    if not deliver_release(site, release, only=options.target):
        print("nothing is outstanding")
    return 0
