"""The first page, help, the list of releases, and the way out."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from release_pipeline.desk.web.frame import Visit, Way


async def _show_home(visit: Visit) -> Response:
    return await visit.render("home.html", await visit.ask("home"))


async def _list_releases(visit: Visit) -> Response:
    return await visit.render("releases.html", await visit.ask("releases"))


async def _help(visit: Visit) -> Response:
    return await visit.render("help.html", await visit.ask("help"))


async def _leave(visit: Visit) -> Response:
    await visit.ask("leave")
    return RedirectResponse("/login" if visit.base else "/", 303)


WAYS = (
    Way("/", _show_home),
    Way("/help", _help),
    Way("/releases", _list_releases),
    Way("/leave", _leave, sends=True),
)
