"""Descriptions of a package in several standards, and what these share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from release_pipeline.formats.about import Contact, Publisher
from release_pipeline.formats.card import ColumnView
from release_pipeline.formats.package import PackageView
from release_pipeline.pages.escaping import end_sentence
from release_pipeline.publish.public import MEDIA_TYPES, list_coded
from release_pipeline.sentences import PUBLIC

Files: TypeAlias = Mapping[str, tuple[str, int]]  # SHA-256 in hex and length in bytes of each file, by name


def find_media_type(name: str) -> str:
    """Return the media type of a file that has rows."""
    return MEDIA_TYPES[name.rpartition(".")[2]]


def list_rows(package: PackageView) -> list[str]:
    """Return the files that have the rows, format by format."""
    return [name for form in package.card.formats for name in package.name_data(form)]


def drop_unsaid(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without the empty ones."""
    return {key: value for key, value in said.items() if value not in (None, "", [], {}, ())}


def write_json(document: Mapping[str, Any]) -> str:
    """Return the document as JSON in the style of the package: in one order, ASCII."""
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


# CITATION.cff: the Citation File Format 1.2.0, in YAML. Texts are written as JSON has them, so that none can be anything else.


# SPDX identifiers that this version of the format knows, of those that a policy may name without an address
_KNOWN = {
    "OGL-UK-3.0",
    "etalab-2.0",
    "CC0-1.0",
    "CC-BY-4.0",
    "CC-BY-SA-4.0",
    "CC-BY-NC-4.0",
    "ODbL-1.0",
    "ODC-By-1.0",
    "PDDL-1.0",
}


def render_citation(package: PackageView, _: Files) -> str:
    """Return CITATION.cff: who made the data, their title, and when they came out."""
    return "".join(f"{line}\n" for line in _list_lines(package))


def _list_lines(package: PackageView) -> Iterator[str]:
    about = package.card.about
    yield "cff-version: 1.2.0"
    yield f"message: {_quote(PUBLIC('about.cite_message'))}"
    yield "type: dataset"
    yield f"title: {_quote(about.title)}"
    yield f"abstract: {_quote(about.description)}"
    yield "authors:"
    creators = dict.fromkeys((person.name, person.orcid) for person in about.contributors if person.role == "creator")
    for name, orcid in creators:
        yield f"  - name: {_quote(name)}"
        if orcid is not None:
            yield f"    orcid: {_quote(f'https://orcid.org/{orcid}')}"
    if not creators:
        yield from _name_publisher(about.publisher)
    email, url = about.contact.email, about.contact.url
    yield "contact:"
    yield f"  - name: {_quote(about.contact.name or about.publisher.name)}"
    if email is not None and re.fullmatch(r"\S+@\S+\.\S{2,}", email):
        yield f"    email: {_quote(email)}"
    if url is not None:
        yield f"    website: {_quote(url)}"
    licence = about.licence
    yield f"license: {_quote(licence.name)}" if licence.name in _KNOWN else f"license-url: {_quote(licence.url)}"
    if about.keywords:
        yield f"keywords: [{', '.join(map(_quote, about.keywords))}]"
    yield f"version: {_quote(package.card.release)}"
    yield f"date-released: {_quote(package.card.published[:10])}"


def _name_publisher(publisher: Publisher) -> Iterator[str]:
    yield f"  - name: {_quote(publisher.name)}"
    if publisher.url is not None:
        yield f"    website: {_quote(publisher.url)}"


def _quote(words: str) -> str:
    """Return a text as YAML and JSON both have it; they differ in how they write letters beyond 16 bits by number."""
    return json.dumps(words, ensure_ascii=False)


# dcat.jsonld: DCAT-AP 3, which the data portals of European administrations harvest. Addresses of files are relative: they become
# whole where the package is.


_CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA = "http://www.iana.org/assignments/media-types/"


