"""The JSON document of a command that was refused or failed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, ClassVar

from release_pipeline.errors import ReleasePipelineError


@dataclass(frozen=True, slots=True)
class ErrorView:
    """What happened."""

    code: Annotated[str, "the kind of error, like over-cap, gate-failed, data-refused, wrong-usage or stopped; others may come"]
    what: Annotated[str, "what is wrong"]
    where: Annotated[str, "the release, file or option that it is about; empty where there is none"] = ""
    remedy: Annotated[str, "what to do; empty where that is plain"] = ""
    details: Annotated[tuple[str, ...], "a sentence each, where there are several reasons"] = ()


@dataclass(frozen=True, slots=True)
class FailureDocument:
    """What `--json` prints of a command that was refused or failed. The same is told in words on standard error."""

    FORMAT: ClassVar[str] = "release-pipeline/error/1"

    command: Annotated[str | None, "the command that was given; null where there was none"]
    exit_code: Annotated[int, "of the command: 1 refused or failed, 2 wrong usage, 130 stopped"]
    error: ErrorView


def view_error(error: ReleasePipelineError) -> ErrorView:
    """The error's parts for a script, or those of the error that caused it."""
    origin = error.cause or error
    return ErrorView(origin.code, origin.what, origin.where, origin.remedy, origin.details)


def print_failure(arguments: Sequence[str], exit_code: int, error: ErrorView) -> int:
    """Print the error as JSON where the arguments ask for JSON, and return the exit code."""
    if "--json" in arguments:
        from release_pipeline.cli.options import print_document

        command = next((word for word in arguments if not word.startswith("-")), None)
        with suppress(OSError):  # the reader may be gone
            print_document(FailureDocument(command, exit_code, error))
            sys.stdout.flush()
    return exit_code
