"""`release-pipeline`: the command line. Exit code 0: fine; 1: refused or failed; 2: wrong usage."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from release_pipeline import __version__
from release_pipeline.cli import auditor, demo, experiments, people, policies, releases
from release_pipeline.cli.failure import ErrorView, Parser, fail, view_error
from release_pipeline.cli.options import PROGRAM
from release_pipeline.errors import ReleasePipelineError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every outcome is an exit code and words, never a traceback."""
    signal.signal(signal.SIGTERM, _stop)
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return options.run(options)
    except ReleasePipelineError as error:
        _print_error(error)
        return fail(options, error.exit_code, view_error(error))
    except KeyboardInterrupt:
        return _say(options, 130, "stopped", "stopped; nothing was written.")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        words = f"the operating system refused: {error.strerror or type(error).__name__}."
        return _say(options, 1, "system", words)
    except Exception as error:
        words = f"internal error: {type(error).__name__} at {_own_frame(error)}."
        return _say(options, 1, "internal", words, remedy="Please report this line.")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description="Governed releases of data about people: a policy file in, a protected table out.",
        epilog="Exit codes: 0 fine, 1 refused or failed, 2 wrong usage, 130 stopped. With --json (status, ledger, check, run, "
        "verify) a command prints one JSON object, in case of an error too, with the same exit code. Start with 'make demo', "
        "then read README.md.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for part in (demo, policies, releases, people, auditor, experiments):
        part.add_commands(commands)
    return parser


def _print_error(error: ReleasePipelineError) -> None:
    print(f"{PROGRAM}: {error}", file=sys.stderr)
    for detail in error.details:
        print(f"  {detail}", file=sys.stderr)


def _say(options: argparse.Namespace, exit_code: int, code: str, what: str, *, remedy: str = "") -> int:
    """The exit code of what no error of ours tells, once it was said in words, and to a script if one asks."""
    print(f"{PROGRAM}: {what}{' ' * bool(remedy)}{remedy}", file=sys.stderr)
    return fail(options, exit_code, ErrorView(code, what, remedy=remedy))


def _own_frame(error: BaseException) -> str:
    place, trace = "?", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "release_pipeline" in code.co_filename:
            place = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
