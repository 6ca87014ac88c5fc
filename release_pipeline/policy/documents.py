"""The documents printed as JSON: frozen types, their reader, their schemas.

What `--json` prints is a dataclass whose fields are its keys, each described where it is declared.

`schemas` makes the JSON Schemas from these descriptions, and `docs/make_json.py` docs/json.md, so that output, schemas and
documentation agree. A description may begin with the shape of the text, like `Hash`. Within a version of a format keys are added,
and none is removed, renamed or given another meaning.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from release_pipeline.errors import StoreError
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.values.formats import decimal_text

Hash: TypeAlias = Annotated[str, "pattern:^[0-9a-f]{64}$"]
Moment: TypeAlias = Annotated[str, "format:date-time"]  # RFC 3339
Exactly: TypeAlias = Annotated[str, "pattern:^[0-9]+(\\.[0-9]{1,9})?$"]  # an epsilon: whole billionths, written out
Delta: TypeAlias = Annotated[str, "pattern:^0\\.[0-9]{1,30}$"]
Amount: TypeAlias = Annotated[str, "pattern:^([0-9]+(\\.[0-9]{1,9})?|infinity)$"]

OPTIONAL: Mapping[str, bool] = {"optional": True}  # for a field that is left out if it is empty


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a file that a person wrote."""

    file: Annotated[str, "as it was named"]
    line: Annotated[int | None, "counted from 1; null where the fault is of the whole file"]
    column: Annotated[int | None, "in the line, counted from 1; null likewise"]
    option: Annotated[str, "which key, like protect.epsilon; empty for the file itself"]
    what: Annotated[str, "what is wrong"]
    remedy: Annotated[str, "what to do; empty where that is plain"]

    def __str__(self) -> str:
        """Return the fault in one line, as people read it."""
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {f'{self.option}: ' * bool(self.option)}{self.what}{f' {self.remedy}' * bool(self.remedy)}"


@dataclasses.dataclass(frozen=True, slots=True)
class EpsilonView:
    """What one release costs a person, exactly."""

    total: Annotated[Exactly, "in all, for one person"]
    columns: Annotated[dict[str, Exactly], "for each masked column, for one record"]
    records_per_person: Annotated[
        int, "how many records one person may have: columns and tables together, times this, are the total"
    ]
    delta: Annotated[Delta | None, "under zcdp, the delta at which all of these hold; they do not add up then, and rho does"] = (
        dataclasses.field(default=None, metadata=OPTIONAL)
    )
    rho: Annotated[Exactly | None, "under zcdp, what the release costs in all, for one person"] = dataclasses.field(
        default=None, metadata=OPTIONAL
    )
    tables: Annotated[
        dict[str, Exactly] | None, "for each table next to the rows, for one record; under zcdp what it is in rho"
    ] = dataclasses.field(default=None, metadata=OPTIONAL)


def view_epsilon(policy: Policy) -> EpsilonView | None:
    """Return the epsilon of a release of the policy; None for a method without."""
    if policy.epsilon is None:
        return None
    columns = {name: format_nano(policy.in_epsilon(part.nano)) for name, part in policy.column_epsilon.items()}
    total = format_nano(policy.in_epsilon(policy.epsilon))
    shares = {name: table.in_rho(1) if policy.protect.by_rho else table.share.nano for name, table in policy.tables.items()}
    tables = {name: format_nano(share) for name, share in shares.items()} or None
    if policy.delta is None:
        return EpsilonView(total, columns, policy.records_per_person, tables=tables)
    rho, delta = format_nano(policy.epsilon), decimal_text(policy.delta)
    return EpsilonView(total, columns, policy.records_per_person, delta=delta, rho=rho, tables=tables)


def to_json(view: Any) -> dict[str, Any]:
    """Return the document as a script reads it; its format first, if it has one."""
    form = getattr(view, "FORMAT", None)
    document: dict[str, Any] = {} if form is None else {"format": form}
    for field in dataclasses.fields(view):
        value = getattr(view, field.name)
        if value is None and field.metadata.get("optional"):
            continue
        document[field.name.rstrip("_")] = _plain(value)  # `in_` is the key `in`
    return document


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_json(cast(Any, value))
    if isinstance(value, tuple) and hasattr(cast(Any, value), "_asdict"):
        value = cast(Any, value)._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in cast(list[Any], value)]
    return value


