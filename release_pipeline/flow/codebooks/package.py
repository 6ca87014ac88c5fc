"""The JSON of a data package (Frictionless, version 1 or 2), or of a table schema alone: what it says of fields, and of the data.
What it only names (files, schemas elsewhere) is not opened, and what is of another shape than the standard says is left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from release_pipeline.errors import SourceError
from release_pipeline.flow.codebooks.common import AGAIN, MOST_LISTED, MOST_TEXT, Codebook, Study, add_listed, decode_text
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.store.survey_files import SurveyColumn

_ROLES = {"creator": "creator", "author": "creator", "collector": "collector", "curator": "curator", "funder": "funder"}
_LETTERS = 100  # of a number that is a code


def read_package(content: bytes, where: str) -> Codebook:
    """What it describes."""
    text = decode_text(content, where)
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise SourceError("the codebook is no readable JSON.", where=where, remedy=AGAIN) from None
    found: dict[str, SurveyColumn] = {}
    for schema in _list_schemas(read):
        for field in _list(schema.get("fields")):
            column = _read_field(field, _entries((field if "missingValues" in field else schema).get("missingValues")))
            if column is not None:
                found.setdefault(column.name, column)  # the same columns in another format say no more
    if not found:
        raise SourceError("the codebook describes no field.", where=where, remedy=AGAIN)
    return Codebook(found, _read_study(read))


def _list_schemas(read: Any) -> Iterator[dict[str, Any]]:
    """The schemas of a package's resources that stand in it, or the one that this is."""
    if isinstance(read, dict):
        yield from [cast(dict[str, Any], read)] if "fields" in read else []
        for resource in _list(cast(dict[str, Any], read).get("resources")):
            if isinstance(schema := resource.get("schema"), dict):
                yield cast(dict[str, Any], schema)


def _read_field(field: dict[str, Any], missing: list[tuple[str, str]]) -> SurveyColumn | None:
    """The column that a field describes; `missing`: the entries that stand for no answer, with what they mean."""
    if not (name := _text(field.get("name"))):
        return None
    kind, limits = field.get("type"), field.get("constraints")
    listed = cast(dict[str, Any], limits).get("enum") if isinstance(limits, dict) else None
    labels: dict[str, str] = {}
    for entry in (*_entries(field.get("categories")), *_entries(listed)):
        labels[entry[0]] = labels.get(entry[0]) or entry[1]
    codes = [(code, meaning) for code, meaning in missing if code]
    return SurveyColumn(
        canonical_name(name),
        _text(field.get("title")),
        tuple({**labels, **{code: meaning or labels.get(code, "") for code, meaning in codes}}.items()),
        tuple((code, code) for code, _ in codes),
        is_text=kind == "string",
        unit=_text(field.get("unit")),
        description=_text(field.get("description")),
        question=_text(field.get("question")),
    )


def _entries(listed: Any) -> list[tuple[str, str]]:
    """Entries, with their labels where they have some."""
    found: list[tuple[str, str]] = []
    for entry in cast(list[Any], listed) if isinstance(listed, list) else []:
        known = cast(dict[str, Any], entry) if isinstance(entry, dict) else {"value": entry}
        if (code := _code(known.get("value"))) is not None:
            found.append((code, _text(known.get("label"))))
    return found


def _code(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip()[:MOST_TEXT]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 10**_LETTERS:  # no number is not less
        return None
    return str(int(value)) if value == int(value) else str(value)


def _read_study(read: Any) -> Study:
    package = cast(dict[str, Any], read) if isinstance(read, dict) else {}
    if "fields" in package:  # a table schema: what it says is of the table
        return Study()
    study = Study(title=_text(package.get("title")), description=_text(package.get("description")))
    for licence in _list(package.get("licenses"))[:1]:
        study.licence = (_text(licence.get("name")) or _text(licence.get("title")), _text(licence.get("path")))
    for one in _list(package.get("contributors")):
        name = _text(one.get("title"))
        for role in [_text(role) for role in _strings(one.get("roles"))] or [_text(one.get("role"))]:
            if role == "publisher" and name:
                study.publisher = (name, _text(one.get("path")))
            elif role == "contact":
                study.contact = (name, _text(one.get("email")), _text(one.get("path")))
            elif name and len(study.contributors) < MOST_LISTED:
                study.contributors.append((name, _ROLES.get(role, "contributor")))
    for word in _strings(package.get("keywords")):
        add_listed(study.keywords, _text(word))
    coverage = package.get("coverage")
    if isinstance(coverage, dict):
        covered = cast(dict[str, Any], coverage)
        for place in _strings(covered.get("places")):
            add_listed(study.places, _text(place))
        study.first, study.last = _text(covered.get("first")), _text(covered.get("last"))
    study.sampling, study.citation = _text(package.get("sampling")), _text(package.get("citation"))
    return study


def _list(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; nothing of what is none."""
    return (
        [cast(dict[str, Any], one) for one in cast(list[Any], value) if isinstance(one, dict)] if isinstance(value, list) else []
    )


def _strings(value: Any) -> list[str]:
    return [one for one in cast(list[Any], value) if isinstance(one, str)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return " ".join(value[: MOST_TEXT * 2].split())[:MOST_TEXT] if isinstance(value, str) else ""
