"""The section on attacks, beside what chance and a control group give."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    format_share,
)
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.escaping import end_sentence, format_text
from release_pipeline.report.internal_view import AttackView, InternalView, ShareView
from release_pipeline.report.prose import Name, Sentence, format_interval, format_tried, is_number, list_names
from release_pipeline.report.sections.parts import NOT_MEASURED, Figure, Section, Table, describe_part, split

_MANY_GROUPS = 5  # of bars in one picture


def describe_attacks(view: InternalView) -> Section:
    """Attacks beside what they achieve without the victim's data, and record linkage."""
    anchor, title = "attacks", "Attacks, beside what chance and a control group give"
    linked = [
        (name, share, chance)
        for name, share, chance in (
            ("record linkage", view.linkage, view.linkage_chance),
            ("linkage within groups of equal quasi-identifiers", view.in_class_linkage, view.in_class_guess),
        )
        if share is not None
    ]
    if not view.attacks and not linked:
        return Section(anchor, title, absent=NOT_MEASURED)
    said = _judge_attacks(view.attacks)
    said += [
        f"{name[0].upper()}{name[1:]}: {format_interval(share)} of the records; by chance {format_share(chance)}; {format_tried(share)}."
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
        shows="Linking and inferring are tried on people of the table, and on people whose own rows were taken out before (the "
        "control); singling out on one half of the table, with the other half as its control. What works on both is learned "
        "from the population, not from the person; what works better on the first is given away.",
        read="Compare each filled bar with the outline below it. The whiskers hold the true figure with 95% confidence; the "
        "risk is (attack - control) / (1 - control).",
        sign="A filled bar whose whisker does not reach that of its control. An attack that is far above its guess and its "
        "control.",
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
            ("Nothing could be tried for: ", *list_names(never, len(never)), ". That says nothing about the risk."),
        )
    return said


def _judge_attack(attack: AttackView, *, alone: bool) -> Sentence:
    """How one attack went; that of many of its kind in short, with how many were tried in the table alone."""
    worst: tuple[str, ...] = (" It is worst for ", Name(attack.worst), ".") if attack.worst else ()
    risk = attack.risk
    judged = "whether that is chance is not known"
    if is_number(risk.low) and is_number(risk.high):
        judged = "the interval holds 0, so it may be chance"
        if risk.low > 0:
            judged = "more than chance: the release gives this away"
        elif risk.high < 0:
            judged = "less than the control: this attack gains nothing from the person's own row"
    told = f"; attack {format_share(attack.attack.value)}, control {format_share(attack.control.value)}, guess {format_share(attack.guess)}."
    if alone:
        told = (
            f". It succeeds in {format_interval(attack.attack)} of the cases ({format_tried(attack.attack)}), the control in "
            f"{format_interval(attack.control)} ({format_tried(attack.control)}), and guessing in {format_share(attack.guess)}."
        )
    return (Name(attack.name), f": risk beyond the control {format_interval(risk)}; {judged}{told}", *worst)


def _draw_attacks(attacks: tuple[AttackView, ...], part: str) -> Figure:
    groups = [
        Group(
            attack.name,
            (
                _make_bar("attack", attack.attack, "full"),
                _make_bar("control", attack.control, "hollow"),
                Bar("guess", _percent(attack.guess), "dashed", format_share(attack.guess)),
            ),
        )
        for attack in attacks
    ]
    rows = tuple(
        (Name(one.name), format_interval(one.attack), format_interval(one.control), format_share(one.guess), format_interval(one.risk),
         format_tried(one.risk), Name(one.worst or "-"), format_tried(one.attack), format_tried(one.control))
        for one in attacks
    )  # fmt: skip
    head = (
        "Attack",
        "Succeeds",
        "Control",
        "Guess",
        "Risk beyond control",
        "Risk measured on",
        "Worst for",
        "Attack tried on",
        "Control tried on",
    )
    caption = f"Success in percent. Filled: attack. Outline: control. Dashed outline: guess. Whiskers: 95%.{part}"
    words = "Success of each attack, of its control and of guessing; the table below has the figures."
    return Figure(draw_bars("Attacks beside their controls", words, groups), caption, Table("Attacks", head, rows))


def _draw_linkage(linked: list[tuple[str, ShareView, float]]) -> Figure:
    groups = [
        Group(name, (_make_bar("linked", share, "full"), Bar("chance", _percent(chance), "dashed", format_share(chance))))
        for name, share, chance in linked
    ]
    rows = tuple((name, format_interval(share), format_share(chance), format_tried(share)) for name, share, chance in linked)
    words = "Share of records whose nearest original is their own, beside chance."
    caption = "Records that link to their own original, in percent. Filled: linked. Dashed outline: by chance. Whiskers: 95%."
    table = Table("Record linkage", ("Linkage", "Linked", "By chance", "Tried on"), rows)
    return Figure(draw_bars("Record linkage beside chance", words, groups), caption, table)


def _make_bar(label: str, share: ShareView, kind: str) -> Bar:
    low, high = (_percent(share.low), _percent(share.high)) if share.low < share.high else (None, None)
    return Bar(label, _percent(share.value), kind, format_share(share.value), low, high)


def _percent(share: float) -> float:
    return 100 * share
