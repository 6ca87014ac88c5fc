"""The section on distributions: what became of each column as a whole."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    MISSING,
    count_of,
    format_number,
    format_share,
)
from release_pipeline.report.charts.curves import draw_curves
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.internal_view import (
    InternalView,
    NoiseColumnView,
    SpreadView,
)
from release_pipeline.report.prose import Name, Sentence, is_number, list_names
from release_pipeline.report.sections.parts import FAR, NOT_MEASURED, Figure, Section, Table

QUANTILES = ("1%", "5%", "25%", "50%", "75%", "95%", "99%")
_ROUNDING = 1e-12  # of a share
MOST_ATOMS = 5  # that are told in one sentence; the table has all


def describe_distributions(view: InternalView) -> Section:
    """A pair of distribution functions for each masked column."""
    anchor, title = "distributions", "Distribution of each column, original and released"
    if not view.columns:
        return Section(anchor, title, absent=NOT_MEASURED)
    return Section(
        anchor,
        title,
        shows="For each masked column the share of records with at most the value below: as it was, and as it is released. "
        "Drawn at released values and at even steps between them, so that no point is somebody's confidential value.",
        read="Where the two lines lie on each other, the release has as many small and large values as the original. The "
        "Kolmogorov-Smirnov distance (KS) is the largest gap between them, from 0 to 1; the Wasserstein distance is how far "
        "values moved on average, in the unit of the column.",
        sign="A dashed line that is steeper in the middle: extremes are lost. One that jumps at an end: values were pushed "
        "to the end of their domain. A released line of steep steps: many records share a value.",
        says=tuple(_judge_distributions(view)),
        figures=tuple(_draw_curves(column) for column in view.columns),
        many=True,
    )


def _judge_distributions(view: InternalView) -> list[Sentence]:
    known = [column for column in view.columns if is_number(column.ks)]
    if not known:
        return ["No distance could be computed."]
    worst = max(known, key=lambda column: column.ks)
    far = [column.name for column in known if column.ks > FAR]
    said: list[Sentence] = [
        ("The largest gap is ", format_number(worst.ks), " in ", Name(worst.name), ".")
        if worst.ks > 0
        else "No column has any gap between its two lines."
    ]
    if far:
        said.append((f"The gap is over {FAR} in {len(far)} of {count_of(len(known), 'column')}: ", *list_names(far), "."))
    else:
        said.append(f"It is at most {FAR} in every column.")
    for column in known:
        if column.atoms:
            said.append((Name(column.name), f", share of records at declared values: {describe_atoms(column)}."))
    if view.released_range:
        said.append(end_sentence(view.released_range))
    return said


def describe_atoms(column: NoiseColumnView) -> str:
    """The share of records at declared atoms before and after, and as expected: those that moved most."""
    moved = sorted(column.atoms, key=lambda atom: -abs(atom.released - (atom.original or 0.0)))
    told = "; ".join(
        f"at {atom.value} {'too few to tell' if atom.original is None else format_share(atom.original)} before, "
        f"{format_share(atom.released)} after{'' if atom.expected is None else f' ({format_share(atom.expected)} expected)'}"
        for atom in moved[:MOST_ATOMS]
    )
    return f"{told}; {len(moved) - MOST_ATOMS} more moved less" if len(moved) > MOST_ATOMS else told


def describe_ks(column: NoiseColumnView) -> str:
    """The Kolmogorov-Smirnov distance, and what was expected of it where that is known."""
    expected = "" if column.expected_ks is None else f" ({format_number(column.expected_ks)} expected)"
    return f"KS {format_number(column.ks)}{expected}"


def _draw_curves(column: NoiseColumnView) -> Figure:
    spreads = column.original, column.released, _subtract(column.released, column.original)
    rows = tuple(zip(("mean", "standard deviation", *QUANTILES), *(_list_spread(one) for one in spreads), strict=True))
    rows += tuple(
        (
            f"share at {atom.value}",
            format_share(atom.original),
            format_share(atom.released),
            format_share(None if atom.original is None else atom.released - atom.original),
        )
        for atom in column.atoms
    )
    caption = (
        Name(column.name),
        f": {describe_ks(column)}, Wasserstein {format_number(column.wasserstein)}{_describe_beyond(column)}",
    )
    table = Table(("mean, spread and quantiles of ", Name(column.name)), ("What", "Original", "Released", "Difference"), rows)
    return Figure(draw_curves(column), caption, table)


def _describe_beyond(column: NoiseColumnView) -> str:
    """What of the original the picture cannot show; empty where its line ends at all records."""
    beyond = 1 - column.original_curve[-1][1] if column.original_curve else 0.0
    return f". {format_share(beyond)} of the original records lie above the end of its line." if beyond > _ROUNDING else ""


def _list_spread(spread: SpreadView) -> tuple[str, ...]:
    quantiles = [format_number(value) for value in spread.quantiles[: len(QUANTILES)]]
    quantiles += [MISSING] * (len(QUANTILES) - len(quantiles))
    return format_number(spread.mean), format_number(spread.deviation), *quantiles


def _subtract(released: SpreadView, original: SpreadView) -> SpreadView:
    quantiles = tuple(a - b for a, b in zip(released.quantiles, original.quantiles, strict=False))
    return SpreadView(released.mean - original.mean, released.deviation - original.deviation, quantiles)
