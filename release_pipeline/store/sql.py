"""Finds and loads the statements in sql/: one per file, values as $parameters, names and counts as {{placeholders}}."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


class Qualified(str):
    """A name with its schema: parts between dots are quoted one by one."""

    __slots__ = ()


class Subquery(str):
    """A query that a policy has: it stands as it is, in brackets, in the place of a table."""

    __slots__ = ()


class Part(str):
    """A part of a statement that is made of names, numbers and parameters alone: it stands as it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """A macro applied to a column, or to another macro of it."""

    macro: str
    to: str | Applied


Identifier: TypeAlias = str | Applied | int  # a whole number stands as it is


def statement(name: str, **identifiers: Identifier | Sequence[Identifier]) -> str:
    """The statement in sql/`name`.sql with its {{placeholders}} replaced by quoted identifiers; all of them, and no other.

    A sequence of names becomes a list with commas; an applied macro has its column in brackets.
    """
    text = _load(name)
    wanted = set(_PLACEHOLDER.findall(text))
    if wanted != set(identifiers):
        raise ValueError(f"sql/{name}.sql has the placeholders {sorted(wanted)}, given were {sorted(identifiers)}")
    return _PLACEHOLDER.sub(lambda match: _quote(identifiers[match[1]]), text)


def quote_identifier(name: str) -> str:
    """`name` as an identifier of DuckDB or Postgres, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _quote(names: Identifier | Sequence[Identifier]) -> str:
    if isinstance(names, int | Part):
        return str(names)
    if isinstance(names, Applied):
        return f"{quote_identifier(names.macro)}({_quote(names.to)})"
    if isinstance(names, Subquery):
        return f"(\n{names}\n) AS delivered"  # lines of their own: it may end in a comment
    if isinstance(names, Qualified):
        return ".".join(quote_identifier(part) for part in names.split("."))
    return quote_identifier(names) if isinstance(names, str) else ", ".join(_quote(name) for name in names)


@lru_cache
def _load(name: str) -> str:
    return (_folder() / f"{name}.sql").read_text(encoding="utf-8")


@lru_cache
def _folder() -> Path:
    """sql/ inside the installed package, or at the top of the checkout for an editable install."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "sql"
    return inside if inside.is_dir() else package.parent / "sql"
