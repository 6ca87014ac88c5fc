"""This release among its predecessors."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_things,
    format_number,
    format_share,
)
from release_pipeline.report.charts.releases import draw_map
from release_pipeline.report.internal_view import (
    InternalView,
    MapPoint,
)
from release_pipeline.report.prose import Name, Sentence, list_heads
from release_pipeline.report.sections.parts import Figure, Section, Table
from release_pipeline.sentences import REVIEWERS


def describe_map(view: InternalView) -> Section:
    """This release among its predecessors."""
    anchor, title = "map", REVIEWERS("map.title")
    if not view.map:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    rows = tuple(
        (
            Name(one.release),
            REVIEWERS("map.this") if one.is_this else REVIEWERS("map.earlier"),
            format_number(one.error),
            format_share(one.linkage),
        )
        for one in view.map
    )
    return Section(
        anchor,
        title,
        shows=REVIEWERS("map.shows"),
        read=REVIEWERS("map.read"),
        sign=REVIEWERS("map.sign"),
        says=tuple(_compare_releases(view.map)),
        figures=(
            Figure(
                draw_map(view.map),
                REVIEWERS("map.caption"),
                Table(REVIEWERS("map.table_releases_on_the_map"), list_heads("map.head"), rows),
            ),
        ),
    )


def _compare_releases(points: tuple[MapPoint, ...]) -> list[Sentence]:
    own = [point for point in points if point.is_this]
    earlier = [point for point in points if not point.is_this]
    if not own:
        return [REVIEWERS("map.no_point")]
    this = own[0]
    said: list[Sentence] = [
        REVIEWERS("map.is_at", error=format_number(this.error), linkage=format_share(this.linkage)),
    ]
    if not earlier:
        return [*said, REVIEWERS("map.alone")]
    smaller = sum(point.error < this.error for point in earlier)
    fewer = sum(point.linkage < this.linkage for point in earlier)
    if len(earlier) == 1:
        return [*said, REVIEWERS("map.among_one", smaller=smaller, fewer=fewer)]
    return [*said, REVIEWERS("map.among", earlier=count_things(len(earlier), "earlier_release"), smaller=smaller, fewer=fewer)]
