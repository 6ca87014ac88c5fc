"""What several commands share: the site, keys, numbers, and progress."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.errors import WrongUsage

if TYPE_CHECKING:
    from release_pipeline.flow.site import Site
    from release_pipeline.flow.states import ReleaseId
    from release_pipeline.flow.trust.keys import PrivateKey

PROGRAM = "release-pipeline"
MOST_ROWS = 10**12
MOST_DIGITS = 100
KINDS_OF_FILES = ".csv (.gz, .zip), .parquet, .dta, .sav, .sas7bdat or .xpt"
ENDINGS = (
    *(".csv", ".tsv", ".gz", ".zip", ".parquet", ".dta", ".sav", ".zsav", ".sas7bdat", ".xpt"),
    *(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),  # refused with the reason
)


class Progress:
    """Steps of a long work on standard error, each with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, step: str) -> None:
        print(f"[{time.monotonic() - self._start:6.1f} s] {step}", file=sys.stderr, flush=True)


def add_home(command: argparse.ArgumentParser) -> None:
    """--home, the site that the command is about."""
    command.add_argument("--home", type=Path, help="the site (default: RELEASE_PIPELINE_HOME, or here if there is a policies/)")


def add_uds(command: argparse.ArgumentParser) -> None:
    """--uds, a Unix socket in the place of a port."""
    command.add_argument(
        "--uds",
        type=Path,
        metavar="PATH",
        help="listen at this Unix socket, and at no port: for a proxy or a tunnel (browsers still use the port in addresses)",
    )


def add_json(command: argparse._ActionsContainer, what: str) -> None:
    """--json, for scripts."""
    command.add_argument("--json", action="store_true", help=f"{what} as JSON, errors too: docs/json.md says what is in it")


def print_json(document: Mapping[str, Any]) -> None:
    """A document on standard output."""
    print(json.dumps(document, indent=2, allow_nan=False))


def add_key(command: argparse.ArgumentParser, whose: str, *, required: bool = True) -> None:
    """--key, with which the command signs."""
    what = f"{whose}: an OpenSSH key, or the .pub of one in ssh-agent or a FIDO token"
    command.add_argument("--key", type=Path, required=required, metavar="FILE", help=what)


def check_input(file: Path) -> Path:
    """The data file that was named, if it can be meant at all; what is in it is judged where it is read."""
    try:
        if not file.exists():
            raise WrongUsage("there is no such file.", where=str(file), remedy="Check the path.")
        if file.is_dir():
            raise WrongUsage("this is a directory, not a file.", where=str(file), remedy="Name the file in it.")
        os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        raise WrongUsage(f"the file cannot be read: {error.strerror}.", where=str(file), remedy="Name another.") from None
    if file.suffix.lower() not in ENDINGS:
        raise WrongUsage("such a file is not read.", where=str(file), remedy=f"Convert or rename it: {KINDS_OF_FILES}.")
    return file


def read_release_of(options: argparse.Namespace) -> tuple[Site, ReleaseId]:
    """The site, and the release of it that was named."""
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    return site, find_release(site, options.target)


def read_key_of(options: argparse.Namespace) -> PrivateKey:
    """The key that was named."""
    from release_pipeline.flow.trust.keys import read_key

    return read_key(options.key)


def whole_number(least: int, most: int, what: str) -> Callable[[str], int]:
    """A whole number of that range, as argparse asks for it."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > MOST_DIGITS or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
        return int(text)

    return read


def positive(text: str) -> int:
    """A number of rows, as argparse asks for it."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_ROWS:
        what = f"'{text}' is not a whole number above 0" if number < 1 else f"there are at most {MOST_ROWS:,} rows"
        raise argparse.ArgumentTypeError(what)
    return number
