"""Pages of the auditor: the chain of a release, its verification in place, its dossier, and all releases in a row."""

from __future__ import annotations

from starlette.responses import Response

from release_pipeline.desk.web.frame import Visit, Way, pass_on


async def _show_chain(visit: Visit) -> Response:
    return await visit.render("chain.html", await visit.ask("chain", {"release": visit.path("release")}))


async def _verify(visit: Visit) -> Response:
    return await visit.render("verified.html", await visit.ask("verify-release", {"release": visit.path("release")}))


async def _fetch_dossier(visit: Visit) -> Response:
    return pass_on(await visit.fetch("dossier", {"release": visit.path("release")}))


async def _list_audited(visit: Visit) -> Response:
    return await visit.render("audit.html", await visit.ask("audit"))


WAYS = (
    Way("/audit", _list_audited),
    Way("/chain/{release:path}/verify", _verify, sends=True),
    Way("/chain/{release:path}/dossier", _fetch_dossier, sends=True),
    Way("/chain/{release:path}", _show_chain),
)
