"""mdav: exact means of alike records, k-anonymity and no noise."""

from __future__ import annotations

from release_pipeline.report.escaping import Ready, html, markdown
from release_pipeline.report.families.base import FamilyTexts, join_lines
from release_pipeline.sentences import PUBLIC


class MdavTexts(FamilyTexts):
    """Exact centroids of clusters of all masked columns."""

    is_k_anonymity = True
    has_noisy_values = False

    def describe_no_bound(self) -> None:
        """Nothing is said of any bound."""

    def describe_k(self) -> str:
        """That of k-anonymity on the masked columns."""
        return PUBLIC("k.of_mdav")

    def describe_anonymity(self) -> str:
        """Masked quasi-identifiers are exact, too."""
        return PUBLIC("anonymity.no_released") if self.card.anonymity_k.value is None else PUBLIC("anonymity.released")

    def describe_noise(self) -> str:
        """There is none, wherever values lie."""
        return PUBLIC("noise.none")

    def describe_noise_inside(self) -> str:
        """There is none."""
        return PUBLIC("noise.none")

    def list_caveats(self) -> list[str]:
        """It is no differential privacy."""
        return [PUBLIC("caveat.no_noise")]

    def describe_making(self) -> Ready:
        """As means of alike records."""
        return html("page.making.mdav", k=self.k)

    def describe_small_groups(self) -> Ready | None:
        """Nothing where nothing could be suppressed."""
        return None if self.card.suppression.words == PUBLIC("suppression.none") else super().describe_small_groups()

    def describe_epsilon(self) -> Ready:
        """There is none."""
        return html("page.epsilon_none")

    def describe_blanks(self) -> Ready:
        """Nothing where nothing could be suppressed."""
        return (
            markdown("note.blanks.nothing")
            if self.card.suppression.words == PUBLIC("suppression.none")
            else super().describe_blanks()
        )

    def describe_equal_values(self) -> Ready:
        """They are of one cluster, exactly."""
        return join_lines(
            markdown("note.equal.heading"),
            "",
            markdown("note.equal.mdav", k=self.k),
            "",
            markdown("note.equal.mdav_means"),
            markdown("note.equal.mdav_spread"),
            markdown("note.equal.not_ties"),
        )

    def describe_accounting(self) -> Ready:
        """There is no noise to account for."""
        return join_lines(markdown("note.no_noise.heading"), "", markdown("note.no_noise.text", k=self.k))
