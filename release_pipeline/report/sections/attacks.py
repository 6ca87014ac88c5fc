"""The section on attacks, beside what chance and a control group give."""

from __future__ import annotations

from release_pipeline.privacy.figures import count_things, format_count, format_number, format_share
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.escaping import end_sentence, format_text
from release_pipeline.report.internal_view import AttackView, ClaimView, InternalView, NearView, RungView, ShareView, SwapView
from release_pipeline.report.prose import Name, Sentence, format_interval, format_tried, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import Figure, Section, Table, describe_part, split
from release_pipeline.sentences import REVIEWERS

_MANY_GROUPS = 5  # of bars in one picture
_MANY_CLAIMS = 12  # of what nearest rows tell, in one picture; the table has all


def describe_attacks(view: InternalView) -> Section:
    """Attacks beside what they achieve without the victim's data, and record linkage."""
    anchor, title = "attacks", REVIEWERS("attacks.title")
    if not view.attacks and not view.linkage_ladder and view.nearest is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    said: list[Sentence] = []
    if view.attacked is not None:
        tried, among = view.attacked
        few, all_of_them = format_count(tried), count_things(among, "released_record")
        if view.is_synthetic:
            said.append(REVIEWERS("attacks.sampled_synthetic", tried=few, among=all_of_them))
        elif view.swap is not None:
            said.append(REVIEWERS("attacks.sampled_swapped", tried=few, among=all_of_them))
        else:
            said.append(REVIEWERS("attacks.sampled", tried=few, among=all_of_them))
    said += [_bound_links(view.swap)] if view.swap is not None else []
    said += [REVIEWERS("attacks.no_own_row")] if view.is_synthetic and view.nearest is not None else []
    said += _judge_nearest(view.nearest)
    said += [REVIEWERS("attacks.rows_only")] if view.is_synthetic and view.nearest is not None else []
    said += _judge_attacks(view.attacks, short=view.is_nobodys)
    said += [REVIEWERS("linkage.foreseen")] if view.before_charge and view.linkage_ladder else []
    said += [_judge_rung(rung, view) for rung in reversed(view.linkage_ladder)]
    if view.linkage_words:
        said.append(end_sentence(view.linkage_words))
    shows, read, sign = REVIEWERS("attacks.shows"), REVIEWERS("attacks.read"), REVIEWERS("attacks.sign")
    if view.is_synthetic:
        shows = REVIEWERS("attacks.shows_synthetic")
    elif view.swap is not None and view.attacks:
        shows = REVIEWERS("attacks.shows_swapped")
    elif not view.attacks:
        shows, read, sign = REVIEWERS("linkage.shows"), REVIEWERS("linkage.read"), REVIEWERS("linkage.sign")
    tried = tuple(attack for attack in view.attacks if attack.attack.tried)
    parts = split(tried, _MANY_GROUPS) if tried else []
    figures = [] if view.nearest is None else [_draw_nearest(view.nearest)]
    figures += [_draw_attacks(part, number, len(parts), is_nobodys=view.is_nobodys) for number, part in enumerate(parts)]
    figures += [_draw_ladder(view)] if view.linkage_ladder else []
    return Section(
        anchor,
        title,
        shows=shows,
        read=read,
        sign=sign,
        says=tuple(said),
        figures=tuple(figures),
    )


def _bound_links(swap: SwapView) -> Sentence:
    """How many links are right at the most where values changed places."""
    people, most = format_count(swap.k), format_share(1 / swap.k)
    if not swap.alike:
        return REVIEWERS("attacks.lemma", people=people, most=most)
    return review("attacks.lemma_alike", people=people, most=most, columns=list_names(swap.alike))


def _judge_nearest(near: NearView | None) -> list[Sentence]:
    """What the nearest row shows of people that rows were made of, beyond what it shows of strangers."""
    if near is None:
        return []
    known = list_names(near.known)
    said: list[Sentence] = [
        review(
            "attacks.alike",
            known=known,
            people=format_interval(near.equal),
            strangers=format_interval(near.strangers_equal),
            beyond=_format_difference(near.beyond),
            judged=_judge_difference(near.beyond),
        ),
        review(
            "attacks.near",
            known=known,
            people=format_number(near.median),
            strangers=format_number(near.strangers_median),
        ),
    ]
    if (overall := near.overall) is not None:
        said.append(_say_claimed(overall, () if near.is_each_by_others else known))
        said += [
            review(
                "attacks.claimed_more",
                column=Name(claim.name),
                people=format_share(claim.people.value),
                strangers=format_share(claim.strangers.value),
                beyond=_format_difference(claim.beyond),
            )
            for claim in near.claims
            if claim.beyond[1] > 0
        ]
    return said


