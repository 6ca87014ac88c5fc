"""Texts that a spreadsheet takes for a formula when it opens a CSV: it would compute them in place of showing them, and one that
is made for it can send away what stands in other cells. What may be released is declared, so the rule is one of the policy: such
a text stands in a CSV only where the steward says so, and then the card tells its readers. Nothing is put before it: every
program that is no spreadsheet would read another value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

from release_pipeline.policy.derivations import Derived
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import ColumnKind, CountedColumn, RecomputeColumn
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.text import Problem

_BEGINNINGS = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")  # the last four full-width, which some spreadsheets take for the first
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|-+")  # computed it is itself; so are dashes

# Not at a comma: a text with one is in quotes.
_CELLS_END = re.compile(r"[;\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")  # where some country or program begins another cell
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cf", "Cc"})


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take the text for a formula, or a part of it, where it splits cells at other signs than ours.

    >>> is_formula("=1+1"), is_formula("-8"), is_formula("+49 30"), is_formula("a=b"), is_formula("-"), is_formula("a;=b")
    (True, False, True, False, False, True)
    """
    return _begins_formula(text.lstrip(" ")) or any(_begins_formula(_strip(part)) for part in _CELLS_END.split(text))


def _begins_formula(text: str) -> bool:
    return text.startswith(_BEGINNINGS) and _NUMBER.fullmatch(text) is None


def _strip(part: str) -> str:
    """Without what is not seen at its ends, and quotes: some programs leave that out before they look for a formula."""
    seen = [place for place, letter in enumerate(part) if letter != '"' and unicodedata.category(letter) not in _UNSEEN]
    return part[seen[0] : seen[-1] + 1] if seen else ""


def find_formulas(columns: Mapping[str, ColumnKind], derive: Mapping[str, Derived] | None = None) -> dict[str, str]:
    """The columns that are released, in rows or in tables, whose name, or a declared text of which, is one, each with the first
    such text; what comes of derivations is declared, too."""
    told = {name: column for name, column in columns.items() if column.is_released or isinstance(column, CountedColumn)}
    texts = {name: (name, *column.declared_texts) for name, column in told.items()}
    made = {name: how.outputs or () for name, how in (derive or {}).items() if isinstance(columns.get(name), RecomputeColumn)}
    found = {name: [text for text in (*said, *made.get(name, ())) if is_formula(text)] for name, said in texts.items()}
    return {name: texts[0] for name, texts in found.items() if texts}


def check_formulas(parts: Parts) -> Iterator[Problem]:
    """Such texts in a CSV only where the policy says so; and no such word where there is nothing that it could be about."""
    if parts.publish is None or not parts.complete:
        return
    found = find_formulas(parts.columns, parts.derive) if "csv" in parts.publish.formats else {}
    if found and parts.publish.formulas is None:
        name, text = next(iter(found.items()))
        yield (
            ("publish", "formulas"),
            f"a spreadsheet takes '{text}' of {name} for a formula when it opens data.csv"
            + (f"; so it is in {name_some(list(found)[1:])}." if len(found) > 1 else "."),
            "Rename it in the source, release no CSV (formats: [parquet]), or write publish: {formulas: keep}: the card warns.",
        )
    elif parts.publish.formulas is not None and not found:
        yield ("publish", "formulas"), "no text in data.csv could be taken for a formula.", "Remove formulas."
