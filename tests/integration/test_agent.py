"""The agent against a desk, its bundles, other pages and other names: what is signed is what was shown, and nobody else signs."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from release_pipeline import sign
from release_pipeline.agent import desk as asking
from release_pipeline.agent import peers, reviews, server
from release_pipeline.fingerprint import spell
from release_pipeline.flow.reviewing.bundle import write_bundle
from release_pipeline.flow.trust.approvals import import_statement
from release_pipeline.flow.trust.keys import NotSigned
from release_pipeline.sign import Signer, read_signer
from tests.guards import HANGING
from tests.integration.fake_desks import FakeDesk, Machine, find_port, open_agent, open_desk
from tests.integration.people import copy_site
from tests.integration.sites import ROOT, TinySite
from tests.integration.test_detached import HOSTILE, rewrite
from tests.leaks import find_canaries

LINK = "/?" + urlencode({"desk": "http://127.0.0.1:1", "ticket": "t" * 32})


@pytest.fixture(scope="module")
def tiny(candidate: Path, tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site with a candidate that nobody has reviewed, which no test here changes."""
    return copy_site(candidate, tmp_path_factory.mktemp("agent") / "site")


@pytest.fixture(scope="module")
def bundle(tiny: TinySite) -> Path:
    """The candidate, to be signed."""
    return write_bundle(tiny.site, "people/1", tiny.home.parent / "people-1.zip")[0]


@pytest.fixture(scope="module")
def policy_bundle(tiny: TinySite) -> Path:
    """The policy, to be signed by the officer."""
    return write_bundle(tiny.site, "policies/people.yaml", tiny.home.parent / "people.zip")[0]


@pytest.fixture(scope="module")
def signers(key_folder: Path) -> dict[str, Signer]:
    """Keys as the agent reads them."""
    return {name: read_signer(key_folder / name) for name in ("ben", "cleo", "ana", "olga")}


@pytest.fixture
def desk() -> Iterator[FakeDesk]:
    """A desk."""
    with open_desk() as desk:
        yield desk


@pytest.fixture
def ben(desk: FakeDesk, signers: dict[str, Signer]) -> Iterator[Machine]:
    """Ben's machine."""
    with open_agent([desk.origin], [signers["ben"]]) as machine:
        yield machine


def digest_of(tiny: TinySite) -> str:
    return str(tiny.status().candidate_hash)


def test_what_was_shown_is_signed_and_counts(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path, tmp_path: Path) -> None:
    """From the desk's link to an approval in the registry: by words of the hash, with a remark; the ticket is used, and is in no
    address that the browser keeps."""
    ticket = desk.give(bundle, "ben")
    page = ben.open(desk, ticket)
    digest = digest_of(tiny)
    assert page.status == 200
    assert "Approve" in page.text
    assert digest in page.text
    assert all(f"<li>{word}</li>" in page.text for word in spell(digest))
    assert "ben, reviewer" in page.text
    with zipfile.ZipFile(bundle) as archive:
        for name in archive.namelist():
            if name.startswith("candidate/") and not name.endswith("SHA256SUMS"):
                assert hashlib.sha256(archive.read(name)).hexdigest() in page.text
    done = ben.send(page, do="sign", verdict="approve", why="means look  right\n", typed=" ".join(spell(digest)[:2]))
    assert done.status == 200
    assert "Signed, and the desk says that it has it" in done.text
    assert "Noted, thank you." in done.text
    assert f'href="{desk.origin}/releases/people/1"' in done.text
    assert ticket not in "".join(ben.pages[1:])
    assert ticket not in str(ben.told)
    assert desk.asked == [f"GET /tickets/{ticket}", f"GET /tickets/{ticket}/bundle", f"POST /tickets/{ticket}/statements"]
    again = ben.send(page, do="sign", verdict="reject", why="changed my mind", typed=digest[:8])
    assert "Signed, and the desk says that it has it" in again.text
    assert len(desk.asked) == 3
    assert "signed: approve of people/1/r1" in ben.told[1]
    assert "have a colleague look at the site" in done.text


