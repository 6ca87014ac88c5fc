"""The section on models: whether they tell released records from original ones, and what they learn to predict."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_of,
    format_count,
    format_number,
    format_share,
)
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.internal_view import (
    DiscriminationView,
    InternalView,
    PredictionView,
)
from release_pipeline.report.prose import Name, Sentence, is_number
from release_pipeline.report.sections.parts import NOT_MEASURED, Figure, Section, Table, describe_part, split

_MANY_GROUPS = 4  # of bars in one picture
_NEAR = 0.8  # what share of the most is near it


def describe_predictions(view: InternalView) -> Section:
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
        _draw_discrimination(part, describe_part(i, -(-len(view.discrimination) // _MANY_GROUPS)))
        for i, part in enumerate(split(view.discrimination, _MANY_GROUPS))
        if part
    ]
    figures += [
        _draw_predictions(part, describe_part(i, -(-len(view.predictions) // _MANY_GROUPS)))
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
    tried = (
        f"{format_count(one.tried)} of {count_of(one.among, 'record')} tried" if one.tried < one.among else "all records tried"
    )
    chance = "" if one.ratio is None else f", {format_number(one.ratio)} times what chance alone gives"
    share = f" ({format_share(one.pmse / one.most)} of the most)" if is_number(one.pmse) and one.most > 0 else ""
    return (Name(one.model), f": pMSE {format_number(one.pmse)} of at most {format_number(one.most)}{share}{chance}; {tried}.")


def _judge_prediction(one: PredictionView) -> Sentence:
    kept = ""
    if all(is_number(value) for value in (one.released, one.original, one.guess)) and one.original > one.guess:
        share = max(one.released - one.guess, 0.0) / (one.original - one.guess)
        kept = f" Of what the original gains over the guess, the release keeps {format_share(share)}."
    if is_number(one.released) and is_number(one.guess) and one.released < one.guess:
        kept += " Trained on released records, the model is worse than the guess."
    return (
        Name(one.target), " by ", Name(one.model),
        f": {format_number(one.released)} when trained on released records, {format_number(one.original)} on original ones, "
        f"{format_number(one.guess)} by guessing; {count_of(one.trained, 'record')} to train, {format_count(one.tested)} to "
        f"test.{kept}",
    )  # fmt: skip


def _draw_discrimination(models: tuple[DiscriminationView, ...], part: str) -> Figure:
    groups = [
        Group(
            one.model,
            (Bar("pMSE", one.pmse, "full", format_number(one.pmse)), Bar("most", one.most, "hollow", format_number(one.most))),
        )
        for one in models
    ]
    rows = tuple(
        (Name(one.model), format_number(one.pmse), format_number(one.most), format_number(one.ratio), format_count(one.tried),
        format_count(one.among)) for one in models
    )  # fmt: skip
    title, words = "How well models tell released from original records", "pMSE of each model beside the most that it can be."
    head = ("Model", "pMSE", "Most", "Times chance", "Records tried", "Of")
    caption = f"Filled: pMSE. Outline: the most that it can be.{part}"
    return Figure(draw_bars(title, words, groups), caption, Table("Telling released from original", head, rows))


def _draw_predictions(models: tuple[PredictionView, ...], part: str) -> Figure:
    groups = [
        Group(
            f"{one.target}, {one.model}",
            (
                Bar("released", one.released, "full", format_number(one.released)),
                Bar("original", one.original, "hollow", format_number(one.original)),
                Bar("guess", one.guess, "dashed", format_number(one.guess)),
            ),
        )
        for one in models
    ]
    rows = tuple(
        (Name(one.target), Name(one.model), format_number(one.released), format_number(one.original), format_number(one.guess),
         format_count(one.trained), format_count(one.tested))
        for one in models
    )  # fmt: skip
    words = "F-measure trained on released records, on original ones, and by guessing."
    head = ("Target", "Model", "Released", "Original", "Guess", "Trained on", "Tested on")
    caption = (
        f"F-measure, 0 to 1. Filled: trained on released records. Outline: on original ones. Dashed outline: guessing.{part}"
    )
    return Figure(draw_bars("F-measure of models", words, groups, most=1.0), caption, Table("Prediction", head, rows))
