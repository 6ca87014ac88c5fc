"""The section on attacks, beside what chance and a control group give."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    format_share,
)
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.escaping import end_sentence, format_text
from release_pipeline.report.internal_view import AttackView, InternalView, ShareView
from release_pipeline.report.prose import Name, Sentence, format_interval, format_tried, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import Figure, Section, Table, describe_part, split
from release_pipeline.sentences import REVIEWERS

_MANY_GROUPS = 5  # of bars in one picture


def describe_attacks(view: InternalView) -> Section:
    """Attacks beside what they achieve without the victim's data, and record linkage."""
    anchor, title = "attacks", REVIEWERS("attacks.title")
    linked = [
        (name, share, chance)
        for name, share, chance in (
            (REVIEWERS("attacks.linkage"), view.linkage, view.linkage_chance),
            (REVIEWERS("attacks.linkage_in_class"), view.in_class_linkage, view.in_class_guess),
        )
        if share is not None
    ]
    if not view.attacks and not linked:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    said = _judge_attacks(view.attacks)
    said += [
        REVIEWERS(
            "attacks.linked",
            name=f"{name[0].upper()}{name[1:]}",
            share=format_interval(share),
            chance=format_share(chance),
            tried=format_tried(share),
        )
        for name, share, chance in linked
    ]
    if view.linkage_words:
        said.append(end_sentence(view.linkage_words))
    tried = tuple(attack for attack in view.attacks if attack.attack.tried)
    parts = split(tried, _MANY_GROUPS) if tried else []
    figures = [_draw_attacks(part, describe_part(number, len(parts))) for number, part in enumerate(parts)]
    figures += [_draw_linkage(linked)] if linked else []
    return Section(
        anchor,
        title,
        shows=REVIEWERS("attacks.shows_synthetic") if view.is_synthetic else REVIEWERS("attacks.shows"),
        read=REVIEWERS("attacks.read"),
        sign=REVIEWERS("attacks.sign"),
        says=tuple(said),
        figures=tuple(figures),
    )


def _judge_attacks(attacks: tuple[AttackView, ...]) -> list[Sentence]:
    """What the attacker knows once for each kind of attack, and then how each attack of that kind went."""
    kinds: dict[str, list[AttackView]] = {}
    for attack in attacks:
        if attack.attack.tried:
            kinds.setdefault(attack.words or attack.name, []).append(attack)
    said: list[Sentence] = []
    for alike in kinds.values():
        if alike[0].words:
            said.append(end_sentence(format_text(alike[0].words)))
        said += [_judge_attack(attack, alone=len(alike) == 1) for attack in alike]
    if never := [attack.name for attack in attacks if not attack.attack.tried]:
        said.append(
            review("attacks.never", columns=list_names(never, len(never))),
        )
    return said


def _judge_attack(attack: AttackView, *, alone: bool) -> Sentence:
    """How one attack went; that of many of its kind in short, with how many were tried in the table alone."""
    worst: tuple[str, ...] = (" ", *review("attacks.worst", column=Name(attack.worst))) if attack.worst else ()
    risk = attack.risk
    if alone:
        words = review(
            "attacks.alone",
            column=Name(attack.name),
            risk=format_interval(risk),
            judged=_judge_risk(risk),
            attack=format_interval(attack.attack),
            tried=format_tried(attack.attack),
            control=format_interval(attack.control),
            control_tried=format_tried(attack.control),
            guess=format_share(attack.guess),
        )
    else:
        words = review(
            "attacks.one",
            column=Name(attack.name),
            risk=format_interval(risk),
            judged=_judge_risk(risk),
            attack=format_share(attack.attack.value),
            control=format_share(attack.control.value),
            guess=format_share(attack.guess),
        )
    return (*words, *worst)


def _judge_risk(risk: ShareView) -> str:
    if not (is_number(risk.low) and is_number(risk.high)):
        return REVIEWERS("attacks.unknown")
    if risk.low > 0:
        return REVIEWERS("attacks.more")
    return REVIEWERS("attacks.less") if risk.high < 0 else REVIEWERS("attacks.chance")


def _draw_attacks(attacks: tuple[AttackView, ...], part: str) -> Figure:
    groups = [
        Group(
            attack.name,
            (
                _make_bar(REVIEWERS("attacks.bar_attack"), attack.attack, "full"),
                _make_bar(REVIEWERS("attacks.bar_control"), attack.control, "hollow"),
                Bar(REVIEWERS("attacks.bar_guess"), _percent(attack.guess), "dashed", format_share(attack.guess)),
            ),
        )
        for attack in attacks
    ]
    rows = tuple(
        (
            Name(one.name),
            format_interval(one.attack),
            format_interval(one.control),
            format_share(one.guess),
            format_interval(one.risk),
            format_tried(one.risk),
            Name(one.worst or "-"),
            format_tried(one.attack),
            format_tried(one.control),
        )
        for one in attacks
    )
    head = list_heads("attacks.head")
    caption = REVIEWERS("attacks.caption") + part
    words = REVIEWERS("attacks.picture_words")
    return Figure(
        draw_bars(REVIEWERS("attacks.picture"), words, groups), caption, Table(REVIEWERS("attacks.table_attacks"), head, rows)
    )


def _draw_linkage(linked: list[tuple[str, ShareView, float]]) -> Figure:
    groups = [
        Group(
            name,
            (
                _make_bar(REVIEWERS("attacks.bar_linked"), share, "full"),
                Bar(REVIEWERS("attacks.bar_chance"), _percent(chance), "dashed", format_share(chance)),
            ),
        )
        for name, share, chance in linked
    ]
    rows = tuple((name, format_interval(share), format_share(chance), format_tried(share)) for name, share, chance in linked)
    words = REVIEWERS("attacks.picture_words_linkage")
    caption = REVIEWERS("attacks.caption_linkage")
    table = Table(REVIEWERS("attacks.table_record_linkage"), list_heads("attacks.head_linkage"), rows)
    return Figure(draw_bars(REVIEWERS("attacks.picture_linkage"), words, groups), caption, table)


def _make_bar(label: str, share: ShareView, kind: str) -> Bar:
    low, high = (_percent(share.low), _percent(share.high)) if share.low < share.high else (None, None)
    return Bar(label, _percent(share.value), kind, format_share(share.value), low, high)


def _percent(share: float) -> float:
    return 100 * share
