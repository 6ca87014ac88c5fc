"""Hierarchies that list every value with its labels, as groups or as rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms.basis.figures import format_count, join_names
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from release_pipeline.policy.hierarchies.intervals import ALL, MAX_ROWS, MadeLabels, Row, as_value_error, entry_text
from release_pipeline.policy.values.periods import RuleReading
from release_pipeline.policy.values.scalars import Frozen
from release_pipeline.sentences import POLICY

LONGEST_LABEL = 200


def _rows(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    rows = cast(Sequence[Any], value)
    return [[entry_text(entry) for entry in cast(Sequence[Any], row)] if isinstance(row, list | tuple) else row for row in rows]


def _check_rows(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    if any(len(label) > LONGEST_LABEL for row in rows for label in row):
        raise ValueError(f"has a value or label of more than {LONGEST_LABEL} characters")
    try:
        Hierarchy.of(rows)
    except ReleasePipelineError as error:
        raise as_value_error(error) from None
    if len(rows) > MAX_ROWS:
        raise ValueError(f"lists more than {MAX_ROWS:,} values")
    return rows


Rows = Annotated[
    tuple[tuple[StrictStr, ...], ...], BeforeValidator(_rows), AfterValidator(_check_rows), Field(min_length=1)
]  # a row for every value: the value, and its label on each level


class Listed(Frozen):
    """A row for every value: the value, and its label on each level. In the file: `groups`."""

    rows: Rows

    @property
    def levels(self) -> int:
        """Return the number of levels, including the values themselves."""
        return len(self.rows[0])

    @property
    def most_values(self) -> int:
        """Return how many values are listed."""
        return len(self.rows)

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values that may occur."""
        return tuple(row[0] for row in self.rows)

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """Return its texts as the steward wrote them."""
        return tuple(dict.fromkeys(label for row in self.rows for label in row))

    def describe(self) -> str:
        """Return a description of the hierarchy."""
        return POLICY("hierarchy.listed", count=format_count(len(self.rows)), levels=self.levels)

    @property
    def level_words(self) -> tuple[str, ...]:
        """Return the name of each level."""
        counts = [len(set(column)) for column in zip(*self.rows, strict=True)]
        return tuple(
            ALL if count == 1 and level else POLICY("hierarchy.values_level", count=format_count(count))
            for level, count in enumerate(counts)
        )

    def may_release(self, label: str) -> bool:
        """Return whether a released column may have this label."""
        return any(label in row for row in self.rows)

    def reading(self, missing: str | None) -> RuleReading:
        """Return how the source's column is read."""
        return RuleReading(covers=frozenset(self.values).__contains__, filled=missing, only_one=len(self.rows) == 1)

    def list_rows(self) -> list[Row]:
        """Return every value with its label on each level."""
        return list(self.rows)

    def examples(self, most: int) -> list[Any]:
        """Return all entries that may occur."""
        return list(self.values)


def expand(value: Any) -> Any:
    """Return a hierarchy as a steward wrote it, with its `groups` expanded to rows. Raises `ReleasePipelineError` with the
    fault."""
    if not isinstance(value, dict):
        return value
    spec = cast(dict[str, Any], value)
    if "groups" not in spec:
        return spec
    rows = rows_of_groups(spec["groups"])
    Hierarchy.of(rows)  # faults are reported at the key where the steward wrote them
    return {"rows": rows, **{key: part for key, part in spec.items() if key != "groups"}}


