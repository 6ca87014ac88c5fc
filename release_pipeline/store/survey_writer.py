"""Tables as files of Stata and SPSS, with labels and reasons for no value; and reading these files back, as a check.

The same table gives the same bytes: both formats record when a file was made, and that is set to one moment here, in place and
without a change of length. Only files that were written here, with a compared hash, are read here: files of others are for
`survey_reader`, a separate process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pyarrow as pa

from release_pipeline.errors import SourceError, WrongUsage
from release_pipeline.policy.file.published import DISCRETE, FileColumn, SurveyFormat, moment_of_number, number_of_moment
from release_pipeline.policy.kinds.base import ReleasedAs, reason_column

_STATA = 14  # the version that calls its format 118; with 15 it writes 119, which the smaller editions of Stata refuse
_STATA_TIME = re.compile(rb"<timestamp>\x11(.{17})</timestamp>")  # within the header, after the label of the file
_STATA_MOMENT = b"01 Jan 1970 00:00"
_SPSS_TIME = slice(92, 109)  # of the header: the day (dd mmm yy) and the time (hh:mm:ss)
_SPSS_MOMENT = b"01 Jan 7000:00:00"
_SPSS_SHAPE = re.compile(rb"[ 0-9]\d [A-Z][a-z]{2} \d\d\d\d:\d\d:\d\d")
_HEADER = 512
_MOMENTS = {"dta": {"date": "%td", "moment": "%tc"}, "sav": {"date": "DATE11", "moment": "DATETIME20"}}  # their display formats
_TYPES: dict[str, Any] = {  # of columns in a published table
    "text": pa.string(),
    "whole number": pa.int64(),
    "number": pa.float64(),
    "date": pa.date32(),
    "moment": pa.timestamp("ms"),
}


def need_survey_formats() -> ModuleType:
    """Return the library that writes these files; refused where it is not installed."""
    try:
        import pyreadstat
    except ImportError:
        raise WrongUsage(
            "files of Stata and SPSS need pyreadstat.",
            where="publish.formats",
            remedy="pip install 'release-pipeline[surveys]', or release parquet and csv alone.",
        ) from None
    return pyreadstat


def write_survey(path: Path, table: pa.Table, columns: Sequence[FileColumn], form: SurveyFormat) -> None:
    """Write a published table in one of these formats, with the policy's description of its columns."""
    import pandas as pd

    writer = need_survey_formats()
    frame = pd.DataFrame({column.name: _make_series(table, column, form) for column in columns})
    labels = {column.name: _value_labels(column, form) for column in columns}
    coded = [column for column in columns if column.reasons]
    options: dict[str, Any] = {
        "column_labels": {column.name: column.label for column in columns},
        "variable_value_labels": {name: of_column for name, of_column in labels.items() if of_column},
    }
    options["variable_format"] = {column.name: _MOMENTS[form][column.kind] for column in columns if column.kind in _MOMENTS[form]}
    if form == "dta":
        options |= {"version": _STATA, "missing_user_values": {column.name: sorted(column.reasons.values()) for column in coded}}
    else:
        options |= {"row_compress": True, "missing_ranges": {column.name: _missing_ranges(column) for column in coded}}
        options["variable_format"] |= {
            column.name: _spss_format(column) for column in columns if column.kind in ("number", "whole number")
        }
    try:
        (writer.write_dta if form == "dta" else writer.write_sav)(frame, str(path), **options)
    except Exception:  # the library's message may quote cells
        what = f"this table cannot be written as {form}."
        raise WrongUsage(
            what, where="publish.formats", remedy=f"Release it without {form}, and tell us: a rule is missing."
        ) from None
    _set_moment(path, form)


def try_survey(columns: Sequence[FileColumn], form: SurveyFormat) -> None:
    """Write a file of such columns with one empty record and read it back, so that columns that cannot be written, or would be
    read differently, are refused before anything can be lost."""
    empty: dict[str, Any] = {}
    for column in columns:
        empty[column.name] = pa.array([None], _TYPES[column.kind])
        empty |= {reason_column(column.name): pa.array([None], pa.string())} if column.reasons else {}
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"data.{form}"
        write_survey(file, pa.table(empty), columns, form)
        read_survey(file, columns, form)


def read_survey(path: Path, columns: Sequence[FileColumn], form: SurveyFormat) -> pa.Table:
    """Return the file of `write_survey` as the original table: numbers without a value, and the reason in a column next to them.
    Refused where the file describes its columns differently than they were written."""
    reader = need_survey_formats()
    read = reader.read_dta if form == "dta" else reader.read_sav
    try:
        cells, known = read(str(path), user_missing=True, output_format="dict", disable_datetime_conversion=True)
    except Exception:  # the library's message may quote cells
        raise _changed(path, "it cannot be read") from None
    if list(cells) != [column.name for column in columns]:
        raise _changed(path, "it has other columns")
    arrays: dict[str, Any] = {}
    for column in columns:
        _check_described(path, column, known, form)
        arrays |= _read_column(cells[column.name], column, form)
    return pa.table(arrays)


def _changed(path: Path, why: str) -> SourceError:
    return SourceError(f"this is not the file that was written: {why}.", where=str(path), remedy="Release it again.")


