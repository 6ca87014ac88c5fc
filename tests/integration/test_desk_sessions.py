"""Who is let in at the desk, and for how long: stolen, forged, ended and shared sessions."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

from release_pipeline.apps.desk.backend.people import make_token, withdraw_tokens
from release_pipeline.apps.desk.backend.service import MOST_WRONG, Sessions
from release_pipeline.apps.desk.web.application import COOKIE
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.trust.members import distrust
from tests.integration.desks import (
    AUDITOR,
    OPERATOR,
    PEOPLE,
    Browser,
    OpenDesk,
    Page,
    name_people,
    open_desk,
)
from tests.integration.people import copy_site

pytestmark = pytest.mark.slow
REMARK = {"what": "candidate", "subject": "people/1/r1", "passage": "", "text": "why?"}


@dataclass
class Clock:
    """Goes on when it is told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Of the sessions."""
    return Clock()


@pytest.fixture
def desk(candidate: Path, tmp_path: Path, clock: Clock) -> OpenDesk:
    """Of a site with a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"), sessions=Sessions(clock=clock))


def is_in(page: Page) -> bool:
    """Whether the page is one of somebody who is logged in."""
    return page.status == 200 and "Log out" in page.text


def test_nobody_comes_in_without_one(desk: OpenDesk) -> None:
    """Every page leads to the login, and that says no more than why."""
    for address in ("/", "/releases", "/x/", "/x/releases/people/1/r1", "//", "/x/releases/people/1/r1/report"):
        page = Browser(desk.desk).send("GET", address, headers={"cookie": f"{COOKIE}=x"})
        assert page.status == 200
        assert page.text.count("people") == page.text.count('value="/releases/people/1/r1')  # where the login leads to, as asked
        assert 'name="token"' in page.text
    wrong = Browser(desk.desk).log_in("x" * 43)
    assert wrong.status == 403
    assert "no token" in wrong.text
    assert not wrong.header("set-cookie")


def test_a_cookie_is_worth_nothing_at_another_path(desk: OpenDesk) -> None:
    """A server at another port of the machine gets no cookie of ours, for it does not know the path; and who has the secret
    without the path is nobody."""
    ben, cleo = desk.open("ben"), desk.open("cleo")
    [(name, secret, path)] = ben.cookies
    assert path == ben.base
    assert len(path) > 20
    thief = Browser(desk.desk)
    for place in ("/x", cleo.base, "/releases", "", "/%C3%A9", ben.base[:-1], ben.base + "x"):
        page = thief.send("GET", f"{place}/", headers={"cookie": f"{name}={secret}"})
        assert not is_in(page), place
    assert is_in(thief.send("GET", f"{ben.base}/", headers={"cookie": f"{name}={secret}"})), "the test asks rightly"


def test_a_cookie_is_for_one_browser_and_no_script(desk: OpenDesk) -> None:
    """Neither scripts nor other sites' pages have it sent; over TLS it goes nowhere else."""
    sent = Browser(desk.desk).send("POST", "/login", body=b"token=" + make_token(desk.tiny.site, "ben").encode(), follow=False)
    parts = {part.strip().lower() for part in sent.header("set-cookie").split(";")[1:]}
    assert {"httponly", "samesite=lax"} <= parts
    assert "secure" not in parts
    assert not any(part.startswith("domain") for part in parts)


def test_who_logs_in_gets_a_session_that_nobody_had_before(desk: OpenDesk) -> None:
    """What the browser brought along does not become one."""
    browser = Browser(desk.desk, cookies=[(COOKIE, "chosen", "/")])
    browser.log_in(make_token(desk.tiny.site, "ben"))
    assert [value for _, value, path in browser.cookies if path == browser.base] != ["chosen"]
    assert not is_in(Browser(desk.desk, cookies=[(COOKIE, "chosen", "/")]).send("GET", f"{browser.base}/"))


def test_who_logs_out_is_out(desk: OpenDesk) -> None:
    """Also for who has copied the cookie; other sessions of the person go on."""
    ben, again = desk.open("ben"), desk.open("ben")
    thief = Browser(desk.desk, cookies=list(ben.cookies), base=ben.base)
    assert is_in(thief.get("/"))
    assert 'name="token"' in ben.post("/leave").text
    assert not is_in(ben.get("/"))
    assert not is_in(thief.get("/"))
    assert is_in(again.get("/"))


