"""What a column and its entries are called: for readers, who see `sex` and 2 and cannot know what they mean. Labels are of the
policy and never of the source; what `init` found there is a proposal.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from release_pipeline.policy.declared import Option
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds.base import ColumnKind
from release_pipeline.policy.scalars import Code
from release_pipeline.policy.text import Path, Problem

LONGEST_LABEL, LONGEST_WORDS = 200, 4000
MOST_LABELS = 10_000  # of one column
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _tidy(label: str) -> str:
    """A label on one line, without what nobody sees."""
    if any(unicodedata.category(letter) in _UNSEEN for letter in label):
        raise ValueError("must have no line ends, and no characters that are not seen")
    if label != label.strip():
        raise ValueError("must not begin or end with a space")
    return unicodedata.normalize("NFC", label)


def _flow(words: str) -> str:
    """A text as one paragraph: the lines of the file are joined."""
    joined = " ".join(words.split())
    if not joined:
        raise ValueError("must have words")
    return _tidy(joined)


Label = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_LABEL), AfterValidator(_tidy)]
Words = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_WORDS), AfterValidator(_flow)]


class LabelledColumn(ColumnKind):
    """A released column. `label`: what it has, for its readers; `description`: what there is to know of it; `unit`: what its
    numbers count or measure; `question`: what people were asked, word for word."""

    label: Annotated[Label | None, Option(hint="Say in a few words what the column has.")] = None
    description: Annotated[Words | None, Option(hint="Say what there is to know of the column.")] = None
    unit: Annotated[Label | None, Option(hint="Say what the numbers count or measure.")] = None
    question: Annotated[Words | None, Option(hint="Say what people were asked, word for word.")] = None


class LabelledEntries(LabelledColumn):
    """A released column of entries. `labels`: what they mean."""

    labels: Annotated[
        dict[Code, Label],
        Field(max_length=MOST_LABELS),
        Option(hint="Name each value with what it means, like {1: male, 2: female}."),
    ] = Field(default_factory=dict[str, str])

    @property
    def listed_entries(self) -> frozenset[str]:
        """The entries that released records may have, where they are listed."""
        return frozenset(self.declared_texts)

    def may_have(self, entry: str) -> bool:
        """Whether a released record may have an entry that is not among them."""
        return False

    @property
    def ordered_labels(self) -> Mapping[str, str]:
        """The labels in one order, however they were listed."""
        return dict(sorted(self.labels.items()))

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """Labels of what no record has, and labels that do not tell entries apart."""
        yield from super().find_faults(here)
        listed = self.listed_entries
        unknown = [entry for entry in self.labels if entry not in listed and not self.may_have(entry)]
        if unknown:
            what = f"there is a label of {name_some(unknown)}, which no released record may have."
            remedy = "Label declared values alone; the reason that `codes` gives for a code is its label."
            yield (*here, "labels"), what, remedy
        same = [label for label, count in Counter(self.labels.values()).items() if count > 1]
        if same:
            what = f"two values have the label '{same[0]}', so that readers cannot tell them apart."
            yield (*here, "labels"), what, "Give each a label of its own."
