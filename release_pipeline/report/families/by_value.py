"""Methods that count by value."""

from __future__ import annotations

from release_pipeline.report.escaping import Ready, html, markdown
from release_pipeline.report.families.base import FamilyTexts, join_lines
from release_pipeline.sentences import PUBLIC


class ByValueTexts(FamilyTexts):
    """Noise on counts of records, and values that explain them."""

    has_noisy_values = False

    def describe_no_bound(self) -> str:
        """By the patterns of equal values."""
        return PUBLIC("no_bound.clusters")

    def describe_k(self) -> str:
        """Ranks of one column."""
        return PUBLIC("k.by_value") if self.card.swap is None else PUBLIC("k.by_value_swapped")

    def describe_noise_inside(self) -> str:
        """That of counts."""
        return PUBLIC("noise.by_value")

    def describe_values(self) -> str:
        """Inside, on the grid: no noise was on them."""
        return f"{PUBLIC('values.inside')} {PUBLIC('values.of_grid')}"

    def list_caveats(self) -> list[str]:
        """The claim is as proved."""
        return [PUBLIC("caveat.given")]

    def describe_making(self) -> Ready:
        """By ranks."""
        return html("page.making.by_value")

    def describe_equal_values(self) -> Ready:
        """They follow the counts."""
        return join_lines(
            markdown("note.equal.heading"),
            "",
            markdown("note.equal.by_value", k=self.k),
            "",
            markdown("note.equal.by_value_spread"),
            *([markdown("note.equal.by_value_apart")] if self.card.swap is None else []),
            markdown("note.equal.not_ties"),
        )

    def describe_accounting(self) -> Ready:
        """By the counts themselves."""
        return join_lines(
            markdown("note.noise.heading"), "", markdown("note.noise.of_counts"), "", markdown("note.noise.of_counts_uses")
        )
