"""The agent: signs on a person's own machine, in their browser, what a desk asks them to sign."""

from __future__ import annotations

import argparse
from typing import Any


def add_commands(commands: Any) -> None:
    """Add this command."""
    agent = commands.add_parser(
        "agent",
        help="sign in your browser, on a machine of your own, what a desk asks you to sign; needs no site",
        description="Waits on this machine for tickets of a desk, shows what is to be signed by its own computation, and signs "
        "when you say so. Keys never leave it. docs/reviewing.md, With the agent.",
    )
    from release_pipeline.agent.options import STOPPED, add_arguments

    add_arguments(agent)
    agent.set_defaults(run=_run, stopped=STOPPED)


def _run(options: argparse.Namespace) -> int:
    from release_pipeline.agent.options import run_agent

    return run_agent(options)
