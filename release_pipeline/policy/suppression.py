"""What a policy may suppress: small groups of quasi-identifiers, or what (k,epsilon)-anonymity drops."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Field, StrictInt, Tag, model_validator

from release_pipeline.policy.declared import Frozen
from release_pipeline.policy.scalars import Percent
from release_pipeline.privacy.figures import percent
from release_pipeline.sentences import POLICY


class Suppress(Frozen):
    """Small groups of the released quasi-identifiers are suppressed, up to a share of the records."""

    quasi_groups_below: Annotated[StrictInt, Field(ge=2)]
    at_most: Percent

    @property
    def groups_below(self) -> int:
        """Smaller groups of released quasi-identifiers are suppressed."""
        return self.quasi_groups_below

    @property
    def confidence(self) -> None:
        """Nothing is suppressed for what the noise made of it."""

    def describe(self, *, with_masked: bool) -> str:
        """What may be suppressed, and how much of it; whether masked quasi-identifiers make groups, too."""
        least, share = self.quasi_groups_below, percent(self.at_most)
        if with_masked:
            return POLICY("suppress.kept_and_masked_groups", least=least, share=share)
        return POLICY("suppress.kept_groups", least=least, share=share)


class SuppressClasses(Frozen):
    """What k-epsilon may drop: records in classes that stay too small (`grouping_at_most`), and after the noise those that stand
    out in their class with this `confidence` (`confidence_at_most`); `at_most` is for both together. Shares of all records."""

    grouping_at_most: Percent = Decimal(0)
    confidence: Percent | None = None
    confidence_at_most: Percent | None = None
    at_most: Percent

    @model_validator(mode="after")
    def _agrees(self) -> SuppressClasses:
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ValueError("the confidence must lie between 0% and 100%, like 99%")
        if self.confidence_at_most is not None and self.confidence is None:
            raise ValueError("confidence_at_most limits what confidence suppresses: name the confidence, like 99%")
        if self.grouping_at_most == 1:
            raise ValueError("grouping_at_most of 100% would let everybody be dropped")
        if self.grouping_at_most > self.at_most:
            raise ValueError("grouping_at_most is above at_most, which is for all suppression together")
        return self

    @property
    def groups_below(self) -> int:
        """No groups but the classes, whose size is the method's."""
        return 0

    def describe(self, *, with_masked: bool) -> str:
        """What may be suppressed, and how much of it."""
        parts: list[str] = []
        if self.grouping_at_most:
            parts.append(POLICY("suppress.classes", share=percent(self.grouping_at_most)))
        if self.confidence is not None and self.confidence_at_most is not None:
            sure, most = percent(self.confidence), percent(self.confidence_at_most)
            parts.append(POLICY("suppress.confidence_at_most", confidence=sure, share=most))
        elif self.confidence is not None:
            parts.append(POLICY("suppress.confidence", confidence=percent(self.confidence)))
        return "; ".join([*parts, POLICY("suppress.in_all", share=percent(self.at_most))])


def _suppressed(value: Any) -> str:
    if isinstance(value, dict):
        return "groups" if "quasi_groups_below" in value else "classes"
    return "classes" if isinstance(value, SuppressClasses) else "groups"


AnySuppress: TypeAlias = Annotated[
    Annotated[Suppress, Tag("groups")] | Annotated[SuppressClasses, Tag("classes")], Discriminator(_suppressed)
]
