"""The section on what was left out."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    MISSING,
    count_of,
    format_apart,
    format_count,
    format_share,
)
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.internal_view import InternalView, SuppressionView
from release_pipeline.report.prose import Name, Sentence, is_number
from release_pipeline.report.sections.parts import NOT_MEASURED, Figure, Section, Table, describe_part, split

_MANY_REASONS = 12  # of bars in one picture


def describe_suppression(view: InternalView) -> Section:
    """What was left out."""
    anchor, title = "suppression", "What was left out"
    if view.suppression is None:
        return Section(anchor, title, absent=NOT_MEASURED)
    told = view.suppression
    share, limit = format_share(told.share), "none is set"
    if told.limit is not None:
        share, limit = (f"{words}%" for words in format_apart(100 * told.share, 100 * told.limit))
    touched = (Bar("", 100 * told.share, "full", share),)
    shares = [Group("share touched", touched, None if told.limit is None else 100 * told.limit, f"limit {limit}")]
    rows = [("records before", format_count(told.rows_in)), ("records after", format_count(told.rows_out))]
    rows += [("cells blanked", format_count(told.cells)), ("share touched", share), ("limit", limit)]
    return Section(
        anchor,
        title,
        shows="Records that were dropped and cells that were blanked before the release, and for which reason.",
        read="Less is better for the analyst, more was needed for small groups. Who was left out is seldom like the others.",
        sign="A share near its limit; one reason that takes nearly all: a column may be too fine to be released.",
        says=tuple(_judge_suppression(told, share, limit)),
        figures=(
            Figure(
                draw_bars("Share of the table that was touched", "Share touched, beside its limit.", shares),
                "Share touched, in percent; the dashed line is the limit, where one is set.",
                Table("What was left out", ("What", "How many"), tuple(rows)),
            ),
            *_draw_reasons(told),
        ),
    )


def _draw_reasons(told: SuppressionView) -> list[Figure]:
    parts = split(told.reasons, _MANY_REASONS) if told.reasons else []
    return [
        Figure(
            draw_bars(
                "Reasons for leaving out",
                "How many for each reason.",
                [Group(reason, (Bar("", float(count), "full", format_count(count)),)) for reason, count in reasons],
            ),
            f"How many for each reason.{describe_part(number, len(parts))}",
            Table("Reasons", ("Reason", "How many"), tuple((Name(reason), format_count(count)) for reason, count in reasons)),
        )
        for number, reasons in enumerate(parts)
    ]


def _judge_suppression(told: SuppressionView, share: str, limit: str) -> list[Sentence]:
    are = "is" if 1 in (told.rows_in, told.rows_out) else "are"
    said: list[Sentence] = [
        f"{format_count(told.rows_out)} of {count_of(told.rows_in, 'record')} {are} left, {count_of(told.cells, 'cell')} "
        f"{'was' if told.cells == 1 else 'were'} blanked: {share} touched."
    ]
    if told.limit is None:
        said.append("No limit is set.")
    elif not is_number(told.share):
        said.append(f"The limit is {limit}; the share is {MISSING}.")
    else:
        said.append(f"The limit is {limit}: {'kept' if told.share <= told.limit else 'broken'}.")
    if told.reasons:
        reason, count = max(told.reasons, key=lambda one: one[1])
        said.append(("Most often: ", Name(reason), f", {format_count(count)}."))
    else:
        said.append("Nothing was left out for any reason." if not told.share else "No reason is noted.")
    return said
