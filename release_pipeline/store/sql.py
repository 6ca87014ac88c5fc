"""Finds and loads the statements in sql/: one per file, values as $parameters, names as {{placeholders}}."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


def statement(name: str, **identifiers: str) -> str:
    """The statement in sql/`name`.sql with its {{placeholders}} replaced by quoted identifiers; all of them, and no other."""
    text = _load(name)
    wanted = set(_PLACEHOLDER.findall(text))
    if wanted != set(identifiers):
        raise ValueError(f"sql/{name}.sql has the placeholders {sorted(wanted)}, given were {sorted(identifiers)}")
    return _PLACEHOLDER.sub(lambda match: quote_identifier(identifiers[match[1]]), text)


def quote_identifier(name: str) -> str:
    """`name` as a DuckDB identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


@lru_cache
def _load(name: str) -> str:
    return (_folder() / f"{name}.sql").read_text(encoding="utf-8")


@lru_cache
def _folder() -> Path:
    """sql/ inside the installed package, or at the top of the checkout for an editable install."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "sql"
    return inside if inside.is_dir() else package.parent / "sql"
