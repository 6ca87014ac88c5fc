"""What every family says of its releases."""

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
    restores_order = False  # whether the card says what became of the order
    shares_values = True  # records share released values by clusters of k
    has_noisy_values = True  # noise is on released values themselves, and not on counts that they were made of
    lies_on_grid = False  # whether values are points of the grid inside the domain, whatever the policy says
    may_suppress_nothing = False  # whether page and note leave suppression out where the policy has none
    no_bound: str | None = None  # why nothing bounds the whole table, where that has to be said and values stay with their rows
    k_words: str  # what k is, and what it is not
    k_words_swapped: str | None = None  # the same where values changed places, if it is another
    noise_inside: str  # what is named as the noise of a value, where values were moved back into their domain
    noise_anywhere = PUBLIC("noise.anywhere")  # and where they may lie anywhere
    anonymity = PUBLIC("anonymity.kept")  # what the size of the smallest group is of
    no_anonymity = PUBLIC("anonymity.no_kept")  # why there is no such size
    caveats: tuple[str, ...] = (PUBLIC("caveat.given"),)  # what no card may leave out
    kind_of_rows: str | None = None  # whose rows these are, in a few words for programs, where no row is a person's
    no_epsilon = PUBLIC("both.none")  # what stands for a column that has no epsilon of its own
    no_noise = PUBLIC("both.no_noise")  # and for one that has no noise of its own

    def __init__(self, package: PackageView) -> None:
        self.package = package
        self.card = card = package.card
        self.definition = find_definition(card.claim.definition.name)
        self.method = find_method(card.method.name)
        self.is_individual = self.definition is IDP
        self.k = "" if card.k.value is None else format_count(card.k.value)

    # the card

    def describe_k(self) -> str:
        """What k is, and what it is not."""
        return self.k_words if self.card.swap is None else self.k_words_swapped or self.k_words

    def describe_block(self) -> str:
        """What the size of blocks promises, where values changed places."""
        return "" if self.card.swap is None else PUBLIC("swap.of_block", k=format_count(self.card.swap.k))

    def describe_anonymity(self) -> str:
        """What the size of the smallest group is of, or why there is none."""
        return self.no_anonymity if self.card.anonymity_k.value is None else self.anonymity

    def describe_series(self) -> str:
        """What the sums over releases are."""
        return PUBLIC("series.adds_up") if self.definition.composes else PUBLIC("series.counts")

    def describe_noise(self) -> str:
        """What is named as the noise of a value."""
        noise = self.noise_anywhere if self.card.method.values == "anywhere" else self.describe_noise_inside()
        return f"{noise} {PUBLIC('noise.bound_alone')}" if self.is_individual else noise

    def describe_noise_inside(self) -> str:
        """The same, where values were moved back into their domain."""
        return self.noise_inside

    def describe_values(self) -> str:
        """Where masked values lie."""
        if self.lies_on_grid:
            return f"{PUBLIC('values.inside')} {PUBLIC('values.of_grid')}"
        where = PUBLIC("values.anywhere") if self.card.method.values == "anywhere" else PUBLIC("values.inside")
        if self.card.method.grid != "on":
            return f"{where} {PUBLIC('values.off_grid')}"
        on_grid = PUBLIC("values.always_on_grid") if self.method.on_grid == "always" else PUBLIC("values.on_grid")
        return f"{where} {on_grid}"

    def list_caveats(self) -> list[str]:
        """What no card may leave out, whatever the view says of its own release."""
        return list(self.caveats)

    def list_caveats_without_noise(self) -> list[str]:
        """Those of values that may have no noise: that there are some, how they can be guessed, and what a right guess gives."""
        if self.card.method.grid != "on":
            guessed = PUBLIC("caveat.guessed_off_grid")
        elif self.card.method.consistency == "isotonic":
            guessed = PUBLIC("caveat.guessed_by_habit")
        else:
            guessed = PUBLIC("caveat.guessed_by_rows")
        return [PUBLIC("caveat.without_noise"), guessed, PUBLIC("caveat.counted")]

    def describe_epsilon_of(self) -> str:
        """What epsilon is of, for programs."""
        return PUBLIC("card.epsilon_of_tables") if self.card.tables else PUBLIC("card.epsilon_of")

    # the page

    def describe_headline(self) -> Ready | None:
        """What page and note begin with, where the claim is one number for all of the package."""
        return None

    def describe_table(self) -> Ready:
        """What the table is."""
        rows_out, rows_in = format_count(self.card.rows.out), format_count(self.card.rows.in_)
        if self.method.is_noisy:
            return html("page.what_noise", rows_out=rows_out, rows_in=rows_in, population=self.card.population)
        return html("page.what_masked", rows_out=rows_out, rows_in=rows_in, population=self.card.population)

    @abstractmethod
    def describe_making(self) -> Ready:
        """How masked values were made."""

    def describe_swap(self) -> Ready | None:
        """Whose values a row has, where they changed places."""
        return None if self.card.swap is None else html("page.making.swapped", words=self.card.swap.words)

    def describe_small_groups(self) -> Ready | None:
        """What was suppressed, where that has to be said."""
        if self.suppresses_nothing:
            return None
        suppression = end_sentence(self.card.suppression.words)
        return html("page.small_groups.blanked", suppression=suppression, cells=format_count(self.card.suppression.cells_blanked))

    @property
    def suppresses_nothing(self) -> bool:
        """Whether the policy has no suppression, and that goes without saying."""
        return self.may_suppress_nothing and self.card.suppression.words == PUBLIC("suppression.none")

    def describe_epsilon(self) -> Ready:
        """What epsilon is of."""
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
        """The definition, short, with the delta at which epsilons hold."""
        short = self.definition.short
        return (
            short
            if self.card.claim.epsilon.delta is None
            else POLICY("amount.at_delta", short=short, delta=self.card.claim.epsilon.delta)
        )

    def describe_columns(self) -> Ready:
        """The heading of the columns."""
        return html("page.columns_and_noise_heading") if self.method.is_noisy else html("page.columns_heading")

    def describe_cap(self) -> Ready:
        """Why the series has a cap."""
        return html("page.series_adds_up") if self.definition.composes else html("page.series_counts")

    # the note

    def describe_swap_of_note(self) -> Ready | None:
        """Whose values a row has, and what that leaves and takes, where they changed places."""
        if self.card.swap is None:
            return None
        words = markdown("note.swap.words", words=self.card.swap.words)
        return join_lines(markdown("note.swap.heading"), "", words, "", markdown("note.swap.kept"), markdown("note.swap.lost"))

    def describe_headline_of_note(self) -> Ready | None:
        """The same."""
        return None

    def describe_rows(self) -> Ready:
        """How many rows there are, and of how many records."""
        return markdown("note.records", rows_out=format_count(self.card.rows.out), rows_in=format_count(self.card.rows.in_))

    def describe_blanks(self) -> Ready:
        """What blank cells and missing records are."""
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
        """What records that share values have in common; a part of the note with its heading."""

    def describe_accounting(self) -> Ready:
        """How to account for the noise; a part of the note with its heading."""
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
        """Whether the noise that is named is the most that it can be, and not what it is."""
        return self.is_individual

    def list_uses(self) -> Iterator[str]:
        """What the noise does to usual analyses, a point each."""
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
        """Whether cells were blanked or records dropped."""
        return self.card.suppression.cells_blanked > 0 or self.card.rows.out < self.card.rows.in_

    def name_mean(self) -> Ready:
        """How the point about a mean begins."""
        return markdown("note.noise.mean")


def join_sentences(*sentences: str) -> Ready:
    """Those that are not empty, one after the other."""
    return Ready(" ".join(sentence for sentence in sentences if sentence))


def join_lines(*lines: str) -> Ready:
    """One below the other."""
    return Ready("\n".join(lines))
