"""The section on errors: those that came beside those that were expected."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_things,
    format_number,
    format_range,
    format_share,
)
from release_pipeline.report.escaping import end_sentence, format_text
from release_pipeline.report.internal_view import InternalView, NoiseColumnView
from release_pipeline.report.prose import Name, Sentence, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.report.values import format_difference
from release_pipeline.sentences import REVIEWERS

MOST_ROWS = 12  # columns that have a sentence of their own
_SAME = 0.01  # by how much of itself an error may miss what was expected and still be that


def describe_errors(view: InternalView) -> Section:
    """Errors that came beside those that were expected."""
    anchor, title = "errors", REVIEWERS("errors.title")
    if not view.columns:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    limits = {gate.error_of: gate for gate in view.gates if gate.error_of}
    none = REVIEWERS("errors.none")
    rows = tuple(
        (
            Name(column.name),
            REVIEWERS.read_section("role").get(column.role, column.role),
            column.epsilon or none,
            format_number(column.expected_error),
            _describe_expected(column),
            format_number(column.actual_error),
            _describe_place(column) or REVIEWERS("errors.not_compared"),
            format_difference(column.mean_absolute_error, column.clock),
            format_share(column.clamped),
            format_number(column.clamped_variance),
            column.forecast or none,
            format_number(limits[column.name].limit) if column.name in limits else none,
        )
        for column in view.columns
    )
    table = Table(REVIEWERS("errors.table"), list_heads("errors.head"), rows, _describe_sum_of_squares(view))
    shows, read, sign = REVIEWERS("errors.shows"), REVIEWERS("errors.read"), REVIEWERS("errors.sign")
    if view.is_nobodys:
        shows, read, sign = (
            REVIEWERS("errors.shows_synthetic"),
            REVIEWERS("errors.read_synthetic"),
            REVIEWERS("errors.sign_synthetic"),
        )
    if view.swap is not None:
        shows, sign = REVIEWERS("errors.shows_swapped"), REVIEWERS("errors.sign_swapped")
    return Section(
        anchor,
        title,
        shows=shows,
        read=read,
        sign=sign,
        says=tuple(_judge_errors(view)),
        tables=(table,),
    )


def _describe_sum_of_squares(view: InternalView) -> str:
    if view.sse_paper is None:
        return ""
    return REVIEWERS("errors.sum_of_squares", sum=format_number(view.sse_paper))


def _describe_expected(column: NoiseColumnView) -> str:
    if column.expected_low is None or column.expected_high is None:
        return REVIEWERS("errors.no_noise") if _is_without_noise(column) else REVIEWERS("errors.no_range")
    return format_range(column.expected_low, column.expected_high)


def _describe_place(column: NoiseColumnView) -> str:
    """Where the error that came lies, in a word or two; empty where there is no range to compare it with. `partitioned` alone
    says whether it is outside, for who made the view knows how exact the range is."""
    low, high = column.expected_low, column.expected_high
    if not is_number(column.actual_error) or low is None or high is None:
        return ""
    if not column.partitioned:
        return REVIEWERS("errors.as_expected")
    if column.actual_error > high:
        return REVIEWERS("errors.above")
    return REVIEWERS("errors.below") if column.actual_error < low else REVIEWERS("errors.outside")


def _is_without_noise(column: NoiseColumnView) -> bool:
    """Whether a column without a range came as it was expected to, so that nothing in it was left to chance."""
    expected, actual = column.expected_error, column.actual_error
    if expected is None or not is_number(expected) or not is_number(actual):
        return False
    return abs(actual - expected) <= _SAME * max(abs(actual), abs(expected))


def _judge_errors(view: InternalView) -> list[Sentence]:
    ranged = [column for column in view.columns if _describe_place(column)]
    partitioned = [column for column in view.columns if column.partitioned]
    said: list[Sentence] = []
    if ranged:
        within = sum(not column.partitioned for column in ranged)
        among, is_one = count_things(len(ranged), "column"), 1 in (within, len(ranged))
        said.append(
            REVIEWERS("errors.one_within", count=within, among=among)
            if is_one
            else REVIEWERS("errors.within", count=within, among=among)
        )
    without = [column for column in view.columns if column.expected_low is None or column.expected_high is None]
    still = [column.name for column in without if _is_without_noise(column)]
    untold = [column.name for column in without if not _is_without_noise(column)]
    if still:
        said.append(review("errors.without", columns=list_names(still)))
    if untold:
        said.append(review("errors.untold", columns=list_names(untold)))
    for column in partitioned:
        place = _describe_place(column)
        where = REVIEWERS("errors.lies", place=place) if place else REVIEWERS("errors.differs")
        said.append(
            review(
                "errors.apart",
                column=Name(column.name),
                where=where,
                expected=format_number(column.expected_error),
                range=format_range(column.expected_low, column.expected_high),
                actual=format_number(column.actual_error),
            )
        )
    useless = [column.name for column in view.columns if is_number(column.actual_error) and column.actual_error >= 1]
    if useless:
        said.append(review("errors.useless", columns=list_names(useless)))
    taken = [column for column in view.columns if column.clamped]
    said += [
        review(
            "errors.clamped",
            share=format_share(column.clamped),
            column=Name(column.name),
            variance=format_number(column.clamped_variance),
        )
        for column in taken[:MOST_ROWS]
    ]
    if view.is_nobodys:  # of whose rows no noise is forecast
        return said
    asked = f"check --rows {view.rows_in}" if view.rows_in else "check"
    said += [
        review(
            "errors.forecast",
            column=Name(column.name),
            error=format_difference(column.mean_absolute_error, column.clock),
            asked=asked,
            forecast=end_sentence(format_text(column.forecast)),
        )
        for column in view.columns[:MOST_ROWS]
        if column.forecast
    ]
    if len(view.columns) > MOST_ROWS and any(column.forecast for column in view.columns):
        said.append(REVIEWERS("errors.more_forecasts"))
    return said