def test_the_statement_is_one_that_the_site_takes(
    candidate: Path, desk: FakeDesk, ben: Machine, bundle: Path, tmp_path: Path
) -> None:
    """And nobody who carries it can change it."""
    site = copy_site(candidate, tmp_path / "site")
    given = desk.tickets[ticket := desk.give(bundle, "ben")]
    page = ben.open(desk, ticket)
    ben.send(page, do="sign", verdict="approve", why="fine", typed=digest_of(site)[:8])
    [signed] = given.statements
    assert set(signed) == {"statement", "sshsig"}
    with pytest.raises(NotSigned):
        import_statement(site.site, {**signed, "statement": {**signed["statement"], "why": "bad"}})
    assert import_statement(site.site, signed).new
    assert signed["statement"]["why"] == "fine"


def test_a_verdict_is_changed_and_needs_its_reason(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """The desk asks for an approval; ben rejects, which needs a reason: without, with blanks, and in two lines."""
    given = desk.tickets[ticket := desk.give(bundle, "ben", why="as the desk would have it")]
    page = ben.open(desk, ticket)
    assert "as the desk would have it" in page.text
    path = re.findall(r'href="(/review/[^"?]+\?verdict=reject)"', page.text)[0]
    other = ben.ask("GET", path)
    assert '<span class="verdict reject">Reject</span>' in other.text
    assert "The desk asks for another verdict: Approve." in other.text
    assert "as the desk would have it" not in other.text
    typed = digest_of(tiny)[:8]
    for why in ("", " \n "):
        refused = ben.send(other, do="sign", verdict="reject", why=why, typed=typed)
        assert refused.status == 400
        assert "this needs its reason" in refused.text
    assert given.statements == []
    assert "Signed" in ben.send(other, do="sign", verdict="reject", why="income is\r\ntoo coarse", typed=typed).text
    [signed] = given.statements
    assert (signed["statement"]["kind"], signed["statement"]["why"]) == ("reject", "income is too coarse")


def test_a_reason_of_the_ticket_is_shown_in_full_and_signed(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """As what the desk gave, in a field where it can be changed."""
    why = "rents of <small> towns " + "x" * 400
    given = desk.tickets[ticket := desk.give(bundle, "ben", verdict="reject", why=why)]
    page = ben.open(desk, ticket)
    shown = why.replace("<", "&lt;").replace(">", "&gt;")
    assert f">{shown}</textarea>" in page.text
    assert "The desk gave this reason." in page.text
    ben.send(page, do="sign", verdict="reject", why=why, typed=digest_of(tiny)[:8])
    assert given.statements[0]["statement"]["why"] == why


def test_only_the_hash_signs(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """Anything else that is typed signs nothing, and what was written stays."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    for typed in ("", "yes", digest_of(tiny)[:7], spell(digest_of(tiny))[0], "0" * 8):
        refused = ben.send(page, do="sign", verdict="approve", why="my remark", typed=typed)
        assert refused.status == 400
        assert "nothing was signed" in refused.text
        assert ">my remark</textarea>" in refused.text
    assert not [line for line in desk.asked if line.startswith("POST")]


def test_a_long_or_hidden_reason_is_not_signed(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """As `sign` has it."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    for why in ("x" * 501, "fine\u202e", "fine\0"):
        body = urlencode({"token": page.token, "do": "sign", "verdict": "approve", "why": why, "typed": digest_of(tiny)[:8]})
        path = re.findall(r'action="([^"]+)"', page.text)[0]
        assert "a reason is one line of at most 500" in ben.ask("POST", path, body).text
    assert not [line for line in desk.asked if line.startswith("POST")]


def test_who_does_not_sign_leaves_nothing(desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """The bundle is deleted, and the page is over."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    assert list(ben.folder.rglob("SHA256SUMS"))
    path = re.findall(r'action="([^"]+)"', page.text)[0]
    assert "Nothing was signed" in ben.send(page, do="refuse").text
    assert list(ben.folder.iterdir()) == []
    assert ben.ask("GET", f"{path}/report", Sec_Fetch_Dest="iframe").status == 404
    assert "Nothing was signed" in ben.send(page, do="sign", verdict="approve", why="", typed="").text
    assert not [line for line in desk.asked if line.startswith("POST")]


def test_an_officer_signs_a_policy(tiny: TinySite, desk: FakeDesk, signers: dict[str, Signer], policy_bundle: Path) -> None:
    """The whole of what counts, what changes and who vouches; there is nothing to reject. Of several keys the right one signs."""
    digest = tiny.site.policy("people").canonical_hash()
    given = desk.tickets[ticket := desk.give(policy_bundle, "olga", what="policy", subject="people")]
    with open_agent([desk.origin], [signers["ben"], signers["olga"]]) as machine:
        page = machine.open(desk, ticket)
        assert "what you signed at" in page.text
        assert "no change" in page.text
        assert "&quot;protect&quot;: {" in page.text
        assert "verdict=reject" not in page.text
        assert "cannot be signed here" in machine.send(page, do="sign", verdict="reject", why="no", typed=digest[:8]).text
        machine.send(page, do="sign", verdict="approve", why="", typed=digest[:8])
    [signed] = given.statements
    assert signed["statement"]["kind"] == "policy"
    assert signed["statement"]["hash"] == digest


@pytest.mark.parametrize(
    ("person", "mine", "words"),
    [
        ("ben", "cleo", "is none that this agent was begun with"),
        ("nobody", "ben", "is in no list of keys"),
        ("olga", "olga", "that of a officer"),
        ("ana", "ana", "that of a steward"),
    ],
)
def test_who_may_not_sign_may_look(
    tiny: TinySite, desk: FakeDesk, signers: dict[str, Signer], bundle: Path, person: str, mine: str, words: str
) -> None:
    """A key that is not the one whom the desk names, and a role that reviews nothing: told why, and nothing is signed."""
    with open_agent([desk.origin], [signers[mine]]) as machine:
        page = machine.open(desk, desk.give(bundle, person))
        assert page.status == 200
        assert words in page.text
        assert page.text.index("Nothing can be signed here") < page.text.index("What it will mean")
        assert digest_of(tiny) in page.text
        assert "<form" not in page.text
        [review] = machine.agent.reviews._open.values()
        body = urlencode({"token": review.token, "do": "sign", "verdict": "approve", "why": "", "typed": digest_of(tiny)[:8]})
        assert machine.ask("POST", f"/review/{review.name}", body).status == 400
    assert not [line for line in desk.asked if line.startswith("POST")]


def test_words_of_the_site_are_marked_and_stay_in_their_box(desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """Tags, escapes and directions are seen as what they are."""
    trick = b"</pre></blockquote><form action=x><script>alert(1)</script>\x1b[2J\xe2\x80\xae" + b"\nline" * 1000
    page = ben.open(desk, desk.give(rewrite(bundle, lambda files: {**files, "difference.txt": trick}), "ben"))
    start = page.text.index("&lt;/pre&gt;&lt;/blockquote&gt;&lt;form action=x&gt;&lt;script&gt;")
    assert "\\x1b[2J\\u202e" in page.text
    box = page.text[page.text.rindex("<blockquote", 0, start) : start]
    assert "the site&#x27;s words" in box
    assert "</blockquote>" not in box
    assert "<script" not in page.text
    assert "601 more lines" in page.text


@pytest.mark.parametrize("way", HOSTILE)
def test_a_hostile_bundle_is_shown_to_nobody(desk: FakeDesk, ben: Machine, bundle: Path, way: str) -> None:
    """No page to sign on, and nothing of it on the disk."""
    page = ben.open(desk, desk.give(rewrite(bundle, HOSTILE[way]), "ben"))
    assert page.status == 422
    assert "The bundle is wrong: nothing can be signed" in page.text
    assert "<form" not in page.text
    assert list(ben.folder.iterdir()) == []


def test_a_page_with_a_script_is_shown_to_nobody(desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """Though every hash is right."""

    def replace_page(files: dict[str, bytes]) -> dict[str, bytes]:
        page = files["candidate/report.html"].replace(b"</body>", b"<script>fetch('x')</script></body>")
        old = files["candidate/SHA256SUMS"]
        sums = old.replace(_sha(files["candidate/report.html"]), _sha(page))
        changed = {**files, "candidate/report.html": page, "candidate/SHA256SUMS": sums}
        return {name: part.replace(_sha(old), _sha(sums)) if name.startswith("draft") else part for name, part in changed.items()}

    page = ben.open(desk, desk.give(rewrite(bundle, replace_page), "ben"))
    assert page.status == 422
    assert "&lt;script&gt;" in page.text
    assert "which no page of ours has" in page.text


def _sha(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def test_a_bundle_of_something_else_is_not_signed(desk: FakeDesk, ben: Machine, bundle: Path, policy_bundle: Path) -> None:
    """The ticket says another release than the bundle, or a policy."""
    for file, subject in ((bundle, "people/2/r1"), (policy_bundle, "people/1/r1")):
        page = ben.open(desk, desk.give(file, "ben", subject=subject))
        assert page.status == 422
        assert f"the ticket is for {subject}, and the bundle is of people" in page.text


def test_the_reviewers_page_is_framed_without_scripts(desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """From the agent's own address, in a sandbox, for no other page; and it is the one whose hash is signed."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    [place] = re.findall(r'<iframe src="([^"]+)" title="[^"]+" sandbox>', page.text)
    framed = ben.ask("GET", place, Sec_Fetch_Dest="iframe")
    assert framed.status == 200
    with zipfile.ZipFile(bundle) as archive:
        assert framed.text.encode() == archive.read("candidate/report.html")
    rules = framed.headers["Content-Security-Policy"].split("; ")
    assert {"default-src 'none'", "sandbox", "frame-ancestors 'self'"} <= set(rules)
    assert ben.ask("GET", place).status == 200
    assert ben.ask("GET", place, Sec_Fetch_Dest="iframe", Sec_Fetch_Site="cross-site").status == 403
    file = next(ben.folder.rglob("report.html"))
    file.write_bytes(file.read_bytes().replace(b"People", b"Sheeps"))  # by whoever can write there
    assert ben.ask("GET", place).text.encode() != file.read_bytes()


def test_every_page_says_what_browsers_must_know(desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """No script, no frame around it, nothing kept, no referrer, no version."""
    ticket = desk.give(bundle, "ben")
    paths = ["/", LINK, "/nothing", "/?desk=x", f"/?{urlencode({'desk': desk.origin, 'ticket': ticket})}"]
    for shown in [ben.ask("GET", path) for path in paths]:
        rules = shown.headers["Content-Security-Policy"]
        assert rules.startswith("default-src 'none'; style-src 'sha256-")
        assert "frame-ancestors 'none'" in rules
        assert "script" not in rules
        assert "unsafe" not in rules
        assert shown.headers["X-Frame-Options"] == "DENY"
        assert shown.headers["Cache-Control"] == "no-store"
        assert shown.headers["Referrer-Policy"] == "same-origin"
        assert shown.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert shown.headers["Server"] == "agent"


FOREIGN: dict[str, dict[str, str]] = {
    "another page": {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"},
    "another page that says nothing of its site": {"Origin": "https://evil.example", "Sec_Fetch_Site": ""},
    "another port of this machine": {"Origin": "http://127.0.0.1:1", "Sec_Fetch_Site": "same-site"},
    "the desk": {"Origin": "DESK", "Sec_Fetch_Site": "same-site"},
    "a frame in a sandbox": {"Origin": "null"},
    "no origin": {"Origin": ""},
    "a name that was rebound": {"Host": "evil.example:8797", "Origin": "http://evil.example:8797"},
    "the name of this machine": {"Host": "localhost:PORT", "Origin": "http://localhost:PORT"},
    "no host": {"Host": ""},
    "a form as text": {"Content_Type": "text/plain"},
    "a script of whatever page": {"Sec_Fetch_Dest": "empty", "Sec_Fetch_Mode": "cors"},
    "a site that is not the agent's": {"Sec_Fetch_Site": "same-site"},
}


@pytest.mark.parametrize("who", FOREIGN)
def test_nobody_but_its_own_page_signs(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path, who: str) -> None:
    """Though they knew the address, the token and the hash."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    path, port = re.findall(r'action="([^"]+)"', page.text)[0], str(ben.agent.server_address[1])
    body = urlencode({"token": page.token, "do": "sign", "verdict": "approve", "why": "", "typed": digest_of(tiny)[:8]})
    headers = {name: value.replace("PORT", port).replace("DESK", desk.origin) for name, value in FOREIGN[who].items()}
    assert ben.ask("POST", path, body, **headers).status in (400, 403)
    assert not [line for line in desk.asked if line.startswith("POST")]
    assert ben.ask("POST", path, body).status == 200  # the control: the same by its own page signs


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_a_form_without_the_token_of_its_page_is_refused(
    tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path, token: str
) -> None:
    """Or with that of another review."""
    page, other = (ben.open(desk, desk.give(bundle, "ben")) for _ in range(2))
    path = re.findall(r'action="([^"]+)"', page.text)[0]
    for wrong in (token, other.token):
        body = urlencode({"token": wrong, "do": "sign", "verdict": "approve", "why": "", "typed": digest_of(tiny)[:8]})
        assert ben.ask("POST", path, body).status == 403
    assert not [line for line in desk.asked if line.startswith("POST")]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "localhost:8797"},
        {"Sec_Fetch_Dest": "iframe"},
        {"Sec_Fetch_Dest": "image", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Dest": "empty", "Sec_Fetch_Mode": "cors"},
    ],
    ids=str,
)
def test_a_ticket_is_opened_by_going_there_alone(desk: FakeDesk, ben: Machine, bundle: Path, headers: dict[str, str]) -> None:
    """By no name that was rebound, in no frame, as no picture and by no script; the desk is asked nothing."""
    ticket = desk.give(bundle, "ben")
    assert ben.ask("GET", "/?" + urlencode({"desk": desk.origin, "ticket": ticket}), **headers).status == 403
    assert desk.asked == []


@pytest.mark.parametrize(
    "ticket", ["", "short", "a" * 101, "a/b" * 10, "../" * 10, "a" * 30 + "?x=1", "a" * 30 + "\r\nX: 1", "a" * 30 + "#", "é" * 30]
)
def test_what_is_no_ticket_is_asked_of_nobody(desk: FakeDesk, ben: Machine, ticket: str) -> None:
    """Nothing of it gets into a request."""
    shown = ben.ask("GET", "/?" + urlencode({"desk": desk.origin, "ticket": ticket}))
    assert shown.status == 400
    assert desk.asked == []


def test_a_desk_that_was_not_named_is_not_asked(desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """Nor one that is named with something around it, or twice."""
    with open_desk() as other:
        ticket = other.give(bundle, "ben")
        for origin in (other.origin, f"{desk.origin}@{other.origin}", f"{desk.origin}/", f"{desk.origin}#", "file:///etc"):
            assert ben.open(desk, ticket, origin).status == 400
        pair = f"desk={quote(desk.origin)}&desk={quote(other.origin)}&ticket={ticket}"
        assert ben.ask("GET", f"/?{pair}").status == 400
        assert other.asked == []
    assert desk.asked == []


def answer_with(
    status: int, content: bytes = b"", length: int | None = None, **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    """An answer that is not a desk's."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(content) if length is None else length), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    return answer


WRONG_ANSWERS: dict[str, tuple[str, Callable[[BaseHTTPRequestHandler], None], str]] = {
    "a redirect": ("", answer_with(302, Location="http://127.0.0.1:1/"), "sends the agent elsewhere"),
    "a redirect of the bundle": ("/bundle", answer_with(307, Location="http://127.0.0.1:1/"), "sends the agent elsewhere"),
    "no JSON": ("", answer_with(200, b"<html>"), "cannot be used"),
    "too much": ("", answer_with(200, b" " * (asking.MOST_ANSWER + 1)), "more than anything of ours"),
    "no bundle": ("/bundle", answer_with(200, b"no zip"), "neither a folder nor a zip file"),
    "half a bundle": ("/bundle", answer_with(200, b"PK", length=1000), "it broke off"),
    "an error": ("", answer_with(500, b'{"words":"<b>on fire</b>"}'), "&lt;b&gt;on fire&lt;/b&gt;"),
    "a ticket that is over": ("", answer_with(410, b'{"words":"It was used."}'), "It was used."),
    "no HTTP": ("", lambda request: request.wfile.write(b"SSH-2.0\r\n"), "cannot be reached, or speaks something else"),
    "nothing": ("", lambda request: request.connection.shutdown(socket.SHUT_RDWR), "cannot be reached, or speaks something else"),
}


@pytest.mark.parametrize("way", WRONG_ANSWERS)
def test_a_desk_that_answers_wrongly_is_told_in_words(desk: FakeDesk, ben: Machine, bundle: Path, way: str) -> None:
    """What is wrong and what to do, and no ticket; nothing is left, and nobody else was asked."""
    path, answer, words = WRONG_ANSWERS[way]
    ticket = desk.give(bundle, "ben")
    desk.special[f"/tickets/{ticket}{path}"] = answer
    page = ben.open(desk, ticket)
    assert page.status in (422, 502)
    assert words in page.text
    assert ticket not in page.text
    assert list(ben.folder.iterdir()) == []


def test_a_desk_that_is_away_is_told_in_words(desk: FakeDesk, signers: dict[str, Signer]) -> None:
    """A page like any other."""
    with open_agent(["http://127.0.0.1:1"], [signers["ben"]]) as machine:
        page = machine.ask("GET", LINK)
    assert page.status == 502
    assert "http://127.0.0.1:1: the desk could not be asked" in page.text


def test_a_bundle_has_an_end(desk: FakeDesk, ben: Machine, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large it says that it is."""
    monkeypatch.setattr(asking, "MOST_BUNDLE", 1000)
    page = ben.open(desk, desk.give(bundle, "ben"))
    assert page.status == 502
    assert "more than anything of ours is large" in page.text
    assert list(ben.folder.iterdir()) == []


def test_a_desk_that_never_ends_is_cut_off(desk: FakeDesk, ben: Machine, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it always says a bit more: after a while nobody waits for it."""
    monkeypatch.setattr(asking, "LONGEST_SECONDS", 0.2)
    ticket = desk.give(bundle, "ben")
    with desk.dripping(f"/tickets/{ticket}"):
        page = ben.open(desk, ticket)
    assert page.status == 502
    assert "the desk could not be asked" in page.text


def test_what_the_desk_did_not_take_is_given_again(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """The same statement, signed once; with the desk's words, and as text for whoever carries it otherwise."""
    given = desk.tickets[ticket := desk.give(bundle, "ben")]
    given.status, given.words = 503, "The registry is <busy>."
    page = ben.open(desk, ticket)
    done = ben.send(page, do="sign", verdict="approve", why="", typed=digest_of(tiny)[:8])
    assert "Signed, and the desk did not say that it has it" in done.text
    assert "it counts until you have voted again" in done.text
    assert "The registry is &lt;busy&gt;." in done.text
    assert "BEGIN SSH SIGNATURE" in done.text
    first = re.findall("at&quot;:&quot;([^&]+)", done.text)
    given.status, given.words = 200, "Noted."
    assert "the desk says that it has it" in ben.send(page, do="again").text
    assert [given.statements[0]["statement"]["at"]] == first
    assert len([line for line in desk.asked if line.startswith("POST")]) == 2
    ben.send(page, do="again")
    assert len([line for line in desk.asked if line.startswith("POST")]) == 2


def test_two_clicks_sign_once(tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """At the same moment."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    fields = {"do": "sign", "verdict": "approve", "why": "", "typed": digest_of(tiny)[:8]}
    clicks = [threading.Thread(target=ben.send, args=(page,), kwargs=fields) for _ in range(4)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    assert len([line for line in desk.asked if line.startswith("POST")]) == 1


def test_once_ends_after_one(tiny: TinySite, desk: FakeDesk, signers: dict[str, Signer], bundle: Path) -> None:
    """When the desk has what was signed, and not before; the person still sees it."""
    with open_agent([desk.origin], [signers["ben"]], once=True) as machine:
        given = desk.tickets[ticket := desk.give(bundle, "ben")]
        given.status = 503
        page = machine.open(desk, ticket)
        machine.send(page, do="sign", verdict="approve", why="", typed=digest_of(tiny)[:8])
        given.status = 200
        done = machine.send(page, do="again")
        assert "has ended" in done.text
        assert machine.agent._BaseServer__is_shut_down.wait(HANGING)


@pytest.mark.slow
@pytest.mark.parametrize("ways", [("SIGTERM",), ("SIGHUP",), ("SIGINT",), ("SIGINT", "SIGTERM")], ids="-".join)
def test_whoever_ends_the_agent_finds_nothing_that_it_had_fetched(
    desk: FakeDesk, key_folder: Path, bundle: Path, tmp_path: Path, ways: tuple[str, ...]
) -> None:
    """A real process: told to end, by a terminal that was closed, by Ctrl-C, or by a desk that a Ctrl-C ends with it."""
    room = tmp_path / "room"
    room.mkdir()
    command = [sys.executable, "-m", "release_pipeline.agent", "--desk", desk.origin, "--port", str(port := find_port())]
    command += ["--key", str(key_folder / "ben")]
    environment = {**os.environ, "TMPDIR": str(room)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while "listening at" not in (line := process.stdout.readline()):
            assert line, process.communicate()[1]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)
        connection.request("GET", "/?" + urlencode({"desk": desk.origin, "ticket": desk.give(bundle, "ben")}))
        assert connection.getresponse().status == 303
        connection.close()
        assert [file for file in room.rglob("*") if file.is_file()]
        for way in ways:
            process.send_signal(getattr(signal, way))
        try:
            _, said = process.communicate(timeout=HANGING)
        finally:
            process.kill()
    assert said == "stopped; the agent signs nothing more, and what it had fetched is deleted\n"
    assert process.returncode in (130, -signal.SIGTERM) if len(ways) > 1 else process.returncode == 130  # a second may come late
    assert list(room.iterdir()) == []


@pytest.mark.slow
def test_reviews_are_few_and_leave_nothing(desk: FakeDesk, signers: dict[str, Signer], bundle: Path) -> None:
    """The oldest makes room, on the disk too; when the agent ends nothing is left."""
    with open_agent([desk.origin], [signers["ben"]]) as machine:
        opened = [machine.open(desk, desk.give(bundle, "ben")) for _ in range(reviews.MOST_REVIEWS + 2)]
        assert len(list(machine.folder.iterdir())) == reviews.MOST_REVIEWS
        assert machine.send(opened[0], do="refuse").status == 404
        assert machine.send(opened[-1], do="refuse").status == 200
        folder = machine.folder
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_other_accounts_of_the_machine_are_not_answered(
    desk: FakeDesk, ben: Machine, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system tells who they are: connections of this process are this account's; for another's nothing is done."""
    ticket = desk.give(bundle, "ben")
    assert ben.open(desk, ticket).status == 200
    asked = len(desk.asked)
    own = peers.os.getuid()
    monkeypatch.setattr(peers.os, "getuid", lambda: own + 1)
    monkeypatch.setattr(peers, "find_owners", lambda *_: {own})
    refused = ben.open(desk, ticket)
    assert refused.status == 403
    assert "Another account of this machine" in refused.text
    assert len(desk.asked) == asked


def test_what_browsers_never_send_is_refused_in_words(ben: Machine) -> None:
    """Other methods, forms that are too long or twice the same, paths that are none."""
    assert "This was refused" in ben.ask("PUT", "/").text
    assert ben.ask("POST", "/").status == 404
    assert ben.ask("GET", "/review/x").status == 404
    assert ben.ask("GET", "/review/x/report/../..").status == 404
    assert ben.ask("GET", "//evil.example/").status == 404
    assert ben.ask("GET", "/?ticket=" + "a" * 30).status == 400


def test_forms_have_an_end(desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """Longer than a page of ours can make them, of no length, or with a name twice."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    path = re.findall(r'action="([^"]+)"', page.text)[0]
    assert ben.ask("POST", path, "a=" + "x" * server.MOST_FORM).status == 403
    assert ben.ask("POST", path, "", Content_Length="").status == 403
    assert ben.ask("POST", path, "", Content_Length="-1").status == 403
    assert ben.ask("POST", path, f"token={page.token}&token={page.token}&do=refuse").status == 403
    assert ben.ask("POST", path, f"token={page.token}&do=publish").status == 403
    assert ben.ask("POST", path, "%ff=" + "a" * 100).status == 403


def test_no_page_has_a_key(tiny: TinySite, desk: FakeDesk, ben: Machine, signers: dict[str, Signer], bundle: Path) -> None:
    """Of all that a browser, a terminal and the desk get: right, wrong and broken."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    given = desk.tickets[next(iter(desk.tickets))]
    ben.send(page, do="sign", verdict="reject", why="", typed="")
    ben.send(page, do="sign", verdict="approve", why="fine", typed=digest_of(tiny)[:8])
    ben.ask("GET", "/")
    ben.ask("GET", LINK)
    ben.ask("GET", "/nothing")
    blobs = {str(number): text.encode() for number, text in enumerate([*ben.pages, *ben.told, json.dumps(given.statements)])}
    lines = signers["ben"].file.read_bytes().splitlines()[3:5]  # the secret half
    assert find_canaries(blobs, lines) == []
    assert find_canaries({"control": lines[0]}, lines)


def test_a_key_is_asked_for_at_the_terminal(
    candidate: Path, desk: FakeDesk, key_folder: Path, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so before, the terminal what it is about; where ssh-keygen fails, nothing is signed and the page says it."""
    site = copy_site(candidate, tmp_path / "site")
    with open_agent([desk.origin], [read_signer(key_folder / "ben")]) as machine:
        given = desk.tickets[ticket := desk.give(bundle, "ben")]
        page = machine.open(desk, ticket)
        assert "Your key may ask for its passphrase at the terminal" in page.text
        fields = {"do": "sign", "verdict": "approve", "why": "", "typed": digest_of(site)[:8]}
        false = shutil.which("false")
        with monkeypatch.context() as patch:
            patch.setattr(sign.shutil, "which", lambda _: false)
            failed = machine.send(page, **fields)
        assert failed.status == 400
        assert "nothing was signed: ssh-keygen did not sign" in failed.text
        assert "Look at the terminal" in failed.text
        assert machine.send(page, **fields).status == 200
        assert "ssh-keygen signs now" in machine.told[0]
    assert import_statement(site.site, given.statements[0]).new


def test_its_port_is_its_own(ben: Machine, signers: dict[str, Signer]) -> None:
    """A second agent on the same port says what to do."""
    with reviews.Reviews([], [signers["ben"]]) as more, pytest.raises(server.WrongUsage, match="cannot be listened on"):
        server.Agent(more, port=ben.agent.server_address[1])


def test_a_failure_of_ours_is_a_page_without_its_words(
    desk: FakeDesk, ben: Machine, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it was, and nothing that it says: that may be anything."""

    def fail(*_: Any) -> None:
        raise ValueError("a secret")

    monkeypatch.setattr(reviews, "read_bundle", fail)
    page = ben.open(desk, desk.give(bundle, "ben"))
    assert page.status == 500
    assert "An internal error: ValueError at reviews.py" in page.text
    assert "a secret" not in page.text + str(ben.told)
    assert list(ben.folder.iterdir()) == []


@pytest.mark.slow
def test_remarks_are_shown_whole_and_signed_with_a_return(candidate: Path, desk: FakeDesk, ben: Machine, tmp_path: Path) -> None:
    """Two statements for one ticket, each of which the site takes; tags in a remark are seen."""
    site = copy_site(candidate, tmp_path / "site")
    digest = digest_of(site)
    entries = [{"passage": "", "text": "In all\nfine."}, {"passage": "distributions", "text": "<b>Why</b> so coarse?"}]
    document = {"format": "release-pipeline/remarks/1", "subject": "people/1/r1", "hash": digest, "remarks": entries}
    file, _ = write_bundle(site.site, "people/1", tmp_path / "remarked.zip", remarks=document)
    given = desk.tickets[ticket := desk.give(file, "ben", verdict="return", why="too coarse")]
    page = ben.open(desk, ticket)
    assert '<span class="verdict return">Return</span>' in page.text
    assert "These 2 are signed in your name too" in page.text
    assert "<strong>on the whole</strong><pre>In all\nfine.</pre>" in page.text
    assert "<strong>distributions</strong><pre>&lt;b&gt;Why&lt;/b&gt; so coarse?</pre>" in page.text
    done = ben.send(page, do="sign", verdict="return", why="too coarse", typed=digest[:8])
    assert done.text.count("BEGIN SSH SIGNATURE") == 2
    vote, remarks = given.statements
    assert (vote["statement"]["kind"], remarks["statement"]["kind"]) == ("return", "remarks")
    import_statement(site.site, vote)
    import_statement(site.site, remarks, document)
    assert site.events()[-2].kind == "returned"
    assert site.events()[-1].kind == "remarked"


@pytest.mark.slow
def test_one_remark_is_told_as_one(candidate: Path, desk: FakeDesk, ben: Machine, tmp_path: Path) -> None:
    """And not as "these 1"."""
    site = copy_site(candidate, tmp_path / "site")
    document = {"format": "release-pipeline/remarks/1", "subject": "people/1/r1", "hash": digest_of(site)}
    document = {**document, "remarks": [{"passage": "", "text": "fine"}]}
    file, _ = write_bundle(site.site, "people/1", tmp_path / "remarked.zip", remarks=document)
    assert "This one is signed in your name too" in ben.open(desk, desk.give(file, "ben")).text


def test_remarks_on_something_else_are_shown_to_nobody(candidate: Path, desk: FakeDesk, ben: Machine, tmp_path: Path) -> None:
    """A draft that somebody changed on the way."""
    site = copy_site(candidate, tmp_path / "site")
    document = {"format": "release-pipeline/remarks/1", "subject": "people/1/r1", "hash": digest_of(site)}
    document = {**document, "remarks": [{"passage": "", "text": "fine"}]}
    file, _ = write_bundle(site.site, "people/1", tmp_path / "remarked.zip", remarks=document)
    for name, other in ((b"people/1/r1", b"people/2/r1"), (b"fine", b'f",  "x": "')):
        changed = rewrite(file, lambda files, pair=(name, other): {**files, "remarks.json": files["remarks.json"].replace(*pair)})
        page = ben.open(desk, desk.give(changed, "ben"))
        assert page.status == 422
        assert "<form" not in page.text
