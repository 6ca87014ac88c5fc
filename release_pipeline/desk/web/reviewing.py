"""Pages of a release: what is decided of it, its report beside the one before, remarks, and signing."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, cast

from starlette.responses import Response

from release_pipeline.desk.web.frame import Visit, Way, Wrong, give, pass_on
from release_pipeline.door import Refused

_WISH = ("what", "subject", "verdict", "why")
_VOTES = ("approve", "return", "reject")
_NO_WISH = {"verdict": "", "why": ""}


async def _show_release(visit: Visit) -> Response:
    found = await visit.ask("release", {"release": visit.path("release")})
    return await visit.render("release.html", found, wish=_NO_WISH, fault=None)


async def _remark(visit: Visit) -> Response:
    remark = visit.read("what", "subject", "passage", "text")
    await visit.ask("remark", remark)
    return visit.go(_page_of(remark), "Your remark is kept, for you alone until you sign it.", to="remarks")


async def _drop(visit: Visit) -> Response:
    remark = visit.read("what", "subject", "number")
    await visit.ask("drop-remark", remark)
    return visit.go(_page_of(remark), "The remark is dropped.", to="remarks")


async def _sign(visit: Visit) -> Response:
    """The page between a decision and the person's own machine: what is to be signed, and how."""
    wish = visit.read(*_WISH)
    try:
        found = await visit.ask("sign", wish)
    except Wrong as wrong:
        is_vote = wish["what"] == "candidate" and wish["verdict"] in _VOTES  # of a form that can be shown again as it was
        if wrong.status in (401, 403) or wrong.status >= 500 or not is_vote:
            raise
        found = await visit.ask("release", {"release": wish["subject"]})
        return await visit.render("release.html", found, status=wrong.status, wish=wish, fault=wrong.refusal)
    return await visit.render("sign.html", found, wish=wish, page=_page_of(wish))


async def _fetch_bundle(visit: Visit) -> Response:
    return pass_on(await visit.fetch("bundle", visit.read(*_WISH)))


async def _take_statements(visit: Visit) -> Response:
    """Files as `sign` wrote them: each statement with its signature beside it."""
    subject = visit.read("what", "subject", "verdict")
    found = await visit.ask("statements", subject, json.dumps({"statements": _pair(visit.files)}))
    return visit.go(_page_of(subject), str(found["words"]))


def _pair(files: Any) -> list[dict[str, Any]]:
    """Statements with their signatures, from files that were chosen together."""
    named = {name.rpartition("/")[2]: content for name, content in files.items() if content}
    found: list[dict[str, Any]] = []
    for name, content in sorted(named.items()):
        if name.endswith((".sig", ".document.json")):  # of remarks the desk has the document
            continue
        signature = named.get(f"{name}.sig")
        if signature is None:
            raise Refused(400, f"{name[:100]}.sig is missing: choose each statement together with its signature.")
        said = _read_statement(name, content)
        found.append({"statement": said, "sshsig": signature.decode("ascii", "replace")})
    if not found:
        raise Refused(400, "no statement was chosen: choose what `sign` wrote, the .json and the .json.sig.")
    return found


def _read_statement(name: str, content: bytes) -> dict[str, Any]:
    """What a chosen file says, which must at least say what kind of statement it is."""
    said: Any = None
    with suppress(ValueError, RecursionError):
        said = json.loads(content)
    if not isinstance(said, dict) or "kind" not in said:
        raise Refused(
            400,
            f"{name[:100]} is no statement as `sign` writes it: it does not say what was decided. Choose the .json that `sign`"
            " wrote beside its .json.sig.",
        )
    return cast(dict[str, Any], said)


def _page_of(subject: dict[str, str]) -> str:
    """Where a form came from; who approves a policy came from the request for it."""
    name = subject["subject"]
    policy = f"/approvals/policies/{name}" if subject.get("verdict") == "approve" else f"/policies/{name}"
    return {"candidate": f"/releases/{name}", "policy": policy}.get(subject["what"], "/approvals/populations")


WAYS = (
    give("/releases/{release:path}/report", "report", shown=True),
    Way("/releases/{release:path}", _show_release),
    Way("/remarks", _remark, sends=True),
    Way("/remarks/drop", _drop, sends=True),
    Way("/sign", _sign, sends=True),
    Way("/bundle", _fetch_bundle, sends=True),
    Way("/statements", _take_statements, sends=True),
)
