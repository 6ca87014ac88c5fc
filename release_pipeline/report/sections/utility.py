"""What the data are still good for: the sections on errors, distributions, correlations and prediction."""

from __future__ import annotations

from release_pipeline.policy.formats import count_of
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.charts.correlations import draw_correlations, find_differences
from release_pipeline.report.charts.curves import draw_curves
from release_pipeline.report.charts.errors import MOST_ROWS, draw_errors, say_place
from release_pipeline.report.charts.releases import draw_map
from release_pipeline.report.internal_view import (
    DiscriminationView,
    InternalView,
    MapPoint,
    NoiseColumnView,
    PredictionView,
    SpreadView,
)
from release_pipeline.report.prose import (
    MISSING,
    Name,
    Sentence,
    is_number,
    list_names,
    say_number,
    say_range,
    say_share,
)
from release_pipeline.report.public import end_sentence, show, show_count
from release_pipeline.report.sections.parts import NOT_MEASURED, Figure, Section, Table, say_part, split

QUANTILES = ("1%", "5%", "25%", "50%", "75%", "95%", "99%")
_MANY_GROUPS = 4  # of bars in one picture
_ROUNDING = 1e-12  # of a share
_SAME = 0.01  # by how much of itself an error may miss what was expected and still be that
_NEAR = 0.8  # what share of the most is near it
MOST_ATOMS = 5  # that are told in one sentence; the table has all
FAR = 0.1  # of a Kolmogorov-Smirnov distance, or of a correlation: what the page calls large


def show_map(view: InternalView) -> Section:
    """This release among its predecessors."""
    anchor, title = "map", "Risk and utility, among earlier releases"
    if not view.map:
        return Section(anchor, title, absent=NOT_MEASURED)
    rows = tuple(
        (Name(one.release), "this release" if one.is_this else "earlier", say_number(one.error), say_share(one.linkage))
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
        f"This release has a median error of {say_number(this.error)}, and {say_share(this.linkage)} of its records link to "
        "their own original."
    ]
    if not earlier:
        return [*said, "It is alone on the map: there is no earlier release to compare it with."]
    smaller = sum(point.error < this.error for point in earlier)
    fewer = sum(point.linkage < this.linkage for point in earlier)
    among = f"Of {count_of(len(earlier), 'earlier release')}" if len(earlier) > 1 else "Of the one earlier release"
    return [*said, f"{among}, {smaller} had a smaller error, and {fewer} had a smaller share of linked records."]


def show_distributions(view: InternalView) -> Section:
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
        figures=tuple(_show_curves(column) for column in view.columns),
        many=True,
    )


def _judge_distributions(view: InternalView) -> list[Sentence]:
    known = [column for column in view.columns if is_number(column.ks)]
    if not known:
        return ["No distance could be computed."]
    worst = max(known, key=lambda column: column.ks)
    far = [column.name for column in known if column.ks > FAR]
    said: list[Sentence] = [
        ("The largest gap is ", say_number(worst.ks), " in ", Name(worst.name), ".")
        if worst.ks > 0
        else "No column has any gap between its two lines."
    ]
    if far:
        said.append((f"The gap is over {FAR} in {len(far)} of {count_of(len(known), 'column')}: ", *list_names(far), "."))
    else:
        said.append(f"It is at most {FAR} in every column.")
    for column in known:
        if column.atoms:
            said.append((Name(column.name), f", share of records at declared values: {say_atoms(column)}."))
    if view.released_range:
        said.append(end_sentence(view.released_range))
    return said


def say_atoms(column: NoiseColumnView) -> str:
    """The share of records at declared atoms before and after, and as expected: those that moved most."""
    moved = sorted(column.atoms, key=lambda atom: -abs(atom.released - (atom.original or 0.0)))
    told = "; ".join(
        f"at {atom.value} {'too few to tell' if atom.original is None else say_share(atom.original)} before, "
        f"{say_share(atom.released)} after{'' if atom.expected is None else f' ({say_share(atom.expected)} expected)'}"
        for atom in moved[:MOST_ATOMS]
    )
    return f"{told}; {len(moved) - MOST_ATOMS} more moved less" if len(moved) > MOST_ATOMS else told


