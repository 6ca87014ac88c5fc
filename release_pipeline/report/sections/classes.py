"""The section on groups of records that share their quasi-identifiers."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_of,
    format_count,
    format_number,
    format_share,
)
from release_pipeline.report.charts.classes import draw_classes, format_sizes
from release_pipeline.report.internal_view import ClassesView, InternalView
from release_pipeline.report.prose import Name, Sentence, list_names
from release_pipeline.report.sections.parts import Figure, Section, Table


def describe_classes(view: InternalView) -> Section:
    """Groups of equal quasi-identifiers, and what they leave open."""
    anchor, title = "classes", "Groups of equal quasi-identifiers"
    if view.classes is None:
        return Section(
            anchor, title, absent="No quasi-identifier is released, so no groups can be formed, or they were not counted."
        )
    classes = view.classes
    rows = [(format_sizes(low, high), format_count(count)) for low, high, count in classes.bars]
    rows += [
        ("limit", format_count(classes.least) if classes.least > 0 else "none is set"),
        ("groups in all", format_count(classes.groups)),
    ]
    rows += [
        ("smallest (k)", format_count(classes.smallest)),
        ("mean", format_number(classes.mean)),
        ("largest", format_count(classes.largest)),
    ]
    line = "Line: the limit; outlines above it are groups that are too small." if classes.least > 0 else "No limit is set."
    return Section(
        anchor,
        title,
        shows="Records with the same released quasi-identifiers form a group: who knows these of a person cannot tell the "
        "person's record from the others of the group by them. Each bar is how many groups have that size.",
        read="The larger the groups, the less they tell. k is the smallest group, l the fewest different confidential values "
        "in a group, t how far the values of a group are from those of all.",
        sign="Any bar above the line of the limit. k of 1: somebody is alone. l of 1: a whole group has the same "
        "confidential value, so who knows that a person is in it knows the value.",
        says=tuple(_judge_classes(classes)),
        figures=(
            Figure(
                draw_classes(classes),
                f"Number of groups by their size. {line}",
                Table("Groups by size", ("Records in a group", "Groups"), tuple(rows)),
            ),
        ),
    )


def _judge_classes(classes: ClassesView) -> list[Sentence]:
    known: tuple[str, ...] = list_names(classes.quasi) if classes.quasi else ("the quasi-identifiers",)
    limit = "no limit is set"
    if classes.least > 0:
        limit = f"the limit is {format_count(classes.least)}" + (
            "" if classes.smallest >= classes.least else ", so it is too small"
        )
    said: list[Sentence] = [
        (f"k: the smallest of {count_of(classes.groups, 'group')} has {count_of(classes.smallest, 'record')}; {limit}. "
         f"The mean is {format_number(classes.mean)}, the largest {format_count(classes.largest)}. Groups are of equal ", *known, "."),
    ]  # fmt: skip
    for name, fewest in classes.diversity:
        worse = " Who knows that a person is in that group knows the value." if fewest <= 1 else ""
        said.append(("l: every group has at least ", count_of(fewest, "different value"), " of ", Name(name), f".{worse}"))
    said += [
        ("t: the values of ", Name(name), f" in a group are at most {format_number(far)} from those of all (0: alike, 1: apart).")
        for name, far in classes.closeness
    ]
    return [
        *said,
        f"Prosecutor risk {format_share(classes.prosecutor)}: who knows that a person is in the table points at the right record "
        "with at most this probability.",
        f"Marketer risk {format_share(classes.marketer)}: who tries everybody is right for this share of the records.",
        f"Journalist risk {format_share(classes.journalist)}: who knows the table that the release was drawn from, but not who "
        "is in the release, is right with at most this probability.",
    ]
