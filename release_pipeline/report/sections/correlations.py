"""The section on correlations of the masked columns."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_things,
    format_count,
    format_number,
)
from release_pipeline.report.internal_view import CorrelationView, InternalView
from release_pipeline.report.prose import Name, Sentence, is_number, list_heads, review
from release_pipeline.report.sections.parts import FAR, Section, Table
from release_pipeline.sentences import REVIEWERS


def describe_correlations(view: InternalView) -> Section:
    """What became of the links between columns."""
    anchor = "correlations"
    title = REVIEWERS("correlations.title_ranks") if view.are_ranks else REVIEWERS("correlations.title")
    read = REVIEWERS("correlations.read_synthetic") if view.is_synthetic else REVIEWERS("correlations.read")
    if view.swap is not None:
        title, read = REVIEWERS("correlations.title_ranks_swapped"), REVIEWERS("correlations.read_swapped")
    if view.correlations is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    if len(view.correlations.names) < 2:
        return Section(anchor, title, absent=REVIEWERS("correlations.absent"))
    names, original, released = view.correlations.names, view.correlations.original, view.correlations.released
    differences = find_differences(view.correlations)
    rows = tuple(
        (
            Name(names[row]),
            Name(names[across]),
            format_number(original[row][across]),
            format_number(released[row][across]),
            format_number(difference),
        )
        for row, across, difference in differences
    )
    known = [one for one in differences if one[2] is not None]
    said: list[Sentence] = [REVIEWERS("correlations.none")]
    large = sum(abs(one[2] or 0.0) > FAR for one in known)
    if known:
        row, across, difference = max(known, key=lambda one: abs(one[2] or 0.0))
        if not difference:
            said = [REVIEWERS("correlations.no_difference")]
        else:
            said = [
                review(
                    "correlations.largest",
                    difference=format_number(difference),
                    one=Name(names[across]),
                    other=Name(names[row]),
                    original=format_number(original[row][across]),
                    released=format_number(released[row][across]),
                    move=_describe_move(original[row][across] or 0.0, released[row][across] or 0.0),
                ),
                _describe_large(large, len(known)),
            ]
    if len(known) < len(differences):
        said.append(REVIEWERS("correlations.constant", pairs=count_things(len(differences) - len(known), "pair")))
    table = Table(REVIEWERS("correlations.table_correlations"), list_heads("correlations.head"), rows)
    return Section(
        anchor,
        title,
        shows=REVIEWERS("correlations.shows_ranks") if view.are_ranks else REVIEWERS("correlations.shows"),
        read=read,
        sign=REVIEWERS("correlations.sign"),
        says=tuple(said),
        tables=(table,),
    )


def find_differences(view: CorrelationView) -> list[tuple[int, int, float | None]]:
    """Released minus original for each pair of columns, the later one first; None where one of them is not known."""
    return [
        (row, across, _subtract(view.released[row][across], view.original[row][across]))
        for row in range(len(view.names))
        for across in range(row)
    ]


def _subtract(released: float | None, original: float | None) -> float | None:
    if released is None or original is None or not is_number(released) or not is_number(original):
        return None
    return released - original if is_number(released - original) else None


def _describe_large(large: int, known: int) -> str:
    pairs = count_things(known, "pair")
    if 1 in (large, known):
        return REVIEWERS("correlations.one_large", count=format_count(large), pairs=pairs, limit=format_number(FAR))
    return REVIEWERS("correlations.large", count=format_count(large), pairs=pairs, limit=format_number(FAR))


def _describe_move(original: float, released: float) -> str:
    """What became of a link, whichever sign it had.

    >>> [_describe_move(*pair) for pair in ((-0.5, -0.2), (0.2, 0.5), (-0.2, 0.1), (0.3, 0.0))]
    ['came nearer to 0', 'moved away from 0', 'turned its sign', 'came nearer to 0']
    """
    if min(original, released) < 0 < max(original, released):
        return REVIEWERS("correlations.turned")
    return REVIEWERS("correlations.nearer") if abs(released) < abs(original) else REVIEWERS("correlations.away")