def say_ks(column: NoiseColumnView) -> str:
    """The Kolmogorov-Smirnov distance, and what was expected of it where that is known."""
    expected = "" if column.expected_ks is None else f" ({say_number(column.expected_ks)} expected)"
    return f"KS {say_number(column.ks)}{expected}"


def _show_curves(column: NoiseColumnView) -> Figure:
    spreads = column.original, column.released, _subtract(column.released, column.original)
    rows = tuple(zip(("mean", "standard deviation", *QUANTILES), *(_list_spread(one) for one in spreads), strict=True))
    rows += tuple(
        (
            f"share at {atom.value}",
            say_share(atom.original),
            say_share(atom.released),
            say_share(None if atom.original is None else atom.released - atom.original),
        )
        for atom in column.atoms
    )
    caption = (
        Name(column.name),
        f": {say_ks(column)}, Wasserstein {say_number(column.wasserstein)}{_say_beyond(column)}",
    )
    table = Table(("mean, spread and quantiles of ", Name(column.name)), ("What", "Original", "Released", "Difference"), rows)
    return Figure(draw_curves(column), caption, table)


def _say_beyond(column: NoiseColumnView) -> str:
    """What of the original the picture cannot show; empty where its line ends at all records."""
    beyond = 1 - column.original_curve[-1][1] if column.original_curve else 0.0
    return f". {say_share(beyond)} of the original records lie above the end of its line." if beyond > _ROUNDING else ""


def _list_spread(spread: SpreadView) -> tuple[str, ...]:
    quantiles = [say_number(value) for value in spread.quantiles[: len(QUANTILES)]]
    quantiles += [MISSING] * (len(QUANTILES) - len(quantiles))
    return say_number(spread.mean), say_number(spread.deviation), *quantiles


def _subtract(released: SpreadView, original: SpreadView) -> SpreadView:
    quantiles = tuple(a - b for a, b in zip(released.quantiles, original.quantiles, strict=False))
    return SpreadView(released.mean - original.mean, released.deviation - original.deviation, quantiles)


def show_errors(view: InternalView) -> Section:
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
                say_number(column.expected_error),
                _say_expected(column),
                say_number(column.actual_error),
                say_place(column) or "not compared",
                say_number(column.mean_absolute_error),
                say_share(column.clamped),
                say_number(column.clamped_variance),
                column.forecast or "none",
                say_number(limits[column.name].limit) if column.name in limits else "none",
            )
            for column in columns
        )
        caption = (
            "Bar: the range in which 99 of 100 releases should lie. Upright line: expected. Diamond: actual. Line with "
            f"triangle: limit of the policy. Dotted: 1, no better than the mean for everybody.{say_part(number, len(parts))}"
        )
        note = "" if number else _say_sum_of_squares(view)
        table = Table(f"errors of the columns.{say_part(number, len(parts))}", head, rows, note)
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


def _say_sum_of_squares(view: InternalView) -> str:
    if view.sse_paper is None:
        return ""
    return (
        f"Sum of squared errors as IDP24 (Soria-Comas and others, 2025) defines it: {say_number(view.sse_paper)}. It depends on "
        "the units of the columns."
    )


def _say_expected(column: NoiseColumnView) -> str:
    if column.expected_low is None or column.expected_high is None:
        return "no range: there is no noise" if _is_without_noise(column) else "no range could be told"
    return say_range(column.expected_low, column.expected_high)


def _is_without_noise(column: NoiseColumnView) -> bool:
    """Whether a column without a range came as it was expected to, so that nothing in it was left to chance."""
    expected, actual = column.expected_error, column.actual_error
    if expected is None or not is_number(expected) or not is_number(actual):
        return False
    return abs(actual - expected) <= _SAME * max(abs(actual), abs(expected))


