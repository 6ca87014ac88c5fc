"""The section on groups of records that share their quasi-identifiers."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_things,
    format_count,
    format_number,
    format_share,
)
from release_pipeline.report.internal_view import ClassesView, InternalView, SwapView
from release_pipeline.report.prose import Name, Sentence, list_heads, list_names, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import REVIEWERS


def describe_classes(view: InternalView) -> Section:
    """Groups of equal quasi-identifiers, and what they leave open."""
    anchor, title = "classes", REVIEWERS("classes.title")
    if view.classes is None:
        return Section(anchor, title, absent=REVIEWERS("classes.absent"))
    classes = view.classes
    rows = [(_format_sizes(low, high), format_count(count)) for low, high, count in classes.bars]
    rows += [
        (REVIEWERS("classes.limit"), format_count(classes.least) if classes.least > 0 else REVIEWERS("classes.limit_none")),
        (REVIEWERS("classes.groups"), format_count(classes.number)),
    ]
    rows += [
        (REVIEWERS("classes.smallest"), format_count(classes.smallest)),
        (REVIEWERS("classes.mean"), format_number(classes.mean)),
        (REVIEWERS("classes.largest"), format_count(classes.largest)),
    ]
    is_swapped = view.swap is not None
    return Section(
        anchor,
        title,
        shows=REVIEWERS("classes.shows"),
        read=REVIEWERS("classes.read_swapped") if is_swapped else REVIEWERS("classes.read"),
        sign=REVIEWERS("classes.sign_swapped") if is_swapped else REVIEWERS("classes.sign"),
        says=tuple(_judge_classes(classes, view.swap)),
        tables=(Table(REVIEWERS("classes.table_groups_by_size"), list_heads("classes.head"), tuple(rows)),),
    )


def _format_sizes(low: int, high: int) -> str:
    """A range of sizes."""
    return format_count(low) if low == high else REVIEWERS("classes.sizes", low=format_count(low), high=format_count(high))


def _judge_classes(classes: ClassesView, swap: SwapView | None) -> list[Sentence]:
    known: tuple[str, ...] = list_names(classes.quasi) if classes.quasi else (REVIEWERS("classes.quasi"),)
    limit = REVIEWERS("classes.no_limit")
    if classes.least > 0:
        least = format_count(classes.least)
        is_kept = classes.smallest >= classes.least
        limit = REVIEWERS("classes.kept", limit=least) if is_kept else REVIEWERS("classes.broken", limit=least)
    said: list[Sentence] = [
        review(
            "classes.k",
            groups=count_things(classes.number, "group"),
            records=count_things(classes.smallest, "record"),
            limit=limit,
            mean=format_number(classes.mean),
            largest=format_count(classes.largest),
            quasi=known,
        )
    ]
    if swap is not None and swap.blocks:
        blocks, records = count_things(swap.blocks, "block"), count_things(swap.smallest, "record")
        said.append(REVIEWERS("classes.blocks", blocks=blocks, records=records))
    for name, fewest in classes.diversity.items():
        values, column = count_things(fewest, "different_value"), Name(name)
        if swap is None and fewest <= 1:
            said.append(review("classes.l_of_one", column=column))
        elif swap is None:
            said.append(review("classes.l", values=values, column=column))
        elif fewest <= 1:
            said.append(review("classes.l_of_one_swapped", column=column))
        else:
            said.append(review("classes.l_swapped", values=values, column=column))
    if swap is not None:
        return [
            *said,
            REVIEWERS("classes.prosecutor_swapped", risk=format_share(classes.prosecutor)),
            REVIEWERS("classes.journalist_swapped", risk=format_share(classes.journalist)),
        ]
    return [
        *said,
        REVIEWERS("classes.prosecutor", risk=format_share(classes.prosecutor)),
        REVIEWERS("classes.journalist", risk=format_share(classes.journalist)),
    ]
