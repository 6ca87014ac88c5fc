"""The section on models: whether they can distinguish released records from original ones, and what they learn to predict."""

from __future__ import annotations

from collections.abc import Mapping

from release_pipeline.formats.internal_view import (
    ClosestView,
    GroupMeansView,
    InternalView,
    Learned,
    PredictionView,
    StructureView,
)
from release_pipeline.mechanisms.basis.dates import Clock
from release_pipeline.mechanisms.basis.figures import count_things, format_count, format_number, format_share
from release_pipeline.pages.escaping import end_sentence
from release_pipeline.pages.prose import Name, Sentence, format_interval, format_value, is_number, list_heads, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import REVIEWERS


def describe_predictions(view: InternalView) -> Section:
    """Return the section: what models learn from the release."""
    anchor, title = "models", REVIEWERS("predictions.title")
    remark = end_sentence(view.prediction_words) if view.prediction_words else ""
    models = [(prediction, model) for prediction in view.predictions for model in prediction.models]
    if not models:
        return Section(anchor, title, absent=remark or REVIEWERS("section.not_measured"))
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
        says=(*(_judge_prediction(prediction, model) for prediction, model in models), *([remark] if remark else [])),
        tables=(Table(REVIEWERS("predictions.table_prediction"), list_heads("predictions.head"), rows),),
    )


def _judge_prediction(prediction: PredictionView, model: Learned) -> Sentence:
    more, guess = list[str](), prediction.guess
    if all(is_number(value) for value in (model.released, model.original, guess)) and model.original > guess:
        share = max(model.released - guess, 0.0) / (model.original - guess)
        more.append(REVIEWERS("predictions.keeps", share=format_share(share)))
    if is_number(model.released) and is_number(guess) and model.released < guess:
        more.append(REVIEWERS("predictions.worse"))
    first = review(
        "predictions.one",
        target=Name(prediction.target),
        model=Name(model.model),
        released=format_number(model.released),
        original=format_number(model.original),
        guess=format_number(guess),
        trained=count_things(prediction.trained, "record"),
        tested=format_count(prediction.tested),
    )
    return (*first, *(f" {sentence}" for sentence in more))


# The section on synthetic rows: their tables of one, two and three columns, and their distance from people.


def describe_structure(view: InternalView) -> Section:
    """Return the section: tables of columns next to those of records drawn again, and the distance to the closest row."""
    anchor, title = "structure", REVIEWERS("structure.title")
    structure = view.structure
    if structure is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    rows = [(_name(count), format_number(value), format_number(chance)) for count, value, chance in structure.means]
    rows += [(f"{pair.one}, {pair.other}", format_number(pair.distance), "-") for pair in structure.worst_pairs]
    columns = sorted(structure.columns.items(), key=lambda column: -column[1])
    distances = tuple((Name(name), format_number(distance)) for name, distance in columns)
    tables = [
        Table(REVIEWERS("structure.table"), list_heads("structure.head"), tuple(rows)),
        Table(REVIEWERS("structure.table_columns"), list_heads("structure.head_columns"), distances),
    ]
    if structure.group_means is not None:
        tables.append(_list_groups(structure.group_means, view.clocks))
    return Section(
        anchor,
        title,
        shows=REVIEWERS("structure.shows"),
        read=REVIEWERS("structure.read"),
        sign=REVIEWERS("structure.sign"),
        says=(*_judge(structure, view.clocks), *_judge_closest(view.closest)),
        tables=tuple(tables),
    )


def _judge(structure: StructureView, clocks: Mapping[str, Clock]) -> list[Sentence]:
    sentences: list[Sentence] = []
    for count, value, chance in structure.means:
        sentences.append(
            REVIEWERS("structure.mean", columns=_name(count), distance=format_number(value), chance=format_number(chance))
        )
    if structure.worst_pairs:
        worst = structure.worst_pairs[0]
        distance = format_number(worst.distance)
        sentences.append(review("structure.worst", one=Name(worst.one), other=Name(worst.other), distance=distance))
    if structure.triples_tried:
        sentences.append(REVIEWERS("structure.lost", triples=count_things(structure.triples_tried, "set")))
    if structure.group_means is not None:
        sentences += _judge_groups(structure.group_means, clocks)
    return sentences


def _judge_closest(closest: ClosestView | None) -> list[Sentence]:
    """Return how near rows come to the people that they were made from, and to others."""
    if closest is None or closest.equal is None or closest.control_equal is None:
        return []
    return [
        REVIEWERS(
            "structure.closest",
            median=format_number(closest.median),
            control=format_number(closest.control_median),
            equal=format_interval(closest.equal),
            control_equal=format_interval(closest.control_equal),
        )
    ]


def _judge_groups(means: GroupMeansView, clocks: Mapping[str, Clock]) -> list[Sentence]:
    worst = means.worst[0]
    clock = clocks.get(worst.column)
    return [
        REVIEWERS(
            "structure.groups",
            groups=count_things(means.compared, "mean"),
            off=format_number(means.mean),
            chance=format_number(means.by_chance),
        ),
        review(
            "structure.worst_group",
            column=Name(worst.column),
            by=Name(worst.by),
            label=Name(worst.label),
            records=count_things(worst.records, "record"),
            original=format_value(worst.original, clock),
            released=format_value(worst.released, clock),
            off=format_number(worst.off),
        ),
    ]


def _list_groups(means: GroupMeansView, clocks: Mapping[str, Clock]) -> Table:
    """Return the table of the means of groups that are furthest off."""
    rows = tuple(
        (
            Name(mean.column),
            Name(mean.by),
            Name(mean.label),
            format_count(mean.records),
            format_value(mean.original, clocks.get(mean.column)),
            format_value(mean.released, clocks.get(mean.column)),
            format_number(mean.off),
        )
        for mean in means.worst
    )
    return Table(REVIEWERS("structure.table_groups"), list_heads("structure.head_groups"), rows)


def _name(count: int) -> str:
    if count == 1:
        return REVIEWERS("structure.one")
    return REVIEWERS("structure.two") if count == 2 else REVIEWERS("structure.three")