def _judge_errors(view: InternalView) -> list[Sentence]:
    told = [column for column in view.columns if say_place(column)]
    parted = [column for column in view.columns if column.parted]
    said: list[Sentence] = []
    if told:
        within = sum(say_place(column) == "as expected" for column in told)
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
        place = say_place(column)
        where = f"lies {place}" if place else "parts from what was expected"
        said.append((Name(column.name), f" {where}: expected {say_number(column.expected_error)} "
                     f"({say_range(column.expected_low, column.expected_high)}), actual "
                     f"{say_number(column.actual_error)}."))  # fmt: skip
    useless = [column.name for column in view.columns if is_number(column.actual_error) and column.actual_error >= 1]
    if useless:
        said.append(("No better than the mean for everybody: ", *list_names(useless), "."))
    taken = [column for column in view.columns if column.clamped]
    said += [
        (f"Clamping moved {say_share(column.clamped)} of the records of ", Name(column.name), f" and took "
         f"{say_number(column.clamped_variance)} of its variance, which is not in its error.")
        for column in taken[:MOST_ROWS]
    ]  # fmt: skip
    asked = f"check --rows {view.rows_in}" if view.rows_in else "check"
    said += [
        ("Mean absolute error of ", Name(column.name), f": {say_number(column.mean_absolute_error)}, grouping included. "
         f"{asked} says of the noise alone: ", end_sentence(show(column.forecast)))
        for column in view.columns[:MOST_ROWS]
        if column.forecast
    ]  # fmt: skip
    if len(view.columns) > MOST_ROWS and any(column.forecast for column in view.columns):
        said.append("The tables below have the forecasts of all columns.")
    return said


def show_correlations(view: InternalView) -> Section:
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
            say_number(original[row][across]),
            say_number(released[row][across]),
            say_number(difference),
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
                (f"The largest difference is {say_number(difference)}, between ", Name(names[across]), " and ", Name(names[row]),
                 f": {say_number(original[row][across])} in the original, {say_number(released[row][across])} as released: it "
                 f"{_say_move(original[row][across] or 0.0, released[row][across] or 0.0)}."),
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


def _say_move(original: float, released: float) -> str:
    """What became of a link, whichever sign it had.

    >>> [_say_move(*pair) for pair in ((-0.5, -0.2), (0.2, 0.5), (-0.2, 0.1), (0.3, 0.0))]
    ['came nearer to 0', 'moved away from 0', 'turned its sign', 'came nearer to 0']
    """
    if min(original, released) < 0 < max(original, released):
        return "turned its sign"
    return "came nearer to 0" if abs(released) < abs(original) else "moved away from 0"


