"""What the privacy officer decides on: requests for approval, and caps. Nothing is signed here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from release_pipeline.desk.backend.calls import Asked, Call, Document, allow
from release_pipeline.desk.backend.lookups import shorten_places
from release_pipeline.desk.backend.reviewing import READERS
from release_pipeline.desk.people import NAME, Role
from release_pipeline.door import Refused
from release_pipeline.flow.reviewing.requests import Change, Request, list_requests, read_caps_request, read_policy_request
from release_pipeline.flow.status.ledger import Ledger, read_ledgers
from release_pipeline.flow.status.ledger_document import view_population
from release_pipeline.policy.formats import say_unit
from release_pipeline.privacy.figures import count_things
from release_pipeline.report.budgets import Chart, PopulationView, StepView, draw_burndown, format_amount, list_sums
from release_pipeline.sentences import REVIEWERS

OVERSEERS = allow(Role.OFFICER, Role.AUDITOR)


def _list_approvals(asked: Asked) -> Document:
    requests = [_describe_request(request) for request in list_requests(asked.site)]
    return shorten_places(asked.site, {"requests": requests, "may_sign": asked.has(Role.OFFICER)})


def _show_policy(asked: Asked) -> Document:
    name = asked.find("policy", NAME)
    if name not in {file.stem for file in asked.site.policy_files()}:
        raise Refused(404, "the site has no such policy.")
    return _describe_change(asked, read_policy_request(asked.site, name))


def _show_populations(asked: Asked) -> Document:
    return _describe_change(asked, read_caps_request(asked.site))


def _describe_change(asked: Asked, change: Change) -> Document:
    found = {**asdict(change), "request": _describe_request(change.request), "may_sign": asked.has(Role.OFFICER)}
    return shorten_places(asked.site, found)


def _describe_request(request: Request) -> Document:
    return {**asdict(request), "is_approved": request.is_approved}


def _show_caps(asked: Asked) -> Document:
    return {"populations": [_describe_population(ledger) for ledger in read_ledgers(asked.site)]}


def _describe_population(ledger: Ledger) -> Document:
    """A population with its picture, and the steps of its table, each amount as people read it."""
    account, view = ledger.account, view_population(ledger)
    chart, unit = draw_burndown(view), say_unit(account.unit)
    own = [charge.population if charge.population != account.population else "" for charge in ledger.charges]
    return {
        "name": account.population,
        "unit": unit,
        "cap": account.limit,
        "spent": account.spent,
        "reserved": account.words(ledger.reserved),
        "left": account.left,
        "at_delta": account.at_delta,
        "overdrawn": not account.admits(),
        "declared": ledger.declared,
        "carries": account.carries,
        "heirs": ledger.heirs,
        "endless": ledger.endless,
        "refused": [step.release for step in view.steps if step.state == "refused"],
        "chart": {**asdict(chart), **_describe_chart(chart, view, unit)},
        "steps": [
            _describe_step(step, left, view, where)
            for step, left, where in zip(view.steps, list_sums(view), [*own, *[""] * len(ledger.planned)], strict=True)
        ],
    }


def _describe_step(step: StepView, left: int, view: PopulationView, where: str) -> Document:
    return {
        "release": step.release,
        "amount": format_amount(step.amount, view),
        "left": format_amount(left, view),
        "state": step.state,
        "words": REVIEWERS.read_section("step")[step.state],
        "when": step.when,
        "remark": step.remark,
        "where": where,
    }


def _describe_chart(chart: Chart, view: PopulationView, unit: str) -> dict[str, Any]:
    """What the picture is called, and what its signs mean."""
    states = {mark.state for mark in chart.marks}
    parts = [REVIEWERS("burndown.caption", unit=unit)]
    parts += [REVIEWERS("burndown.reserved")] * ("reserved" in states)
    parts += [REVIEWERS("burndown.planned")] * bool(chart.planned)
    parts += [REVIEWERS("burndown.refused")] * ("refused" in states)
    more = [REVIEWERS("burndown.earlier", charges=count_things(chart.earlier, "earlier_charge"))] if chart.earlier else []
    more += [REVIEWERS("burndown.later", releases=count_things(chart.later, "later_release"))] if chart.later else []
    cap, remaining = format_amount(view.cap, view), format_amount(view.remaining, view)
    return {
        "title": REVIEWERS("burndown.title", population=view.name),
        "desc": REVIEWERS("burndown.words", cap=cap, remaining=remaining, unit=unit),
        "caption": " ".join([f"{'; '.join(parts)}.", *more]),
    }


CALLS = (
    Call("approvals", READERS, _list_approvals),
    Call("policy-approval", READERS, _show_policy),
    Call("populations-approval", READERS, _show_populations),
    Call("caps", READERS, _show_caps),
)
