"""Methods that work column by column: every record on its own, or in clusters of neighbours in one column."""

from __future__ import annotations

from release_pipeline.privacy.catalogue import find_claim, find_method
from release_pipeline.report.escaping import Ready, html, markdown
from release_pipeline.report.families.base import FamilyTexts, join_lines
from release_pipeline.report.view import PackageView
from release_pipeline.sentences import PUBLIC


def choose_column_texts(package: PackageView) -> FamilyTexts:
    """Those of a method that masks every record on its own, or of one that has clusters."""
    return RecordTexts(package) if find_method(package.card.method.name).by_record else ClusterTexts(package)


class _ColumnTexts(FamilyTexts):
    restores_order = True

    def describe_noise_inside(self) -> str:
        """Order and domain are restored."""
        return PUBLIC("noise.inside")

    def list_caveats(self) -> list[str]:
        """Clusters without noise are where the claim keeps what many share."""
        given = PUBLIC("caveat.given")
        if not self.is_individual:
            return [given]
        without = (
            self.list_caveats_without_noise() if find_claim(self.card.method.name, self.card.claim.scope.name).keeps_atoms else []
        )
        return [PUBLIC("caveat.individual"), *without, given]


class RecordTexts(_ColumnTexts):
    """Noise on every record."""

    shares_values = False

    def describe_no_bound(self) -> str:
        """By the columns that are kept."""
        return PUBLIC("no_bound.kept")

    def describe_k(self) -> str:
        """There is none."""
        return PUBLIC("k.none")

    def describe_making(self) -> Ready:
        """Value by value."""
        return html("page.making.records")

    def describe_equal_values(self) -> Ready:
        """Chance alone makes them."""
        anywhere = self.card.method.values == "anywhere"
        equal = markdown("note.equal.records_anywhere") if anywhere else markdown("note.equal.records")
        return join_lines(markdown("note.equal.heading"), "", equal)


class ClusterTexts(_ColumnTexts):
    """Noise on the sums of clusters of one column."""

    def describe_no_bound(self) -> str:
        """By the patterns of equal values."""
        return PUBLIC("no_bound.clusters")

    def describe_k(self) -> str:
        """That of one column."""
        return PUBLIC("k.of_column") if self.card.swap is None else PUBLIC("k.of_column_swapped")

    def describe_making(self) -> Ready:
        """Neighbours share a value."""
        return html("page.making.clusters_individual") if self.is_individual else html("page.making.clusters")

    def describe_equal_values(self) -> Ready:
        """They are of one cluster."""
        anywhere = self.card.method.values == "anywhere"
        agree = markdown("note.equal.clusters_agree") if self.is_individual else ""
        return join_lines(
            markdown("note.equal.heading"),
            "",
            markdown("note.equal.clusters_anywhere", k=self.k) if anywhere else markdown("note.equal.clusters", k=self.k),
            "",
            f"{markdown('note.equal.clusters_inside')} {agree} {markdown('note.equal.clusters_spread')}",
            markdown("note.equal.clusters_mean"),
            *([markdown("note.equal.clusters_apart")] if self.card.swap is None else []),
            markdown("note.equal.not_ties"),
        )
