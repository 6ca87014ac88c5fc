"""`release-pipeline`: the command line. Exit code 0: fine; 1: refused or failed; 2: wrong usage."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from release_pipeline import __version__
from release_pipeline.cli import (
    auditor,
    delivering,
    demo,
    desk,
    exploring,
    keeping,
    people,
    policies,
    releases,
    reviewing,
    root,
    series,
    telling,
)
from release_pipeline.cli.failure import ErrorView, Parser, fail, view_error
from release_pipeline.cli.options import PROGRAM
from release_pipeline.cli.stopping import list_outputs, say_stopped
from release_pipeline.cli.visible import keep_line, visible_output
from release_pipeline.errors import ReleasePipelineError, own_frame, read_out_of_space

for _library in ("OPENBLAS", "OMP"):  # before NumPy and scikit-learn load: threads that wait by spinning cost more than they gain
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
COLLECT_AFTER = 10_000  # objects: a command is short, and at Python's 700 spends a tenth of it on looking for garbage


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every outcome is an exit code and words, never a traceback, and words play no tricks on a terminal."""
    gc.set_threshold(COLLECT_AFTER)
    with visible_output():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    heard, options, before = _listen(), argparse.Namespace(), dict[Path, object]()
    try:
        parser = _parser()
        parser.parse_args(arguments, options)
        if not hasattr(options, "run"):
            parser.print_help()
            return 2
        before = list_outputs(options)
        return options.run(options)
    except BaseException as error:
        if heard or isinstance(error, KeyboardInterrupt):  # a library may have made something else of it
            return say_stopped(options, before)
        return _report(error, options)


def _report(error: BaseException, options: argparse.Namespace) -> int:
    """Print what went wrong; gives the exit code."""
    try:
        raise error
    except ReleasePipelineError as error:
        _print_error(error)
        return fail(options, error.exit_code, view_error(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if (full := read_out_of_space(error)) is not None:
            _print_error(full)
            return fail(options, full.exit_code, view_error(full))
        if isinstance(error, OSError):
            return _say(options, 1, "system", f"the operating system refused: {error.strerror or type(error).__name__}.")
        words = f"internal error: {type(error).__name__} at {own_frame(error)}."
        return _say(options, 1, "internal", words, remedy="Please report this line.")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description="Governed releases of data about people: a policy file in, a protected table out.",
        epilog="Exit codes: 0 fine, 1 refused or failed, 2 wrong usage, 130 stopped. With --json (status, ledger, check, "
        "explore, run, verify, audit-claims) a command prints one JSON object, in case of an error too, with the same exit code. "
        "Start with 'make demo', then read README.md.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    signing = (people, delivering, reviewing, root, auditor)
    for part in (demo, policies, exploring, releases, series, *signing, desk, keeping, telling):
        part.add_commands(commands)
    return parser


def _print_error(error: ReleasePipelineError) -> None:
    print(f"{PROGRAM}: {keep_line(str(error))}", file=sys.stderr)
    for detail in error.details:
        print(f"  {keep_line(detail)}", file=sys.stderr)


def _say(options: argparse.Namespace, exit_code: int, code: str, what: str, *, remedy: str = "") -> int:
    """The exit code of what no error of ours tells, once it was said in words, and to a script if one asks."""
    print(f"{PROGRAM}: {what}{' ' * bool(remedy)}{remedy}", file=sys.stderr)
    return fail(options, exit_code, ErrorView(code, what, remedy=remedy))


def _listen() -> list[int]:
    """SIGTERM and SIGINT stop the command, and are in the list once they came. Where a shell had SIGINT ignored, for it began the
    command in the background, SIGTERM alone does: both have one handler, for Dagster lets SIGTERM do what SIGINT does while and
    after it executes something."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    heard: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT or not ignored:
            heard.append(number)
            raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return heard
