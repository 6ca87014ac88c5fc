"""The privacy officer's decisions, requests for approval and caps, and the pages of auditors. Nothing is signed here."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from release_pipeline.apps.desk.backend.calls import Asked, Call, Document, File
from release_pipeline.apps.desk.backend.lookups import list_lines, shorten_paths
from release_pipeline.apps.desk.backend.people import KEPT_MONTHS, Role
from release_pipeline.apps.desk.backend.reviewing import READERS, RELEASE
from release_pipeline.apps.desk.backend.signing import pack
from release_pipeline.apps.door import Refused
from release_pipeline.formats.budgets import Chart, PopulationView, StepView, draw_burndown, format_amount, list_sums
from release_pipeline.ledger.account import Ledger, read_ledgers, view_population
from release_pipeline.mechanisms.basis.figures import count_things
from release_pipeline.pipeline.opening import find_release
from release_pipeline.policy.values.formats import say_unit
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.history import tell_history
from release_pipeline.review.requests import Change, Request, list_requests, read_caps_request, read_policy_request
from release_pipeline.sentences import REVIEWERS
from release_pipeline.trust.members import read_trust
from release_pipeline.trust.remarks import list_visible_remarks
from release_pipeline.verifier.documents import NAME

OVERSEERS = frozenset({Role.OFFICER, Role.AUDITOR})


def _list_approvals(asked: Asked) -> Document:
    requests = [_describe_request(request) for request in list_requests(asked.site)]
    return shorten_paths(asked.site, {"requests": requests, "may_sign": asked.has(Role.OFFICER)})


def _show_policy(asked: Asked) -> Document:
    name = asked.find("policy", NAME)
    if name not in {file.stem for file in asked.site.policy_files()}:
        raise Refused(404, "the site has no such policy.")
    change = read_policy_request(asked.site, name)
    with asked.site.open_registry(read_only=True) as registry:
        trust = read_trust(asked.site, registry)
        remarks = list_visible_remarks(registry, trust, name, reader=asked.person.name)
    noted = [{**asdict(remark), "is_of_now": remark.about == change.request.hash} for remark in remarks]
    return _describe_change(asked, change, noted)


def _show_populations(asked: Asked) -> Document:
    return _describe_change(asked, read_caps_request(asked.site))


def _describe_change(asked: Asked, change: Change, remarks: Sequence[Document] = ()) -> Document:
    request = _describe_request(change.request)
    document = {**asdict(change), "request": request, "remarks": remarks, "may_sign": asked.has(Role.OFFICER)}
    return shorten_paths(asked.site, document)


def _describe_request(request: Request) -> Document:
    return {**asdict(request), "is_approved": request.is_approved}


def _show_caps(asked: Asked) -> Document:
    return {"populations": [_describe_population(ledger) for ledger in read_ledgers(asked.site)]}


def _describe_population(ledger: Ledger) -> Document:
    """Return a population with its picture, and the steps of its table, each amount as people read it."""
    account, view = ledger.account, view_population(ledger)
    chart, unit = draw_burndown(view), say_unit(account.unit)
    charged = [charge.population if charge.population != account.population else "" for charge in ledger.charges]
    others = [*charged, *[""] * len(ledger.planned)]
    return {
        "name": account.population,
        "unit": unit,
        "cap": account.limit,
        "spent": account.spent,
        "reserved": account.format(ledger.reserved),
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
            _describe_step(step, left, view, where) for step, left, where in zip(view.steps, list_sums(view), others, strict=True)
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
    """Return the picture's title, and the meaning of its signs."""
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


_PUBLIC = ("published", "superseded", "retracted")
_working = threading.Lock()  # a site's packages are read from one disk: one at a time


def _show_chain(asked: Asked) -> Document:
    site, release = asked.site, find_release(asked.site, asked.find("release", RELEASE))
    history = tell_history(site, release, reader=asked.person.name)
    line = next((line for line in list_lines(site).lines if line.release == str(release)), None)
    damaged = line is not None and line.state == "damaged"
    may_audit = asked.has(Role.OFFICER, Role.AUDITOR)
    faults = [*([line.reason] if damaged and line is not None else []), *history.faults]
    return shorten_paths(
        site,
        {
            **asdict(history),
            "release": str(release),
            "shown_state": "damaged" if damaged else history.state,
            "faults": faults,
            "may_audit": may_audit,
            "viewings": [asdict(viewing) for viewing in asked.viewings.list_of(str(release))] if may_audit else [],
            "kept_months": KEPT_MONTHS,
            "is_public": history.state in _PUBLIC,
        },
    )


def _make_dossier(asked: Asked) -> File:
    site, release = asked.site, find_release(asked.site, asked.find("release", RELEASE))
    if not _working.acquire(blocking=False):
        raise Refused(503, "another dossier is packed just now. Try again in a moment.")
    try:
        name = f"dossier-{str(release).replace('/', '-')}.zip"
        return pack(site, name, lambda file: write_dossier(site, release, file, refuse_open=True))
    finally:
        _working.release()


def _list_audited(asked: Asked) -> Document:
    listing = list_lines(asked.site)
    releases = [
        {
            "release": line.release,
            "state": line.state,
            "since": line.since,
            "package": line.package_hash or "",
            "candidate": line.candidate_hash or "",
            "reason": line.reason,
        }
        for line in listing.lines
        if line.id is not None
    ]
    with asked.site.open_registry(read_only=True) as registry:
        events = registry.events
        head = {"number": len(events), "hash": events[-1].hash, "noted": events[-1].noted} if events else None
    return {"releases": releases, "broken": list(listing.faults), "made": listing.made, "head": head}


CALLS = (
    Call("approvals", READERS, _list_approvals),
    Call("policy-approval", READERS, _show_policy),
    Call("populations-approval", READERS, _show_populations),
    Call("caps", READERS, _show_caps),
    Call("chain", READERS, _show_chain),
    Call("dossier", OVERSEERS, _make_dossier, changes=True, shows="the dossier"),
    Call("audit", OVERSEERS, _list_audited),
)
