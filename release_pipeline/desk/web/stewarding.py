"""Pages of policies: all of them, and one with its faults in place."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from release_pipeline.desk.web.frame import Visit, Way, Wrong, show, show_page

_AWAY = (401, 403)


async def _show_policy(visit: Visit) -> Response:
    return await _render(visit, await visit.ask("policy", {"name": visit.path("name")}))


async def _begin_policy(visit: Visit) -> Response:
    name = visit.query("name")
    if not name:
        return await visit.render("policy-new.html", {})
    return await _render(visit, await visit.ask("begin-policy", {"name": name}))


async def _send_text(visit: Visit, *, call: str) -> Response:
    """What the backend says of the text in the form; whatever it refuses, the text stays in the page."""
    name, text, began = visit.path("name"), visit.form.get("text", ""), visit.form.get("began", "")
    text = text.replace("\r\n", "\n")  # as browsers send what stands in a form
    try:
        found = await visit.ask(call, {"name": name, "began": began}, text)
    except Wrong as wrong:
        return await _keep_text(visit, wrong, name, text, began)
    if found.get("saved"):
        return visit.go(
            f"/policies/{name}", f"policies/{name}.yaml is saved. The officer approves it before anything of it runs."
        )
    if "refusal" in found:
        return await _render(visit, found, status=409)
    return await _render(visit, found, checked="" if found["faults"] else _say_checked(len(found["warnings"])))


def _say_checked(warnings: int) -> str:
    warned = f", and {warnings} warning{'s' * (warnings != 1)}" if warnings else ""
    return f"It has no fault{warned}. It is not saved yet."


async def _keep_text(visit: Visit, wrong: Wrong, name: str, text: str, began: str) -> Response:
    given = {"name": name, "text": text, "began": began, "refusal": wrong.refusal}
    if wrong.status in _AWAY or wrong.status >= 500:  # nobody can be asked who is logged in
        return show_page("policy-lost.html", given, wrong.status)
    return await visit.render("policy-kept.html", given, status=wrong.status)


async def _render(visit: Visit, found: dict[str, Any], *, status: int = 200, checked: str = "") -> Response:
    given = {"refusal": None, "now": None, **found}
    return await visit.render("policy.html", given, status=status, checked=checked)


WAYS = (
    show("/policies", "policies.html", "policies"),
    Way("/new-policy", _begin_policy),
    Way("/policies/{name}", _show_policy),
    Way("/policies/{name}/check", partial(_send_text, call="check-policy"), sends=True),
    Way("/policies/{name}/save", partial(_send_text, call="save-policy"), sends=True),
)
