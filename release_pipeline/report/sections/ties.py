"""The section on columns that are tied by a rule: what still holds of it in what is published, and what was made anew."""

from __future__ import annotations

from release_pipeline.privacy.figures import format_count, format_number, format_share
from release_pipeline.report.internal_view import InternalView, RecomputedView, TieView
from release_pipeline.report.prose import Name, Sentence, list_heads, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import REVIEWERS


def describe_ties(view: InternalView) -> Section:
    """How many published records break each rule, and how far recomputed columns lie from the original ones."""
    rows = tuple((Name(tie.name), Name(tie.words), format_count(tie.before), format_count(tie.after)) for tie in view.ties)
    return Section(
        "ties",
        REVIEWERS("ties.title"),
        shows=REVIEWERS("ties.shows"),
        read=REVIEWERS("ties.read"),
        sign=REVIEWERS("ties.sign"),
        says=(*(_judge(tie, view.rows_out) for tie in view.ties), *map(_describe, view.recomputed)),
        tables=(Table(REVIEWERS("ties.table"), list_heads("ties.head"), rows),) if rows else (),
    )


def _judge(tie: TieView, records: int) -> Sentence:
    name, words, before = Name(tie.name), Name(tie.words), format_count(tie.before)
    if not tie.after:
        return review("ties.whole", name=name, words=words, before=before)
    after, out = format_count(tie.after), format_count(records)
    return review("ties.broken", name=name, words=words, before=before, after=after, records=out)


def _describe(made: RecomputedView) -> Sentence:
    name, words = Name(made.name), Name(made.words)
    if made.changed is not None:
        return review("ties.text", name=name, words=words, changed=format_share(made.changed))
    if made.original is None or made.released is None or made.absolute_error is None:
        return review("ties.empty", name=name, words=words)
    return review(
        "ties.number",
        name=name,
        words=words,
        released=format_number(made.released),
        original=format_number(made.original),
        absolute=format_number(made.absolute_error),
        error=format_number(made.error),
    )
