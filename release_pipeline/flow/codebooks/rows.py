"""A codebook as CSV: the columns `column`, `label`, `value` and `value_label`, and where there are such `unit`, `description` and
`question`; a line for each value, or one without for a column that has none."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from release_pipeline.errors import SourceError
from release_pipeline.flow.codebooks.common import MOST_TEXT, Codebook, Study, decode_text
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.store.survey_files import SurveyColumn

COLUMNS = ("column", "label", "value", "value_label")
_WORDS = ("label", "unit", "description", "question")  # of a column, on any line of it


def read_rows(content: bytes, where: str) -> Codebook:
    """What it describes; of the data as a whole it says nothing."""
    text = decode_text(content, where)
    for delimiter in (",", ";", "\t"):
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = _read_header(rows)
        try:
            if {*COLUMNS} <= {*header} <= {*COLUMNS, *_WORDS} and len({*header}) == len(header):
                return Codebook(_collect(((rows.line_num, row) for row in rows), header, where), Study())
        except csv.Error:
            what = f"line {rows.line_num} of the codebook cannot be read: it does not follow the CSV format."
            raise SourceError(what, where=where, remedy="Repair it.") from None
    wanted = ", ".join(COLUMNS)
    raise SourceError(f"the codebook has not the columns {wanted}.", where=where, remedy="Name these in its first line.")


def _read_header(rows: Iterator[list[str]]) -> list[str]:
    """The names in the first line; none where another delimiter is the right one, as between names in quotes."""
    try:
        return [name.strip().lower() for name in next(rows, list[str]())]
    except csv.Error:
        return []


def _collect(rows: Iterable[tuple[int, list[str]]], header: list[str], where: str) -> dict[str, SurveyColumn]:
    texts: dict[str, dict[str, str]] = {}
    labels: dict[str, list[tuple[str, str]]] = {}
    for line, row in rows:
        if not any(row):
            continue
        entry = {name: cell.strip()[:MOST_TEXT] for name, cell in zip(header, row, strict=False)}
        if len(row) != len(header) or not entry["column"]:
            what = f"line {line} of the codebook names no column, or has another number of fields than its first."
            raise SourceError(what, where=where, remedy="Repair it.")
        name = canonical_name(entry["column"])
        known = texts.setdefault(name, {})
        known |= {part: entry[part] for part in _WORDS if entry.get(part) and not known.get(part)}
        labels.setdefault(name, []).extend([(entry["value"], entry["value_label"])] if entry["value"] else [])
    return {
        name: SurveyColumn(
            name,
            known.get("label", ""),
            tuple(labels[name]),
            unit=known.get("unit", ""),
            description=known.get("description", ""),
            question=known.get("question", ""),
        )
        for name, known in texts.items()
    }
