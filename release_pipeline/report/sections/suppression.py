"""The section on what was left out."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_things,
    format_apart,
    format_count,
    format_share,
)
from release_pipeline.report.internal_view import InternalView, SuppressionView
from release_pipeline.report.prose import Name, Sentence, is_number, list_heads, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import FIGURES, REVIEWERS


def describe_suppression(view: InternalView) -> Section:
    """What was left out."""
    anchor, title = "suppression", REVIEWERS("suppression.title")
    if view.suppression is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    suppression = view.suppression
    share, limit = format_share(suppression.share), REVIEWERS("suppression.limit_none")
    if suppression.limit is not None:
        share, limit = (
            FIGURES("share.percent", number=words) for words in format_apart(100 * suppression.share, 100 * suppression.limit)
        )
    rows = [
        (REVIEWERS("suppression.before"), format_count(suppression.rows_in)),
        (REVIEWERS("suppression.after"), format_count(suppression.rows_out)),
    ]
    rows += [
        (REVIEWERS("suppression.cells"), format_count(suppression.cells)),
        (REVIEWERS("suppression.share"), share),
        (REVIEWERS("suppression.limit"), limit),
    ]
    rows += [(Name(reason), format_count(count)) for reason, count in suppression.reasons]
    return Section(
        anchor,
        title,
        shows=REVIEWERS("suppression.shows"),
        read=REVIEWERS("suppression.read"),
        sign=REVIEWERS("suppression.sign"),
        says=tuple(_judge_suppression(suppression, share, limit)),
        tables=(Table(REVIEWERS("suppression.table_what_was_left_out"), list_heads("suppression.head"), tuple(rows)),),
    )


def _judge_suppression(suppression: SuppressionView, share: str, limit: str) -> list[Sentence]:
    out, records = format_count(suppression.rows_out), count_things(suppression.rows_in, "record")
    is_one = 1 in (suppression.rows_in, suppression.rows_out)
    left = REVIEWERS("suppression.one_left", out=out, records=records) if is_one else None
    cells = count_things(suppression.cells, "cell")
    blanked = REVIEWERS("suppression.one_blanked", cells=cells) if suppression.cells == 1 else None
    said: list[Sentence] = [
        REVIEWERS(
            "suppression.touched",
            left=left or REVIEWERS("suppression.left", out=out, records=records),
            blanked=blanked or REVIEWERS("suppression.blanked", cells=cells),
            share=share,
        )
    ]
    if suppression.limit is None:
        said.append(REVIEWERS("suppression.no_limit"))
    elif not is_number(suppression.share):
        said.append(REVIEWERS("suppression.unknown", limit=limit))
    else:
        is_kept = suppression.share <= suppression.limit
        said.append(REVIEWERS("suppression.kept", limit=limit) if is_kept else REVIEWERS("suppression.broken", limit=limit))
    if suppression.reasons:
        reason, count = max(suppression.reasons, key=lambda one: one[1])
        said.append(review("suppression.most_often", reason=Name(reason), count=format_count(count)))
    else:
        said.append(REVIEWERS("suppression.nothing") if not suppression.share else REVIEWERS("suppression.no_reason"))
    return said