def show_predictions(view: InternalView) -> Section:
    """What models learn from the release, and whether they tell it from the original."""
    anchor, title = "models", "Models: telling released from original, and prediction"
    if not view.discrimination and not view.predictions:
        return Section(anchor, title, absent=end_sentence(view.prediction_words) if view.prediction_words else NOT_MEASURED)
    said: list[Sentence] = [_judge_discrimination(one) for one in view.discrimination]
    if view.clusters and any("tree" in one.model and one.pmse >= _NEAR * one.most > 0 for one in view.discrimination):
        said.append(
            "Records that share a cluster's value are easy to tell from original ones; that alone says little about usefulness."
        )
    said += [_judge_prediction(one) for one in view.predictions]
    if view.prediction_words:
        said.append(end_sentence(view.prediction_words))
    figures = [
        _show_discrimination(part, say_part(i, -(-len(view.discrimination) // _MANY_GROUPS)))
        for i, part in enumerate(split(view.discrimination, _MANY_GROUPS))
        if part
    ]
    figures += [
        _show_predictions(part, say_part(i, -(-len(view.predictions) // _MANY_GROUPS)))
        for i, part in enumerate(split(view.predictions, _MANY_GROUPS))
        if part
    ]
    return Section(
        anchor,
        title,
        shows="pMSE: how well a model tells released records from original ones. F-measure: how well a model predicts, "
        "trained on released records and on original ones, both tested on the same original records.",
        read="A pMSE of 0: the model cannot tell them apart at all. A released F-measure near the original one: what the "
        "model learns is left in the release. The guess is what saying yes to everybody gets.",
        sign="A pMSE near the most that it can be. A released F-measure near the guess while the original is far above it.",
        says=tuple(said),
        figures=tuple(figures),
    )


def _judge_discrimination(one: DiscriminationView) -> Sentence:
    tried = f"{show_count(one.tried)} of {count_of(one.among, 'record')} tried" if one.tried < one.among else "all records tried"
    chance = "" if one.ratio is None else f", {say_number(one.ratio)} times what chance alone gives"
    share = f" ({say_share(one.pmse / one.most)} of the most)" if is_number(one.pmse) and one.most > 0 else ""
    return (Name(one.model), f": pMSE {say_number(one.pmse)} of at most {say_number(one.most)}{share}{chance}; {tried}.")


def _judge_prediction(one: PredictionView) -> Sentence:
    kept = ""
    if all(is_number(value) for value in (one.released, one.original, one.guess)) and one.original > one.guess:
        share = max(one.released - one.guess, 0.0) / (one.original - one.guess)
        kept = f" Of what the original gains over the guess, the release keeps {say_share(share)}."
    if is_number(one.released) and is_number(one.guess) and one.released < one.guess:
        kept += " Trained on released records, the model is worse than the guess."
    return (
        Name(one.target), " by ", Name(one.model),
        f": {say_number(one.released)} when trained on released records, {say_number(one.original)} on original ones, "
        f"{say_number(one.guess)} by guessing; {count_of(one.trained, 'record')} to train, {show_count(one.tested)} to "
        f"test.{kept}",
    )  # fmt: skip


def _show_discrimination(models: tuple[DiscriminationView, ...], part: str) -> Figure:
    groups = [
        Group(
            one.model,
            (Bar("pMSE", one.pmse, "full", say_number(one.pmse)), Bar("most", one.most, "hollow", say_number(one.most))),
        )
        for one in models
    ]
    rows = tuple(
        (Name(one.model), say_number(one.pmse), say_number(one.most), say_number(one.ratio), show_count(one.tried),
        show_count(one.among)) for one in models
    )  # fmt: skip
    title, words = "How well models tell released from original records", "pMSE of each model beside the most that it can be."
    head = ("Model", "pMSE", "Most", "Times chance", "Records tried", "Of")
    caption = f"Filled: pMSE. Outline: the most that it can be.{part}"
    return Figure(draw_bars(title, words, groups), caption, Table("Telling released from original", head, rows))


def _show_predictions(models: tuple[PredictionView, ...], part: str) -> Figure:
    groups = [
        Group(
            f"{one.target}, {one.model}",
            (
                Bar("released", one.released, "full", say_number(one.released)),
                Bar("original", one.original, "hollow", say_number(one.original)),
                Bar("guess", one.guess, "dashed", say_number(one.guess)),
            ),
        )
        for one in models
    ]
    rows = tuple(
        (Name(one.target), Name(one.model), say_number(one.released), say_number(one.original), say_number(one.guess),
         show_count(one.trained), show_count(one.tested))
        for one in models
    )  # fmt: skip
    words = "F-measure trained on released records, on original ones, and by guessing."
    head = ("Target", "Model", "Released", "Original", "Guess", "Trained on", "Tested on")
    caption = (
        f"F-measure, 0 to 1. Filled: trained on released records. Outline: on original ones. Dashed outline: guessing.{part}"
    )
    return Figure(draw_bars("F-measure of models", words, groups, most=1.0), caption, Table("Prediction", head, rows))
