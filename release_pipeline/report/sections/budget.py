"""The section on what remains of the population's budget."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_of,
)
from release_pipeline.report.internal_view import InternalView
from release_pipeline.report.prose import Name, Sentence
from release_pipeline.report.sections.parts import Section
from release_pipeline.report.status import PopulationView, StepView, format_amount, list_sums


def describe_budget(view: InternalView) -> Section:
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
    reserved = f", of it {format_amount(budget.reserved, budget)} reserved" if budget.reserved != 0 else ""
    said: list[Sentence] = [
        (f"Of {format_amount(budget.cap, budget)} ({budget.unit}) for ", Name(budget.name),
         f", {_describe_amount(budget.spent, budget)} spent{reserved}; {_describe_amount(budget.remaining, budget)} left."),
    ]  # fmt: skip
    planned = _list_planned(budget)
    refused = [step for step in planned if step.state == "refused"]
    if refused:
        said.append((f"{count_of(len(refused), 'planned release')} will be refused, the first ", Name(refused[0].release), "."))
    elif planned:
        said.append(
            f"After {count_of(len(planned), 'planned release')}, {format_amount(list_sums(budget)[-1], budget)} would be left."
        )
    else:
        said.append("This page is as of this release. What came after it, and what is planned, is in the ledger.")
    return said


def _describe_amount(amount: int | None, budget: PopulationView) -> str:
    """An amount with its verb: releases are counted, an epsilon is one amount."""
    return f"{format_amount(amount, budget)} {'are' if budget.in_releases and amount != 1 else 'is'}"
