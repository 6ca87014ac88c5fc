"""Stored JSON as frozen dataclasses: what their types say is checked, what they leave out is left out, and nothing is quoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from release_pipeline.errors import StoreError

__all__ = ["BeforeValidator", "Plain", "read_as"]
Read = TypeVar("Read")
Plain: TypeAlias = "float | str | Mapping[Any, Plain] | Sequence[Plain] | None"  # of JSON or YAML, as read or to be written


def read_as(kind: type[Read], content: Mapping[str, Any], *, where: str) -> Read:
    """A dataclass from JSON. A field that is Annotated with a `BeforeValidator` is read by its function."""
    try:
        return _adapter(kind).validate_python(content)
    except (ValidationError, KeyError, TypeError):
        raise StoreError(f"this is not what a version of release-pipeline wrote as {kind.__name__}.", where=where) from None


@lru_cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
