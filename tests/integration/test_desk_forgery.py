"""Requests that no page of the desk sends, and what every answer tells the browser: of each page there is, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.desk.backend.people import make_token
from release_pipeline.apps.desk.backend.service import CALLS
from release_pipeline.apps.desk.web.application import WAYS
from release_pipeline.apps.desk.web.frame import Way
from tests.integration.desks import (
    HOST,
    ORIGIN,
    RELEASE,
    ROLES,
    Browser,
    Direct,
    OpenDesk,
    Page,
    fill_path,
    open_desk,
    read_everything,
)
from tests.integration.people import copy_site

pytestmark = pytest.mark.slow
SENDS = [way for way in WAYS if way.sends]
LOOKS = [way for way in WAYS if not way.sends]
FORM = {"what": "candidate", "subject": RELEASE, "passage": "", "text": "why?", "verdict": "approve", "why": "", "number": "0"}
FOREIGN: Mapping[str, Mapping[str, str]] = {  # more of them: tests/unit/door/test_addresses.py
    "no page": {"origin": ""},
    "another page": {"origin": "https://evil.example"},
    "another site": {"sec-fetch-site": "cross-site"},
}


@pytest.fixture(scope="module")
def desk(candidate: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenDesk:
    """Of a site with a candidate that nothing here changes."""
    return open_desk(copy_site(candidate, tmp_path_factory.mktemp("forgery") / "site"))


@pytest.fixture(scope="module")
def ben(desk: OpenDesk) -> Browser:
    """Somebody who is logged in."""
    return desk.open("ben")


def calls_of(desk: OpenDesk) -> list[str]:
    """The questions that the backend was asked since the last time."""
    assert isinstance(desk.client, Direct)
    asked, desk.client.asked = desk.client.asked, []
    return asked


@pytest.mark.parametrize("how", FOREIGN)
@pytest.mark.parametrize("way", SENDS, ids=lambda way: way.path)
def test_no_other_page_sends_a_form(desk: OpenDesk, ben: Browser, way: Way, how: str) -> None:
    """Though the browser sends the cookie, and the form has the right token: the backend is not even asked."""
    calls_of(desk)
    page = ben.post(fill_path(way.path), FORM, headers=FOREIGN[how])
    assert page.status in (400, 403)
    assert calls_of(desk) == []


@pytest.mark.parametrize("way", SENDS, ids=lambda way: way.path)
def test_a_form_has_the_token_of_its_session(desk: OpenDesk, ben: Browser, way: Way) -> None:
    """Neither of another session of the same person, nor one that was made up, nor the seal of what a page says, nor two."""
    again = desk.open("ben")
    sealed = (
        ben.post("/remarks", {**FORM, "text": "form"}, follow=False).header("location").partition("seal=")[2].partition("#")[0]
    )
    ben.post("/remarks/drop", FORM)
    assert len(sealed) == len(ben.token) == 64
    for token in (again.token, "", "x" * 64, sealed, ben.token[:-1], "é"):
        calls_of(desk)
        page = ben.post(fill_path(way.path), {**FORM, "desk": token})
        assert (page.status, "another session" in page.text) == (403, True), token
        assert calls_of(desk) == []
    twice = f"desk={ben.token}&desk={ben.token}".encode()
    assert ben.send("POST", ben.base + fill_path(way.path), body=twice).status == 403
    parts = ben.post(fill_path(way.path), {**FORM, "desk": again.token}, {"a.json": b"{}"})
    assert (parts.status, calls_of(desk)) == (403, [])


@pytest.mark.parametrize("way", SENDS, ids=lambda way: way.path)
def test_a_form_is_never_looked_at(desk: OpenDesk, ben: Browser, way: Way) -> None:
    """GET does nothing where POST does something, and the other way round; nor does what is neither."""
    calls_of(desk)
    ben.get(f"{fill_path(way.path)}?what=candidate&subject={RELEASE}&text=x&desk={ben.token}")
    assert not {call.name for call in CALLS if call.changes} & set(calls_of(desk))
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post", "X"):
        assert ben.send(method, ben.base + fill_path(way.path), headers={"origin": ORIGIN}).status == 405


@pytest.mark.parametrize("person", ROLES.values())
def test_who_looks_changes_nothing(candidate: Path, tmp_path: Path, person: str) -> None:
    """Every page, by everybody: no file of the site is another afterwards but the list of who saw what, and no question is asked
    that could change one."""
    desk = open_desk(copy_site(candidate, tmp_path / "site"))
    browser = desk.open(person)
    browser.get("/")
    before = read_everything(desk.tiny.home)
    calls_of(desk)
    seen = [browser.get(fill_path(way.path)).status for way in LOOKS]
    assert not {call.name for call in CALLS if call.changes} & set(calls_of(desk))
    assert 500 not in seen
    assert seen.count(200) > 1
    after = read_everything(desk.tiny.home)
    assert [name for name in after.keys() ^ before.keys() if not name.startswith("desk/viewings-")] == []
    assert [name for name in before if before[name] != after[name]] == []


def pages_of_every_kind(desk: OpenDesk, ben: Browser) -> dict[str, Page]:
    """What the desk answers: pages, files, refusals, what programs get."""
    nobody = Browser(desk.desk)
    pages = {way.path: ben.get(fill_path(way.path)) for way in LOOKS}
    pages |= {f"POST {way.path}": ben.post(fill_path(way.path), FORM) for way in SENDS if way.path != "/leave"}
    for address in ("/login", "/static/desk.css", "/static/none", "/static/login.js", "/alive", "/x"):
        pages[address] = nobody.send("GET", address, follow=False)
    pages["redirect"] = nobody.send("GET", "/", follow=False)
    pages["missing"] = ben.get("/nothing")
    pages["host"] = nobody.send("GET", "/", headers={"host": "evil.example"})
    return pages


def test_every_answer_has_its_headers(desk: OpenDesk) -> None:
    """No cache keeps it, no other page frames it, nothing runs that is not ours; and none has a word of who serves it."""
    right = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "server": "",
        "access-control-allow-origin": "",
    }
    for name, page in pages_of_every_kind(desk, desk.open("ben")).items():
        policy = {part.split()[0]: part.split()[1:] for part in page.header("content-security-policy").split(";")}
        assert policy["default-src"] == ["'none'"], name
        assert not {word for words in policy.values() for word in words} & {"'unsafe-inline'", "'unsafe-eval'", "*", "data:"}, (
            name
        )
        assert policy.get("frame-ancestors", ["'none'"])[0] in ("'none'", "'self'"), name
        assert page.header("x-frame-options") in ("DENY", "SAMEORIGIN"), name
        assert {key: page.header(key) for key in right} == right, name
        if page.header("content-type").startswith("text/html") and not name.endswith("/report"):
            assert (policy["form-action"], policy["base-uri"]) == (["'self'"], ["'none'"]), name
        kept = "max-age=3600" if name in ("/static/desk.css", "/static/login.js") else "no-store"
        assert page.header("cache-control") == kept, name


def test_the_report_has_no_right_but_its_own_marks(ben: Browser) -> None:
    """It is shown in a frame of ours, of no origin: it cannot read the desk, nor send anything anywhere."""
    page = ben.get(f"/releases/{RELEASE}/report")
    policy = {part.split()[0]: part.split()[1:] for part in page.header("content-security-policy").split(";")}
    assert "allow-same-origin" not in policy["sandbox"]
    assert set(policy["sandbox"]) <= {"allow-scripts"}
    assert policy["frame-ancestors"] == ["'self'"]
    assert policy["form-action"] == policy["base-uri"] == ["'none'"]
    for kind in ("style-src", "script-src"):
        assert all(word == "'none'" or word.startswith("'sha256-") for word in policy[kind])


@pytest.mark.parametrize("host", ["evil.example:8796", "127.0.0.1", ""])
def test_only_its_own_names_are_answered(desk: OpenDesk, ben: Browser, host: str) -> None:
    """A page that has had its name point at this machine asks under that name, and gets nothing."""
    calls_of(desk)
    for address in (f"{ben.base}/", "/login", "/alive", "/static/desk.css"):
        assert ben.send("GET", address, headers={"host": host}, follow=False).status == 403
    assert ben.post("/remarks", FORM, headers={"host": host, "origin": f"http://{host}"}).status == 403
    assert calls_of(desk) == []


@pytest.mark.parametrize("what", ["image", "iframe"])
def test_no_other_page_has_ours_in_it(desk: OpenDesk, ben: Browser, what: str) -> None:
    """As a picture, script, frame or by fetch; a link may lead here."""
    calls_of(desk)
    mode = "navigate" if what == "iframe" else "no-cors"
    for site in ("cross-site", "same-site"):
        asked = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": what}
        assert ben.get("/", headers=asked).status == 403
    assert calls_of(desk) == []
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert ben.get("/", headers=link).status == 200


def test_no_socket_is_opened(desk: OpenDesk, ben: Browser) -> None:
    """Who asks for one is refused, whoever they are."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    cookie = f"{ben.cookies[0][0]}={ben.cookies[0][1]}".encode()
    headers = [(b"host", HOST.encode()), (b"origin", ORIGIN.encode()), (b"cookie", cookie)]
    scope = {"type": "websocket", "path": f"{ben.base}/", "headers": headers, "query_string": b""}
    asyncio.run(desk.desk(scope, receive, send))  # type: ignore[arg-type]
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_a_page_says_only_what_the_desk_had_it_say(desk: OpenDesk, ben: Browser) -> None:
    """A link cannot make it tell anybody that something was done."""
    location = ben.post("/remarks", FORM, follow=False).header("location")
    ben.post("/remarks/drop", FORM)
    asked = location.removeprefix(ben.base).partition("#")[0]
    assert 'role="status"' in ben.get(asked).text
    other = desk.open("ben")
    assert 'role="status"' not in other.get(asked).text
    assert 'role="status"' not in ben.get(asked.replace("Your+remark", "My+remark")).text
    assert 'role="status"' not in ben.get(f"/releases/{RELEASE}?said=approved&seal=").text
    assert 'role="status"' not in ben.get(f"/releases/{RELEASE}?said=form&seal={ben.token}").text


def test_a_token_is_not_in_an_address_that_goes_on(desk: OpenDesk) -> None:
    """Neither the token nor the session's secret is in a page or in where it leads."""
    token = make_token(desk.tiny.site, "cleo")
    browser = Browser(desk.desk)
    page = browser.send("POST", "/login", body=f"token={token}".encode(), follow=False)
    secret = page.header("set-cookie").partition("=")[2].partition(";")[0]
    assert token not in page.text + page.header("location") + page.header("set-cookie")
    shown = browser.send("GET", page.header("location"))
    assert shown.status == 200
    assert secret not in shown.text + page.header("location")
