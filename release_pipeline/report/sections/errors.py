"""The section on errors: those that came beside those that were expected."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_of,
    format_number,
    format_range,
    format_share,
)
from release_pipeline.report.charts.errors import MOST_ROWS, describe_place, draw_errors
from release_pipeline.report.escaping import end_sentence, format_text
from release_pipeline.report.internal_view import (
    InternalView,
    NoiseColumnView,
)
from release_pipeline.report.prose import Name, Sentence, is_number, list_names
from release_pipeline.report.sections.parts import NOT_MEASURED, Figure, Section, Table, describe_part, split

_SAME = 0.01  # by how much of itself an error may miss what was expected and still be that


def describe_errors(view: InternalView) -> Section:
    """Errors that came beside those that were expected."""
    anchor, title = "errors", "Error of each column, expected and actual"
    if not view.columns:
        return Section(anchor, title, absent=NOT_MEASURED)
    limits = {gate.error_of: gate for gate in view.gates if gate.error_of}
    parts = split(view.columns, MOST_ROWS)
    head = (
        "Column",
        "Role",
        "Epsilon",
        "Expected",
        "Range expected",
        "Actual",
        "Which is",
        "Mean absolute error",
        "Records clamped",
        "Variance clamping took",
        "Forecast",
        "Limit",
    )
    figures: list[Figure] = []
    for number, columns in enumerate(parts):
        rows = tuple(
            (
                Name(column.name),
                column.role,
                column.epsilon or "none",
                format_number(column.expected_error),
                _describe_expected(column),
                format_number(column.actual_error),
                describe_place(column) or "not compared",
                format_number(column.mean_absolute_error),
                format_share(column.clamped),
                format_number(column.clamped_variance),
                column.forecast or "none",
                format_number(limits[column.name].limit) if column.name in limits else "none",
            )
            for column in columns
        )
        caption = (
            "Bar: the range in which 99 of 100 releases should lie. Upright line: expected. Diamond: actual. Line with "
            f"triangle: limit of the policy. Dotted: 1, no better than the mean for everybody.{describe_part(number, len(parts))}"
        )
        note = "" if number else _describe_sum_of_squares(view)
        table = Table(f"errors of the columns.{describe_part(number, len(parts))}", head, rows, note)
        figures.append(Figure(draw_errors(columns, limits, view.columns), caption, table))
    return Section(
        anchor,
        title,
        shows="For each masked column the mean square of released minus original, over the variance of the original: as the "
        "scales of the noise let expect it, and as it came. The original is what the method saw, in the domain and on the grid: "
        "what clamping took before that is told apart, as the share of records that lay outside, and as the mean square of how "
        "far they were moved over the variance of the values as they came.",
        read="0 is exact, and 1 no better than giving everybody the mean. The range tells how much of a difference is chance. A "
        "mean absolute error above what check says is no fault: grouping comes on top of the noise.",
        sign="A diamond outside of its bar: the release is not what its scales promise, for good or ill. Somebody should "
        "know why before it is approved. A diamond right of the dotted line: the column is of little use record by record.",
        says=tuple(_judge_errors(view)),
        figures=tuple(figures),
    )


def _describe_sum_of_squares(view: InternalView) -> str:
    if view.sse_paper is None:
        return ""
    return (
        f"Sum of squared errors as IDP24 (Soria-Comas and others, 2025) defines it: {format_number(view.sse_paper)}. It depends on "
        "the units of the columns."
    )


def _describe_expected(column: NoiseColumnView) -> str:
    if column.expected_low is None or column.expected_high is None:
        return "no range: there is no noise" if _is_without_noise(column) else "no range could be told"
    return format_range(column.expected_low, column.expected_high)


def _is_without_noise(column: NoiseColumnView) -> bool:
    """Whether a column without a range came as it was expected to, so that nothing in it was left to chance."""
    expected, actual = column.expected_error, column.actual_error
    if expected is None or not is_number(expected) or not is_number(actual):
        return False
    return abs(actual - expected) <= _SAME * max(abs(actual), abs(expected))


def _judge_errors(view: InternalView) -> list[Sentence]:
    told = [column for column in view.columns if describe_place(column)]
    parted = [column for column in view.columns if column.parted]
    said: list[Sentence] = []
    if told:
        within = sum(describe_place(column) == "as expected" for column in told)
        lie = "lies" if 1 in (within, len(told)) else "lie"
        said.append(f"{within} of {count_of(len(told), 'column')} {lie} inside the range expected.")
    without = [column for column in view.columns if column.expected_low is None or column.expected_high is None]
    still = [column.name for column in without if _is_without_noise(column)]
    untold = [column.name for column in without if not _is_without_noise(column)]
    if still:
        said.append(("No range: there is no noise in ", *list_names(still), "."))
    if untold:
        said.append(("No range could be told for ", *list_names(untold), "."))
    for column in parted:
        place = describe_place(column)
        where = f"lies {place}" if place else "parts from what was expected"
        said.append((Name(column.name), f" {where}: expected {format_number(column.expected_error)} "
                     f"({format_range(column.expected_low, column.expected_high)}), actual "
                     f"{format_number(column.actual_error)}."))  # fmt: skip
    useless = [column.name for column in view.columns if is_number(column.actual_error) and column.actual_error >= 1]
    if useless:
        said.append(("No better than the mean for everybody: ", *list_names(useless), "."))
    taken = [column for column in view.columns if column.clamped]
    said += [
        (f"Clamping moved {format_share(column.clamped)} of the records of ", Name(column.name), f" and took "
         f"{format_number(column.clamped_variance)} of its variance, which is not in its error.")
        for column in taken[:MOST_ROWS]
    ]  # fmt: skip
    asked = f"check --rows {view.rows_in}" if view.rows_in else "check"
    said += [
        ("Mean absolute error of ", Name(column.name), f": {format_number(column.mean_absolute_error)}, grouping included. "
         f"{asked} says of the noise alone: ", end_sentence(format_text(column.forecast)))
        for column in view.columns[:MOST_ROWS]
        if column.forecast
    ]  # fmt: skip
    if len(view.columns) > MOST_ROWS and any(column.forecast for column in view.columns):
        said.append("The tables below have the forecasts of all columns.")
    return said
