"""What the release gives away: the sections on groups, attacks, the budget, what was left out, and levels of generalisation."""

from __future__ import annotations

from release_pipeline.policy.formats import count_of
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.charts.classes import draw_classes, say_sizes
from release_pipeline.report.internal_view import AttackView, ClassesView, InternalView, ShareView, SuppressionView
from release_pipeline.report.prose import (
    MISSING,
    Name,
    Sentence,
    is_number,
    list_names,
    say_apart,
    say_interval,
    say_number,
    say_share,
    say_tried,
)
from release_pipeline.report.public import end_sentence, show, show_count
from release_pipeline.report.sections.parts import NOT_MEASURED, Figure, Section, Table, say_part, split
from release_pipeline.report.status import PopulationView, StepView, list_sums, say_amount

_MANY_GROUPS, _MANY_REASONS = 5, 12  # of bars in one picture


def show_classes(view: InternalView) -> Section:
    """Groups of equal quasi-identifiers, and what they leave open."""
    anchor, title = "classes", "Groups of equal quasi-identifiers"
    if view.classes is None:
        return Section(
            anchor, title, absent="No quasi-identifier is released, so no groups can be formed, or they were not counted."
        )
    classes = view.classes
    rows = [(say_sizes(low, high), show_count(count)) for low, high, count in classes.bars]
    rows += [
        ("limit", show_count(classes.least) if classes.least > 0 else "none is set"),
        ("groups in all", show_count(classes.groups)),
    ]
    rows += [
        ("smallest (k)", show_count(classes.smallest)),
        ("mean", say_number(classes.mean)),
        ("largest", show_count(classes.largest)),
    ]
    line = "Line: the limit; outlines above it are groups that are too small." if classes.least > 0 else "No limit is set."
    return Section(
        anchor,
        title,
        shows="Records with the same released quasi-identifiers form a group: who knows these of a person cannot tell the "
        "person's record from the others of the group by them. Each bar is how many groups have that size.",
        read="The larger the groups, the less they tell. k is the smallest group, l the fewest different confidential values "
        "in a group, t how far the values of a group are from those of all.",
        sign="Any bar above the line of the limit. k of 1: somebody is alone. l of 1: a whole group has the same "
        "confidential value, so who knows that a person is in it knows the value.",
        says=tuple(_judge_classes(classes)),
        figures=(
            Figure(
                draw_classes(classes),
                f"Number of groups by their size. {line}",
                Table("Groups by size", ("Records in a group", "Groups"), tuple(rows)),
            ),
        ),
    )


def _judge_classes(classes: ClassesView) -> list[Sentence]:
    known: tuple[str, ...] = list_names(classes.quasi) if classes.quasi else ("the quasi-identifiers",)
    limit = "no limit is set"
    if classes.least > 0:
        limit = f"the limit is {show_count(classes.least)}" + (
            "" if classes.smallest >= classes.least else ", so it is too small"
        )
    said: list[Sentence] = [
        (f"k: the smallest of {count_of(classes.groups, 'group')} has {count_of(classes.smallest, 'record')}; {limit}. "
         f"The mean is {say_number(classes.mean)}, the largest {show_count(classes.largest)}. Groups are of equal ", *known, "."),
    ]  # fmt: skip
    for name, fewest in classes.diversity:
        worse = " Who knows that a person is in that group knows the value." if fewest <= 1 else ""
        said.append(("l: every group has at least ", count_of(fewest, "different value"), " of ", Name(name), f".{worse}"))
    said += [
        ("t: the values of ", Name(name), f" in a group are at most {say_number(far)} from those of all (0: alike, 1: apart).")
        for name, far in classes.closeness
    ]
    return [
        *said,
        f"Prosecutor risk {say_share(classes.prosecutor)}: who knows that a person is in the table points at the right record "
        "with at most this probability.",
        f"Marketer risk {say_share(classes.marketer)}: who tries everybody is right for this share of the records.",
        f"Journalist risk {say_share(classes.journalist)}: who knows the table that the release was drawn from, but not who "
        "is in the release, is right with at most this probability.",
    ]


