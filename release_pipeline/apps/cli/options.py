"""Helpers for options that several commands share."""

from __future__ import annotations

import getpass
import json
import os
from pathlib import Path
from typing import Any

from release_pipeline.apps.cli.commands import FILES
from release_pipeline.errors import WrongUsage
from release_pipeline.policy.documents import to_json

ENDINGS = (
    *(".csv", ".tsv", ".parquet", ".dta", ".sav", ".zsav", ".sas7bdat", ".xpt"),
    *(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),  # refused with the reason
)


def print_document(document: Any) -> None:
    """Print a document as JSON on standard output."""
    print(json.dumps(document if isinstance(document, dict) else to_json(document), indent=2, allow_nan=False))


def check_input(file: Path, *, or_folder: bool = False) -> Path:
    """Return the named data file, or folder of files, if it can be one at all; its content is judged where it is read."""
    try:
        if not file.exists():
            raise WrongUsage("there is no such file.", where=str(file), remedy="Check the path.")
        if file.is_dir():
            if or_folder:
                return file
            raise WrongUsage("this is a directory, not a file.", where=str(file), remedy="Name a file.")
        os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        raise WrongUsage(f"the file cannot be read: {error.strerror}.", where=str(file), remedy="Name another.") from None
    if file.suffix.lower() not in ENDINGS:
        raise WrongUsage("such a file is not read.", where=str(file), remedy=f"Convert or rename it: {FILES}.")
    return file


def read_name(given: str | None) -> str:
    """Return the name of the person who gives the command: from --by, or as their machine knows them."""
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise WrongUsage("this account has no name.", where="--by", remedy="Name yourself with --by NAME.") from None
