"""This release among its predecessors."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_of,
    format_number,
    format_share,
)
from release_pipeline.report.charts.releases import draw_map
from release_pipeline.report.internal_view import (
    InternalView,
    MapPoint,
)
from release_pipeline.report.prose import Name, Sentence
from release_pipeline.report.sections.parts import NOT_MEASURED, Figure, Section, Table


def describe_map(view: InternalView) -> Section:
    """This release among its predecessors."""
    anchor, title = "map", "Risk and utility, among earlier releases"
    if not view.map:
        return Section(anchor, title, absent=NOT_MEASURED)
    rows = tuple(
        (Name(one.release), "this release" if one.is_this else "earlier", format_number(one.error), format_share(one.linkage))
        for one in view.map
    )
    return Section(
        anchor,
        title,
        shows="Each mark is a release of this policy. To the right: the median over its columns of the mean square error "
        "over the variance (0 is exact, 1 is no better than the mean for everybody). Upwards: the share of its records whose "
        "nearest original is their own.",
        read="Lower and further left is better; the axes need not begin at 0. The filled diamond is this release, the rings "
        "are earlier ones. Where errors spread by more than ten times, each step to the right multiplies.",
        sign="A diamond far above the rings: records of this release link more often than those of earlier ones. Far to the "
        "right of them: it is of less use.",
        says=tuple(_compare_releases(view.map)),
        figures=(
            Figure(
                draw_map(view.map),
                "Diamond: this release. Rings: earlier ones. Names without room are in the table alone.",
                Table("Releases on the map", ("Release", "Which", "Median error", "Linked records"), rows),
            ),
        ),
    )


def _compare_releases(points: tuple[MapPoint, ...]) -> list[Sentence]:
    own = [point for point in points if point.is_this]
    earlier = [point for point in points if not point.is_this]
    if not own:
        return ["This release has no point on the map: its figures were not measured."]
    this = own[0]
    said: list[Sentence] = [
        f"This release has a median error of {format_number(this.error)}, and {format_share(this.linkage)} of its records link to "
        "their own original."
    ]
    if not earlier:
        return [*said, "It is alone on the map: there is no earlier release to compare it with."]
    smaller = sum(point.error < this.error for point in earlier)
    fewer = sum(point.linkage < this.linkage for point in earlier)
    among = f"Of {count_of(len(earlier), 'earlier release')}" if len(earlier) > 1 else "Of the one earlier release"
    return [*said, f"{among}, {smaller} had a smaller error, and {fewer} had a smaller share of linked records."]
