"""The texts that all families share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from release_pipeline.formats.package import PackageView
from release_pipeline.mechanisms.basis.figures import format_count
from release_pipeline.mechanisms.catalogue import find_definition, find_method
from release_pipeline.mechanisms.catalogue.spec import IDP
from release_pipeline.pages.escaping import Ready, end_sentence, html, markdown
from release_pipeline.sentences import POLICY, PUBLIC


class FamilyTexts(ABC):
    """The sentences of one release. Those of the card are plain text, those of the page HTML, those of the note Markdown."""

    is_k_anonymity = False  # whether k is the k of k-anonymity
    restores_order = False  # whether the card describes the order of released values
    shares_values = True  # records share released values by clusters of k
    has_noisy_values = True  # noise is on released values themselves, and not on the counts that they were made from
    lies_on_grid = False  # whether values are points of the grid inside the domain under every policy
    may_suppress_nothing = False  # whether page and note leave suppression out where the policy has none
    no_bound: str | None = None  # why nothing bounds the whole table, where that must be stated and values stay with their rows
    k_words: str  # what k is, and what it is not
    k_words_swapped: str | None = None  # the same text where values changed places, if it differs
    noise_inside: str  # the name of a value's noise, where values were moved back into their domain
    noise_anywhere = PUBLIC("noise.anywhere")  # and its name where values may be anywhere
    anonymity = PUBLIC("anonymity.kept")  # the object of the size of the smallest group
    no_anonymity = PUBLIC("anonymity.no_kept")  # why there is no such size
    caveats: tuple[str, ...] = (PUBLIC("caveat.given"),)  # what no card may leave out
    kind_of_rows: str | None = None  # a few words for programs on whose rows these are, where they are synthetic
    no_epsilon = PUBLIC("both.none")  # the entry of a column that has no separate epsilon
    no_noise = PUBLIC("both.no_noise")  # the entry of a column that has no separate noise

    def __init__(self, package: PackageView) -> None:
        self.package = package
        self.card = card = package.card
        self.definition = find_definition(card.claim.definition.name)
        self.method = find_method(card.method.name)
        self.is_individual = self.definition is IDP
        self.k = "" if card.k.value is None else format_count(card.k.value)

    # the card

    def describe_k(self) -> str:
        """Return what k is, and what it is not."""
        return self.k_words if self.card.swap is None else self.k_words_swapped or self.k_words

    def describe_block(self) -> str:
        """Return the promise of the size of blocks, where values changed places."""
        return "" if self.card.swap is None else PUBLIC("swap.of_block", k=format_count(self.card.swap.k))

    def describe_anonymity(self) -> str:
        """Return the object of the size of the smallest group, or why there is none."""
        return self.no_anonymity if self.card.anonymity_k.value is None else self.anonymity

    def describe_series(self) -> str:
        """Return the meaning of the sums over releases."""
        return PUBLIC("series.adds_up") if self.definition.composes else PUBLIC("series.counts")

    def describe_noise(self) -> str:
        """Return the name of a value's noise."""
        noise = self.noise_anywhere if self.card.method.values == "anywhere" else self.describe_noise_inside()
        return f"{noise} {PUBLIC('noise.bound_alone')}" if self.is_individual else noise

    def describe_noise_inside(self) -> str:
        """Return the name of a value's noise, where values were moved back into their domain."""
        return self.noise_inside

    def describe_values(self) -> str:
        """Return where masked values are."""
        if self.lies_on_grid:
            return f"{PUBLIC('values.inside')} {PUBLIC('values.of_grid')}"
        where = PUBLIC("values.anywhere") if self.card.method.values == "anywhere" else PUBLIC("values.inside")
        if self.card.method.grid != "on":
            return f"{where} {PUBLIC('values.off_grid')}"
        on_grid = PUBLIC("values.always_on_grid") if self.method.on_grid == "always" else PUBLIC("values.on_grid")
        return f"{where} {on_grid}"

    def list_caveats(self) -> list[str]:
        """Return the caveats that no card may leave out, in addition to those of the view."""
        return list(self.caveats)

    def list_caveats_without_noise(self) -> list[str]:
        """Return the caveats for values that may have no noise: that there are some, how they can be guessed, and what a right
        guess reveals."""
        if self.card.method.grid != "on":
            guessed = PUBLIC("caveat.guessed_off_grid")
        elif self.card.method.consistency == "isotonic":
            guessed = PUBLIC("caveat.guessed_by_habit")
        else:
            guessed = PUBLIC("caveat.guessed_by_rows")
        return [PUBLIC("caveat.without_noise"), guessed, PUBLIC("caveat.counted")]

    def describe_epsilon_of(self) -> str:
        """Return the object of epsilon, for programs."""
        return PUBLIC("card.epsilon_of_tables") if self.card.tables else PUBLIC("card.epsilon_of")

    # the page

    def describe_headline(self) -> Ready | None:
        """Return the headline of page and note, where the claim is one number for the whole package."""
        return None

    def describe_table(self) -> Ready:
        """Return the description of the table."""
        rows_out, rows_in = format_count(self.card.rows.out), format_count(self.card.rows.in_)
        if self.method.is_noisy:
            return html("page.what_noise", rows_out=rows_out, rows_in=rows_in, population=self.card.population)
        return html("page.what_masked", rows_out=rows_out, rows_in=rows_in, population=self.card.population)

    @abstractmethod
    def describe_making(self) -> Ready:
        """Return how masked values were made."""

    def describe_swap(self) -> Ready | None:
        """Return whose values a row has, where they changed places; None elsewhere."""
        return None if self.card.swap is None else html("page.making.swapped", words=self.card.swap.words)

    def describe_small_groups(self) -> Ready | None:
        """Return the text on suppression, where it must be stated; None elsewhere."""
        if self.suppresses_nothing:
            return None
        suppression = end_sentence(self.card.suppression.words)
        return html("page.small_groups.blanked", suppression=suppression, cells=format_count(self.card.suppression.cells_blanked))

    @property
    def suppresses_nothing(self) -> bool:
        """Return whether the policy has no suppression, and no text needs to mention it."""
        return self.may_suppress_nothing and self.card.suppression.words == PUBLIC("suppression.none")

    def describe_epsilon(self) -> Ready:
        """Return the object of epsilon."""
        if self.card.claim.epsilon.delta is not None:
            return html(
                "page.epsilon_at",
                epsilon=self.card.claim.epsilon.total,
                delta=self.card.claim.epsilon.delta,
                rho=self.card.claim.epsilon.rho,
            )
        return html("page.epsilon_is", epsilon=self.card.claim.epsilon.total)

    @property
    def definition_words(self) -> str:
        """Return the definition, short, with the delta at which epsilons hold."""
        short = self.definition.short
        return (
            short
            if self.card.claim.epsilon.delta is None
            else POLICY("amount.at_delta", short=short, delta=self.card.claim.epsilon.delta)
        )

    def describe_columns(self) -> Ready:
        """Return the heading of the columns."""
        return html("page.columns_and_noise_heading") if self.method.is_noisy else html("page.columns_heading")

    def describe_cap(self) -> Ready:
        """Return the reason for the cap of the series."""
        return html("page.series_adds_up") if self.definition.composes else html("page.series_counts")

    # the note

    def describe_swap_of_note(self) -> Ready | None:
        """Return whose values a row has where they changed places, and the effects of that; None elsewhere."""
        if self.card.swap is None:
            return None
        words = markdown("note.swap.words", words=self.card.swap.words)
        return join_lines(markdown("note.swap.heading"), "", words, "", markdown("note.swap.kept"), markdown("note.swap.lost"))

    def describe_headline_of_note(self) -> Ready | None:
        """Return the headline of the note, where the claim is one number for the whole package."""
        return None

    def describe_rows(self) -> Ready:
        """Return the number of rows, and of the records behind them."""
        return markdown("note.records", rows_out=format_count(self.card.rows.out), rows_in=format_count(self.card.rows.in_))

    def describe_blanks(self) -> Ready:
        """Return the meaning of blank cells and missing records."""
        if self.suppresses_nothing:
            return markdown("note.blanks.nothing")
        suppression = end_sentence(self.card.suppression.words)
        if not self.card.suppression.cells_blanked and self.card.suppression.words != PUBLIC("suppression.none"):
            if self.card.rows.in_ == self.card.rows.out:
                return markdown("note.blanks.nothing_lost", suppression=suppression)
            dropped = format_count(self.card.rows.in_ - self.card.rows.out)
            return markdown("note.blanks.not_blanked", suppression=suppression, dropped=dropped)
        return markdown("note.blanks.blanked", suppression=suppression, cells=format_count(self.card.suppression.cells_blanked))

    @abstractmethod
    def describe_equal_values(self) -> Ready:
        """Return the reason why records share values; a part of the note with its heading."""

    def describe_accounting(self) -> Ready:
        """Return how to account for the noise; a part of the note with its heading."""
        first = join_sentences(
            markdown("note.noise.let_bound") if self.is_bound else markdown("note.noise.let"),
            markdown("note.noise.by_clusters") if self.shares_values else markdown("note.noise.by_rows"),
            markdown("note.noise.order") if self.restores_order else "",
            markdown("note.noise.anywhere") if self.card.method.values == "anywhere" else markdown("note.noise.inside"),
            markdown("note.noise.beyond"),
        )
        return join_lines(markdown("note.noise.heading"), "", first, "", *self.list_uses())

    @property
    def is_bound(self) -> bool:
        """Return whether the named noise is an upper bound, and not its exact size."""
        return self.is_individual

    def list_uses(self) -> Iterator[str]:
        """Yield the effects of the noise on usual analyses, a point each."""
        shared, most = self.shares_values, self.is_individual
        rows = format_count(self.card.rows.out)
        of_mean = markdown("note.noise.mean_rows")
        if shared:
            of_mean = (
                markdown("note.noise.mean_clusters_bound", k=self.k, rows=rows)
                if most
                else markdown("note.noise.mean_clusters", k=self.k, rows=rows)
            )
        yield join_sentences(self.name_mean(), of_mean, markdown("note.noise.mean_total"))
        is_swapped = self.card.swap is not None
        clustered = markdown("note.noise.regression_clusters") if shared else ""
        yield join_sentences(
            markdown("note.noise.regression"),
            markdown("note.noise.regression_swapped") if is_swapped else clustered,
            markdown("note.noise.regression_errors"),
        )
        yield join_sentences(
            markdown("note.noise.subgroup"),
            markdown("note.noise.subgroup_clusters", k=self.k) if shared else markdown("note.noise.subgroup_rows"),
            markdown("note.noise.subgroup_swapped") if is_swapped else "",
            markdown("note.noise.subgroup_suppressed") if self.loses_some else "",
        )
        yield join_sentences(
            markdown("note.noise.simulate_clusters") if shared else markdown("note.noise.simulate_rows"),
            markdown("note.noise.moves_bound") if self.is_bound else markdown("note.noise.moves"),
        )

    @property
    def loses_some(self) -> bool:
        """Return whether cells were blanked or records dropped."""
        return self.card.suppression.cells_blanked > 0 or self.card.rows.out < self.card.rows.in_

    def name_mean(self) -> Ready:
        """Return the beginning of the point about a mean."""
        return markdown("note.noise.mean")


def join_sentences(*sentences: str) -> Ready:
    """Return the sentences that are not empty, one after the other."""
    return Ready(" ".join(sentence for sentence in sentences if sentence))


def join_lines(*lines: str) -> Ready:
    """Return the lines, one below the other."""
    return Ready("\n".join(lines))
