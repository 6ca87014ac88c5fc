"""Texts on methods that work column by column: every record separately, or in clusters of neighbours in one column."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from release_pipeline.formats.package import PackageView
from release_pipeline.mechanisms.basis.figures import format_count
from release_pipeline.mechanisms.catalogue import Family, find_claim, find_method
from release_pipeline.pages.escaping import Ready, end_sentence, escape_markdown, format_text, html, markdown
from release_pipeline.publish.texts import FamilyTexts, join_lines
from release_pipeline.sentences import PUBLIC


def choose_column_texts(package: PackageView) -> FamilyTexts:
    """Return the texts for a method that masks every record separately, or for one that has clusters."""
    return RecordTexts(package) if find_method(package.card.method.name).by_record else ClusterTexts(package)


class _ColumnTexts(FamilyTexts):
    restores_order = True
    noise_inside = PUBLIC("noise.inside")

    def list_caveats(self) -> list[str]:
        """Return the caveats, with one on clusters without noise, where the claim keeps values that many share."""
        given = PUBLIC("caveat.given")
        if not self.is_individual:
            return [given]
        without = (
            self.list_caveats_without_noise() if find_claim(self.card.method.name, self.card.claim.scope.name).keeps_atoms else []
        )
        return [PUBLIC("caveat.individual"), *without, given]


class RecordTexts(_ColumnTexts):
    """Texts on noise that is added to every record."""

    shares_values = False
    no_bound = PUBLIC("no_bound.kept")
    k_words = PUBLIC("k.none")

    def describe_making(self) -> Ready:
        """Return how masked values were made: value by value."""
        return html("page.making.records")

    def describe_equal_values(self) -> Ready:
        """Return why records share values: only by chance."""
        anywhere = self.card.method.values == "anywhere"
        equal = markdown("note.equal.records_anywhere") if anywhere else markdown("note.equal.records")
        return join_lines(markdown("note.equal.heading"), "", equal)


class ClusterTexts(_ColumnTexts):
    """Texts on noise that is added to the sums of clusters of one column."""

    no_bound = PUBLIC("no_bound.clusters")
    k_words = PUBLIC("k.of_column")
    k_words_swapped = PUBLIC("k.of_column_swapped")

    def describe_making(self) -> Ready:
        """Return how masked values were made: neighbours share a value."""
        return html("page.making.clusters_individual") if self.is_individual else html("page.making.clusters")

    def describe_equal_values(self) -> Ready:
        """Return why records share values: they are of one cluster."""
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


# Methods that count by value.


class ByValueTexts(FamilyTexts):
    """Texts on noise that is added to counts of records, and values that explain these counts."""

    has_noisy_values = False
    lies_on_grid = True
    no_bound = PUBLIC("no_bound.clusters")
    k_words = PUBLIC("k.by_value")
    k_words_swapped = PUBLIC("k.by_value_swapped")
    noise_inside = PUBLIC("noise.by_value")

    def describe_making(self) -> Ready:
        """Return how masked values were made: by ranks, from the noisy counts."""
        return html("page.making.by_value")

    def describe_equal_values(self) -> Ready:
        """Return why records share values: they follow the counts."""
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
        """Return how to account for the noise: by the counts themselves."""
        return join_lines(
            markdown("note.noise.heading"), "", markdown("note.noise.of_counts"), "", markdown("note.noise.of_counts_uses")
        )


# dp-mdav: clusters of all masked columns together, along an order of single records, with noise.


class VectorTexts(FamilyTexts):
    """Texts on noise that is added to the centroids of clusters of all masked columns."""

    may_suppress_nothing = True
    no_bound = PUBLIC("no_bound.kept")
    k_words = PUBLIC("k.of_vectors")
    noise_inside = PUBLIC("noise.inside_without_order")

    def list_caveats(self) -> list[str]:
        """Return the caveats, with one on clusters without noise, which iDP may have."""
        given = PUBLIC("caveat.given")
        return [PUBLIC("caveat.individual"), *self.list_caveats_without_noise(), given] if self.is_individual else [given]

    def describe_making(self) -> Ready:
        """Return how masked values were made: neighbours in the order share their values."""
        if self.is_individual:
            return html("page.making.vectors_individual", k=self.k)
        return html("page.making.vectors", k=self.k)

    def describe_equal_values(self) -> Ready:
        """Return why records share values: they are of one cluster, in all columns."""
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


# mdav: exact means of alike records, k-anonymity and no noise.


class MdavTexts(FamilyTexts):
    """Texts on exact centroids of clusters of all masked columns."""

    is_k_anonymity = True
    has_noisy_values = False
    may_suppress_nothing = True
    k_words = PUBLIC("k.of_mdav")
    noise_inside = noise_anywhere = PUBLIC("noise.none")
    anonymity = PUBLIC("anonymity.released")  # masked quasi-identifiers are exact, too
    no_anonymity = PUBLIC("anonymity.no_released")
    caveats = (PUBLIC("caveat.no_noise"),)

    def describe_making(self) -> Ready:
        """Return how masked values were made: as means of alike records."""
        return html("page.making.mdav", k=self.k)

    def describe_epsilon(self) -> Ready:
        """Return the text on epsilon: there is none."""
        return html("page.epsilon_none")

    def describe_equal_values(self) -> Ready:
        """Return why records share values: they are of one cluster, exactly."""
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
        """Return how to account for the noise: there is none."""
        return join_lines(markdown("note.no_noise.heading"), "", markdown("note.no_noise.text", k=self.k))


# k-epsilon: classes of equal generalised quasi-identifiers, with noise inside each class.


class ClassTexts(FamilyTexts):
    """Texts on noise that is added to every record, in proportion to the width of its class."""

    is_k_anonymity = True
    shares_values = False
    no_bound = PUBLIC("no_bound.classes")
    k_words = PUBLIC("k.of_classes")
    noise_inside = noise_anywhere = PUBLIC("noise.of_classes")
    anonymity = PUBLIC("anonymity.generalised")
    caveats = (
        PUBLIC("caveat.classes_not_dp"),
        PUBLIC("caveat.kept_in_class"),
        PUBLIC("caveat.whole_class"),
        PUBLIC("caveat.same_in_class"),
        PUBLIC("caveat.given_class"),
    )

    def describe_making(self) -> Ready:
        """Return how masked values were made: by class, with noise inside it."""
        return html("page.making.classes", k=self.k)

    def describe_small_groups(self) -> Ready:
        """Return how small groups were treated: records are dropped, and no cell is blanked."""
        return html(
            "page.small_groups.dropped", suppression=end_sentence(self.card.suppression.words), dropped=self._count_dropped()
        )

    def describe_blanks(self) -> Ready:
        """Return the text on blanks: no cell is blank."""
        return markdown(
            "note.blanks.dropped", suppression=end_sentence(self.card.suppression.words), dropped=self._count_dropped()
        )

    def describe_equal_values(self) -> Ready:
        """Return why records share values: those of a class share its labels."""
        files = ", ".join(escape_markdown(format_text(file)) for file, _ in self.package.hierarchies)
        lists = markdown("note.classes.lists", files=Ready(files)) if files else ""
        return join_lines(
            markdown("note.classes.heading"),
            "",
            markdown("note.classes.are", k=self.k),
            "",
            markdown("note.classes.own_noise"),
            f"{markdown('note.classes.inside')} {lists}",
            markdown("note.classes.missing"),
        )

    @property
    def is_bound(self) -> bool:
        """Return true: most classes are narrower than the domain, so the named noise is an upper bound."""
        return True

    def list_uses(self) -> Iterator[str]:
        """Yield the effects of the noise on usual analyses, above all on values at the ends of the domain."""
        yield markdown("note.noise.class_ends")
        yield from super().list_uses()

    def name_mean(self) -> Ready:
        """Return the beginning of the point about a mean, which is the first point."""
        return markdown("note.noise.mean_alone")

    def _count_dropped(self) -> str:
        return format_count(self.card.rows.in_ - self.card.rows.out)


# Methods that count a whole table, and make synthetic rows.


class WholeTableTexts(FamilyTexts):
    """Texts on noise that is added to counts of all columns and pairs, and on synthetic rows."""

    shares_values = False
    has_noisy_values = False
    lies_on_grid = True
    k_words = PUBLIC("k.synthetic")
    anonymity = no_anonymity = PUBLIC("anonymity.synthetic")
    caveats = (PUBLIC("caveat.given"), PUBLIC("caveat.synthetic"))
    kind_of_rows = PUBLIC("rows.synthetic")
    no_epsilon = PUBLIC("both.of_all")
    no_noise = PUBLIC("both.noise_on_counts")

    def describe_noise_inside(self) -> str:
        """Return the noise that is named: that of counts."""
        return PUBLIC("noise.synthetic_together") if self.package.together else PUBLIC("noise.synthetic")

    def describe_epsilon_of(self) -> str:
        """Return the object of epsilon: the whole package."""
        return PUBLIC("card.epsilon_of_all")

    def describe_headline(self) -> Ready | None:
        """Return the headline: the one number of the claim, and that rows are synthetic."""
        return None if self.card.headline is None else html("page.headline", headline=self.card.headline)

    def describe_headline_of_note(self) -> Ready | None:
        """Return the headline of the note: the one number of the claim, and that rows are synthetic."""
        return None if self.card.headline is None else markdown("note.headline", headline=self.card.headline)

    def describe_rows(self) -> Ready:
        """Return the text on the number of rows: they are no records."""
        return markdown(
            "note.rows_synthetic", rows_out=format_count(self.card.rows.out), rows_in=format_count(self.card.rows.in_)
        )

    def describe_epsilon(self) -> Ready:
        """Return the text on epsilon: it covers the whole package, and no column has a separate share."""
        if self.card.headline is None:
            return super().describe_epsilon()
        if self.card.claim.epsilon.delta is not None:
            return html("page.epsilon_of_all_at")
        return html("page.epsilon_of_all")

    def describe_table(self) -> Ready:
        """Return the text on the table: its rows are synthetic."""
        rows_out, rows_in = format_count(self.card.rows.out), format_count(self.card.rows.in_)
        return html("page.what_synthetic", rows_out=rows_out, rows_in=rows_in, population=self.card.population)

    def describe_making(self) -> Ready:
        """Return how rows were made: from counts only."""
        return html("page.making.synthetic")

    def describe_small_groups(self) -> None:
        """Return None: nothing was suppressed."""

    def describe_columns(self) -> Ready:
        """Return the heading of the columns."""
        return html("page.columns_heading")

    def describe_blanks(self) -> Ready:
        """Return the text on blank cells: they are synthetic, too."""
        return markdown("note.blanks.synthetic")

    def describe_equal_values(self) -> Ready:
        """Return why records share values: no released value is shared by design."""
        return join_lines(markdown("note.equal.heading"), "", markdown("note.equal.synthetic"))

    def describe_accounting(self) -> Ready:
        """Return how to account for the noise: by the counts themselves."""
        noise = markdown("note.noise.synthetic_together") if self.package.together else markdown("note.noise.synthetic")
        return join_lines(markdown("note.noise.heading"), "", noise, "", markdown("note.noise.synthetic_uses"))


# Texts of card, page and note that depend on the family of a release's method. A family gives whole sentences, all of them in its
# module; `find_texts` finds it by the catalogue of methods, and assumes none.


FAMILIES: dict[Family, Callable[[PackageView], FamilyTexts]] = {
    "columns": choose_column_texts,
    "by-value": ByValueTexts,
    "whole-table": WholeTableTexts,
    "vectors": VectorTexts,
    "mdav": MdavTexts,
    "classes": ClassTexts,
}


def find_texts(package: PackageView) -> FamilyTexts:
    """Return the texts of the family of this release's method; an unknown method raises."""
    return FAMILIES[find_method(package.card.method.name).family](package)
