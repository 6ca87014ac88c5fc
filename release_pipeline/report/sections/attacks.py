"""The section on attacks: the gain of each beyond its control group, by the three criteria, and who is linked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from release_pipeline.formats.attack_views import ClaimView, CriterionView, Difference, NearView, RungView, ShareView
from release_pipeline.formats.internal_view import InternalView, SwapView
from release_pipeline.mechanisms.attacks import CRITERIA, INFERENCE, LINKABILITY, SINGLING_OUT
from release_pipeline.mechanisms.basis.figures import (
    count_things,
    format_count,
    format_most,
    format_number,
    format_share,
    say_missing,
)
from release_pipeline.pages.escaping import end_sentence, format_text
from release_pipeline.pages.prose import Name, Sentence, format_interval, format_tried, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import REVIEWERS


def describe_attacks(view: InternalView) -> Section:
    """Return the section: attacks next to their results without the victim's data, and record linkage."""
    anchor, title = "attacks", REVIEWERS("attacks.title")
    if not view.criteria and not view.linkage_ladder and view.nearest is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    sentences: list[Sentence] = []
    if view.attacked is not None:
        tried, among = view.attacked
        few, all_of_them = format_count(tried), count_things(among, "released_record")
        if view.is_synthetic:
            sentences.append(REVIEWERS("attacks.sampled_synthetic", tried=few, among=all_of_them))
        elif view.swap is not None:
            sentences.append(REVIEWERS("attacks.sampled_swapped", tried=few, among=all_of_them))
        else:
            sentences.append(REVIEWERS("attacks.sampled", tried=few, among=all_of_them))
    sentences += _bound_links(view.swap) if view.swap is not None else []
    if view.nearest is not None:
        sentences += [REVIEWERS("attacks.no_own_row")] if view.is_synthetic else []
        sentences += _judge_nearest(view.nearest)
        sentences += [REVIEWERS("attacks.rows_only")] if view.is_synthetic else []
    sentences += _judge_criteria(view) if view.criteria else []
    sentences += [REVIEWERS("linkage.foreseen")] if view.before_charge and view.linkage_ladder else []
    sentences += [_judge_rung(rung, view) for rung in reversed(view.linkage_ladder)]
    sentences += [end_sentence(view.linkage_words)] if view.linkage_words else []
    shows, read, sign = REVIEWERS("attacks.shows"), REVIEWERS("attacks.read"), REVIEWERS("attacks.sign")
    if view.is_synthetic:
        shows = REVIEWERS("attacks.shows_synthetic")
    elif view.swap is not None and view.criteria:
        shows = REVIEWERS("attacks.shows_swapped")
    elif not view.criteria:
        shows, read, sign = REVIEWERS("linkage.shows"), REVIEWERS("linkage.read"), REVIEWERS("linkage.sign")
    tables = [_list_nearest(view.nearest)] if view.nearest is not None else []
    tables += [_list_criteria(view.criteria)] if view.criteria else []
    tables += [_list_ladder(view)] if view.linkage_ladder else []
    return Section(anchor, title, shows=shows, read=read, sign=sign, says=tuple(sentences), tables=tuple(tables))


def _bound_links(swap: SwapView) -> Iterator[Sentence]:
    """Yield the most links that can be right where values changed places: of one value, and of any two in a row."""
    people, most = format_count(swap.k), format_most(1 / swap.k)
    if not swap.alike:
        yield REVIEWERS("attacks.lemma", people=people, most=most)
    else:
        yield review("attacks.lemma_alike", people=people, most=most, columns=list_names(swap.alike))
    count = len(swap.columns)
    if count > 1:
        apart = math.prod(max(1 - others / swap.k, 0) for others in range(1, count))
        yield REVIEWERS("attacks.lemma_pair", count=format_count(count), share=format_most(1 - apart))


