"""croissant.json: Croissant 1.0 (MLCommons), which is schema.org's Dataset with its files and columns, so that search engines for
data and programs that train models read it."""

from __future__ import annotations

from typing import Any

from release_pipeline.privacy.dates import DATE, MOMENT
from release_pipeline.report.card import ColumnView
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.standards.terms import (
    Files,
    drop_unsaid,
    find_media_type,
    list_rows,
    write_json,
)
from release_pipeline.report.view import PublicView
from release_pipeline.sentences import PUBLIC

CONFORMS = "http://mlcommons.org/croissant/1.0"
_CONTEXT: dict[str, Any] = {
    "@language": "und",  # where nobody says which language a steward writes
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES = {"number": "sc:Float", "integer": "sc:Integer", "string": "sc:Text", DATE: "sc:Date", MOMENT: "sc:DateTime"}


def render_croissant(view: PublicView, files: Files) -> str:
    """The data set, its files with their hashes, and the columns of its rows, read from the first of the open formats."""
    about = view.about
    name, email, url = about.contact
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": about.title,
        "description": " ".join(end_sentence(words) for words in (about.description, view.headline or "", view.claim) if words),
        "license": about.licence[2],
        "url": about.publisher[1] or url or f"urn:release-pipeline:{view.release}",
        "creator": [_make_person(one.name, one.orcid) for one in about.contributors if one.role == "creator"]
        or [_make_organisation(*about.publisher)],
        "publisher": _make_organisation(*about.publisher),
        "contactPoint": drop_unsaid({"@type": "ContactPoint", "name": name, "email": email, "url": url}),
        "datePublished": view.published[:10],
        "version": f"{view.release.rpartition('/r')[2]}.0.0",
        "citeAs": about.cite(view.release, view.published),
        "keywords": list(about.keywords),
        "temporalCoverage": f"{about.first}/{about.last}" if about.first else "",
        "spatialCoverage": list(about.places),
        "distribution": [_make_file(name, *files[name]) for name in list_rows(view)],
        "recordSet": [_make_records(view)],
    }
    return write_json(drop_unsaid(document))


def _make_person(name: str, orcid: str | None) -> dict[str, Any]:
    return drop_unsaid({"@type": "Person", "name": name, "url": f"https://orcid.org/{orcid}" if orcid else None})


def _make_organisation(name: str, url: str | None) -> dict[str, Any]:
    return drop_unsaid({"@type": "Organization", "name": name, "url": url})


def _make_file(name: str, digest: str, size: int) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{size} B",
        "encodingFormat": find_media_type(name).replace("application/vnd.apache.parquet", "application/x-parquet"),
        "sha256": digest,
    }


def _make_records(view: PublicView) -> dict[str, Any]:
    """The columns, as the first file has them, of Parquet where there is one: it tells a text from a cell without a value."""
    form = "parquet" if "parquet" in view.formats else "csv"
    first, *others = view.name_data(form)
    return {
        "@type": "cr:RecordSet",
        "@id": "rows",
        "name": "rows",
        **({"description": PUBLIC("about.first_of_files", first=first, last=others[-1])} if others else {}),
        "field": [_make_field(place, column, first) for place, column in enumerate(view.columns, 1)],
    }


def _make_field(place: int, column: ColumnView, file: str) -> dict[str, Any]:
    why = PUBLIC("package.why", why=column.why) if column.why else ""
    words = [column.label, column.description, column.question, why, column.noise]
    return {
        "@type": "cr:Field",
        "@id": f"rows/{place}",
        "name": column.name,
        "description": "; ".join(part for part in words if part),
        "dataType": _TYPES[column.type],
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }
