"""Every page of the desk. Most show what one call of the backend answers."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from release_pipeline.desk.web import reviewing, stewarding
from release_pipeline.desk.web.frame import Visit, Way, give, show


async def _leave(visit: Visit) -> Response:
    await visit.ask("leave")
    return RedirectResponse("/login" if visit.base else "/", 303)


WAYS = (
    show("/", "home.html", "home"),
    show("/help", "help.html", "help"),
    show("/releases", "releases.html", "releases"),
    Way("/leave", _leave, sends=True),
    *reviewing.WAYS,
    *stewarding.WAYS,
    show("/approvals", "approvals.html", "approvals"),
    show("/approvals/populations", "approval.html", "populations-approval"),
    show("/approvals/policies/{policy}", "approval.html", "policy-approval"),
    show("/caps", "caps.html", "caps"),
    show("/keys", "keys.html", "keys"),
    show("/overlaps", "overlaps.html", "overlaps"),
    show("/overlaps", "overlaps.html", "measure-overlaps", sends=True),
    show("/audit", "audit.html", "audit"),
    show("/chain/{release:path}/verify", "verified.html", "verify-release", sends=True),
    give("/chain/{release:path}/dossier", "dossier", sends=True),
    show("/chain/{release:path}", "chain.html", "chain"),
    show("/operations", "operations.html", "operations"),
)