def render_dcat(package: PackageView, files: Files) -> str:
    """Return dcat.jsonld: the data set and, as its distributions, the files that have the rows."""
    about = package.card.about
    name, email, url = about.contact.name, about.contact.email, about.contact.url
    contact = {
        "@type": "vcard:Kind",
        "vcard:fn": name or about.publisher.name,
        "vcard:hasEmail": {"@id": f"mailto:{email}"} if email else None,
        "vcard:hasURL": {"@id": url} if url else None,
    }
    document = {
        "@context": _CONTEXT,
        "@id": "./",
        "@type": "dcat:Dataset",
        "dct:title": about.title,
        "dct:description": about.description,
        "dct:identifier": package.card.release,
        "dct:issued": _date(package.card.published[:10]),
        "dcat:version": package.card.release.rpartition("/")[2],
        "dct:publisher": _make_agent(about.publisher.name, about.publisher.url),
        "dct:creator": [_make_agent(person.name, None) for person in about.contributors if person.role == "creator"],
        "dcat:contactPoint": drop_unsaid(contact),
        "dcat:keyword": list(about.keywords),
        "dct:temporal": _make_period(about.coverage.first, about.coverage.last),
        "dct:spatial": [{"@type": "dct:Location", "skos:prefLabel": place} for place in about.coverage.places],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": f"{package.card.method.words}; {package.card.claim.words}",
        },
        "dcat:distribution": [_make_distribution(package, name, *files[name]) for name in list_rows(package)],
    }
    return write_json(drop_unsaid(document))


def _date(day: str) -> dict[str, str]:
    return {"@value": day, "@type": "xsd:date"}


def _make_agent(name: str, url: str | None) -> dict[str, Any]:
    return drop_unsaid({"@type": "foaf:Agent", "foaf:name": name, "foaf:homepage": {"@id": url} if url else None})


def _make_period(first: str | None, last: str | None) -> dict[str, Any] | None:
    if first is None or last is None:
        return None
    return {"@type": "dct:PeriodOfTime", "dcat:startDate": _date(first), "dcat:endDate": _date(last)}


def _make_distribution(package: PackageView, name: str, digest: str, size: int) -> dict[str, Any]:
    about = package.card.about
    algorithm = {"@id": "http://spdx.org/rdf/terms#checksumAlgorithm_sha256", "@type": "spdx:ChecksumAlgorithm"}
    return {
        "@id": f"./{name}#distribution",
        "@type": "dcat:Distribution",
        "dct:title": name,
        "dcat:accessURL": {"@id": f"./{name}"},
        "dcat:downloadURL": {"@id": f"./{name}"},
        "dcat:mediaType": {"@id": _MEDIA + find_media_type(name), "@type": "dct:MediaType"},
        "dcat:byteSize": {"@value": str(size), "@type": "xsd:nonNegativeInteger"},
        "dct:license": {"@id": about.licence.url, "@type": "dct:LicenseDocument"},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": algorithm,
            "spdx:checksumValue": {"@value": digest, "@type": "xsd:hexBinary"},
        },
    }


# ddi-codebook.xml: DDI-Codebook 2.6, which archives of social science read, and with it any reader
# of 2.5 that goes by names.


NAMESPACE = "ddi:codebook:2_6"
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Lines: TypeAlias = Iterator[str]


def render_ddi(package: PackageView, files: Files) -> str:
    """Return ddi-codebook.xml: the study, the files, and every column with its label, question, values and their meaning."""
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
    terms = [_tag("keyword", word) for word in about.keywords]
    info = [*_within("subject", terms)] if terms else []
    info.append(_tag("abstract", about.description))
    info += _within("sumDscr", _summary(package))
    yield from _within("stdyInfo", info)
    collected = [_tag("dataCollector", person.name) for person in about.contributors if person.role == "collector"]
    collected += [_tag("sampProc", about.sampling)] if about.sampling is not None else []
    method = [*_within("dataColl", collected)] if collected else []
    made = [package.card.headline or "", package.card.method.words, package.card.claim.words, package.card.claim.statement]
    notes = " ".join(end_sentence(terms) for terms in made if terms)
    yield from _within("method", [*method, _tag("notes", notes, type="privacy")])
    use = [_tag("contact", about.contact.name or about.publisher.name, **_find_address(about.contact))]
    use.append(_tag("citReq", about.citation))
    use += [_tag("conditions", terms) for terms in (about.intended_use, about.recipients) if terms]
    use += [_tag("disclaimer", terms) for terms in package.card.how_to_use]
    yield from _within("dataAccs", [_tag("license", about.licence.title, URI=about.licence.url), *_within("useStmt", use)])


def _find_address(contact: Contact) -> dict[str, str]:
    return {**({"email": contact.email} if contact.email else {}), **({"URI": contact.url} if contact.url else {})}