def _say_claimed(overall: ClaimView, known: tuple[str, ...]) -> Sentence:
    """How often the nearest row is right of what is not known; `known`: nothing where each column is sought by all others."""
    people, strangers, guess = format_interval(overall.people), format_interval(overall.strangers), format_share(overall.guess)
    beyond, judged = _format_difference(overall.beyond), _judge_difference(overall.beyond)
    if not known:
        return review("attacks.claimed_each", people=people, strangers=strangers, guess=guess, beyond=beyond, judged=judged)
    return review("attacks.claimed", known=known, people=people, strangers=strangers, guess=guess, beyond=beyond, judged=judged)


def _format_difference(beyond: tuple[float, float, float]) -> str:
    """In percentage points, with the interval.

    >>> _format_difference((0.012, -0.04, 0.064))
    '+1.2 percentage points (-4.0 to +6.4)'
    """
    value, low, high = (f"{100 * figure:+.1f}" for figure in beyond)
    return REVIEWERS("attacks.points", value=value, low=low, high=high)


def _judge_difference(beyond: tuple[float, float, float]) -> str:
    if beyond[1] > 0:
        return REVIEWERS("attacks.of_people")
    return REVIEWERS("attacks.of_strangers") if beyond[2] < 0 else REVIEWERS("attacks.chance")


def _draw_nearest(near: NearView) -> Figure:
    """People that rows were made of beside strangers."""
    alike = REVIEWERS("attacks.a_row_alike")
    every = [(alike, near.equal, near.strangers_equal, None, near.beyond)]
    every += [(claim.name, claim.people, claim.strangers, claim.guess, claim.beyond) for claim in near.claims]
    groups: list[Group] = []
    for name, people, strangers, guess, _ in every[:_MANY_CLAIMS]:
        bars = [
            _make_bar(REVIEWERS("attacks.bar_people"), people, "full"),
            _make_bar(REVIEWERS("attacks.bar_strangers"), strangers, "hollow"),
        ]
        if guess is not None:
            bars.append(Bar(REVIEWERS("attacks.bar_guess"), _percent(guess), "dashed", format_share(guess)))
        groups.append(Group(name, tuple(bars)))
    rows = tuple(
        (
            alike if guess is None else Name(name),
            format_interval(people),
            format_interval(strangers),
            "-" if guess is None else format_share(guess),
            _format_difference(beyond),
        )
        for name, people, strangers, guess, beyond in every
    )
    picture = draw_bars(REVIEWERS("attacks.picture_nearest"), REVIEWERS("attacks.picture_words_nearest"), groups)
    table = Table(REVIEWERS("attacks.table_nearest"), list_heads("attacks.head_nearest"), rows)
    if near.is_each_by_others:
        return Figure(picture, review("attacks.caption_nearest_each"), table)
    return Figure(picture, review("attacks.caption_nearest", known=list_names(near.known)), table)


def _judge_attacks(attacks: tuple[AttackView, ...], *, short: bool) -> list[Sentence]:
    """What the attacker knows once for each kind of attack, and then how each attack of that kind went; `short`: where there are
    several, that of those which are beyond their control alone, and how many are not."""
    kinds: dict[str, list[AttackView]] = {}
    for attack in attacks:
        if attack.attack.tried:
            kinds.setdefault(attack.words or attack.name, []).append(attack)
    said: list[Sentence] = []
    for alike in kinds.values():
        if alike[0].words:
            said.append(end_sentence(format_text(alike[0].words)))
        told = [attack for attack in alike if not short or len(alike) == 1 or attack.risk.low > 0]
        said += [_judge_attack(attack, alone=len(alike) == 1) for attack in told]
        if told and short and len(alike) > 1:
            said.append(REVIEWERS("attacks.in_forty", attacks=format_count(len(alike))))
        if not told:
            said.append(REVIEWERS("attacks.none_of_kind", attacks=count_things(len(alike), "attack")))
        elif rest := len(alike) - len(told):
            said.append(REVIEWERS("attacks.rest", attacks=count_things(rest, "attack"), among=format_count(len(alike))))
    if never := [attack.name for attack in attacks if not attack.attack.tried]:
        said.append(
            review("attacks.never", columns=list_names(never, len(never))),
        )
    return said


def _judge_attack(attack: AttackView, *, alone: bool) -> Sentence:
    """How one attack went; that of many of its kind in short, with how many were tried in the table alone."""
    worst: tuple[str, ...] = ()
    if attack.worst:
        column = Name(attack.worst)
        said = review("attacks.worst_alone", column=column) if alone else review("attacks.worst", column=column)
        worst = (" ", *said)
    risk = attack.risk
    if alone:
        words = review(
            "attacks.alone",
            column=Name(attack.name),
            risk=format_interval(risk),
            judged=judge_risk(risk),
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
            judged=judge_risk(risk),
            attack=format_share(attack.attack.value),
            control=format_share(attack.control.value),
            guess=format_share(attack.guess),
        )
    return (*words, *worst)


