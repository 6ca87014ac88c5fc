"""Telling people what they wait for, for sites without a daemon: alert."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from release_pipeline.cli.options import PROGRAM, add_home
from release_pipeline.cli.visible import keep_line, print_lines


def add_commands(commands: Any) -> None:
    """Add these commands."""
    alert = commands.add_parser(
        "alert",
        help="tell those whom site.yaml names what happened since the last time, and send lineage",
        description="What the daemon does twice a minute, for cron. Each thing is told once; who takes nothing gets it next "
        "time. Exit code 1 if something could not be sent.",
    )
    alert.add_argument("--dry-run", action="store_true", help="print what would be told; send nothing, and remember nothing")
    add_home(alert)
    alert.set_defaults(run=_alert)


def _alert(options: argparse.Namespace) -> int:
    from release_pipeline.flow.alerts.look import describe_preview, preview
    from release_pipeline.flow.alerts.report import find_warnings
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    for words in find_warnings(site):
        print(f"{PROGRAM}: warning: {keep_line(words)}", file=sys.stderr)
    if options.dry_run:
        print_lines(describe_preview(preview(site)))
        return 0
    from release_pipeline.flow.alerts.sender import NOBODY, describe_sent, tell

    done = tell(site)
    print_lines(describe_sent(done) if done else [NOBODY])
    return 1 if any(each.left for each in done) else 0
