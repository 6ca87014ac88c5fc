"""Who may ask what at the desk: every question by every role, each person's own things, and statements that are not theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.desk.backend.calls import Call
from release_pipeline.apps.desk.backend.people import Role
from release_pipeline.apps.desk.backend.protocol import CallRequest
from release_pipeline.apps.desk.backend.service import CALLS
from release_pipeline.apps.desk.backend.signing import read_statements
from release_pipeline.apps.desk.web.application import COOKIE
from release_pipeline.errors import WrongUsage
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.keys import PrivateKey
from tests.integration.desks import KNOWN, RELEASE, ROLES, Browser, OpenDesk, open_desk
from tests.integration.people import copy_site

pytestmark = pytest.mark.slow
SIGN = {"what": "candidate", "subject": RELEASE, "verdict": "approve", "why": ""}
READ = {"steward", "reviewer", "officer", "auditor"}
EVERYBODY = {role.value for role in Role}
MAY: Mapping[str, Set[str]] = {  # who may ask for what: whoever adds a question says it here too
    **dict.fromkeys(("home", "help", "me", "releases", "release"), EVERYBODY),
    **dict.fromkeys(("report", "sign", "bundle", "statements", "approvals", "policy-approval"), READ),
    **dict.fromkeys(("populations-approval", "caps", "chain"), READ),
    **dict.fromkeys(("remark", "drop-remark"), READ - {"auditor"}),
    **dict.fromkeys(("audit", "dossier"), frozenset({"officer", "auditor"})),
}


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


@pytest.fixture(scope="module")
def shared(candidate: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenDesk:
    """Likewise, of which nothing is changed."""
    return open_desk(copy_site(candidate, tmp_path_factory.mktemp("roles") / "site"))


def question(browser: Browser, call: str, **arguments: str) -> CallRequest:
    """A question as the web process asks it for this person, whatever its pages would."""
    [secret] = [value for name, value, path in browser.cookies if (name, path) == (COOKIE, browser.base)]
    return CallRequest(call, arguments, "", secret, browser.base.removeprefix("/"))


def test_every_question_is_decided_on() -> None:
    """And for the roles that it says itself; one that nobody may ask is none."""
    assert {call.name: {role.value for role in call.roles} for call in CALLS} == dict(MAY)
    assert all(MAY.values())


@pytest.mark.parametrize("role", ROLES)
def test_nobody_asks_what_is_not_for_them(shared: OpenDesk, role: str) -> None:
    """The backend refuses, whatever the pages do; with the right arguments, and without."""
    browser = shared.open(ROLES[role])
    for call in CALLS:
        allowed = role in {one.value for one in call.roles}
        for arguments in ({}, {**KNOWN, **SIGN}):
            answer = shared.backend.answer(question(browser, call.name, **arguments))
            if not allowed:
                assert (answer.status, answer.file) == (403, None), call.name
                assert set(answer.document) == {"what", "where", "remedy", "details"}
            else:
                assert "you are here as" not in str(answer.document.get("what")), call.name


def test_nobody_asks_anything_without_a_session(shared: OpenDesk) -> None:
    """But how the desk is reached; a session counts below its own path alone."""
    ben = shared.open("ben")
    asked = question(ben, "home")
    for call in (*CALLS, Call("leave", frozenset(), lambda _: {}), Call("nothing", frozenset(), lambda _: {})):
        for session, path in (("", ""), ("x" * 43, asked.path), (asked.session, ""), (asked.session, "x"), ("\ud800", "é")):
            answer = shared.backend.answer(CallRequest(call.name, {**KNOWN, **SIGN}, "{}", session, path))
            assert (answer.status, answer.file) == (401, None), call.name
    assert shared.backend.answer(CallRequest("enter", {"token": "x"})).status == 403
    forged = (("x-desk-secret", "x" * 32), ("x-forwarded-user", "ben"))
    assert shared.backend.answer(CallRequest("home", proxy=forged)).status == 401, "where no proxy is trusted"
    assert shared.backend.answer(CallRequest("greet")).document == {"hosts": [], "secret_header": "", "person_header": ""}


def test_a_draft_is_for_who_writes_it(desk: OpenDesk) -> None:
    """Nobody else's page or answer has a word of it; what somebody drops is their own."""
    ben, others = desk.open("ben"), [desk.open(name) for name in ("cleo", "ana", "olga", "vic")]
    ben.post("/remarks", {"what": "candidate", "subject": RELEASE, "passage": "", "text": "kanarie is odd"})
    assert "kanarie" in ben.get(f"/releases/{RELEASE}").text
    for other in others:
        for call in CALLS:
            if not call.changes:
                answer = desk.backend.answer(question(other, call.name, **KNOWN))
                assert "kanarie" not in repr(answer), call.name
        other.post("/remarks/drop", {"what": "candidate", "subject": RELEASE, "number": "0"})
    assert "kanarie" in ben.get(f"/releases/{RELEASE}").text


