"""Lists of entries from files that a policy names: `{file: lists/towns.csv}`, or `{file: ..., column: town}`. What is in them is
part of the policy and of its hash, as if it were written out."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

from release_pipeline.errors import InvalidArgument

KEYS = ("file", "column")
MOST_ENTRIES = 50_000


def names_list(value: Any) -> bool:
    """Whether a file is meant in the place of a list."""
    return isinstance(value, dict) and "file" in value


def read_named(spec: Mapping[str, Any], read: Callable[[str], str]) -> list[str]:
    """The entries of the file that is named. Raises `ReleasePipelineError` with what is wrong, and at which key."""
    unknown = [key for key in spec if key not in KEYS]
    if unknown:
        raise InvalidArgument(f"'{unknown[0]}' is not known here.", where=unknown[0], remedy=f"Known: {', '.join(KEYS)}.")
    name = spec["file"]
    if not isinstance(name, str) or not name:
        raise InvalidArgument("file must name a file.")
    return read_list(read(name), spec.get("column"))


def read_list(text: str, column: Any = None) -> list[str]:
    """One column of a CSV, whose first line names the columns, with commas or semicolons between.

    >>> read_list("code;town\\n1;Ash\\n2;Elm\\n", "town")
    ['Ash', 'Elm']
    """
    first = text.split("\n", 1)[0]
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=";" if ";" in first and "," not in first else ",") if row]
    except csv.Error:
        raise InvalidArgument("this is not readable as CSV.") from None
    if not rows:
        raise InvalidArgument("the file is empty.")
    place = _find_column([name.strip() for name in rows[0]], column)
    entries = [row[place].strip() if place < len(row) else "" for row in rows[1:]]
    if not entries:
        raise InvalidArgument("the file lists nothing: its first line names the columns.", remedy="Add one, like 'town'.")
    if len(entries) > MOST_ENTRIES:
        raise InvalidArgument(f"the file lists more than {MOST_ENTRIES:,} entries.")
    for number, entry in enumerate(entries, start=1):
        if not entry or not entry.isprintable():
            raise InvalidArgument(f"entry {number:,} of the file is empty, or cannot be printed.", remedy="Repair the file.")
    if len(set(entries)) < len(entries):
        twice = next(number for number, entry in enumerate(entries) if entry in entries[:number])
        raise InvalidArgument(f"the file lists an entry twice: number {twice + 1:,}.", remedy="List each once.")
    return entries


def _find_column(header: list[str], column: Any) -> int:
    if column is None:
        if len(header) > 1:
            what = f"the file has {len(header)} columns, and none is named."
            raise InvalidArgument(what, where="column", remedy="Name it: {file: FILE, column: NAME}.")
        return 0
    if header.count(str(column)) != 1:
        what = f"the file has no column '{column}'." if str(column) not in header else f"the file has '{column}' twice."
        raise InvalidArgument(what, where="column", remedy="Look at its first line.")
    return header.index(str(column))
