"""What a script is told of a command that was refused or failed: the document of an error, in the place of the command's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NoReturn

from release_pipeline.cli.options import print_json
from release_pipeline.errors import ReleasePipelineError, WrongUsage

JSON = "--json"


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
    """An error of ours for a script."""
    origin = error.cause or error
    return ErrorView(origin.code, origin.what, origin.where, origin.remedy, origin.details)


def fail(options: argparse.Namespace, exit_code: int, error: ErrorView) -> int:
    """The exit code, once a script was told, if one asks."""
    if getattr(options, "json", False):
        _report(FailureDocument(options.command, exit_code, error))
    return exit_code


class Parser(argparse.ArgumentParser):
    """Wrong usage is told to a script too."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Remember what was given."""
        self._given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """The message as JSON where that was asked for, then as ever: usage on standard error, and exit code 2."""
        if JSON in self._given:
            command = self.prog.partition(" ")[2] or next((word for word in self._given if not word.startswith("-")), None)
            view = ErrorView(WrongUsage.code, f"{message}.", remedy=f"'{self.prog} --help' says what there is.")
            _report(FailureDocument(command, WrongUsage.exit_code, view))
        super().error(message)


def _report(document: FailureDocument) -> None:
    from release_pipeline.policy.documents import to_json

    with suppress(OSError):  # nobody may be there to read it
        print_json(to_json(document))
        sys.stdout.flush()
