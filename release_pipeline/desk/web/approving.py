"""Pages of the privacy officer: requests for approval, caps, keys, and populations that share people."""

from __future__ import annotations

from starlette.responses import Response

from release_pipeline.desk.web.frame import Visit, Way


async def _list_approvals(visit: Visit) -> Response:
    return await visit.render("approvals.html", await visit.ask("approvals"))


async def _show_policy(visit: Visit) -> Response:
    return await visit.render("approval.html", await visit.ask("policy-approval", {"policy": visit.path("policy")}))


async def _show_populations(visit: Visit) -> Response:
    return await visit.render("approval.html", await visit.ask("populations-approval"))


async def _show_caps(visit: Visit) -> Response:
    return await visit.render("caps.html", await visit.ask("caps"))


async def _show_keys(visit: Visit) -> Response:
    return await visit.render("keys.html", await visit.ask("keys"))


async def _show_overlaps(visit: Visit) -> Response:
    return await visit.render("overlaps.html", await visit.ask("overlaps"))


async def _measure_overlaps(visit: Visit) -> Response:
    return await visit.render("overlaps.html", await visit.ask("measure-overlaps"))


WAYS = (
    Way("/approvals", _list_approvals),
    Way("/approvals/populations", _show_populations),
    Way("/approvals/policies/{policy}", _show_policy),
    Way("/caps", _show_caps),
    Way("/keys", _show_keys),
    Way("/overlaps", _show_overlaps),
    Way("/overlaps", _measure_overlaps, sends=True),
)
