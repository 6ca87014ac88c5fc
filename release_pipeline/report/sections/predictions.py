"""The section on models: whether they tell released records from original ones, and what they learn to predict."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_things,
    format_count,
    format_number,
    format_share,
    join_names,
)
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.internal_view import (
    DiscriminationView,
    InternalView,
    PredictionView,
)
from release_pipeline.report.prose import Name, Sentence, is_number, list_heads, review
from release_pipeline.report.sections.parts import Figure, Section, Table, describe_part, split
from release_pipeline.sentences import REVIEWERS

_MANY_GROUPS = 4  # of bars in one picture
_NEAR = 0.8  # what share of the most is near it


def describe_predictions(view: InternalView) -> Section:
    """What models learn from the release, and whether they tell it from the original."""
    anchor, title = "models", REVIEWERS("predictions.title")
    if not view.discrimination and not view.predictions:
        return Section(
            anchor,
            title,
            absent=end_sentence(view.prediction_words) if view.prediction_words else REVIEWERS("section.not_measured"),
        )
    said: list[Sentence] = [_judge_discrimination(one) for one in view.discrimination]
    if view.clusters and any(_is_tree(one) and one.pmse >= _NEAR * one.most > 0 for one in view.discrimination):
        said.append(REVIEWERS("predictions.easy"))
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
        shows=REVIEWERS("predictions.shows") if view.swap is None else REVIEWERS("predictions.shows_swapped"),
        read=REVIEWERS("predictions.read"),
        sign=REVIEWERS("predictions.sign"),
        says=tuple(said),
        figures=tuple(figures),
    )


def _is_tree(one: DiscriminationView) -> bool:
    return "tree" in one.model


def _judge_discrimination(one: DiscriminationView) -> Sentence:
    parts = [REVIEWERS("predictions.pmse", pmse=format_number(one.pmse), most=format_number(one.most))]
    if is_number(one.pmse) and one.most > 0:
        parts = [REVIEWERS("predictions.of_most", pmse=parts[0], share=format_share(one.pmse / one.most))]
    if one.ratio is not None:
        parts.append(REVIEWERS("predictions.times", ratio=format_number(one.ratio)))
    tried = REVIEWERS("predictions.all_tried")
    if one.tried < one.among:
        tried = REVIEWERS("predictions.tried", tried=format_count(one.tried), among=count_things(one.among, "record"))
    return review("predictions.model", model=Name(one.model), pmse=join_names(parts), tried=tried)


def _judge_prediction(one: PredictionView) -> Sentence:
    kept = list[str]()
    if all(is_number(value) for value in (one.released, one.original, one.guess)) and one.original > one.guess:
        share = max(one.released - one.guess, 0.0) / (one.original - one.guess)
        kept.append(REVIEWERS("predictions.keeps", share=format_share(share)))
    if is_number(one.released) and is_number(one.guess) and one.released < one.guess:
        kept.append(REVIEWERS("predictions.worse"))
    words = review(
        "predictions.one",
        target=Name(one.target),
        model=Name(one.model),
        released=format_number(one.released),
        original=format_number(one.original),
        guess=format_number(one.guess),
        trained=count_things(one.trained, "record"),
        tested=format_count(one.tested),
    )
    return (*words, *(f" {sentence}" for sentence in kept))


def _draw_discrimination(models: tuple[DiscriminationView, ...], part: str) -> Figure:
    groups = [
        Group(
            one.model,
            (
                Bar(REVIEWERS("predictions.bar_pmse"), one.pmse, "full", format_number(one.pmse)),
                Bar(REVIEWERS("predictions.bar_most"), one.most, "hollow", format_number(one.most)),
            ),
        )
        for one in models
    ]
    rows = tuple(
        (
            Name(one.model),
            format_number(one.pmse),
            format_number(one.most),
            format_number(one.ratio),
            format_count(one.tried),
            format_count(one.among),
        )
        for one in models
    )
    title, words = REVIEWERS("predictions.picture_discrimination"), REVIEWERS("predictions.picture_words_discrimination")
    head = list_heads("predictions.head_discrimination")
    caption = REVIEWERS("predictions.caption_discrimination") + part
    return Figure(
        draw_bars(title, words, groups), caption, Table(REVIEWERS("predictions.table_telling_released_from_original"), head, rows)
    )


def _draw_predictions(models: tuple[PredictionView, ...], part: str) -> Figure:
    groups = [
        Group(
            f"{one.target}, {one.model}",
            (
                Bar(REVIEWERS("predictions.bar_released"), one.released, "full", format_number(one.released)),
                Bar(REVIEWERS("predictions.bar_original"), one.original, "hollow", format_number(one.original)),
                Bar(REVIEWERS("predictions.bar_guess"), one.guess, "dashed", format_number(one.guess)),
            ),
        )
        for one in models
    ]
    rows = tuple(
        (
            Name(one.target),
            Name(one.model),
            format_number(one.released),
            format_number(one.original),
            format_number(one.guess),
            format_count(one.trained),
            format_count(one.tested),
        )
        for one in models
    )
    words = REVIEWERS("predictions.picture_words")
    head = list_heads("predictions.head")
    caption = REVIEWERS("predictions.caption") + part
    return Figure(
        draw_bars(REVIEWERS("predictions.picture"), words, groups, most=1.0),
        caption,
        Table(REVIEWERS("predictions.table_prediction"), head, rows),
    )