# Stored JSON as frozen dataclasses: the types of their fields are checked, other keys are ignored, and error messages quote no
# content.

Read = TypeVar("Read")
Plain: TypeAlias = "float | str | Mapping[Any, Plain] | Sequence[Plain] | None"  # JSON or YAML, as read or to be written


def read_as(kind: type[Read], content: Mapping[str, Any], *, where: str) -> Read:
    """Return a dataclass read from JSON; raises if the content does not fit. A field that is Annotated with a `BeforeValidator`
    is read by its function."""
    try:
        return _adapter(kind).validate_python(content)
    except (ValidationError, KeyError, TypeError):
        raise StoreError(f"this is not what a version of release-pipeline wrote as {kind.__name__}.", where=where) from None


@lru_cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


# JSON Schemas (2020-12) of documents, made from the types that they are written and read by.


PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def make_object(view: Any, *, is_closed: bool = False) -> dict[str, Any]:
    """Return the schema of a document's type; the first part of its docstring describes it. A closed one takes no other keys."""
    hints = typing.get_type_hints(view, include_extras=True)
    if dataclasses.is_dataclass(view):
        fields = dataclasses.fields(view)
        is_optional = {field.name: bool(field.metadata.get("optional")) for field in fields}
    else:
        is_optional = dict.fromkeys(hints, False)
    form = getattr(view, "FORMAT", None) if is_closed else None
    properties: dict[str, Any] = {}
    if form is not None:
        properties["format"] = {"const": form, "description": "The version of this format."}
    for name, may_lack in is_optional.items():
        schema = _make_schema(hints[name], is_closed=is_closed)
        properties[name.rstrip("_")] = _forbid_null(schema) if may_lack else schema
    lacking = {name.rstrip("_") for name, may_lack in is_optional.items() if may_lack}
    return {
        "type": "object",
        "description": " ".join((view.__doc__ or "").partition("\n\n")[0].split()),
        **({"additionalProperties": False} if is_closed else {}),
        "properties": properties,
        "required": [name for name in properties if name not in lacking],
    }


def _forbid_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a key that is left out if it is empty, so it is never null."""
    if isinstance(schema.get("type"), list):
        enum = {"enum": [value for value in schema["enum"] if value is not None]} if "enum" in schema else {}
        return {**schema, "type": schema["type"][0], **enum}
    if "anyOf" in schema:
        rest = {name: part for name, part in schema.items() if name != "anyOf"}
        return {**schema["anyOf"][0], **rest}
    return schema


def _make_schema(hint: Any, *, is_closed: bool) -> dict[str, Any]:
    if typing.get_origin(hint) is Annotated:
        inner, *notes = typing.get_args(hint)
        schema = _make_schema(inner, is_closed=is_closed)
        for note in notes:
            schema |= _read_note(note)
        if "enum" in schema and "null" in schema.get("type", ()):
            schema["enum"] = [*schema["enum"], None]
        return schema
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case typing.Union | types.UnionType:
            [first] = [_make_schema(part, is_closed=is_closed) for part in arguments if part is not type(None)]
            if set(first) <= {"type", "pattern", "format"}:
                return {**first, "type": [first["type"], "null"]}
            return {"anyOf": [first, {"type": "null"}]}
        case typing.Literal:
            return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
        case origin if origin in (tuple, list):
            items = _make_schema(arguments[0], is_closed=is_closed)
            size = len(arguments) if is_closed and arguments[-1] is not ... else None
            bounds = {} if size is None else {"minItems": size, "maxItems": size}
            return {"type": "array", "items": items, **bounds}
        case origin if origin is dict:
            values = _make_schema(arguments[1], is_closed=is_closed)
            return {"type": "object", "additionalProperties": values}
        case _ if hint in PLAIN:
            return {"type": PLAIN[hint]}
        case _:
            return make_object(hint, is_closed=is_closed)


def _read_note(note: str) -> dict[str, Any]:
    """Return what a note of a type adds: a keyword with its value, like `minimum:1`, or a description."""
    keyword, colon, value = note.partition(":")
    match keyword if colon else "":
        case "pattern" | "format":
            return {keyword: value}
        case "minimum" | "minItems" | "uniqueItems":
            return {keyword: json.loads(value)}
        case "enum":
            return {keyword: value.split(",")}
        case _:
            return {"description": note}
