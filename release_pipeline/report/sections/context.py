"""The section on what remains of the population's budget."""

from __future__ import annotations

from release_pipeline.formats.budgets import PopulationView, StepView, format_amount, list_sums
from release_pipeline.formats.internal_view import InternalView, LookView
from release_pipeline.mechanisms.basis.figures import count_things
from release_pipeline.pages.prose import Name, Sentence, review
from release_pipeline.policy.values.formats import say_unit
from release_pipeline.report.sections.parts import Section
from release_pipeline.sentences import REVIEWERS


def describe_budget(view: InternalView) -> Section:
    """Return the section: what remains of the population's budget."""
    anchor, title = "budget", REVIEWERS("budget.title")
    if view.budget is None:
        return Section(anchor, title, absent=REVIEWERS("budget.absent"))
    planned = _list_planned(view.budget)
    return Section(
        anchor,
        title,
        shows=REVIEWERS("budget.shows"),
        read=REVIEWERS("budget.read_planned") if planned else REVIEWERS("budget.read"),
        sign=REVIEWERS("budget.sign_planned") if planned else REVIEWERS("budget.sign"),
        says=tuple(_judge_budget(view.budget)),
        budget=view.budget,
    )


def _list_planned(budget: PopulationView) -> list[StepView]:
    return [step for step in budget.steps if step.state in ("planned", "refused")]


def _judge_budget(budget: PopulationView) -> list[Sentence]:
    spent = _describe_amount(budget.spent, budget)
    if budget.reserved != 0:
        spent = REVIEWERS("budget.spent_reserved", spent=spent, reserved=format_amount(budget.reserved, budget))
    else:
        spent = REVIEWERS("budget.spent", spent=spent)
    sentences: list[Sentence] = [
        review(
            "budget.left",
            cap=format_amount(budget.cap, budget),
            unit=say_unit(budget.unit),
            population=Name(budget.name),
            spent=spent,
            remaining=_describe_amount(budget.remaining, budget),
        )
    ]
    planned = _list_planned(budget)
    refused = [step for step in planned if step.state == "refused"]
    if refused:
        sentences.append(
            review("budget.refused", releases=count_things(len(refused), "planned_release"), first=Name(refused[0].release))
        )
    elif planned:
        sentences.append(
            REVIEWERS(
                "budget.after",
                releases=count_things(len(planned), "planned_release"),
                amount=format_amount(list_sums(budget)[-1], budget),
            )
        )
    else:
        sentences.append(REVIEWERS("budget.as_of"))
    return sentences


def _describe_amount(amount: int | None, budget: PopulationView) -> str:
    """Return an amount with its verb: releases are counted, an epsilon is one amount."""
    is_several = budget.in_releases and amount != 1
    words = format_amount(amount, budget)
    return REVIEWERS("budget.are", amount=words) if is_several else REVIEWERS("budget.is", amount=words)


# The section on trials on the data: who chose parameters with knowledge of the data, and what was compared.


_MOST_COMPARED = 24  # settings of one trial; the registry has all


def describe_looks(view: InternalView) -> Section:
    """Return the section: who tried settings on the data before the charge, when, on which, what was compared, and why it
    matters."""
    return Section(
        "looks",
        REVIEWERS("looks.title"),
        shows=REVIEWERS("looks.shows"),
        read=REVIEWERS("looks.read"),
        sign=REVIEWERS("looks.sign"),
        says=(*map(_describe, view.looks), REVIEWERS("looks.matters")),
    )


def _describe(look: LookView) -> Sentence:
    compared = "; ".join(look.compared[:_MOST_COMPARED])
    if (more := len(look.compared) - _MOST_COMPARED) > 0:
        compared = REVIEWERS("looks.more", compared=compared, more=count_things(more, "other"))
    match look.on:
        case "mask":
            return review("looks.mask", day=look.noted[:10], by=Name(look.by), compared=Name(compared))
        case "run":
            return review("looks.run", day=look.noted[:10], compared=Name(compared))
        case _:
            return review("looks.public", day=look.noted[:10], by=Name(look.by), compared=Name(compared))
