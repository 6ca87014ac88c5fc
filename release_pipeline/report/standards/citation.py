"""CITATION.cff: the Citation File Format 1.2.0, in YAML. Texts are written as JSON has them, so that none is anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator

from release_pipeline.report.standards.terms import Files, about_of
from release_pipeline.report.view import PublicView
from release_pipeline.sentences import PUBLIC

# SPDX identifiers that this version of the format knows, of those that a policy may name without an address
_KNOWN = {"CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "ODbL-1.0", "ODC-By-1.0", "PDDL-1.0", "OGL-UK-3.0"}
_KNOWN |= {"etalab-2.0"}


def render_citation(view: PublicView, _: Files) -> str:
    """Who made the data, what they are called, and when they came out."""
    return "".join(f"{line}\n" for line in _list_lines(view))


def _list_lines(view: PublicView) -> Iterator[str]:
    about = about_of(view)
    yield "cff-version: 1.2.0"
    yield f"message: {json.dumps(PUBLIC('about.cite_message'))}"
    yield "type: dataset"
    yield f"title: {json.dumps(about.title)}"
    yield f"abstract: {json.dumps(about.description)}"
    yield "authors:"
    creators = [one for one in about.contributors if one.role == "creator"]
    for one in creators:
        yield f"  - name: {json.dumps(one.name)}"
        if one.orcid is not None:
            yield f"    orcid: {json.dumps(f'https://orcid.org/{one.orcid}')}"
    if not creators:
        yield from _name_publisher(about.publisher)
    who, email, url = about.contact
    yield "contact:"
    yield f"  - name: {json.dumps(who or about.publisher[0])}"
    if email is not None and "." in email.rpartition("@")[2]:
        yield f"    email: {json.dumps(email)}"
    if url is not None:
        yield f"    website: {json.dumps(url)}"
    name, _, address = about.licence
    yield f"license: {json.dumps(name)}" if name in _KNOWN else f"license-url: {json.dumps(address)}"
    if about.keywords:
        yield f"keywords: {json.dumps(list(about.keywords))}"
    yield f"version: {json.dumps(view.release)}"
    yield f"date-released: {json.dumps(view.published[:10])}"


def _name_publisher(publisher: tuple[str, str | None]) -> Iterator[str]:
    name, url = publisher
    yield f"  - name: {json.dumps(name)}"
    if url is not None:
        yield f"    website: {json.dumps(url)}"
