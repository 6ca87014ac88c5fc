"""What a codebook says of the columns of a source: their labels, and what their codes mean. It is documentation and no data, yet
whoever sends it may be careless or hostile: it is read within bounds, and no message quotes it.

Two kinds: CSV with the columns `column`, `label`, `value` and `value_label`, a line for each value (or one without, for a column
that has none); and DDI-Codebook (2.5, and earlier ones without a document type), as archives of surveys give it out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from release_pipeline.errors import SourceError
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.store.survey_files import SurveyColumn

COLUMNS = ("column", "label", "value", "value_label")
_MOST_BYTES = 64 << 20
_MOST_TEXT = 1000  # characters of one label
_DEEPEST = 64  # elements within each other
_AGAIN = "Deliver it again, or write a CSV with the columns column, label, value, value_label."


def read_codebook(file: Path) -> dict[str, SurveyColumn]:
    """The columns that a codebook describes, by their names."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise SourceError(f"the codebook has more than {_MOST_BYTES >> 20} MiB.", where=str(file), remedy=_AGAIN)
        content = file.read_bytes()
    except OSError as error:
        raise SourceError(f"the codebook cannot be read: {error.strerror}.", where=str(file), remedy="Check the path.") from None
    if file.suffix.lower() == ".xml":
        return _read_ddi(content, str(file))
    if file.suffix.lower() in (".csv", ".tsv"):
        return _read_csv(content, str(file))
    raise SourceError("a codebook is .csv or, of DDI, .xml.", where=str(file), remedy="Convert or rename it.")


def _read_csv(content: bytes, where: str) -> dict[str, SurveyColumn]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError("the codebook is not UTF-8 text.", where=where, remedy="Convert it to UTF-8.") from None
    for delimiter in (",", ";", "\t"):
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            header = [name.strip().lower() for name in next(rows, list[str]())]
            if sorted(header) == sorted(COLUMNS):
                return _collect(((rows.line_num, row) for row in rows), header, where)
        except csv.Error:
            what = f"line {rows.line_num} of the codebook cannot be read: it does not follow the CSV format."
            raise SourceError(what, where=where, remedy="Repair it.") from None
    wanted = ", ".join(COLUMNS)
    raise SourceError(f"the codebook has not the columns {wanted}.", where=where, remedy="Name these in its first line.")


def _collect(rows: Iterable[tuple[int, list[str]]], header: list[str], where: str) -> dict[str, SurveyColumn]:
    texts: dict[str, str] = {}
    labels: dict[str, list[tuple[str, str]]] = {}
    for line, row in rows:
        if not any(row):
            continue
        entry = {name: cell.strip()[:_MOST_TEXT] for name, cell in zip(header, row, strict=False)}
        if len(row) != len(header) or not entry["column"]:
            what = f"line {line} of the codebook names no column, or has another number of fields than its first."
            raise SourceError(what, where=where, remedy="Repair it.")
        name = canonical_name(entry["column"])
        texts[name] = texts.get(name) or entry["label"]
        labels.setdefault(name, []).extend([(entry["value"], entry["value_label"])] if entry["value"] else [])
    return {name: SurveyColumn(name, label, tuple(labels[name])) for name, label in texts.items()}


@dataclass(slots=True)
class _Variable:
    """One `var` of DDI, and the category of it that is being read."""

    name: str
    label: str = ""
    code: str = ""
    meaning: str = ""
    is_missing: bool = False
    labels: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    missing: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def end_category(self) -> None:
        """What was read of a category is one of the variable's."""
        if self.code:
            self.labels.append((self.code, self.meaning))
            if self.is_missing:
                self.missing.append((self.code, self.code))
        self.code, self.meaning, self.is_missing = "", "", False


class _Ddi:
    """Reads `var` elements of DDI-Codebook as they come. A document type is refused: with it entities would be declared, which
    name other files or grow without bound."""

    def __init__(self, where: str) -> None:
        self.found: dict[str, SurveyColumn] = {}
        self._where = where
        self._open: list[str] = []
        self._text = ""
        self._variable: _Variable | None = None
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add

    def read(self, content: bytes) -> None:
        """All of it; raises `expat.ExpatError` where it is no XML, and `SourceError` at what is refused."""
        self._parser.Parse(content, True)

    @property
    def line(self) -> int:
        """Where reading is, or where it ended."""
        return self._parser.CurrentLineNumber

    def _refuse(self, what: str) -> SourceError:
        return SourceError(what, where=self._where, remedy=_AGAIN)

    def _refuse_doctype(self, *_: object) -> None:
        raise self._refuse("the codebook declares a document type, which may read other files or grow without bound.")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        element = name.rpartition(" ")[2]
        if not self._open and element != "codeBook":
            raise self._refuse("this is no codebook of DDI: it begins with another element than codeBook.")
        self._open.append(element)
        if len(self._open) > _DEEPEST:
            raise self._refuse(f"the codebook has more than {_DEEPEST} elements within each other.")
        self._text = ""
        if element == "var":
            self._variable = _Variable(canonical_name(attributes.get("name", "").strip()))
        elif element == "catgry" and self._variable is not None:
            self._variable.is_missing = attributes.get("missing", "").upper() == "Y"

    def _add(self, text: str) -> None:
        if len(self._text) < _MOST_TEXT:
            self._text += text[:_MOST_TEXT]

    def _end(self, _: str) -> None:
        element, text = self._open.pop(), " ".join(self._text.split())
        parent = self._open[-1] if self._open else ""
        self._text = ""
        variable = self._variable
        if variable is None:
            return
        match parent, element:
            case "var", "labl":
                variable.label = variable.label or text
            case "catgry", "catValu":
                variable.code = text
            case "catgry", "labl":
                variable.meaning = variable.meaning or text
            case _, "catgry":
                variable.end_category()
            case _, "var":
                if variable.name:
                    self.found[variable.name] = SurveyColumn(
                        variable.name, variable.label, tuple(variable.labels), tuple(variable.missing)
                    )
                self._variable = None
            case _:
                pass


def _read_ddi(content: bytes, where: str) -> dict[str, SurveyColumn]:
    ddi = _Ddi(where)
    try:
        ddi.read(content)
    except expat.ExpatError:
        raise SourceError(f"line {ddi.line} of the codebook is no readable XML.", where=where, remedy=_AGAIN) from None
    except (ValueError, LookupError):
        raise SourceError("the codebook is in no encoding that is read.", where=where, remedy="Save it as UTF-8.") from None
    if not ddi.found:
        raise SourceError("the codebook describes no variable.", where=where, remedy=_AGAIN)
    return ddi.found
