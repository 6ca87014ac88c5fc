"""What a service prints, as its manager keeps it: one line a record on standard error, with time, level and name.

Dagster's webserver, daemon, code servers and runs are processes of their own, each with loggers that it sets up by itself, some
on standard output and in colours. So what all of them print is read here and written anew, in the process that started them. What
was no record stays readable: on standard error it is one, named `output`; on standard output it is for people, like the links to
log in, and goes there as it came. What errors of libraries quote is kept out before (`definitions`).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TextIO

from release_pipeline.errors import WrongUsage

VARIABLE = "RELEASE_PIPELINE_LOG"
FORMS = ("text", "json")
OUTPUT = "output"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DAGSTER = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}) - (\S+) - ([A-Z]+) - (.*)")
_UVICORN = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL):\s+(.*)")
_TIME = "%Y-%m-%d %H:%M:%S %z"


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a log."""

    time: datetime
    level: str
    name: str
    message: str

    @property
    def text(self) -> str:
        """It for a person."""
        return f"{self._time} {self.level} {self.name}: {self.message}"

    @property
    def json(self) -> str:
        """It for a program."""
        return json.dumps({"time": self._time, "level": self.level, "name": self.name, "message": self.message})

    @property
    def _time(self) -> str:
        return self.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def choose_form(environment: Mapping[str, str], stream: TextIO) -> str | None:
    """How records are written: as the variable says, else as text where nobody looks on; None leaves a terminal what Dagster
    prints."""
    said = environment.get(VARIABLE, "")
    if said not in ("", *FORMS):
        raise WrongUsage(f"'{said}' is no form of a log.", where=VARIABLE, remedy=f"Allowed: {', '.join(FORMS)}.")
    return said or (None if stream.isatty() else FORMS[0])


def read_record(line: str, now: datetime) -> Record | None:
    """The record that a line is; None where it is none."""
    plain = _COLOUR.sub("", line.rstrip("\r\n"))
    if (found := _DAGSTER.fullmatch(plain)) is not None:
        try:
            return Record(datetime.strptime(found[1], _TIME), found[3], found[2], found[4])
        except ValueError:  # a day that there is not
            return None
    if (found := _UVICORN.fullmatch(plain)) is not None:
        return Record(now, found[1], "uvicorn", found[2])
    return None


def rewrite(lines: Iterable[bytes], *, form: str, source: Literal["stdout", "stderr"]) -> None:
    """Write what a service prints on one of its streams, until it ends."""
    for raw in lines:
        line, now = raw.decode("utf-8", "replace"), datetime.now(UTC)
        record = read_record(line, now)
        with suppress(OSError, UnicodeError):  # a full disk behind it: what is printed is still read, or the service would stop
            if record is None and source == "stdout":
                print(line, end="", flush=True)
            elif record is not None or line.strip():
                record = record or Record(now, "INFO", OUTPUT, _COLOUR.sub("", line.rstrip("\r\n")))
                print(record.json if form == "json" else record.text, file=sys.stderr, flush=True)


def form_of_service() -> str | None:
    """That of the service that this process is to start."""
    return choose_form(os.environ, sys.stderr)
