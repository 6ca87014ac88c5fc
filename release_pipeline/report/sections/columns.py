"""The section on errors: actual errors next to expected ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from release_pipeline.formats.internal_view import AtomView, CorrelationView, InternalView, NoiseColumnView, SpreadView
from release_pipeline.mechanisms.basis.dates import Clock
from release_pipeline.mechanisms.basis.figures import (
    count_things,
    format_count,
    format_number,
    format_range,
    format_share,
    join_names,
)
from release_pipeline.pages.escaping import end_sentence, format_text
from release_pipeline.pages.prose import (
    Name,
    Sentence,
    format_difference,
    format_value,
    is_number,
    list_heads,
    list_names,
    review,
)
from release_pipeline.report.charts.curves import draw_curves
from release_pipeline.report.sections.parts import FAR, Section, Table
from release_pipeline.sentences import REVIEWERS

MOST_ROWS = 12  # columns that have a separate sentence
_SAME = 0.01  # by what share of itself an error may miss the expected one and still equal it


def describe_errors(view: InternalView) -> Section:
    """Return the section: actual errors next to expected ones."""
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
    """Return where the actual error is, in a word or two; empty where there is no range to compare it with. Only `partitioned`
    decides whether it is outside, since the view's maker knows how exact the range is."""
    low, high = column.expected_low, column.expected_high
    if not is_number(column.actual_error) or low is None or high is None:
        return ""
    if not column.partitioned:
        return REVIEWERS("errors.as_expected")
    if column.actual_error > high:
        return REVIEWERS("errors.above")
    return REVIEWERS("errors.below") if column.actual_error < low else REVIEWERS("errors.outside")


def _is_without_noise(column: NoiseColumnView) -> bool:
    """Return whether a column without a range is exactly as expected, so that nothing in it was left to chance."""
    expected, actual = column.expected_error, column.actual_error
    if expected is None or not is_number(expected) or not is_number(actual):
        return False
    return abs(actual - expected) <= _SAME * max(abs(actual), abs(expected))