def show_attacks(view: InternalView) -> Section:
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
        f"{name[0].upper()}{name[1:]}: {say_interval(share)} of the records; by chance {say_share(chance)}; {say_tried(share)}."
        for name, share, chance in linked
    ]
    if view.linkage_words:
        said.append(end_sentence(view.linkage_words))
    tried = tuple(attack for attack in view.attacks if attack.attack.tried)
    parts = split(tried, _MANY_GROUPS) if tried else []
    figures = [_show_attacks(part, say_part(number, len(parts))) for number, part in enumerate(parts)]
    figures += [_show_linkage(linked)] if linked else []
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
            said.append(end_sentence(show(alike[0].words)))
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
    told = (
        f"; attack {say_share(attack.attack.value)}, control {say_share(attack.control.value)}, guess {say_share(attack.guess)}."
    )
    if alone:
        told = (
            f". It succeeds in {say_interval(attack.attack)} of the cases ({say_tried(attack.attack)}), the control in "
            f"{say_interval(attack.control)} ({say_tried(attack.control)}), and guessing in {say_share(attack.guess)}."
        )
    return (Name(attack.name), f": risk beyond the control {say_interval(risk)}; {judged}{told}", *worst)


def _show_attacks(attacks: tuple[AttackView, ...], part: str) -> Figure:
    groups = [
        Group(
            attack.name,
            (
                _make_bar("attack", attack.attack, "full"),
                _make_bar("control", attack.control, "hollow"),
                Bar("guess", _percent(attack.guess), "dashed", say_share(attack.guess)),
            ),
        )
        for attack in attacks
    ]
    rows = tuple(
        (Name(one.name), say_interval(one.attack), say_interval(one.control), say_share(one.guess), say_interval(one.risk),
         say_tried(one.risk), Name(one.worst or "-"), say_tried(one.attack), say_tried(one.control))
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


def _show_linkage(linked: list[tuple[str, ShareView, float]]) -> Figure:
    groups = [
        Group(name, (_make_bar("linked", share, "full"), Bar("chance", _percent(chance), "dashed", say_share(chance))))
        for name, share, chance in linked
    ]
    rows = tuple((name, say_interval(share), say_share(chance), say_tried(share)) for name, share, chance in linked)
    words = "Share of records whose nearest original is their own, beside chance."
    caption = "Records that link to their own original, in percent. Filled: linked. Dashed outline: by chance. Whiskers: 95%."
    table = Table("Record linkage", ("Linkage", "Linked", "By chance", "Tried on"), rows)
    return Figure(draw_bars("Record linkage beside chance", words, groups), caption, table)


def _make_bar(label: str, share: ShareView, kind: str) -> Bar:
    low, high = (_percent(share.low), _percent(share.high)) if share.low < share.high else (None, None)
    return Bar(label, _percent(share.value), kind, say_share(share.value), low, high)


def _percent(share: float) -> float:
    return 100 * share


def show_budget(view: InternalView) -> Section:
    """What remains of the population's budget."""
    anchor, title = "budget", "Budget of the population"
    if view.budget is None:
        return Section(anchor, title, absent="The budget of the population could not be read.")
    planned = _list_planned(view.budget)
    return Section(
        anchor,
        title,
        shows="What every release takes from the cap of its population, in the worst case: as if the same person were in each.",
        read=f"The line falls with each charge and never rises.{' The dashed part is planned.' * bool(planned)}",
        sign="A line that reaches the bottom before the series ends"
        f"{'; a cross: a planned release that will be refused' * bool(planned)}.",
        says=tuple(_judge_budget(view.budget)),
        budget=view.budget,
    )


def _list_planned(budget: PopulationView) -> list[StepView]:
    return [step for step in budget.steps if step.state in ("planned", "refused")]


def _judge_budget(budget: PopulationView) -> list[Sentence]:
    reserved = f", of it {say_amount(budget.reserved, budget)} reserved" if budget.reserved != 0 else ""
    said: list[Sentence] = [
        (f"Of {say_amount(budget.cap, budget)} ({budget.unit}) for ", Name(budget.name),
         f", {_say_amount_is(budget.spent, budget)} spent{reserved}; {_say_amount_is(budget.remaining, budget)} left."),
    ]  # fmt: skip
    planned = _list_planned(budget)
    refused = [step for step in planned if step.state == "refused"]
    if refused:
        said.append((f"{count_of(len(refused), 'planned release')} will be refused, the first ", Name(refused[0].release), "."))
    elif planned:
        said.append(
            f"After {count_of(len(planned), 'planned release')}, {say_amount(list_sums(budget)[-1], budget)} would be left."
        )
    else:
        said.append("This page is as of this release. What came after it, and what is planned, is in the ledger.")
    return said


def _say_amount_is(amount: int | None, budget: PopulationView) -> str:
    """An amount with its verb: releases are counted, an epsilon is one amount."""
    return f"{say_amount(amount, budget)} {'are' if budget.in_releases and amount != 1 else 'is'}"


def show_suppression(view: InternalView) -> Section:
    """What was left out."""
    anchor, title = "suppression", "What was left out"
    if view.suppression is None:
        return Section(anchor, title, absent=NOT_MEASURED)
    told = view.suppression
    share, limit = say_share(told.share), "none is set"
    if told.limit is not None:
        share, limit = (f"{words}%" for words in say_apart(100 * told.share, 100 * told.limit))
    touched = (Bar("", 100 * told.share, "full", share),)
    shares = [Group("share touched", touched, None if told.limit is None else 100 * told.limit, f"limit {limit}")]
    rows = [("records before", show_count(told.rows_in)), ("records after", show_count(told.rows_out))]
    rows += [("cells blanked", show_count(told.cells)), ("share touched", share), ("limit", limit)]
    return Section(
        anchor,
        title,
        shows="Records that were dropped and cells that were blanked before the release, and for which reason.",
        read="Less is better for the analyst, more was needed for small groups. Who was left out is seldom like the others.",
        sign="A share near its limit; one reason that takes nearly all: a column may be too fine to be released.",
        says=tuple(_judge_suppression(told, share, limit)),
        figures=(
            Figure(
                draw_bars("Share of the table that was touched", "Share touched, beside its limit.", shares),
                "Share touched, in percent; the dashed line is the limit, where one is set.",
                Table("What was left out", ("What", "How many"), tuple(rows)),
            ),
            *_show_reasons(told),
        ),
    )


def _show_reasons(told: SuppressionView) -> list[Figure]:
    parts = split(told.reasons, _MANY_REASONS) if told.reasons else []
    return [
        Figure(
            draw_bars(
                "Reasons for leaving out",
                "How many for each reason.",
                [Group(reason, (Bar("", float(count), "full", show_count(count)),)) for reason, count in reasons],
            ),
            f"How many for each reason.{say_part(number, len(parts))}",
            Table("Reasons", ("Reason", "How many"), tuple((Name(reason), show_count(count)) for reason, count in reasons)),
        )
        for number, reasons in enumerate(parts)
    ]


def _judge_suppression(told: SuppressionView, share: str, limit: str) -> list[Sentence]:
    are = "is" if 1 in (told.rows_in, told.rows_out) else "are"
    said: list[Sentence] = [
        f"{show_count(told.rows_out)} of {count_of(told.rows_in, 'record')} {are} left, {count_of(told.cells, 'cell')} "
        f"{'was' if told.cells == 1 else 'were'} blanked: {share} touched."
    ]
    if told.limit is None:
        said.append("No limit is set.")
    elif not is_number(told.share):
        said.append(f"The limit is {limit}; the share is {MISSING}.")
    else:
        said.append(f"The limit is {limit}: {'kept' if told.share <= told.limit else 'broken'}.")
    if told.reasons:
        reason, count = max(told.reasons, key=lambda one: one[1])
        said.append(("Most often: ", Name(reason), f", {show_count(count)}."))
    else:
        said.append("Nothing was left out for any reason." if not told.share else "No reason is noted.")
    return said


def show_levels(view: InternalView) -> Section:
    """How far columns were made coarser."""
    anchor, title = "levels", "Levels of generalisation"
    if not view.ladders and not view.ladder_words:
        words = NOT_MEASURED if view.generalises else "No column is generalised."
        return Section(anchor, title, absent=words, settled=not view.generalises)
    said: list[Sentence] = []
    for ladder in view.ladders:
        steps = count_of(len(ladder.levels), "level")
        if ladder.at is None:
            said.append((Name(ladder.column), f": {steps}; its labels follow no one level."))
        elif float(ladder.at).is_integer() and 0 <= ladder.at < len(ladder.levels):
            said.append(
                (
                    Name(ladder.column),
                    f": level {ladder.at:.0f} of {len(ladder.levels) - 1}, ",
                    Name(ladder.levels[int(ladder.at)]),
                    ".",
                )
            )
        else:
            said.append((Name(ladder.column), f": mean level {ladder.at:.2f} of {len(ladder.levels) - 1}."))
    said += [(Name(name), ": ", end_sentence(show(words))) for name, words in view.ladder_words]
    return Section(
        anchor,
        title,
        shows="How far each quasi-identifier was made coarser: from the value itself, at the left, to one label for everybody.",
        read="The level with the sign ● is the one that is released. Where records have different levels, the mean is said.",
        sign="A column at its last level says nothing any more; a level that is finer than the column's purpose needs.",
        says=tuple(said),
        ladders=view.ladders,
    )
