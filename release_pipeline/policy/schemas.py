"""JSON Schemas (2020-12) of documents, made from the types that they are written and read by."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Annotated, Any

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def make_object(view: Any, *, is_closed: bool = False) -> dict[str, Any]:
    """The schema of a document's type; the first part of its docstring describes it. A closed one
    takes no other keys."""
    hints = typing.get_type_hints(view, include_extras=True)
    if dataclasses.is_dataclass(view):
        fields = dataclasses.fields(view)
        is_optional = {field.name: bool(field.metadata.get("optional")) for field in fields}
    else:
        is_optional = dict.fromkeys(hints, False)
    form = getattr(view, "FORMAT", None) if is_closed else None
    properties: dict[str, Any] = {} if form is None else {"format": _describe_format(form)}
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


def _describe_format(form: str) -> dict[str, Any]:
    return {"const": form, "description": "The version of this format."}


def _forbid_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key that is left out where there is nothing to say, so it is never null."""
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
    """What a note of a type adds: a keyword with its value, like `minimum:1`, or a description."""
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