def rows_of_groups(groups: Any) -> list[list[str]]:
    """Return rows from nested groups {LABEL: [values] or {LABEL: ...}}, all of one depth, or from plain values; `*` is the last
    level.

    >>> rows_of_groups({"vowel": ["a", "e"], "other": ["b"]})
    [['a', 'vowel', '*'], ['e', 'vowel', '*'], ['b', 'other', '*']]
    """
    rows: list[list[str]] = []

    def walk(here: Any, path: list[str]) -> None:
        if isinstance(here, dict) and here:
            for label, below in cast(dict[str, Any], here).items():
                walk(below, [str(label), *path])
        elif isinstance(here, list) and here:
            entries = cast(list[Any], here)
            rows.extend([entry_text(entry), *path] for entry in entries)
        else:
            raise InvalidArgument("groups are [values], or {LABEL: [values], ...}, or have groups in them.")

    walk(groups, [])
    if len({len(row) for row in rows}) > 1:
        raise InvalidArgument("some groups are nested deeper than others.", remedy="Give every value as many labels.")
    return rows if all(row[-1] == ALL and len(row) > 1 for row in rows) else [[*row, ALL] for row in rows]


# Hierarchies of codes, which keep fewer characters on each level.


_CHARACTERS = {"digits": "[0-9]", "letters": "[A-Za-z]", "digits-and-letters": "[0-9A-Za-z]"}
_DIFFERENT = {"digits": 10, "letters": 52, "digits-and-letters": 62}


def _shrinking(lengths: tuple[int, ...]) -> tuple[int, ...]:
    if any(later >= earlier for earlier, later in pairwise(lengths)):
        raise ValueError("the numbers of characters kept must go down, like [5, 3, 2]")
    return lengths


class Prefixes(MadeLabels):
    """Codes of one length, like postal codes: how many of the first characters are kept on each level, the first being all."""

    prefixes: Annotated[tuple[Annotated[StrictInt, Field(ge=1, le=50)], ...], Field(min_length=1), AfterValidator(_shrinking)]
    of: Literal["digits", "letters", "digits-and-letters"]

    @property
    def levels(self) -> int:
        """Return the number of levels, including the codes themselves."""
        return len(self.prefixes) + 1

    @property
    def pattern(self) -> str:
        """Return the pattern of a code."""
        return f"{_CHARACTERS[self.of]}{{{self.prefixes[0]}}}"

    def describe(self) -> str:
        """Return a description of the hierarchy."""
        lengths = join_names((str(length) for length in self.prefixes[1:]), "then")
        characters = self._count(self.prefixes[0])
        if not lengths:
            return POLICY("hierarchy.prefixes", characters=characters)
        return POLICY("hierarchy.prefixes_cut", characters=characters, kept=lengths)

    @property
    def level_words(self) -> tuple[str, ...]:
        """Return the name of each level."""
        return (*map(self._count, self.prefixes), ALL)

    def _count(self, characters: int) -> str:
        return POLICY.read_phrases("characters")[self.of].format(count=characters)

    def covers(self, entry: str) -> bool:
        """Return whether an entry is a code of this hierarchy."""
        return re.fullmatch(self.pattern, entry) is not None

    def labels_of(self, entries: Sequence[str]) -> list[tuple[str, ...]]:
        """Return a row of labels for each of these entries."""
        whole = self.prefixes[0]
        return [(*(entry[:length] + ALL * (whole - length) for length in self.prefixes), ALL) for entry in entries]

    def may_release(self, label: str) -> bool:
        """Return whether a released column may have this label."""
        begin = label.rstrip(ALL)
        is_code = len(label) == self.prefixes[0] and len(begin) in self.prefixes
        return label == ALL or (is_code and re.fullmatch(_CHARACTERS[self.of] + "+", begin) is not None)

    def reading(self, missing: str | None) -> RuleReading:
        """Return how the source's column is read."""
        return RuleReading(covers=self.covers, filled=missing)

    @property
    def most_values(self) -> int:
        """Return how many codes there may be."""
        return _DIFFERENT[self.of] ** self.prefixes[0]

    def list_rows(self) -> None:
        """Return None: codes are too many to list."""
        return

    def examples(self, most: int) -> list[Any]:
        """Return one code."""
        length = self.prefixes[0]
        return [next(code for code in ("0" * length, "a" * length) if self.covers(code))]
