"""k-epsilon: classes of equal generalised quasi-identifiers, with noise inside each class."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.figures import format_count
from release_pipeline.report.escaping import Ready, end_sentence, escape_markdown, format_text, html, markdown
from release_pipeline.report.families.base import FamilyTexts, join_lines
from release_pipeline.sentences import PUBLIC


class ClassTexts(FamilyTexts):
    """Noise on every record, as large as its class is wide."""

    is_k_anonymity = True
    shares_values = False

    def describe_no_bound(self) -> str:
        """By the labels, and who has them."""
        return PUBLIC("no_bound.classes")

    def describe_k(self) -> str:
        """That of k-anonymity on the generalised columns."""
        return PUBLIC("k.of_classes")

    def describe_anonymity(self) -> str:
        """That of generalised quasi-identifiers."""
        return PUBLIC("anonymity.no_kept") if self.card.anonymity_k.value is None else PUBLIC("anonymity.generalised")

    def describe_noise(self) -> str:
        """That of the widest class, wherever values lie."""
        return PUBLIC("noise.of_classes")

    def describe_noise_inside(self) -> str:
        """That of the widest class."""
        return PUBLIC("noise.of_classes")

    def list_caveats(self) -> list[str]:
        """It is no differential privacy, and covers one record of a class."""
        return [
            PUBLIC("caveat.classes_not_dp"),
            PUBLIC("caveat.kept_in_class"),
            PUBLIC("caveat.whole_class"),
            PUBLIC("caveat.same_in_class"),
            PUBLIC("caveat.given_class"),
        ]

    def describe_making(self) -> Ready:
        """By class, and by noise in it."""
        return html("page.making.classes", k=self.k)

    def describe_small_groups(self) -> Ready:
        """Records are dropped, and no cell is blanked."""
        return html(
            "page.small_groups.dropped", suppression=end_sentence(self.card.suppression.words), dropped=self._count_dropped()
        )

    def describe_blanks(self) -> Ready:
        """No cell is blank."""
        return markdown(
            "note.blanks.dropped", suppression=end_sentence(self.card.suppression.words), dropped=self._count_dropped()
        )

    def describe_equal_values(self) -> Ready:
        """What records of a class share is their labels."""
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
        """Most classes are narrower than the domain."""
        return True

    def list_uses(self) -> Iterator[str]:
        """Above all, what lies at the ends of the domain."""
        yield markdown("note.noise.class_ends")
        yield from super().list_uses()

    def name_mean(self) -> Ready:
        """The point about a mean is the first one."""
        return markdown("note.noise.mean_alone")

    def _count_dropped(self) -> str:
        return format_count(self.card.rows.in_ - self.card.rows.out)