@pytest.mark.parametrize("verdict", ["approve", "return"])
def test_a_vote_is_told_to_nobody_before_all_are_in(desk: OpenDesk, keys: dict[str, PrivateKey], verdict: str) -> None:
    """That ben voted is known, and neither what he said nor why; a rejection ends the review, and is told."""
    ben, others = desk.open("ben"), [desk.open(name) for name in ("cleo", "dora", "ana", "olga", "vic", "otto")]
    bring(ben, sign(desk, keys["ben"], "ben", kind=verdict, why="kanarie" if verdict == "return" else ""))
    told = ben.get(f"/releases/{RELEASE}").text
    assert {"approve": "approved it", "return": "returned it"}[verdict] in told
    for other in others:
        for call in CALLS:
            if call.changes:
                continue
            answer = desk.backend.answer(question(other, call.name, **KNOWN))
            if answer.file is None:
                said = json.dumps(answer.document)
                assert "kanarie" not in said, call.name
                assert "returned" not in re.sub('"returned": null|"returned_by": \\[\\]', "", said), call.name
                assert not re.search('"(by|returned_by)": \\["', said), call.name
                assert not re.search('"verdict": "(approve|return)', said), call.name
        page = other.get(f"/releases/{RELEASE}").text
        assert "1 of 2 have voted" in page or "There is no candidate to show" in page


def sign(
    desk: OpenDesk, key: PrivateKey, name: str, *, kind: str = "approve", subject: str = RELEASE, digest: str = "", why: str = ""
) -> dict[str, Any]:
    """A signed statement, of the candidate as it is."""
    digest = digest or str(desk.tiny.statuses()[ReleaseId("people", "1")].candidate_hash)
    return key.sign(kind=kind, subject=subject, digest=digest, name=name, why=why)


def bring(browser: Browser, *statements: dict[str, Any], subject: str = RELEASE, what: str = "candidate") -> str:
    """What the page says that a browser gets which brings these."""
    files: dict[str, bytes] = {}
    for number, signed in enumerate(statements):
        files[f"{number}.json"] = json.dumps(signed["statement"]).encode()
        files[f"{number}.json.sig"] = signed["sshsig"].encode()
    page = browser.post("/statements", {"what": what, "subject": subject}, files)
    assert page.status < 500, page.text
    return page.text


def is_untouched(desk: OpenDesk, events: int) -> bool:
    """Whether nothing was noted."""
    return len(desk.tiny.events()) == events


Forged = Callable[[OpenDesk, Mapping[str, PrivateKey]], dict[str, Any]]
FORGED: Mapping[str, Forged] = {
    "of somebody else": lambda desk, keys: sign(desk, keys["cleo"], "cleo"),
    "in the name of somebody else": lambda desk, keys: sign(desk, keys["ben"], "cleo"),
    "with the key of somebody else": lambda desk, keys: sign(desk, keys["cleo"], "ben"),
    "with a key of nobody": lambda desk, keys: sign(desk, keys["stranger"], "ben"),
    "of another release": lambda desk, keys: sign(desk, keys["ben"], "ben", subject="people/2/r1"),
    "of another candidate": lambda desk, keys: sign(desk, keys["ben"], "ben", digest="ab" * 32),
    "of a rejection without a reason": lambda desk, keys: sign(desk, keys["ben"], "ben", kind="reject"),
    "another verdict under its signature": lambda desk, keys: _change(sign(desk, keys["ben"], "ben"), kind="reject", why="no"),
    "another hash under its signature": lambda desk, keys: _change(sign(desk, keys["ben"], "ben"), hash="cd" * 32),
    "without a signature": lambda desk, keys: {**sign(desk, keys["ben"], "ben"), "sshsig": "x"},
    "with more in it": lambda desk, keys: _change(sign(desk, keys["ben"], "ben"), more="x"),
    "by a name of half a letter": lambda desk, keys: _change(sign(desk, keys["ben"], "ben"), name="\ud800"),
}


