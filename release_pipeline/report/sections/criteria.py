"""The section on the three criteria: which attack is tried for which, and what it gains beyond its control group."""

from __future__ import annotations

from collections.abc import Sequence

from release_pipeline.privacy.attacks import CRITERIA, INFERENCE, LINKABILITY, SINGLING_OUT
from release_pipeline.privacy.figures import format_share, say_missing
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.internal_view import CriterionView, InternalView
from release_pipeline.report.prose import Name, Sentence, format_interval, format_tried, is_number, list_heads, review
from release_pipeline.report.sections.attacks import judge_risk
from release_pipeline.report.sections.parts import Figure, Section, Table, describe_part, split
from release_pipeline.sentences import REVIEWERS

_MANY = 8  # attacks in one picture


def describe_criteria(view: InternalView) -> Section:
    """Each criterion by the attack that gains most, beside what the policy lets it gain, and every attack in the table."""
    said: list[Sentence] = []
    for criterion in CRITERIA:
        said += _judge(criterion, [one for one in view.criteria if one.criterion == criterion], view)
    if not any(one.limit is not None for one in view.criteria):
        said.append(REVIEWERS("criteria.no_limit"))
    if view.clusters and not view.generalises and not view.is_synthetic:
        said += [] if view.before_charge or view.swap is not None else [REVIEWERS("criteria.clusters")]
        said += [REVIEWERS("criteria.halves")] if any(one.foreseen is not None for one in view.criteria) else []
    drawn = [one for one in view.criteria if one.beyond is not None and one.rate.tried]
    parts = split(drawn, _MANY) if drawn else []
    return Section(
        "criteria",
        REVIEWERS("criteria.title"),
        shows=REVIEWERS("criteria.shows_foreseen") if view.before_charge else REVIEWERS("criteria.shows"),
        read=REVIEWERS("criteria.read_foreseen") if view.before_charge else REVIEWERS("criteria.read"),
        sign=REVIEWERS("criteria.sign_foreseen") if view.before_charge else REVIEWERS("criteria.sign"),
        says=tuple(said),
        figures=tuple(_draw(part, number, len(parts), view.criteria) for number, part in enumerate(parts)),
    )


def _name(criterion: str) -> str:
    return {
        SINGLING_OUT: REVIEWERS("criteria.singling_out"),
        LINKABILITY: REVIEWERS("criteria.linkability"),
        INFERENCE: REVIEWERS("criteria.inference"),
    }.get(criterion, criterion)


def _judge(criterion: str, found: Sequence[CriterionView], view: InternalView) -> list[Sentence]:
    """The attack that gains most, the limits, and record linkage, which is beside no control group."""
    said: list[Sentence] = []
    tried = [one for one in found if one.beyond is not None and one.control is not None]
    known = [one for one in tried if one.rate.tried]
    if known:
        worst = max(known, key=_order)
        assert worst.beyond is not None and worst.control is not None  # noqa: S101, PT018  for the type checker
        said.append(
            review(
                "criteria.worst",
                criterion=_name(criterion),
                attack=Name(worst.attack),
                rate=format_share(worst.rate.value),
                control=format_share(worst.control.value),
                guess=format_share(worst.guess),
                beyond=format_interval(worst.beyond),
                judged=judge_risk(worst.beyond),
            )
        )
    elif tried:
        said.append(REVIEWERS("criteria.never", criterion=_name(criterion)))
    elif criterion == LINKABILITY and view.swap is not None:
        most = format_share(1 / view.swap.k)
        said.append(REVIEWERS("criteria.swapped", criterion=_name(criterion), most=most))
    elif criterion == LINKABILITY and view.is_synthetic:
        said.append(REVIEWERS("criteria.nobodys", criterion=_name(criterion)))
    else:
        said.append(REVIEWERS("criteria.absent", criterion=_name(criterion)))
    said += [
        review(
            "criteria.limited",
            attack=Name(one.attack),
            limit=format_share(one.limit),
            foreseen=format_interval(one.foreseen),
            most=format_share(one.most),
        )
        for one in found
        if one.limit is not None and one.foreseen is not None
    ]
    said += [
        REVIEWERS("criteria.linked", name=one.attack, share=format_interval(one.rate), chance=format_share(one.guess))
        for one in found
        if one.beyond is None
    ]
    return said


def _order(one: CriterionView) -> float:
    """What is surely gained, then what is gained by the middle of the interval."""
    if one.beyond is None or not is_number(one.beyond.low) or not is_number(one.beyond.value):
        return -1.0
    return one.beyond.low + one.beyond.value


def _draw(part: Sequence[CriterionView], number: int, parts: int, every: Sequence[CriterionView]) -> Figure:
    """What attacks gain beyond their controls; record linkage, which has none, is in the table of the last
    picture."""
    groups: list[Group] = []
    for one in part:
        beyond = one.beyond
        if beyond is None:
            continue
        low, high = (100 * beyond.low, 100 * beyond.high) if beyond.low < beyond.high else (None, None)
        bar = Bar("", 100 * beyond.value, "full", format_share(beyond.value), low, high)
        groups.append(Group(one.attack, (bar,)))  # whose name says the criterion
    linked = [one for one in every if one.beyond is None or not one.rate.tried] if number == parts - 1 else []
    rows = tuple(_list_row(one) for one in (*part, *linked))
    table = Table(REVIEWERS("criteria.table"), list_heads("criteria.head"), rows)
    picture = draw_bars(REVIEWERS("criteria.picture"), REVIEWERS("criteria.picture_words"), groups)
    return Figure(picture, REVIEWERS("criteria.caption") + describe_part(number, parts), table)


def _list_row(one: CriterionView) -> tuple[str, ...]:
    return (
        _name(one.criterion),
        Name(one.attack),
        format_interval(one.rate),
        say_missing() if one.control is None else format_interval(one.control),
        format_share(one.guess),
        say_missing() if one.beyond is None else format_interval(one.beyond),
        say_missing() if one.most is None else format_share(one.most),
        say_missing() if one.limit is None else format_share(one.limit),
        *(say_missing() if share is None else format_tried(share) for share in (one.rate, one.control, one.beyond, one.foreseen)),
    )
