"""`release-pipeline`: the command line, and the messages of a command that is refused or fails.

Exit code 0: fine; 1: refused or failed; 2: wrong usage; 130: stopped.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Annotated, ClassVar

import click
from click.exceptions import Exit, NoArgsIsHelpError

from release_pipeline import __version__
from release_pipeline.apps.cli.commands import PROGRAM, STOPPED, Program, Running, describe_stop, keep_line, visible_output
from release_pipeline.errors import ReleasePipelineError, WrongUsage, own_frame, read_out_of_space


@dataclass(frozen=True, slots=True)
class ErrorView:
    """One error: what is wrong, where, and what to do."""

    code: Annotated[str, "the kind of error, like over-cap, gate-failed, data-refused, wrong-usage or stopped; others may come"]
    what: Annotated[str, "what is wrong"]
    where: Annotated[str, "the release, file or option that it is about; empty where there is none"] = ""
    remedy: Annotated[str, "what to do; empty where that is plain"] = ""
    details: Annotated[tuple[str, ...], "a sentence each, where there are several reasons"] = ()


@dataclass(frozen=True, slots=True)
class FailureDocument:
    """The JSON that `--json` prints for a command that was refused or failed. Standard error has the same as text."""

    FORMAT: ClassVar[str] = "release-pipeline/error/1"

    command: Annotated[str | None, "the command that was given; null where there was none"]
    exit_code: Annotated[int, "of the command: 1 refused or failed, 2 wrong usage, 130 stopped"]
    error: ErrorView


def view_error(error: ReleasePipelineError) -> ErrorView:
    """Return the parts of the error for a script, or those of the error that caused it."""
    origin = error.cause or error
    return ErrorView(origin.code, origin.what, origin.where, origin.remedy, origin.details)


def print_failure(arguments: Sequence[str], exit_code: int, error: ErrorView) -> int:
    """Print the error as JSON where the arguments ask for JSON, and return the exit code."""
    if "--json" in arguments:
        from release_pipeline.apps.cli.options import print_document

        command = next((word for word in arguments if not word.startswith("-")), None)
        with suppress(OSError):  # the reader may be gone
            print_document(FailureDocument(command, exit_code, error))
            sys.stdout.flush()
    return exit_code


os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # else it searches every installed package for plugins
for _library in ("OPENBLAS", "OMP"):  # before NumPy and scikit-learn load: threads that wait by spinning cost more than they gain
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")


COLLECT_AFTER = 10_000  # objects: a command is short, and at Python's 700 spends a tenth of it on looking for garbage
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Program, context_settings=_SETTINGS, no_args_is_help=True)
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Release data about people under a privacy budget: a policy file in, a protected table out.

    Exit codes: 0 fine, 1 refused or failed, 2 wrong usage, 130 stopped. With --json (status,
    ledger, check, explore, run, verify, audit-claims) a command prints one JSON object, in case of
    an error too. Start with `release-pipeline demo`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Every outcome is a message, never a traceback."""
    gc.set_threshold(COLLECT_AFTER)
    with visible_output():
        return _run(sys.argv[1:] if arguments is None else list(arguments))


def _run(arguments: list[str]) -> int:
    heard, running = _listen(), Running()
    try:
        with cli.make_context(PROGRAM, list(arguments), obj=running) as context:
            return cli.invoke(context) or 0
    except Exit as end:  # of --help and --version
        return end.exit_code
    except NoArgsIsHelpError as error:
        print(error.ctx.get_help())
        return WrongUsage.exit_code
    except BaseException as error:
        if heard or isinstance(error, KeyboardInterrupt):  # a library may have turned the interrupt into another error
            what = f"stopped; {describe_stop(running)}."
            print(f"{PROGRAM}: {what}", file=sys.stderr)
            return print_failure(arguments, STOPPED, ErrorView("stopped", what))
        return _report(error, arguments)


def _report(error: BaseException, arguments: list[str]) -> int:
    """Print what went wrong, and return the exit code."""
    try:
        raise error
    except click.UsageError as usage:
        path = PROGRAM if usage.ctx is None else usage.ctx.command_path
        refused = WrongUsage(usage.format_message(), remedy=f"See '{path} --help'.")
    except ReleasePipelineError as ours:
        refused = ours
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as foreign:
        refused = read_out_of_space(foreign)
        if refused is None:
            return _report_foreign(foreign, arguments)
    print(f"{PROGRAM}: {keep_line(str(refused))}", file=sys.stderr)
    for detail in refused.details:
        print(f"  {keep_line(detail)}", file=sys.stderr)
    return print_failure(arguments, refused.exit_code, view_error(refused))


def _report_foreign(error: Exception, arguments: list[str]) -> int:
    """Print an error of a library without its text, which may quote a cell; returns the exit code."""
    if isinstance(error, OSError):
        view = ErrorView("system", f"the operating system refused: {error.strerror or type(error).__name__}.")
    else:
        what = f"internal error: {type(error).__name__} at {own_frame(error)}."
        view = ErrorView("internal", what, remedy="Please report this line.")
    print(f"{PROGRAM}: {view.what} {view.remedy}".rstrip(), file=sys.stderr)
    return print_failure(arguments, 1, view)


def _listen() -> list[int]:
    """Let SIGTERM and SIGINT stop the command, and return the list that gets each signal as it arrives. Where a shell started the
    command in the background, SIGINT is ignored and only SIGTERM stops it. Both have one handler, because Dagster treats SIGTERM
    like SIGINT while and after it executes something."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    heard: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT or not ignored:
            heard.append(number)
            raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return heard
