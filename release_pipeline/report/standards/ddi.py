"""ddi-codebook.xml: DDI-Codebook 2.6, which archives of social science read, and with it any reader of 2.5 that goes by names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

from release_pipeline.report.about import Contact
from release_pipeline.report.card import ColumnView
from release_pipeline.report.datapackage import list_coded
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.standards.terms import Files, find_media_type, list_rows
from release_pipeline.report.view import PackageView
from release_pipeline.sentences import PUBLIC

NAMESPACE = "ddi:codebook:2_6"
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Lines: TypeAlias = Iterator[str]


def render_ddi(package: PackageView, files: Files) -> str:
    """The study, the files, and every column with its label, question, values and their meaning."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<codeBook xmlns="{NAMESPACE}" version="2.6">',
        *_within("stdyDscr", _study(package)),
        *(line for place, name in enumerate(list_rows(package), 1) for line in _file(package, place, name, files[name][0])),
        *_within("dataDscr", _variables(package)),
        "</codeBook>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _study(package: PackageView) -> Lines:
    about = package.card.about
    yield from _within("citation", _citation(package))
    words = [_tag("keyword", word) for word in about.keywords]
    info = [*_within("subject", words)] if words else []
    info.append(_tag("abstract", about.description))
    info += _within("sumDscr", _summary(package))
    yield from _within("stdyInfo", info)
    collected = [_tag("dataCollector", one.name) for one in about.contributors if one.role == "collector"]
    collected += [_tag("sampProc", about.sampling)] if about.sampling is not None else []
    method = [*_within("dataColl", collected)] if collected else []
    made = [package.card.headline or "", package.card.method.words, package.card.claim.words, package.card.claim.statement]
    notes = " ".join(end_sentence(words) for words in made if words)
    yield from _within("method", [*method, _tag("notes", notes, type="privacy")])
    use = [_tag("contact", about.contact.name or about.publisher.name, **_find_address(about.contact))]
    use.append(_tag("citReq", about.citation))
    use += [_tag("conditions", words) for words in (about.intended_use, about.recipients) if words]
    use += [_tag("disclaimer", words) for words in package.card.how_to_use]
    yield from _within("dataAccs", [_tag("license", about.licence.title, URI=about.licence.url), *_within("useStmt", use)])


def _find_address(contact: Contact) -> dict[str, str]:
    return {**({"email": contact.email} if contact.email else {}), **({"URI": contact.url} if contact.url else {})}


def _citation(package: PackageView) -> Lines:
    about = package.card.about
    yield from _within("titlStmt", [_tag("titl", about.title), _tag("IDNo", package.card.release, agency=about.publisher.name)])
    made = [_tag("AuthEnty", one.name, **_belongs(one.organisation)) for one in about.contributors if one.role == "creator"]
    others = [one for one in about.contributors if one.role in ("curator", "contributor")]
    made += [_tag("othId", one.name, type=one.role, **_belongs(one.organisation)) for one in others]
    if made:
        yield from _within("rspStmt", made)
    produced = [_tag("producer", about.publisher.name), _tag("software", package.card.tool)]
    produced += [_tag("fundAg", one.name) for one in about.contributors if one.role == "funder"]
    yield from _within("prodStmt", produced)
    distributor = {"URI": about.publisher.url} if about.publisher.url else {}
    spread = [_tag("distrbtr", about.publisher.name, **distributor)]
    spread.append(_tag("distDate", package.card.published[:10], date=package.card.published[:10]))
    yield from _within("distStmt", spread)
    yield from _within("verStmt", [_tag("version", package.card.release.rpartition("/")[2], date=package.card.published[:10])])


def _belongs(organisation: str | None) -> dict[str, str]:
    return {} if organisation is None else {"affiliation": organisation}


def _summary(package: PackageView) -> Lines:
    coverage = package.card.about.coverage
    if coverage.first is not None and coverage.last is not None:
        yield _tag("timePrd", coverage.first, event="start", date=coverage.first)
        yield _tag("timePrd", coverage.last, event="end", date=coverage.last)
    for place in coverage.places:
        yield _tag("geogCover", place)
    yield _tag("universe", package.card.population)