def judge_risk(risk: ShareView) -> str:
    """Whether what is beyond the control is more than chance."""
    if not (is_number(risk.low) and is_number(risk.high)):
        return REVIEWERS("attacks.unknown")
    if risk.low > 0:
        return REVIEWERS("attacks.more")
    return REVIEWERS("attacks.less") if risk.high < 0 else REVIEWERS("attacks.chance")


def _draw_attacks(attacks: tuple[AttackView, ...], part: int, parts: int, *, is_nobodys: bool) -> Figure:
    """One of several pictures, by its number from 0 on, or the only one. Pages of masked releases stay the same bytes: a rerun of
    one that people have approved makes it anew."""
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
    caption = REVIEWERS("attacks.caption") + describe_part(part, parts)
    title = REVIEWERS("attacks.table_attacks")
    if parts > 1 and is_nobodys:
        title = REVIEWERS("attacks.table_attacks_part", part=part + 1, parts=parts)
    words = REVIEWERS("attacks.picture_words")
    return Figure(draw_bars(REVIEWERS("attacks.picture"), words, groups), caption, Table(title, head, rows))


def _judge_rung(rung: RungView, view: InternalView) -> Sentence:
    """What somebody finds who knows so much of a person, next to a guess."""
    share, control, tried = format_interval(rung.linked), format_share(rung.control), format_tried(rung.linked)
    if rung is view.linkage_ladder[-1]:
        if view.linkage_ladder[0].masked == 0:
            return REVIEWERS("linkage.all", share=share, tried=tried, control=control)
        return REVIEWERS("linkage.all_masked", share=share, tried=tried, control=control)
    if not rung.masked:
        return REVIEWERS("linkage.kept", share=share, control=control)
    columns, median, masked = list_names(rung.columns), format_share(rung.median), _say_masked(view)
    if rung.masked == 1:
        return review("linkage.one", share=share, columns=columns, median=median, masked=masked)
    drawn, sets = format_count(rung.tried), format_count(rung.sets)
    return review("linkage.two", share=share, columns=columns, median=median, masked=masked, tried=drawn, sets=sets)


def _say_masked(view: InternalView) -> str:
    """What became of the columns that a ladder adds: categories that are swapped are among them, too."""
    return REVIEWERS("linkage.masked") if view.swap is None else REVIEWERS("linkage.masked_swapped")


def _name_rung(rung: RungView, view: InternalView) -> str:
    """What somebody knows, short."""
    if rung is view.linkage_ladder[-1]:
        return REVIEWERS("linkage.name_all")
    masked = _say_masked(view)
    one, two = REVIEWERS("linkage.name_one", masked=masked), REVIEWERS("linkage.name_two", masked=masked)
    return (REVIEWERS("linkage.name_kept"), one, two)[rung.masked]


def _draw_ladder(view: InternalView) -> Figure:
    groups = [
        Group(
            _name_rung(rung, view),
            (
                _make_bar(REVIEWERS("linkage.bar_linked"), rung.linked, "full"),
                Bar(REVIEWERS("linkage.bar_median"), _percent(rung.median), "hollow", format_share(rung.median)),
                Bar(REVIEWERS("linkage.bar_guess"), _percent(rung.control), "dashed", format_share(rung.control)),
            ),
        )
        for rung in view.linkage_ladder
    ]
    rows = tuple(
        (
            _name_rung(rung, view),
            ", ".join(rung.columns) or "-",
            format_interval(rung.linked),
            format_share(rung.median),
            format_share(rung.control),
            format_tried(rung.linked),
        )
        for rung in view.linkage_ladder
    )
    picture = draw_bars(REVIEWERS("linkage.picture"), REVIEWERS("linkage.picture_words"), groups)
    heads = list_heads("linkage.head") if view.swap is None else list_heads("linkage.head_swapped")
    table = Table(REVIEWERS("linkage.table"), heads, rows)
    return Figure(picture, REVIEWERS("linkage.caption", masked=_say_masked(view)), table)


def _make_bar(label: str, share: ShareView, kind: str) -> Bar:
    low, high = (_percent(share.low), _percent(share.high)) if share.low < share.high else (None, None)
    return Bar(label, _percent(share.value), kind, format_share(share.value), low, high)


def _percent(share: float) -> float:
    return 100 * share