def _judge_nearest(near: NearView) -> list[Sentence]:
    """Return what the nearest row reveals about the people behind the rows, beyond what it reveals about strangers."""
    known = list_names(near.known)
    sentences: list[Sentence] = [
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
        sentences.append(_say_claimed(overall, () if near.is_each_by_others else known))
        sentences += [
            review(
                "attacks.claimed_more",
                column=Name(claim.name),
                people=format_share(claim.people.value),
                strangers=format_share(claim.strangers.value),
                beyond=_format_difference(claim.beyond),
            )
            for claim in near.claims
            if claim.beyond.low > 0
        ]
    return sentences


def _say_claimed(overall: ClaimView, known: tuple[str, ...]) -> Sentence:
    """Return how often the nearest row is right about unknown columns; `known`: nothing where each column is sought by all
    others."""
    people, strangers, guess = format_interval(overall.people), format_interval(overall.strangers), format_share(overall.guess)
    beyond, judged = _format_difference(overall.beyond), _judge_difference(overall.beyond)
    if not known:
        return review("attacks.claimed_each", people=people, strangers=strangers, guess=guess, beyond=beyond, judged=judged)
    return review("attacks.claimed", known=known, people=people, strangers=strangers, guess=guess, beyond=beyond, judged=judged)


def _format_difference(beyond: Difference) -> str:
    """Return a difference in percentage points, with the interval.

    >>> _format_difference(Difference(0.012, -0.04, 0.064))
    '+1.2 percentage points (-4.0 to +6.4)'
    """
    value, low, high = (f"{100 * figure:+.1f}" for figure in (beyond.value, beyond.low, beyond.high))
    return REVIEWERS("attacks.points", value=value, low=low, high=high)


def _judge_difference(beyond: Difference) -> str:
    if beyond.low > 0:
        return REVIEWERS("attacks.of_people")
    return REVIEWERS("attacks.of_strangers") if beyond.high < 0 else REVIEWERS("attacks.chance")


def _list_nearest(near: NearView) -> Table:
    """Return the table of people behind the rows next to strangers."""
    alike = REVIEWERS("attacks.a_row_alike")
    of_row = (alike, format_interval(near.equal), format_interval(near.strangers_equal), "-", _format_difference(near.beyond))
    rows = (
        (
            Name(claim.name),
            format_interval(claim.people),
            format_interval(claim.strangers),
            format_share(claim.guess),
            _format_difference(claim.beyond),
        )
        for claim in near.claims
    )
    return Table(REVIEWERS("attacks.table_nearest"), list_heads("attacks.head_nearest"), (of_row, *rows))


def _judge_criteria(view: InternalView) -> list[Sentence]:
    """Return each criterion by the attack that gains most, next to the gain that the policy permits."""
    sentences: list[Sentence] = []
    for criterion in CRITERIA:
        sentences += _judge_criterion(criterion, [attack for attack in view.criteria if attack.criterion == criterion], view)
    if tried := sum(attack.beyond is not None and attack.rate.tried > 0 for attack in view.criteria):
        sentences += [REVIEWERS("attacks.in_forty", attacks=count_things(tried, "attack"))] if view.is_nobodys else []
    if never := [attack.attack for attack in view.criteria if not attack.rate.tried]:
        sentences.append(review("attacks.never", columns=list_names(never, len(never))))
    sentences.append(REVIEWERS("attacks.no_limit"))
    if view.clusters and not view.generalises and not view.is_synthetic:
        sentences += [] if view.swap is not None else [REVIEWERS("attacks.clusters")]
    return sentences


def _name(criterion: str) -> str:
    return {
        SINGLING_OUT: REVIEWERS("attacks.singling_out"),
        LINKABILITY: REVIEWERS("attacks.linkability"),
        INFERENCE: REVIEWERS("attacks.inference"),
    }.get(criterion, criterion)


def _judge_criterion(criterion: str, attacks: Sequence[CriterionView], view: InternalView) -> list[Sentence]:
    """Return the attacker's knowledge, the attack that gains most, the limits, and record linkage, which has no control group."""
    sentences: list[Sentence] = []
    tried = [attack for attack in attacks if attack.beyond is not None and attack.control is not None]
    known = [attack for attack in tried if attack.rate.tried]
    if known:
        sentences += [end_sentence(format_text(known[0].words))] if known[0].words else []
        sentences.append(_judge_worst(criterion, max(known, key=_order)))
    elif tried:
        sentences.append(REVIEWERS("attacks.untried", criterion=_name(criterion)))
    elif criterion == LINKABILITY and view.swap is not None:
        most = format_most(1 / view.swap.k)
        sentences.append(REVIEWERS("attacks.swapped", criterion=_name(criterion), most=most))
    elif criterion == LINKABILITY and view.is_synthetic:
        sentences.append(REVIEWERS("attacks.nobodys", criterion=_name(criterion)))
    else:
        sentences.append(REVIEWERS("attacks.absent", criterion=_name(criterion)))
    sentences += [
        REVIEWERS("attacks.linked", name=attack.attack, share=format_interval(attack.rate), chance=format_share(attack.guess))
        for attack in attacks
        if attack.beyond is None
    ]
    return sentences


def _judge_worst(criterion: str, attack: CriterionView) -> Sentence:
    assert attack.beyond is not None and attack.control is not None  # noqa: S101, PT018  for the type checker
    sentence = review(
        "attacks.most",
        criterion=_name(criterion),
        attack=Name(attack.attack),
        rate=format_interval(attack.rate),
        tried=format_tried(attack.rate),
        control=format_interval(attack.control),
        guess=format_share(attack.guess),
        beyond=format_interval(attack.beyond),
        judged=_judge_risk(attack, attack.beyond),
    )
    return (*sentence, " ", *review("attacks.worst", column=Name(attack.worst))) if attack.worst else sentence


def _judge_risk(attack: CriterionView, risk: ShareView) -> str:
    """Return whether the gain beyond the control is more than chance, and than guessing."""
    if not (is_number(risk.low) and is_number(risk.high)):
        return REVIEWERS("attacks.unknown")
    if risk.low > 0:
        return REVIEWERS("attacks.more") if attack.is_finding else REVIEWERS("attacks.guessed")
    return REVIEWERS("attacks.less") if risk.high < 0 else REVIEWERS("attacks.chance")


def _order(attack: CriterionView) -> float:
    """Return the sure gain, then the middle of the interval."""
    if attack.beyond is None or not is_number(attack.beyond.low) or not is_number(attack.beyond.value):
        return -1.0
    return attack.beyond.low + attack.beyond.value


def _list_criteria(attacks: Sequence[CriterionView]) -> Table:
    """Return the table of every attack by its criterion."""
    rows = tuple(
        (
            _name(attack.criterion),
            Name(attack.attack),
            format_interval(attack.rate),
            *(say_missing() if attack.control is None else format_interval(attack.control),),
            format_share(attack.guess),
            *(say_missing() if attack.beyond is None else format_interval(attack.beyond),),
            Name(attack.worst or "-"),
            *(say_missing() if share is None else format_tried(share) for share in (attack.rate, attack.control, attack.beyond)),
        )
        for attack in attacks
    )
    return Table(REVIEWERS("attacks.table"), list_heads("attacks.head"), rows)


def _judge_rung(rung: RungView, view: InternalView) -> Sentence:
    """Return the success of somebody with this much knowledge of a person, next to a guess."""
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
    """Return how the columns that a ladder adds were masked: swapped categories are among them, too."""
    return REVIEWERS("linkage.masked") if view.swap is None else REVIEWERS("linkage.masked_swapped")


def _name_rung(rung: RungView, view: InternalView) -> str:
    """Return the knowledge on a rung, short."""
    if rung is view.linkage_ladder[-1]:
        return REVIEWERS("linkage.name_all")
    masked = _say_masked(view)
    one, two = REVIEWERS("linkage.name_one", masked=masked), REVIEWERS("linkage.name_two", masked=masked)
    return (REVIEWERS("linkage.name_kept"), one, two)[rung.masked]


def _list_ladder(view: InternalView) -> Table:
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
    heads = list_heads("linkage.head") if view.swap is None else list_heads("linkage.head_swapped")
    return Table(REVIEWERS("linkage.table"), heads, rows)