def _change(signed: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**signed, "statement": {**signed["statement"], **fields}}


@pytest.mark.parametrize("how", FORGED)
def test_no_other_statement_is_noted(desk: OpenDesk, keys: dict[str, PrivateKey], how: str) -> None:
    """By itself, and together with one that is right."""
    ben, events = desk.open("ben"), len(desk.tiny.events())
    signed = FORGED[how](desk, keys)
    page = bring(ben, signed)
    assert "This was not done" in page
    assert "approved" not in page.replace("was approved", "")
    if signed["statement"]["name"] != "ben" or signed["statement"]["subject"] != RELEASE:
        assert "This was not done" in bring(ben, sign(desk, keys["ben"], "ben"), signed), "both or none"
    assert is_untouched(desk, events)


def test_who_may_not_sign_gets_no_bundle(desk: OpenDesk) -> None:
    """Each of what is theirs alone, and nobody of what there is not."""
    people = {name: desk.open(name) for name in ("ana", "ben", "olga", "vic")}
    policy, caps = {"what": "policy", "subject": "people"}, {"what": "populations", "subject": "populations"}
    for name, browser in people.items():
        for wish, signer in ((SIGN, "ben"), ({**SIGN, **policy}, "olga"), ({**SIGN, **caps}, "olga")):
            answer = desk.backend.answer(question(browser, "sign", **wish))
            assert answer.status == (200 if name == signer else 403), (name, wish, answer)
            assert desk.backend.answer(question(browser, "bundle", **wish)).status in ((200, 409) if name == signer else (403,))
    for strange in (
        {"verdict": "publish"},
        {"what": "vault"},
        {"subject": "people/9/r1"},
        {"subject": "../../people/1/r1"},
        {"verdict": "reject", "why": "  "},
        {"verdict": "reject", "why": "a\nb"},
        {"why": "x" * 100_000},
        {"verdict": "remarks"},
    ):
        assert 400 <= desk.backend.answer(question(people["ben"], "sign", **{**SIGN, **strange})).status < 500, strange


@pytest.mark.parametrize("value", ["a\nb", "\ud800", "a\x1b[1m", "a\u202eb"])
def test_a_statement_has_nothing_that_shows_otherwise(value: str) -> None:
    """In no field: a refusal names who signed and what."""
    fields = dict.fromkeys(("kind", "subject", "hash", "signer", "name", "at", "why"), "x")
    assert read_statements(json.dumps({"statements": [{"statement": fields, "sshsig": "x"}]}))
    for name in fields:
        wrong = {"statements": [{"statement": {**fields, name: value}, "sshsig": "x"}]}
        with pytest.raises(WrongUsage):
            read_statements(json.dumps(wrong))


def test_a_bundle_that_cannot_be_made_leaves_nothing(desk: OpenDesk) -> None:
    """Neither does a page of where the site lies."""
    ben = desk.open("ben")
    [page] = desk.tiny.site.candidate(RELEASE).glob("*.html")
    page.chmod(0o600)
    page.write_text("kanarie")
    answer = desk.backend.answer(question(ben, "bundle", **SIGN))
    assert answer.status == 409
    assert str(desk.tiny.home) not in repr(answer)
    assert not list((desk.tiny.site.vault / "sent").iterdir())
    assert "kanarie" not in ben.get(f"/releases/{RELEASE}/report").text
