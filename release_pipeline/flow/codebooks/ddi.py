"""DDI-Codebook (2.5, and earlier and later ones without a document type), as archives of surveys give it out: what it says of
variables, and of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from release_pipeline.errors import SourceError
from release_pipeline.flow.codebooks.common import AGAIN, MOST_LISTED, MOST_TEXT, Codebook, Study, add_listed
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.store.survey_files import SurveyColumn

_DEEPEST = 64  # elements within each other
_INLINE = frozenset(("p", "div", "head", "hi", "emph", "list", "itm", "br", "span", "b", "i"))  # marks within a text


@dataclass(slots=True)
class _Variable:
    """One `var` of DDI, and the category of it that is being read."""

    name: str
    label: str = ""
    unit: str = ""
    description: str = ""
    question: str = ""
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

    def end(self) -> SurveyColumn:
        """The column that it describes."""
        return SurveyColumn(
            self.name,
            self.label,
            tuple(self.labels),
            tuple(self.missing),
            unit=self.unit,
            description=self.description,
            question=self.question,
        )


class _Ddi:
    """Reads `var` elements and what is said of the study as they come. A document type is refused: with it entities would be
    declared, which name other files or grow without bound."""

    def __init__(self, where: str) -> None:
        self.found: dict[str, SurveyColumn] = {}
        self.study = Study()
        self._where = where
        self._open: list[tuple[str, Mapping[str, str]]] = []
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
        return SourceError(what, where=self._where, remedy=AGAIN)

    def _refuse_doctype(self, *_: object) -> None:
        raise self._refuse("the codebook declares a document type, which may read other files or grow without bound.")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        element = name.rpartition(" ")[2]
        if not self._open and element != "codeBook":
            raise self._refuse("this is no codebook of DDI: it begins with another element than codeBook.")
        self._open.append((element, attributes))
        if len(self._open) > _DEEPEST:
            raise self._refuse(f"the codebook has more than {_DEEPEST} elements within each other.")
        if element in _INLINE:
            self._add(" ")
            return
        self._text = ""
        if element == "var":
            self._variable = _Variable(canonical_name(attributes.get("name", "").strip()))
            self._variable.unit = attributes.get("measUnit", "").strip()[:MOST_TEXT]
        elif element == "catgry" and self._variable is not None:
            self._variable.is_missing = attributes.get("missing", "").upper() == "Y"

    def _add(self, text: str) -> None:
        if len(self._text) < MOST_TEXT:
            self._text += text[:MOST_TEXT]

    def _end(self, _: str) -> None:
        element, attributes = self._open.pop()
        if element in _INLINE:
            self._add(" ")
            return
        text = " ".join(self._text.split())
        parents = [name for name, _ in self._open]
        self._text = ""
        if self._variable is not None:
            self._end_of_variable(self._variable, parents[-1] if parents else "", element, text)
        elif parents[1:2] == ["stdyDscr"] and text:
            self._end_of_study(parents[-1], element, text, attributes)

    def _end_of_variable(self, variable: _Variable, parent: str, element: str, text: str) -> None:
        match parent, element:
            case "var", "labl":
                variable.label = variable.label or text
            case "var", "txt":
                variable.description = variable.description or text
            case "qstn", "qstnLit":
                variable.question = variable.question or text
            case "catgry", "catValu":
                variable.code = text
            case "catgry", "labl":
                variable.meaning = variable.meaning or text
            case _, "catgry":
                variable.end_category()
            case _, "var":
                if variable.name:
                    self.found[variable.name] = variable.end()
                self._variable = None
            case _:
                pass

    def _end_of_study(self, parent: str, element: str, text: str, attributes: Mapping[str, str]) -> None:
        """What is said once is taken where it is said first."""
        study, address = self.study, attributes.get("URI", "")[:MOST_TEXT]
        match parent, element:
            case "titlStmt", "titl":
                study.title = study.title or text
            case "stdyInfo", "abstract":
                study.description = study.description or text
            case "dataAccs", "license":
                study.licence = study.licence if study.licence[0] else (text, address)
            case "distStmt", "distrbtr":
                study.publisher = study.publisher if study.publisher[0] else (text, address)
            case (("distStmt" | "useStmt"), "contact"):
                study.contact = study.contact if any(study.contact) else (text, attributes.get("email", "")[:MOST_TEXT], address)
            case "rspStmt", "AuthEnty":
                self._add_contributor(text, "creator")
            case "dataColl", "dataCollector":
                self._add_contributor(text, "collector")
            case "prodStmt", "fundAg":
                self._add_contributor(text, "funder")
            case "sumDscr", "geogCover":
                add_listed(study.places, text)
            case "sumDscr", "timePrd":
                self._add_period(attributes.get("event", ""), attributes.get("date", "").strip()[:MOST_TEXT] or text)
            case "dataColl", "sampProc":
                study.sampling = study.sampling or text
            case "subject", "keyword":
                add_listed(study.keywords, text)
            case "citation", "biblCit":
                study.citation = study.citation or text
            case _:
                pass

    def _add_contributor(self, name: str, role: str) -> None:
        if (name, role) not in self.study.contributors and len(self.study.contributors) < MOST_LISTED:
            self.study.contributors.append((name, role))

    def _add_period(self, event: str, period: str) -> None:
        if event in ("start", "single") and not self.study.first:
            self.study.first = period
        if event in ("end", "single") and not self.study.last:
            self.study.last = period


def read_ddi(content: bytes, where: str) -> Codebook:
    """What it describes."""
    ddi = _Ddi(where)
    try:
        ddi.read(content)
    except expat.ExpatError:
        raise SourceError(f"line {ddi.line} of the codebook is no readable XML.", where=where, remedy=AGAIN) from None
    except (ValueError, LookupError):
        raise SourceError("the codebook is in no encoding that is read.", where=where, remedy="Save it as UTF-8.") from None
    if not ddi.found:
        raise SourceError("the codebook describes no variable.", where=where, remedy=AGAIN)
    return Codebook(ddi.found, ddi.study)