class _Letter(bytes):
    """A letter of Stata, which the library takes by its code. It looks at the first hundred cells: if all of them were texts, it
    would take the column for one of texts."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self.decode() == other if isinstance(other, str) else bytes.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(self.decode())


def _make_series(table: pa.Table, column: FileColumn, form: SurveyFormat) -> Any:
    """Return the cells as the library takes them. The type is the policy's choice, never that of the cells: a whole number of 32
    bits where all declared ones are, else a double; with letters of Stata among them, objects that become doubles."""
    import pandas as pd

    cells: list[Any] = table.column(column.name).to_pylist()
    if column.kind == "text":
        return pd.Series(["" if cell is None else str(cell) for cell in cells], dtype=object)
    if column.kind in _MOMENTS[form]:
        cells = [None if cell is None else number_of_moment(_moment_of(cell), column.kind, form) for cell in cells]
    if column.reasons:
        make: Callable[[str], Any] = (lambda letter: _Letter(letter.encode())) if form == "dta" else float
        codes: dict[str | None, Any] = {why: make(code) for why, code in column.reasons.items()}
        reasons: list[str | None] = table.column(reason_column(column.name)).to_pylist()
        both = zip(cells, reasons, strict=True)
        cells = [codes.get(why) if cell is None else float(cell) for cell, why in both]
        return pd.Series(cells, dtype=object if form == "dta" else "float64")
    if form == "dta" and column.is_narrow:
        return pd.Series(cells, dtype=pd.Int32Dtype())
    return pd.Series([None if cell is None else float(cell) for cell in cells], dtype="float64")


def _moment_of(cell: date | datetime) -> datetime:
    return cell if isinstance(cell, datetime) else datetime.combine(cell, time())


def _value_labels(column: FileColumn, form: SurveyFormat) -> dict[Any, str]:
    """Return the labels of values and of reasons, by the entry in the cell."""
    is_text = column.kind == "text"
    reasons = {code if form == "dta" else int(code): why for why, code in column.reasons.items()}
    return {entry if is_text else int(entry): label for entry, label in column.labels.items()} | reasons


def _missing_ranges(column: FileColumn) -> list[dict[str, int]]:
    """Return the codes for no value: each, or the range of them all where SPSS takes no more single ones."""
    codes = sorted(map(int, column.reasons.values()))
    return [{"lo": code, "hi": code} for code in codes] if len(codes) <= DISCRETE else [{"lo": codes[0], "hi": codes[-1]}]


def _spss_format(column: FileColumn) -> str:
    """Return the display format of numbers: with all their decimals, which SPSS would cut to two."""
    return f"F{min(40, 16 + column.decimals)}.{min(16, column.decimals)}"


def _set_moment(path: Path, form: SurveyFormat) -> None:
    """Replace the moment at which the file was made; refused where it is not at its place in the format."""
    with path.open("r+b") as file:
        head = file.read(_HEADER)
        if form == "dta":
            match = _STATA_TIME.search(head)
            start, moment = (-1 if match is None else match.start(1)), _STATA_MOMENT
        else:
            match = _SPSS_SHAPE.fullmatch(head[_SPSS_TIME])
            start, moment = (-1 if match is None else _SPSS_TIME.start), _SPSS_MOMENT
        if start < 0:
            what = "this version of pyreadstat writes another header, and the same table would not give the same bytes."
            raise WrongUsage(what, where=path.name, remedy="Install the version that this release was tested with.")
        file.seek(start)
        file.write(moment)


def _check_described(path: Path, column: FileColumn, known: Any, form: SurveyFormat) -> None:
    """Check that label, labels and reasons of a column are those of the policy."""
    if (known.column_names_to_labels.get(column.name) or "") != column.label:
        raise _changed(path, f"{column.name} has another label")
    if dict(known.variable_value_labels.get(column.name) or {}) != _value_labels(column, form):
        raise _changed(path, f"{column.name} has other value labels")
    shown = _MOMENTS[form].get(column.kind)
    if shown is not None and known.original_variable_types.get(column.name) != shown:
        raise _changed(path, f"{column.name} is shown as something else than dates or times")
    if form == "sav" and column.reasons and list(known.missing_ranges.get(column.name) or ()) != _missing_ranges(column):
        raise _changed(path, f"{column.name} has other codes for no value")


def _read_column(cells: Sequence[Any], column: FileColumn, form: SurveyFormat) -> dict[str, Any]:
    """Return a column, and behind it that of its reasons where these are in its cells."""
    if column.kind == "text":
        return {column.name: pa.array([cell or None for cell in cells], pa.string())}
    kind = _TYPES[column.kind]
    if not column.reasons:
        return {column.name: pa.array(_as_numbers(cells, column, form), kind)}
    why: Mapping[Any, str] = {code if form == "dta" else float(code): reason for reason, code in column.reasons.items()}
    reasons = [why.get(cell) for cell in cells]
    values = [None if reason is not None else cell for cell, reason in zip(cells, reasons, strict=True)]
    return {
        column.name: pa.array(_as_numbers(values, column, form), kind),
        reason_column(column.name): pa.array(reasons, pa.string()),
    }


def _as_numbers(cells: Sequence[Any], column: FileColumn, form: SurveyFormat) -> list[Any]:
    """Return numbers, dates or times as numbers; None where there is none."""
    return [None if cell is None else _as_number(cell, column.kind, form) for cell in cells]


def _as_number(cell: Any, kind: ReleasedAs, form: SurveyFormat) -> Any:
    if kind in _MOMENTS[form]:
        moment = moment_of_number(cell, kind, form)
        return moment.date() if kind == "date" else moment
    return int(cell) if kind == "whole number" else float(cell)
