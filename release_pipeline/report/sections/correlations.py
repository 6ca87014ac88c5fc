"""The section on correlations of the masked columns."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_of,
    format_number,
)
from release_pipeline.report.charts.correlations import draw_correlations, find_differences
from release_pipeline.report.internal_view import (
    InternalView,
)
from release_pipeline.report.prose import Name, Sentence
from release_pipeline.report.sections.parts import FAR, NOT_MEASURED, Figure, Section, Table


def describe_correlations(view: InternalView) -> Section:
    """What became of the links between columns."""
    anchor, title = "correlations", "Correlations, released minus original"
    if view.correlations is None:
        return Section(anchor, title, absent=NOT_MEASURED)
    if len(view.correlations.names) < 2:
        return Section(anchor, title, absent="There is one masked column alone, so there are no correlations to compare.")
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
    said: list[Sentence] = ["No pair of columns has both correlations: nothing can be compared."]
    large = sum(abs(one[2] or 0.0) > FAR for one in known)
    if known:
        row, across, difference = max(known, key=lambda one: abs(one[2] or 0.0))
        if not difference:
            said = ["No correlation differs at all."]
        else:
            said = [
                (f"The largest difference is {format_number(difference)}, between ", Name(names[across]), " and ", Name(names[row]),
                 f": {format_number(original[row][across])} in the original, {format_number(released[row][across])} as released: it "
                 f"{_describe_move(original[row][across] or 0.0, released[row][across] or 0.0)}."),
                f"{large:,} of {count_of(len(known), 'pair')} {'differs' if 1 in (large, len(known)) else 'differ'} by more "
                f"than {FAR}.",
            ]  # fmt: skip
    if len(known) < len(differences):
        said.append(f"{count_of(len(differences) - len(known), 'pair')} without a figure: one of the columns is constant.")
    figure = Figure(
        draw_correlations(view.correlations),
        "The number in a cell is the difference. Blue: smaller than in the original; orange: larger; the stronger the colour, "
        "the larger the difference.",
        Table("Correlations", ("Column", "And", "Original", "Released", "Difference"), rows),
        wide=len(names) > 6,
    )
    return Section(
        anchor,
        title,
        shows="Each cell is a pair of columns: the column named at the left, and the one named on top of the cells.",
        read="A cell is released minus original. A link that came nearer to 0 was thinned by noise; one that moved away from 0 "
        "or turned its sign was made.",
        sign="A large number where an analyst will look for a link; a sign that turns; one column that differs with all others.",
        says=tuple(said),
        figures=(figure,),
    )


def _describe_move(original: float, released: float) -> str:
    """What became of a link, whichever sign it had.

    >>> [_describe_move(*pair) for pair in ((-0.5, -0.2), (0.2, 0.5), (-0.2, 0.1), (0.3, 0.0))]
    ['came nearer to 0', 'moved away from 0', 'turned its sign', 'came nearer to 0']
    """
    if min(original, released) < 0 < max(original, released):
        return "turned its sign"
    return "came nearer to 0" if abs(released) < abs(original) else "moved away from 0"