def _withdraw(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    del keys
    assert withdraw_tokens(desk.tiny.site, "ben") == 1


def _untrust(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    distrust(desk.tiny.site, "ben", key=keys["olga"])


@pytest.mark.parametrize(("leave", "status"), [(_withdraw, 401), (_untrust, 403)])
def test_who_is_removed_is_out(
    desk: OpenDesk, keys: dict[str, PrivateKey], leave: Callable[[OpenDesk, dict[str, PrivateKey]], None], status: int
) -> None:
    """With the next question, whatever they have open: pages and forms."""
    ben, cleo = desk.open("ben"), desk.open("cleo")
    leave(desk, keys)
    assert not is_in(ben.get("/"))
    assert ben.post("/remarks", REMARK).status == status
    assert is_in(cleo.get("/"))


def test_roles_of_site_yaml_count_at_once(desk: OpenDesk) -> None:
    """Who is named no more is out; who has another role has other pages."""
    vic, otto = desk.open(AUDITOR), desk.open(OPERATOR)
    assert vic.get("/releases/people/1/r1/report").status == 200
    assert otto.get("/releases/people/1/r1/report").status == 403
    name_people(desk.tiny, f"{{{OPERATOR}: [auditor, operator]}}")
    assert vic.get("/").status == 403
    assert otto.get("/releases/people/1/r1/report").status == 200


def test_a_site_yaml_that_cannot_be_read_lets_nobody_further(desk: OpenDesk) -> None:
    """Rather than by what it said before."""
    vic = desk.open(AUDITOR)
    name_people(desk.tiny, "{vic: [king]}")
    page = vic.get("/")
    assert not is_in(page)
    assert "roles are a list" in page.text
    name_people(desk.tiny, PEOPLE)
    assert is_in(vic.get("/"))


def test_nobody_is_logged_in_by_a_page_of_somebody_else(desk: OpenDesk) -> None:
    """A form of theirs is refused; a link of theirs to our login asks before it logs in, since it could have anybody's token."""
    token = make_token(desk.tiny.site, "cleo").encode()
    for headers in ({"origin": "https://evil.example"}, {"origin": ""}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        page = Browser(desk.desk).send("POST", "/login", headers=headers, body=b"token=" + token)
        assert (page.status, page.header("set-cookie")) == (403, "")
    led = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for headers, asks in ((led, True), ({"sec-fetch-site": "none"}, False), ({"sec-fetch-site": ""}, False)):
        page = Browser(desk.desk).send("GET", "/login", headers=headers)
        [form] = [said for tag, said in page.elements if tag == "form"]
        assert ("data-asks" in form) is asks
        assert ("Another page led you here" in page.text) is asks


def test_who_tries_tokens_is_told_and_keeps_nobody_out(desk: OpenDesk, caplog: pytest.LogCaptureFixture) -> None:
    """The operator reads it once in the log, without a token; the right one is taken meanwhile."""
    right = make_token(desk.tiny.site, "ben")
    browser = Browser(desk.desk)
    with caplog.at_level(logging.WARNING):
        statuses = [browser.log_in(f"wrong-{number}").status for number in range(MOST_WRONG + 3)]
    assert statuses == [403] * MOST_WRONG + [429] * 3
    assert len(caplog.messages) == 1
    assert "wrong tokens" in caplog.text
    assert "wrong-" not in caplog.text
    assert browser.log_in(right).status == 200


def test_the_login_leads_to_the_page_that_was_asked_for(desk: OpenDesk) -> None:
    """From a notice or an old page of a session that is over; and nowhere else, whatever somebody writes into a link."""
    token = make_token(desk.tiny.site, "ben")
    for asked, led in (
        ("/releases/people/1/r1", "/releases/people/1/r1"),
        ("/" + "x" * 22 + "/releases/people/1/r1", "/releases/people/1/r1"),
        ("/releases/../login", "/"),
        ("//evil.example/releases", "/releases"),
        ("/leave", "/"),
    ):
        page = Browser(desk.desk).send("GET", asked)
        [given] = re.findall(r'name="page" value="([^"]*)"', page.text)
        body = urlencode({"token": token, "page": given}).encode()
        place = Browser(desk.desk).send("POST", "/login", body=body, follow=False).header("location")
        assert re.fullmatch(r"/[A-Za-z0-9_-]{22}" + re.escape(led), place), asked
    for page in ("//evil.example", "https://evil.example", "/releases/..", "/x", "/releases\r\nSet-Cookie: a=b"):
        body = urlencode({"token": token, "page": page}).encode()
        place = Browser(desk.desk).send("POST", "/login", body=body, follow=False).header("location")
        assert re.fullmatch(r"/[A-Za-z0-9_-]{22}/", place), page


def test_a_steward_sees_no_candidate_of_another(desk: OpenDesk) -> None:
    """Neither page nor bundle, by remarks neither; of their own they do."""
    name_people(desk.tiny, PEOPLE.replace("}", ", stef: [steward]}"))
    stef, subject = desk.open("stef"), {"what": "candidate", "subject": "people/1/r1"}
    assert stef.get("/releases/people/1/r1/report").status == 403
    assert "What you are asked" not in stef.get("/releases/people/1/r1").text
    assert stef.post("/remarks", {**subject, "passage": "", "text": "let me see"}).status == 403
    assert stef.post("/bundle", {**subject, "verdict": "remarks"}).status in (400, 403)
    ana = desk.open("ana")
    assert ana.get("/releases/people/1/r1/report").status == 200