def _judge_errors(view: InternalView) -> list[Sentence]:
    ranged = [column for column in view.columns if _describe_place(column)]
    partitioned = [column for column in view.columns if column.partitioned]
    sentences: list[Sentence] = []
    if ranged:
        within = sum(not column.partitioned for column in ranged)
        sentences.append(REVIEWERS("errors.within", count=within, among=count_things(len(ranged), "column")))
    without = [column for column in view.columns if column.expected_low is None or column.expected_high is None]
    still = [column.name for column in without if _is_without_noise(column)]
    untold = [column.name for column in without if not _is_without_noise(column)]
    if still:
        sentences.append(review("errors.without", columns=list_names(still)))
    if untold:
        sentences.append(review("errors.untold", columns=list_names(untold)))
    for column in partitioned:
        place = _describe_place(column)
        where = REVIEWERS("errors.lies", place=place) if place else REVIEWERS("errors.differs")
        sentences.append(
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
        sentences.append(review("errors.useless", columns=list_names(useless)))
    taken = [column for column in view.columns if column.clamped]
    sentences += [
        review(
            "errors.clamped",
            share=format_share(column.clamped),
            column=Name(column.name),
            variance=format_number(column.clamped_variance),
        )
        for column in taken[:MOST_ROWS]
    ]
    if view.is_nobodys:  # no noise is forecast for these rows
        return sentences
    asked = f"check --rows {view.rows_in}" if view.rows_in else "check"
    sentences += [
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
        sentences.append(REVIEWERS("errors.more_forecasts"))
    return sentences


# The section on distributions: the change of each column as a whole.


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TENTHS = (0.1, 0.9)
_ROUNDING = 1e-12  # of a share
MOST_ATOMS = 5  # in one sentence; the table has all


def describe_distributions(view: InternalView) -> Section:
    """Return the section: a pair of distribution functions for each masked column."""
    anchor, title = "distributions", REVIEWERS("distributions.title")
    if not view.columns:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    return Section(
        anchor,
        title,
        shows=REVIEWERS("distributions.shows_synthetic") if view.is_synthetic else REVIEWERS("distributions.shows"),
        read=REVIEWERS("distributions.read"),
        sign=REVIEWERS("distributions.sign"),
        says=tuple(_judge_distributions(view)),
        tables=tuple(_draw_curves(column) for column in view.columns),
    )


def _judge_distributions(view: InternalView) -> list[Sentence]:
    known = [column for column in view.columns if is_number(column.ks)]
    if not known:
        return [REVIEWERS("distributions.none")]
    worst = max(known, key=lambda column: column.ks)
    far = [column.name for column in known if column.ks > FAR]
    sentences: list[Sentence] = [
        review("distributions.largest", gap=format_number(worst.ks), column=Name(worst.name))
        if worst.ks > 0
        else REVIEWERS("distributions.no_gap")
    ]
    if far:
        among = count_things(len(known), "column")
        sentences.append(
            review(
                "distributions.far", limit=format_number(FAR), count=format_count(len(far)), among=among, columns=list_names(far)
            )
        )
    else:
        sentences.append(REVIEWERS("distributions.near", limit=format_number(FAR)))
    for column in known:
        if column.atoms:
            sentences.append(review("distributions.atoms", column=Name(column.name), atoms=describe_atoms(column)))
    if view.released_range:
        sentences.append(end_sentence(view.released_range))
    return sentences


def describe_atoms(column: NoiseColumnView) -> str:
    """Return the share of records at declared atoms before and after, and as expected: those that moved most."""
    moved = sorted(column.atoms, key=lambda atom: -abs(atom.released - (atom.original or 0.0)))
    shown = join_names((_describe_atom(atom) for atom in moved[:MOST_ATOMS]), "semicolon")
    more = len(moved) - MOST_ATOMS
    return REVIEWERS("distributions.more_atoms", atoms=shown, more=more) if more > 0 else shown


def _describe_atom(atom: AtomView) -> str:
    before = REVIEWERS("distributions.too_few") if atom.original is None else format_share(atom.original)
    after = format_share(atom.released)
    if atom.expected is None:
        return REVIEWERS("distributions.atom", value=atom.value, before=before, after=after)
    expected = format_share(atom.expected)
    return REVIEWERS("distributions.atom_expected", value=atom.value, before=before, after=after, expected=expected)


def describe_ks(column: NoiseColumnView) -> str:
    """Return the Kolmogorov-Smirnov distance, and its expected value where that is known."""
    ks = format_number(column.ks)
    if column.expected_ks is None:
        return REVIEWERS("distributions.ks", ks=ks)
    return REVIEWERS("distributions.ks_expected", ks=ks, expected=format_number(column.expected_ks))


def _draw_curves(column: NoiseColumnView) -> Table:
    names = [*list_heads("distributions.spread"), *_mix(list(map(format_share, QUANTILES)), list(map(format_share, TENTHS)))]
    rows = tuple(zip(names, *_list_sides(column.original, column.released, column.clock), strict=True))
    rows += tuple(_list_atom(atom) for atom in column.atoms)
    name, ks, wasserstein = Name(column.name), describe_ks(column), format_difference(column.wasserstein, column.clock)
    legend = review("distributions.caption", column=name, ks=ks, wasserstein=wasserstein)
    beyond = 1 - column.original_curve[-1][1] if column.original_curve else 0.0
    if beyond > _ROUNDING:  # the part of the original that the picture cannot show
        share = format_share(beyond)
        legend = review("distributions.caption_beyond", column=name, ks=ks, wasserstein=wasserstein, beyond=share)
    heads = list_heads("distributions.head_curves")
    return Table(review("distributions.table", column=name), heads, rows, picture=draw_curves(column), legend=legend)


def _list_sides(original: SpreadView, released: SpreadView, clock: Clock | None) -> list[list[str]]:
    """Return original, released, and their difference; a deviation is a difference, too."""
    sides = [_list_spread(side, lambda value: format_value(value, clock)) for side in (original, released)]
    for spread, side in zip((original, released), sides, strict=True):
        side[1] = format_difference(spread.deviation, clock)
    return [*sides, _list_spread(_subtract(released, original), lambda value: format_difference(value, clock))]


def _list_atom(atom: AtomView) -> tuple[str, ...]:
    """Return the share of records at a declared value."""
    moved = None if atom.original is None else atom.released - atom.original
    shares = map(format_share, (atom.original, atom.released, moved))
    return (REVIEWERS("distributions.share_at", value=atom.value), *shares)


def _list_spread(spread: SpreadView, say: Callable[[float], str]) -> list[str]:
    tenths = [*map(say, spread.deciles)]
    return [say(spread.mean), say(spread.deviation), *_mix([*map(say, spread.quantiles)], tenths)]


def _mix(quantiles: Sequence[str], tenths: Sequence[str]) -> list[str]:
    """Return quantiles in ascending order: a tenth comes after the second of the others, nine tenths before the last two."""
    return [*quantiles[:2], *tenths[:1], *quantiles[2:-2], *tenths[1:], *quantiles[-2:]]


def _subtract(released: SpreadView, original: SpreadView) -> SpreadView:
    quantiles = tuple(a - b for a, b in zip(released.quantiles, original.quantiles, strict=True))
    deciles = tuple(a - b for a, b in zip(released.deciles, original.deciles, strict=True))
    return SpreadView(released.mean - original.mean, released.deviation - original.deviation, quantiles, deciles)


# The section on correlations of the masked columns.


def describe_correlations(view: InternalView) -> Section:
    """Return the section: the change of the links between columns."""
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
    known = [pair for pair in differences if pair[2] is not None]
    sentences: list[Sentence] = [REVIEWERS("correlations.none")]
    large = sum(abs(pair[2] or 0.0) > FAR for pair in known)
    if known:
        row, across, difference = max(known, key=lambda pair: abs(pair[2] or 0.0))
        if not difference:
            sentences = [REVIEWERS("correlations.no_difference")]
        else:
            sentences = [
                review(
                    "correlations.largest",
                    difference=format_number(difference),
                    one=Name(names[across]),
                    other=Name(names[row]),
                    original=format_number(original[row][across]),
                    released=format_number(released[row][across]),
                    move=_describe_move(original[row][across] or 0.0, released[row][across] or 0.0),
                ),
                REVIEWERS(
                    "correlations.large",
                    count=format_count(large),
                    pairs=count_things(len(known), "pair"),
                    limit=format_number(FAR),
                ),
            ]
    if len(known) < len(differences):
        sentences.append(REVIEWERS("correlations.constant", pairs=count_things(len(differences) - len(known), "pair")))
    table = Table(REVIEWERS("correlations.table_correlations"), list_heads("correlations.head"), rows)
    return Section(
        anchor,
        title,
        shows=REVIEWERS("correlations.shows_ranks") if view.are_ranks else REVIEWERS("correlations.shows"),
        read=read,
        sign=REVIEWERS("correlations.sign"),
        says=tuple(sentences),
        tables=(table,),
    )


def find_differences(view: CorrelationView) -> list[tuple[int, int, float | None]]:
    """Return released minus original for each pair of columns, the later one first; None where one of them is not known."""
    return [
        (row, across, _subtract_correlations(view.released[row][across], view.original[row][across]))
        for row in range(len(view.names))
        for across in range(row)
    ]


def _subtract_correlations(released: float | None, original: float | None) -> float | None:
    if released is None or original is None or not is_number(released) or not is_number(original):
        return None
    return released - original if is_number(released - original) else None


def _describe_move(original: float, released: float) -> str:
    """Return how a link changed, for either sign.

    >>> [_describe_move(*pair) for pair in ((-0.5, -0.2), (0.2, 0.5), (-0.2, 0.1), (0.3, 0.0))]
    ['came nearer to 0', 'moved away from 0', 'changed its sign', 'came nearer to 0']
    """
    if min(original, released) < 0 < max(original, released):
        return REVIEWERS("correlations.turned")
    return REVIEWERS("correlations.nearer") if abs(released) < abs(original) else REVIEWERS("correlations.away")
