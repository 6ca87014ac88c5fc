"""What the forms of hierarchies have in common."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.policy.formats import decimal_text

ALL = "*"  # the label of everything
MAX_ROWS = 50_000
Read: TypeAlias = Callable[[str], str]  # the text of a file that a policy names
Row: TypeAlias = tuple[str, ...]  # a value, and its label on every further level


def as_value_error(error: ReleasePipelineError) -> ValueError:
    """The same as pydantic takes it from a validator."""
    return ValueError(f"{error.what.rstrip('.')}{f' ({error.remedy})' if error.remedy else ''}")


def entry_text(entry: Any) -> str:
    """A value or label as a text; what is none is refused."""
    if isinstance(entry, bool):
        return "true" if entry else "false"
    if not isinstance(entry, str | int | Decimal):
        raise InvalidArgument("values and labels are texts or numbers; one is empty, a list or a mapping.")
    text = decimal_text(entry) if isinstance(entry, Decimal) else str(entry)
    if not text.isprintable():
        raise InvalidArgument("a value or label has a character that cannot be printed.", remedy="Write it without.")
    return text
