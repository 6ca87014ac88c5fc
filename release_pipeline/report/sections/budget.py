"""The section on what remains of the population's budget."""

from __future__ import annotations

from release_pipeline.policy.formats import say_unit
from release_pipeline.privacy.figures import (
    count_things,
)
from release_pipeline.report.budgets import PopulationView, StepView, format_amount, list_sums
from release_pipeline.report.internal_view import InternalView
from release_pipeline.report.prose import Name, Sentence, review
from release_pipeline.report.sections.parts import Section
from release_pipeline.sentences import REVIEWERS


def describe_budget(view: InternalView) -> Section:
    """What remains of the population's budget."""
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
    said: list[Sentence] = [
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
        said.append(
            review("budget.refused", releases=count_things(len(refused), "planned_release"), first=Name(refused[0].release))
        )
    elif planned:
        said.append(
            REVIEWERS(
                "budget.after",
                releases=count_things(len(planned), "planned_release"),
                amount=format_amount(list_sums(budget)[-1], budget),
            )
        )
    else:
        said.append(REVIEWERS("budget.as_of"))
    return said


def _describe_amount(amount: int | None, budget: PopulationView) -> str:
    """An amount with its verb: releases are counted, an epsilon is one amount."""
    is_several = budget.in_releases and amount != 1
    words = format_amount(amount, budget)
    return REVIEWERS("budget.are", amount=words) if is_several else REVIEWERS("budget.is", amount=words)
