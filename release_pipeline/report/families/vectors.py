"""dp-mdav: clusters of all masked columns together, along an order of single records, with noise."""

from __future__ import annotations

from release_pipeline.report.escaping import Ready, html, markdown
from release_pipeline.report.families.base import FamilyTexts, join_lines
from release_pipeline.sentences import PUBLIC


class VectorTexts(FamilyTexts):
    """Noise on the centroids of clusters of all masked columns."""

    def describe_no_bound(self) -> str:
        """By the columns that are kept."""
        return PUBLIC("no_bound.kept")

    def describe_k(self) -> str:
        """That of all columns together, with noise."""
        return PUBLIC("k.of_vectors")

    def describe_noise_inside(self) -> str:
        """There is no order to restore."""
        return PUBLIC("noise.inside_without_order")

    def list_caveats(self) -> list[str]:
        """Under iDP there may be clusters without noise."""
        given = PUBLIC("caveat.given")
        return [PUBLIC("caveat.individual"), *self.list_caveats_without_noise(), given] if self.is_individual else [given]

    def describe_making(self) -> Ready:
        """Neighbours of the order share their values."""
        if self.is_individual:
            return html("page.making.vectors_individual", k=self.k)
        return html("page.making.vectors", k=self.k)

    def describe_small_groups(self) -> Ready | None:
        """Nothing where nothing could be suppressed."""
        return None if self.card.suppression.words == PUBLIC("suppression.none") else super().describe_small_groups()

    def describe_blanks(self) -> Ready:
        """Likewise."""
        return (
            markdown("note.blanks.nothing")
            if self.card.suppression.words == PUBLIC("suppression.none")
            else super().describe_blanks()
        )

    def describe_equal_values(self) -> Ready:
        """They are of one cluster, in all columns."""
        return join_lines(
            markdown("note.equal.heading"),
            "",
            markdown("note.equal.vectors", k=self.k),
            "",
            markdown("note.equal.vectors_spread"),
            markdown("note.equal.vectors_wide"),
            *([markdown("note.equal.vectors_trimmed")] if self.is_individual else []),
            markdown("note.equal.not_ties"),
        )
