"""CITATION.cff: the Citation File Format 1.2.0, in YAML. Texts are written as JSON has them, so that none is anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from release_pipeline.report.about import Publisher
from release_pipeline.report.standards.terms import Files
from release_pipeline.report.view import PackageView
from release_pipeline.sentences import PUBLIC

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
    """Who made the data, what they are called, and when they came out."""
    return "".join(f"{line}\n" for line in _list_lines(package))


def _list_lines(package: PackageView) -> Iterator[str]:
    about = package.card.about
    yield "cff-version: 1.2.0"
    yield f"message: {_quote(PUBLIC('about.cite_message'))}"
    yield "type: dataset"
    yield f"title: {_quote(about.title)}"
    yield f"abstract: {_quote(about.description)}"
    yield "authors:"
    creators = list({(one.name, one.orcid): one for one in about.contributors if one.role == "creator"}.values())
    for one in creators:
        yield f"  - name: {_quote(one.name)}"
        if one.orcid is not None:
            yield f"    orcid: {_quote(f'https://orcid.org/{one.orcid}')}"
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
    """A text as YAML and JSON both have it; beyond 16 bits they do not write letters by number alike."""
    return json.dumps(words, ensure_ascii=False)
