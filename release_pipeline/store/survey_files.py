"""Stata, SPSS and SAS files: their header and labels, and their records as codes. `survey_reader` reads them, in a separate
process, since a damaged file may end the process that reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb

from release_pipeline.errors import ReleasePipelineError, SourceError, memory_full
from release_pipeline.store import survey_reader
from release_pipeline.store.database import source_errors
from release_pipeline.store.raw import Columns, ReleaseFilter, append_raw, create_raw, list_columns

ENDINGS = survey_reader.ENDINGS
_PROGRAM = "release_pipeline.store.survey_reader"
_KINDS = {".dta": "Stata", ".sav": "SPSS", ".zsav": "SPSS", ".sas7bdat": "SAS", ".xpt": "SAS transport"}
_KEPT = ("PYTHON", "LC_", "LANG", "LD_", "PATH", "VIRTUAL_ENV")  # of the environment
_REASONS = {  # what is wrong, and what to do; {kind}: whose file it is
    survey_reader.ENCODING: (
        "a text is not in the encoding that the {kind} file declares.",
        "Save it anew in Unicode, or export it as CSV in UTF-8.",
    ),
    survey_reader.DATES: ("a date or time lies beyond the years 1 to 9999.", "Repair it, or export the column as a number."),
    survey_reader.SHORT: ("the {kind} file ends before its last record.", "Deliver it again."),
    survey_reader.SEVERAL: ("the {kind} file holds several tables.", "Deliver a file with one."),
    survey_reader.SAME_NAMES: ("two columns of the {kind} file have the same name.", "Rename one."),
}


@dataclass(frozen=True, slots=True)
class SurveyColumn:
    """A column as the file describes it: metadata, and no entry of a record. `labels`: codes with their meanings; `missing`: the
    ranges of codes, ends included, that mean no answer according to the file."""

    name: str
    label: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class SurveyFile:
    """A file's own description: its label, and its columns in their order."""

    label: str
    columns: tuple[SurveyColumn, ...]


@dataclass(frozen=True, slots=True)
class SurveySource:
    """A Stata, SPSS or SAS file."""

    path: Path
    ending: str
    header: tuple[str, ...]
    shown_as: str = ""  # in messages, where the path has a ${NAME}

    @property
    def name(self) -> str:
        """Return the path; of one with ${NAME}, as it is declared."""
        return self.shown_as or str(self.path)

    @property
    def stamp(self) -> str:
        """See `SourceReader`."""
        return stamp_file(self.path, self.name)

    @property
    def written(self) -> float | None:
        """See `SourceReader`."""
        return changed_at(self.path)

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceReader`."""
        import pyarrow as pa  # a large library: only where it is used

        wanted = list_columns(columns, release)
        with (
            _ask(self.path, self.ending, self.name, wanted) as answer,
            source_errors(self.name),
            pa.ipc.open_stream(answer) as stream,
        ):
            create_raw(into.from_arrow(stream.schema.empty_table()), columns, release)
            for batch in stream:
                append_raw(into.from_arrow(pa.Table.from_batches([batch])), columns, release)


def stamp_file(path: Path, name: str) -> str:
    """Return a stamp that changes when a file is written, or replaced by another. `name`: its name in messages."""
    with source_errors(name):
        known = path.stat()
    return f"{known.st_size} {known.st_mtime_ns} {known.st_ino}"


def changed_at(path: Path) -> float:
    """Return when a file was last written or replaced: the time of its change, which cannot be set."""
    with source_errors(path):
        return path.stat().st_ctime


def open_survey(path: Path, ending: str, *, where: str) -> SurveySource:
    """Return the reader of such a file, whose own name may not show its kind."""
    header = tuple(column.name for column in describe_survey(path, ending, where=where).columns)
    return SurveySource(path, ending, header)


def describe_survey(path: Path, ending: str, *, where: str) -> SurveyFile:
    """Return the columns of a file with their labels, and the file's own."""
    with _ask(path, ending, where, None) as answer:
        written = answer.read()
    content = cast(dict[str, Any], json.loads(written or b'{"columns": []}'))  # empty: refused already, when the reader ended
    columns = tuple(
        SurveyColumn(
            name=column["name"],
            label=column["label"],
            labels=tuple((code, label) for code, label in column["labels"]),
            missing=tuple((low, high) for low, high in column["missing"]),
            is_text=column["is_text"],
        )
        for column in content["columns"]
    )
    return SurveyFile(str(content.get("label", "")), columns)


@contextmanager
def _ask(path: Path, ending: str, where: str, columns: Sequence[str] | None) -> Generator[BinaryIO]:
    """Yield the reader's answer; refused where the reader does not end well, even after the answer was used."""
    request = json.dumps({"path": str(path), "ending": ending, "columns": columns}).encode()
    command = [sys.executable, "-P", "-m", _PROGRAM]
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    ) as reader:
        assert reader.stdin is not None  # noqa: S101
        assert reader.stdout is not None  # noqa: S101
        try:
            reader.stdin.write(request)
            reader.stdin.close()
            yield cast(BinaryIO, reader.stdout)
        except (SourceError, ValueError, OSError):  # an error from a broken answer: the reason why it broke is reported
            reader.stdout.close()
            if reader.wait() == 0:
                raise
            raise _refuse(reader.returncode, ending, where) from None
        except BaseException:
            reader.kill()
            raise
        reader.stdout.close()
        if reader.wait() != 0:
            raise _refuse(reader.returncode, ending, where)


def _environment() -> dict[str, str]:
    """Return the variables that Python needs to start, and no password; one thread, since each takes some of the reader's
    memory."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _refuse(code: int, ending: str, where: str) -> ReleasePipelineError:
    if code == survey_reader.NO_READER:
        what = "files of Stata, SPSS and SAS need pyreadstat."
        return SourceError(what, where=where, remedy="pip install 'release-pipeline[surveys]'")
    if code == survey_reader.MEMORY:
        return memory_full(where)
    what, remedy = _REASONS.get(code, ("the file is no readable {kind} file; it may be damaged.", "Deliver it again."))
    return SourceError(what.format(kind=_KINDS[ending]), where=where, remedy=remedy)
