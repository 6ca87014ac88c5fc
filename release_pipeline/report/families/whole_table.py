"""Methods that count a whole table, and make rows that are nobody's."""

from __future__ import annotations

from release_pipeline.privacy.figures import format_count
from release_pipeline.report.escaping import Ready, html, markdown
from release_pipeline.report.families.base import FamilyTexts, join_lines
from release_pipeline.sentences import PUBLIC


class WholeTableTexts(FamilyTexts):
    """Noise on counts of all columns and pairs, and synthetic rows."""

    shares_values = False
    has_noisy_values = False

    @property
    def no_epsilon(self) -> str:
        """It is one for all."""
        return PUBLIC("both.of_all")

    @property
    def no_noise(self) -> str:
        """It is elsewhere."""
        return PUBLIC("both.noise_on_counts")

    def describe_no_bound(self) -> None:
        """There is one."""

    def describe_k(self) -> str:
        """There is none."""
        return PUBLIC("k.synthetic")

    def describe_anonymity(self) -> str:
        """Groups of rows are not of people."""
        return PUBLIC("anonymity.synthetic")

    def describe_noise_inside(self) -> str:
        """That of counts."""
        return PUBLIC("noise.synthetic_together") if self.package.together else PUBLIC("noise.synthetic")

    def describe_values(self) -> str:
        """Inside, on the grid: no noise was on them."""
        return f"{PUBLIC('values.inside')} {PUBLIC('values.of_grid')}"

    def list_caveats(self) -> list[str]:
        """The claim is as proved."""
        return [PUBLIC("caveat.given"), PUBLIC("caveat.synthetic")]

    def describe_epsilon_of(self) -> str:
        """Of everything."""
        return PUBLIC("card.epsilon_of_all")

    def describe_kind_of_rows(self) -> str:
        """Nobody's."""
        return PUBLIC("rows.synthetic")

    def describe_headline(self) -> Ready | None:
        """The one number, and whose the rows are."""
        return None if self.card.headline is None else html("page.headline", headline=self.card.headline)

    def describe_headline_of_note(self) -> Ready | None:
        """The same."""
        return None if self.card.headline is None else markdown("note.headline", headline=self.card.headline)

    def describe_rows(self) -> Ready:
        """They are no records."""
        return markdown(
            "note.rows_synthetic", rows_out=format_count(self.card.rows.out), rows_in=format_count(self.card.rows.in_)
        )

    def describe_epsilon(self) -> Ready:
        """Of everything: no column has a share of its own."""
        if self.card.headline is None:
            return super().describe_epsilon()
        if self.card.claim.epsilon.delta is not None:
            return html("page.epsilon_of_all_at", headline=self.card.headline)
        return html("page.epsilon_of_all", headline=self.card.headline)

    def describe_table(self) -> Ready:
        """Whose the rows are."""
        rows_out, rows_in = format_count(self.card.rows.out), format_count(self.card.rows.in_)
        return html("page.what_synthetic", rows_out=rows_out, rows_in=rows_in, population=self.card.population)

    def describe_making(self) -> Ready:
        """By counts alone."""
        return html("page.making.synthetic")

    def describe_small_groups(self) -> None:
        """Nothing was suppressed."""

    def describe_columns(self) -> Ready:
        """The heading of the columns."""
        return html("page.columns_heading")

    def describe_blanks(self) -> Ready:
        """Blank cells are nobody's either."""
        return markdown("note.blanks.synthetic")

    def describe_equal_values(self) -> Ready:
        """Nothing is shared."""
        return join_lines(markdown("note.equal.heading"), "", markdown("note.equal.synthetic"))

    def describe_accounting(self) -> Ready:
        """By the counts themselves."""
        noise = markdown("note.noise.synthetic_together") if self.package.together else markdown("note.noise.synthetic")
        return join_lines(markdown("note.noise.heading"), "", noise, "", markdown("note.noise.synthetic_uses"))
