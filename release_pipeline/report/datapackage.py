"""datapackage.json, which describes the files of a package to programs, and the lists of labels; pure functions of a view."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from release_pipeline.privacy.figures import is_instant
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.view import ColumnView, PublicView
from release_pipeline.sentences import PUBLIC

MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def render_datapackage(view: PublicView, hashes: Mapping[str, tuple[str, int]]) -> str:
    """datapackage.json (Frictionless Data Package v1): one resource for each format of the view, all with the same schema.

    The CSV file is a tabular resource; the Parquet file, which carries its own types, one whose length and hash alone are
    validated. `hashes`: SHA-256 in hex and length in bytes of each data file, by name. A format, type, bound or value that the
    standard could not express is refused with a ValueError, a file without its hash with a KeyError.
    """
    anywhere = view.values == "anywhere"
    schema = {"fields": [_make_field(column, anywhere=anywhere) for column in view.columns], "missingValues": [""]}
    package: dict[str, Any] = {
        "profile": "data-package",
        "name": re.sub(r"[^a-z0-9._/-]+", "-", view.release.lower()) or "release",
        "id": view.release,
        "title": PUBLIC("package.title", release=view.release),
        "description": PUBLIC("package.description", claim=end_sentence(view.claim)),
        "version": view.release.rpartition("/")[2] or view.release,
    }
    if is_instant(view.published):
        package["created"] = view.published
    package["resources"] = [_make_resource(form, *hashes[f"data.{form}"], schema) for form in view.formats]
    package["resources"] += [_make_list(file, *hashes[file]) for file, _ in view.hierarchies]
    return json.dumps(package, indent=2, ensure_ascii=True) + "\n"


def render_hierarchy(rows: Sequence[Sequence[str]]) -> str:
    """hierarchy-COLUMN.csv: level0, level1, ..., as a policy can declare it again."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([f"level{level}" for level in range(len(rows[0]))])
    writer.writerows(rows)
    return table.getvalue()


def _make_resource(form: str, digest: str, size: int, schema: dict[str, Any]) -> dict[str, Any]:
    if form not in MEDIA_TYPES:
        raise ValueError("a format that is not known cannot be a resource")
    if re.fullmatch("[0-9a-f]{64}", digest) is None:
        raise ValueError("a hash is 64 lower-case hex digits")
    resource: dict[str, Any] = {"name": f"data-{form}", "path": f"data.{form}", "format": form, "mediatype": MEDIA_TYPES[form]}
    if form == "csv":
        resource |= {"profile": "tabular-data-resource", "encoding": "utf-8"}
    else:  # a tabular resource is CSV; read as a table, frictionless turns whole numbers with nulls into floats and refuses them
        resource |= {"profile": "data-resource", "type": "file"}
    return resource | {"bytes": int(size), "hash": f"sha256:{digest}", "schema": schema}


def _make_list(file: str, digest: str, size: int) -> dict[str, Any]:
    """The resource of a hierarchy's list: texts, as many levels as it has."""
    return {
        "name": file.removesuffix(".csv"),
        "path": file,
        "format": "csv",
        "mediatype": MEDIA_TYPES["csv"],
        "encoding": "utf-8",
        "bytes": int(size),
        "hash": f"sha256:{digest}",
        "description": PUBLIC("package.hierarchy"),
    }


def _make_field(column: ColumnView, *, anywhere: bool) -> dict[str, Any]:
    """The field of a column. Where masked values may lie anywhere their domain is no constraint, and a description only."""
    is_free = anywhere and column.done == "noise" and column.domain is not None
    if column.type not in ("number", "integer", "string"):
        raise ValueError("a released column is of type number, integer or string")
    parts = [column.why, column.hierarchy or ""]
    if is_free and column.domain is not None:
        parts.append(PUBLIC("package.domain", low=column.domain[0], high=column.domain[1]))
    if column.grid:
        parts.append(PUBLIC("package.grid", grid=column.grid))
    if column.atoms:
        parts.append(PUBLIC("package.atoms", atoms=", ".join(column.atoms)))
    if column.noise:
        parts.append(PUBLIC("package.noise", noise=column.noise))
    field: dict[str, Any] = {"name": column.name, "type": column.type}
    field["description"] = "; ".join(part for part in parts if part)
    constraints: dict[str, Any] = {}
    if column.domain is not None and not is_free:
        constraints |= {"minimum": _bound(column.domain[0]), "maximum": _bound(column.domain[1])}
    if column.values:
        constraints["enum"] = [int(value) for value in column.values] if column.type == "integer" else list(column.values)
    return field | ({"constraints": constraints} if constraints else {})


def _bound(text: str) -> int | str:
    """A declared bound: a whole number as such, any other as its decimal text, which the standard reads exactly."""
    try:
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else format(number, "f")
    except (InvalidOperation, OverflowError, ValueError):
        raise ValueError("a declared bound is a decimal number") from None