def _citation(package: PackageView) -> Lines:
    about = package.card.about
    yield from _within("titlStmt", [_tag("titl", about.title), _tag("IDNo", package.card.release, agency=about.publisher.name)])
    made: list[str] = []
    for person in about.contributors:
        if person.role == "creator":
            made.append(_tag("AuthEnty", person.name, **_belongs(person.organisation)))
    for person in about.contributors:
        if person.role in ("curator", "contributor"):
            made.append(_tag("othId", person.name, type=person.role, **_belongs(person.organisation)))
    if made:
        yield from _within("rspStmt", made)
    produced = [_tag("producer", about.publisher.name), _tag("software", package.card.tool)]
    produced += [_tag("fundAg", person.name) for person in about.contributors if person.role == "funder"]
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


def _file(package: PackageView, number: int, name: str, digest: str) -> Lines:
    is_whole = len(package.name_data(name.rpartition(".")[2])) == 1  # the number of rows in one of several files is not reported
    rows = [_tag("caseQnty", str(package.card.rows.out))] if is_whole else []
    known = [_tag("digitalFingerprintValue", digest), _tag("algorithmSpecification", "SHA-256")]
    yield f'<fileDscr ID="file{number}" URI={_quote_xml(name)}>'
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
    """Return whether a file has a column: in Stata and SPSS files, reasons for no number are in the number's own cell."""
    return file.rpartition(".")[2] not in ("dta", "sav") or column.name not in list_coded(package)


def _variables(package: PackageView) -> Lines:
    numbered = list(enumerate(list_rows(package), 1))
    for index, column in enumerate(package.card.columns, 1):
        files = " ".join(f"file{number}" for number, name in numbered if _is_in(package, column, name))
        interval = "contin" if column.type == "number" and not column.values else "discrete"
        unit = "" if column.unit is None else f" measUnit={_quote_xml(column.unit)}"
        yield f'<var ID="var{index}" name={_quote_xml(column.name)} files="{files}" intrvl="{interval}"{unit}>'
        yield from _variable(column, anywhere=package.card.method.values == "anywhere")
        yield "</var>"


def _variable(column: ColumnView, *, anywhere: bool) -> Lines:
    """Yield the lines of a column. Where noisy values may be anywhere, its domain is not their range, and dates have no range in
    this standard."""
    if column.label is not None:
        yield _tag("labl", column.label)
    if column.question is not None:
        yield from _within("qstn", [_tag("qstnLit", column.question)])
    is_free = anywhere and column.done == "noise"
    if column.domain is not None and column.type in ("number", "integer") and not is_free:
        low, high = column.domain
        units = "REAL" if column.type == "number" else "INT"
        yield from _within("valrng", [f"<range UNITS={_quote_xml(units)} min={_quote_xml(low)} max={_quote_xml(high)}/>"])
    if column.description is not None:
        yield _tag("txt", column.description)
    labels = dict(column.labels)
    for value in dict.fromkeys((*column.values, *labels)):
        named = [_tag("labl", labels[value])] if value in labels else []
        yield from _within("catgry", [_tag("catValu", value), *named])
    why = PUBLIC("package.why", why=column.why) if column.why else None
    said = [why, column.hierarchy, column.noise, column.missing]
    yield from (_tag("codInstr", words) for words in said if words)
    yield f'<varFormat type="{"numeric" if column.type in ("number", "integer") else "character"}"/>'


def _within(name: str, lines: Iterable[str]) -> Lines:
    yield f"<{name}>"
    yield from lines
    yield f"</{name}>"


def _tag(name: str, words: str, **attributes: str) -> str:
    said = "".join(f" {key}={_quote_xml(value)}" for key, value in attributes.items())
    return f"<{name}{said}>{escape(_clean(words))}</{name}>"


def _quote_xml(words: str) -> str:
    return quoteattr(_clean(words))


def _clean(words: str) -> str:
    """Return a text with each letter that XML 1.0 cannot hold replaced by its number."""
    return _NO_XML.sub(lambda found: f"[U+{ord(found[0]):04X}]", words)


# Descriptions of a package for catalogues, archives and programs: pure functions of the package and
# its files.


Render: TypeAlias = Callable[[PackageView, Files], str]
STANDARDS: Mapping[str, Render] = {
    "ddi-codebook.xml": render_ddi,
    "dcat.jsonld": render_dcat,
    "CITATION.cff": render_citation,
}
