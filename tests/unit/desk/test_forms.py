"""Forms as browsers send them, and whatever else is sent in their place; cookies, seals, and files that are passed on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from release_pipeline.apps.desk.web.application import COOKIE, read_cookie
from release_pipeline.apps.desk.web.frame import LONGEST_FORM, BackendAnswer, Client, Credentials, Visit, pass_on, read_form
from release_pipeline.apps.door import Refused
from tests.integration.desks import write_parts

URLENCODED = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=----boundary"


def request_of(body: bytes, kind: str, *, path: str = "/", query: bytes = b"", piece: int = 65536) -> Request:
    """A request that has this body, in pieces."""
    pieces = [body[start : start + piece] for start in range(0, len(body), piece)] or [b""]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    headers = [(b"content-type", kind.encode("latin-1")), (b"host", b"x")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": query, "headers": headers}
    return Request(scope, receive)


def read(body: bytes, kind: str = URLENCODED, **how: Any) -> tuple[dict[str, str], dict[str, bytes]]:
    """The fields and files of it."""
    return asyncio.run(read_form(request_of(body, kind, **how), LONGEST_FORM))


def test_fields_are_read_once() -> None:
    """One that stands twice is none: two readers could take different ones."""
    assert read(b"a=1&b=%C3%BC+x&c=&a=2") == ({"b": "ü x", "c": ""}, {})
    assert read(b"") == ({}, {})


@given(
    st.dictionaries(st.sampled_from("abc"), st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30)),
    st.binary(max_size=300),
)
def test_files_come_as_they_were_sent(fields: dict[str, str], content: bytes) -> None:
    """Byte for byte, whatever is in them."""
    if b"--" in content:
        return
    found, files = read(write_parts(fields, {"a.json": content}), PARTS)
    assert found == fields
    assert files == {"files/a.json": content}


pieces = st.sampled_from(
    [
        *(
            b"------boundary\r\n",
            b"------boundary--\r\n",
            b"\r\n",
            b"\r\n\r\n",
            b"x",
            b"=\xff",
            b"Content-Disposition: form-data; ",
        ),
        *(
            b'name="a"',
            b'filename="b"',
            b"name*=utf-8''%ff",
            b"filename*=x''y",
            b"filename*0*=x''",
            b"Content-Type: multipart/mixed; boundary=y",
        ),
        *(
            b"--y\r\n",
            b"Content-Transfer-Encoding: base64\r\n",
            b"Content-Type: message/rfc822\r\n",
            b"Content-Type: text/plain; charset=x\r\n",
        ),
    ]
)


@pytest.mark.parametrize("kind", [URLENCODED, PARTS])
def test_a_form_is_so_long(kind: str) -> None:
    """However it comes."""
    for piece in (65536, LONGEST_FORM + 1):
        with pytest.raises(Refused) as refused:
            read(b"a=" + b"x" * LONGEST_FORM, kind, piece=piece)
        assert refused.value.status == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x\r\n------boundary--\r\n",
        b"------boundary\r\n\r\nx\r\n------boundary--\r\n",
        b'------boundary\r\nContent-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"\r\n\r\nx'
        b"\r\n------boundary--\r\n",
    ],
)
def test_what_no_browser_sends_is_no_form(body: bytes) -> None:
    """Half of one neither."""
    with pytest.raises(Refused) as refused:
        read(body, PARTS)
    assert refused.value.status == 400


def test_a_form_of_a_browser_with_files() -> None:
    """As Chromium and Firefox write it; where nothing was chosen there is an empty file."""
    body = (
        '--b1\r\nContent-Disposition: form-data; name="ü %22"\r\n\r\na\r\nb\r\n'
        '--b1\r\nContent-Disposition: form-data; name="files"; filename="ä; b.json"\r\nContent-Type: text/plain\r\n\r\n{}\r\n'
        '--b1\r\nContent-Disposition: form-data; name="files"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n'
        "--b1--\r\n"
    )
    assert read(body.encode(), "multipart/form-data; boundary=b1") == (
        {"ü %22": "a\r\nb"},
        {"files/ä; b.json": b"{}", "files/": b""},
    )


@pytest.mark.parametrize(
    ("sent", "value"),
    [([f"x=1; {COOKIE}=a; {COOKIE}=b"], "a"), ([f"{COOKIE}=a", f"{COOKIE}=b"], "a"), ([f"x{COOKIE}=a"], ""), ([], "")],
)
def test_the_first_cookie_counts(sent: list[str], value: str) -> None:
    """Which is that of the longest path."""
    assert read_cookie([(b"cookie", one.encode("latin-1")) for one in sent], COOKIE) == value


def visit_of(who: Credentials) -> Visit:
    """One request of a person."""
    return Visit(request_of(b"", ""), Client(Path("none")), who, "/place")


def test_what_a_page_says_opens_no_form() -> None:
    """Both are sealed with what only the session knows, and neither is the other, whatever the words are."""
    visit = visit_of(Credentials("secret", "place"))
    seals = {
        str(visit.go("/", words).headers["location"]).rpartition("=")[2] for words in ("form", "desk", "note", "\0form", "x")
    }
    assert len(seals) == 5
    assert visit.token not in seals
    assert visit_of(Credentials("other", "place")).token != visit.token
    assert visit_of(Credentials(proxy=(("a", "secret"),))).token != visit_of(Credentials(proxy=(("a", "other"),))).token


def test_nobody_is_sent_elsewhere() -> None:
    """A page's path stays one of the desk's, and a header one header."""
    for path in ("//evil.example", "/a\r\nSet-Cookie: x=y", "/https://evil.example", "/\\evil.example"):
        location = visit_of(Credentials("s", "place")).go(path, "a\r\nb: c", to="x\r\ny").headers["location"]
        assert location.startswith("/place/")
        assert "\n" not in location
        assert "\r" not in location


def test_a_file_is_saved_and_never_shown() -> None:
    """Whatever its name is."""
    file = httpx.Response(200, headers={"content-type": "application/zip", "content-length": "0"}, content=b"")
    answer = pass_on(BackendAnswer(200, file=file, name='a"; x=y\r\nb: c\\ü.html'))
    said = answer.headers["content-disposition"]
    assert said.startswith("attachment; filename*=UTF-8''")
    assert not set('"\r\n; ') & set(said.rpartition("''")[2])
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
