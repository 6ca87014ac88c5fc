"""Which of two claims is at least as strong, and which settings no other beats: one rule, for lists and for pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from release_pipeline.privacy.catalogue.definitions import DP, IDP, K_ANONYMITY, K_EPSILON, ZCDP

IMPLIED = {DP.key: (IDP.key, ZCDP.key)}  # by a definition at the same epsilon
OF_CLASSES = (K_ANONYMITY.key, K_EPSILON.key)  # whose k is a promise


@dataclass(frozen=True, slots=True)
class Strength:
    """What is promised, beside how much: of what `definition` without an epsilon, or with classes of k, the k counts."""

    definition: str
    scope: str
    covers_table: bool = False
    k: int | None = None

    def covers(self, other: Strength) -> bool:
        """Whether it promises all that the other does, at the same epsilon.

        >>> dp, idp = Strength("dp", "column"), Strength("idp", "column")
        >>> dp.covers(idp), idp.covers(dp)
        (True, False)
        """
        if self.definition != other.definition:
            return other.definition in IMPLIED.get(self.definition, ()) and self._is_as_wide(other)
        if self.definition in OF_CLASSES and (self.k or 0) < (other.k or 0):
            return False
        return self._is_as_wide(other)

    def _is_as_wide(self, other: Strength) -> bool:
        if self.covers_table or other.covers_table:
            return self.covers_table
        return self.scope == other.scope or (self.scope, other.scope) == ("column", "centroid")


def find_best(claims: Sequence[Strength], epsilons: Sequence[float | None], figures: Sequence[float | None]) -> list[bool]:
    """Whether no other setting with as strong a claim has at most the same epsilon and figure, and less of one. What has no
    figure is not among them.

    >>> find_best([Strength("dp", "column")] * 3, [1.0, 2.0, 2.0], [0.5, 0.1, 0.6])
    [True, True, False]
    """
    costs = [math.inf if epsilon is None else epsilon for epsilon in epsilons]
    return [
        figure is not None
        and math.isfinite(figure)
        and not any(
            other is not None
            and math.isfinite(other)
            and claims[j].covers(claims[i])
            and costs[j] <= costs[i]
            and other <= figure
            and (costs[j] < costs[i] or other < figure)
            for j, other in enumerate(figures)
        )
        for i, figure in enumerate(figures)
    ]