def _file(package: PackageView, place: int, name: str, digest: str) -> Lines:
    is_whole = len(package.name_data(name.rpartition(".")[2])) == 1  # how many of the rows are in one of several is not told
    rows = [_tag("caseQnty", str(package.card.rows.out))] if is_whole else []
    known = [_tag("digitalFingerprintValue", digest), _tag("algorithmSpecification", "SHA-256")]
    yield f'<fileDscr ID="file{place}" URI={_quote(name)}>'
    yield f'<fileTxt mimeType="{find_media_type(name)}">'
    yield _tag("fileName", name)
    yield '<dataFingerprint type="dataFile">'
    yield from known
    yield "</dataFingerprint>"
    yield from _within(
        "dimensns", [*rows, _tag("varQnty", str(sum(_is_in(package, column, name) for column in package.card.columns)))]
    )
    yield "</fileTxt>"
    yield "</fileDscr>"


def _is_in(package: PackageView, column: ColumnView, file: str) -> bool:
    """Whether a file has a column: reasons for no number stand in the number's own cell in those of Stata and SPSS."""
    return file.rpartition(".")[2] not in ("dta", "sav") or column.name not in list_coded(package)


def _variables(package: PackageView) -> Lines:
    numbered = list(enumerate(list_rows(package), 1))
    for place, column in enumerate(package.card.columns, 1):
        files = " ".join(f"file{number}" for number, name in numbered if _is_in(package, column, name))
        interval = "contin" if column.type == "number" and not column.values else "discrete"
        unit = "" if column.unit is None else f" measUnit={_quote(column.unit)}"
        yield f'<var ID="var{place}" name={_quote(column.name)} files="{files}" intrvl="{interval}"{unit}>'
        yield from _variable(column, anywhere=package.card.method.values == "anywhere")
        yield "</var>"


def _variable(column: ColumnView, *, anywhere: bool) -> Lines:
    """A column. Where noisy values may lie anywhere its domain is no range of theirs, and dates have none in this standard."""
    if column.label is not None:
        yield _tag("labl", column.label)
    if column.question is not None:
        yield from _within("qstn", [_tag("qstnLit", column.question)])
    is_free = anywhere and column.done == "noise"
    if column.domain is not None and column.type in ("number", "integer") and not is_free:
        low, high = column.domain
        units = "REAL" if column.type == "number" else "INT"
        yield from _within("valrng", [f"<range UNITS={_quote(units)} min={_quote(low)} max={_quote(high)}/>"])
    if column.description is not None:
        yield _tag("txt", column.description)
    labels = dict(column.labels)
    for value in dict.fromkeys((*column.values, *labels)):
        named = [_tag("labl", labels[value])] if value in labels else []
        yield from _within("catgry", [_tag("catValu", value), *named])
    of_making = column.made.words if column.made else None
    why = PUBLIC("package.why", why=column.why) if column.why else None
    said = [why, column.hierarchy, of_making, column.noise, column.missing]
    yield from (_tag("codInstr", words) for words in said if words)
    yield f'<varFormat type="{"numeric" if column.type in ("number", "integer") else "character"}"/>'


def _within(name: str, lines: Iterable[str]) -> Lines:
    yield f"<{name}>"
    yield from lines
    yield f"</{name}>"


def _tag(name: str, words: str, **attributes: str) -> str:
    said = "".join(f" {key}={_quote(value)}" for key, value in attributes.items())
    return f"<{name}{said}>{escape(_clean(words))}</{name}>"


def _quote(words: str) -> str:
    return quoteattr(_clean(words))


def _clean(words: str) -> str:
    """A text as it is, but for what XML 1.0 has no way to hold, which is named by its number."""
    return _NO_XML.sub(lambda found: f"[U+{ord(found[0]):04X}]", words)
