"""The section on models: whether they tell released records from original ones, and what they learn to predict."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_things,
    format_count,
    format_number,
    format_share,
)
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.internal_view import (
    InternalView,
    Learned,
    PredictionView,
)
from release_pipeline.report.prose import Name, Sentence, is_number, list_heads, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import REVIEWERS


def describe_predictions(view: InternalView) -> Section:
    """What models learn from the release."""
    anchor, title = "models", REVIEWERS("predictions.title")
    words = end_sentence(view.prediction_words) if view.prediction_words else ""
    models = [(prediction, model) for prediction in view.predictions for model in prediction.models]
    if not models:
        return Section(anchor, title, absent=words or REVIEWERS("section.not_measured"))
    rows = tuple(
        (
            Name(prediction.target),
            Name(model.model),
            *map(format_number, (model.released, model.original, prediction.guess)),
            *map(format_count, (prediction.trained, prediction.tested)),
        )
        for prediction, model in models
    )
    return Section(
        anchor,
        title,
        shows=REVIEWERS("predictions.shows") if view.swap is None else REVIEWERS("predictions.shows_swapped"),
        read=REVIEWERS("predictions.read"),
        sign=REVIEWERS("predictions.sign"),
        says=(*(_judge_prediction(prediction, model) for prediction, model in models), *([words] if words else [])),
        tables=(Table(REVIEWERS("predictions.table_prediction"), list_heads("predictions.head"), rows),),
    )


def _judge_prediction(prediction: PredictionView, model: Learned) -> Sentence:
    kept, guess = list[str](), prediction.guess
    if all(is_number(value) for value in (model.released, model.original, guess)) and model.original > guess:
        share = max(model.released - guess, 0.0) / (model.original - guess)
        kept.append(REVIEWERS("predictions.keeps", share=format_share(share)))
    if is_number(model.released) and is_number(guess) and model.released < guess:
        kept.append(REVIEWERS("predictions.worse"))
    words = review(
        "predictions.one",
        target=Name(prediction.target),
        model=Name(model.model),
        released=format_number(model.released),
        original=format_number(model.original),
        guess=format_number(guess),
        trained=count_things(prediction.trained, "record"),
        tested=format_count(prediction.tested),
    )
    return (*words, *(f" {sentence}" for sentence in kept))
