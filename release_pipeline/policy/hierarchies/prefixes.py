"""Hierarchies of codes, of which fewer and fewer characters are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictInt

from release_pipeline.policy.declared import Frozen
from release_pipeline.policy.hierarchies.common import ALL
from release_pipeline.policy.readings import RuleReading
from release_pipeline.privacy.figures import join_names
from release_pipeline.sentences import POLICY

_CHARACTERS = {"digits": "[0-9]", "letters": "[A-Za-z]", "digits-and-letters": "[0-9A-Za-z]"}
_DIFFERENT = {"digits": 10, "letters": 52, "digits-and-letters": 62}


def _shrinking(kept: tuple[int, ...]) -> tuple[int, ...]:
    if any(later >= earlier for earlier, later in pairwise(kept)):
        raise ValueError("the numbers of characters kept must go down, like [5, 3, 2]")
    return kept


class Prefixes(Frozen):
    """Codes of one length, like postal codes: how many of the first characters are kept on each level, the first being all."""

    prefixes: Annotated[tuple[Annotated[StrictInt, Field(ge=1, le=50)], ...], Field(min_length=1), AfterValidator(_shrinking)]
    of: Literal["digits", "letters", "digits-and-letters"]

    @property
    def levels(self) -> int:
        """How many levels, the codes themselves included."""
        return len(self.prefixes) + 1

    @property
    def pattern(self) -> str:
        """What a code looks like."""
        return f"{_CHARACTERS[self.of]}{{{self.prefixes[0]}}}"

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """None: its labels are made by rule."""
        return ()

    @property
    def words(self) -> str:
        """The hierarchy for a person."""
        kept = join_names((str(count) for count in self.prefixes[1:]), "then")
        characters = self._count(self.prefixes[0])
        if not kept:
            return POLICY("hierarchy.prefixes", characters=characters)
        return POLICY("hierarchy.prefixes_cut", characters=characters, kept=kept)

    @property
    def level_words(self) -> tuple[str, ...]:
        """Each level in a word or two."""
        return (*map(self._count, self.prefixes), ALL)

    def _count(self, characters: int) -> str:
        return POLICY.read_phrases("characters")[self.of].format(count=characters)

    def covers(self, entry: str) -> bool:
        """Whether an entry is such a code."""
        return re.fullmatch(self.pattern, entry) is not None

    def labels_of(self, entries: Sequence[str], missing: str | None) -> list[tuple[str, ...]]:
        """A row for each of these entries."""
        length = self.prefixes[0]
        return [
            (*((entry if entry == missing else entry[:kept] + ALL * (length - kept)) for kept in self.prefixes), ALL)
            for entry in entries
        ]

    def may_release(self, label: str, missing: str | None) -> bool:
        """Whether a released column may have this label."""
        if label in (ALL, missing):
            return True
        length, kept = self.prefixes[0], len(label.rstrip(ALL))
        return (
            len(label) == length and kept in self.prefixes and re.fullmatch(_CHARACTERS[self.of] + "+", label[:kept]) is not None
        )

    def reading(self, missing: str | None) -> RuleReading:
        """How the source's column is read."""
        return RuleReading(covers=self.covers, filled=missing)

    @property
    def most_values(self) -> int:
        """How many codes there may be."""
        return _DIFFERENT[self.of] ** self.prefixes[0]

    def list_rows(self) -> None:
        """Codes are too many to list."""
        return

    def examples(self, most: int) -> list[Any]:
        """One code."""
        length = self.prefixes[0]
        return [next(code for code in ("0" * length, "a" * length) if self.covers(code))]
