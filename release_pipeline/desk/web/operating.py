"""The operator's page."""

from __future__ import annotations

from starlette.responses import Response

from release_pipeline.desk.web.frame import Visit, Way


async def _show_operations(visit: Visit) -> Response:
    return await visit.render("operations.html", await visit.ask("operations"))


WAYS = (Way("/operations", _show_operations),)
