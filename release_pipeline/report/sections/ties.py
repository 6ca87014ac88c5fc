"""The section on columns that are tied by a rule: what still holds of it in what is published, and what was made anew."""

from __future__ import annotations

from release_pipeline.privacy.figures import format_count, format_number, format_share
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.internal_view import InternalView, RecomputedView, TieView
from release_pipeline.report.prose import Name, Sentence, list_heads, review
from release_pipeline.report.sections.parts import Figure, Section, Table, describe_part, split
from release_pipeline.sentences import REVIEWERS

_MOST_DRAWN = 8  # rules in one picture


def describe_ties(view: InternalView) -> Section:
    """How many published records break each rule, and how far recomputed columns lie from the original ones."""
    return Section(
        "ties",
        REVIEWERS("ties.title"),
        shows=REVIEWERS("ties.shows"),
        read=REVIEWERS("ties.read"),
        sign=REVIEWERS("ties.sign"),
        says=(*(_judge(tie, view.rows_out) for tie in view.ties), *map(_describe, view.recomputed)),
        figures=tuple(_draw(view)),
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


def _draw(view: InternalView) -> list[Figure]:
    parts = split(view.ties, _MOST_DRAWN) if view.ties and view.rows_out else []
    return [_draw_part(ties, view.rows_out, describe_part(number, len(parts))) for number, ties in enumerate(parts)]


def _draw_part(ties: list[TieView] | tuple[TieView, ...], records: int, part: str) -> Figure:
    groups = [
        Group(
            tie.name,
            (
                Bar(REVIEWERS("ties.before"), tie.before / records, "hollow", format_share(tie.before / records)),
                Bar(REVIEWERS("ties.after"), tie.after / records, "full", format_share(tie.after / records)),
            ),
        )
        for tie in ties
    ]
    rows = tuple((Name(tie.name), Name(tie.words), format_count(tie.before), format_count(tie.after)) for tie in ties)
    table = Table(REVIEWERS("ties.table"), list_heads("ties.head"), rows)
    picture = draw_bars(REVIEWERS("ties.picture"), REVIEWERS("ties.picture_words"), groups)
    return Figure(picture, REVIEWERS("ties.caption") + part, table)
