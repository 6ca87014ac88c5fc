"""Questions and answers as bytes: whatever is sent, the counter reads a question or none, and goes on answering others."""

from __future__ import annotations

import io
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.desk.counter import server as module
from release_pipeline.desk.counter.calls import File
from release_pipeline.desk.counter.server import CounterServer, open_counter, read_question, write_answer
from release_pipeline.desk.counter.service import Answer, Counter, Question
from release_pipeline.desk.limits import LONGEST_BODY, LONGEST_LINE
from release_pipeline.desk.web.client import Client, Who
from release_pipeline.door.refusal import Refused
from release_pipeline.errors import WrongUsage
from tests.guards import HANGING

WHOLE = {"call": "home", "arguments": {"a": "b"}, "size": 3, "session": "s", "place": "p", "proxy": [["x-user", "ben"]]}
texts = st.text(max_size=40)


class Echo:
    """In the place of the counter: says what was asked; `slow` waits until it is let go on, `file` gives one."""

    def __init__(self, file: Path | None = None) -> None:
        self.go_on, self.file = threading.Event(), file

    def answer(self, question: Question) -> Answer:
        if question.call == "slow":
            assert self.go_on.wait(HANGING)
        if question.call == "file" and self.file is not None:
            return Answer(200, file=File("text/plain", self.file, temporary=True))
        return Answer(200, {"call": question.call, "arguments": dict(question.arguments), "body": len(question.body)})


@contextmanager
def serving(path: Path, echo: Echo, *, seconds: float = HANGING) -> Iterator[Client]:
    """A server of it, and who asks it."""
    server = CounterServer(path, cast("Counter", echo), seconds=seconds)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Client(path)
    finally:
        echo.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join(HANGING)


def line(**other: Any) -> bytes:
    """A question's line, with something else in it."""
    return json.dumps({**WHOLE, **other}).encode() + b"\n"


def read(content: bytes) -> Question | None:
    """What is read of these bytes."""
    return read_question(io.BytesIO(content))


def test_a_question_is_read_as_it_was_asked() -> None:
    """And what comes behind it is no part of it."""
    assert read(line() + b"abcdef") == Question("home", {"a": "b"}, b"abc", "s", "p", (("x-user", "ben"),))


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": -1},
        {"size": LONGEST_BODY + 1},
        {"size": 10**400},
        {"size": "3"},
        {"size": None},
        {"size": 1.5},
        {"size": float("nan")},
        {"arguments": []},
        {"arguments": None},
        {"proxy": {"a": "b"}},
        {"proxy": [["a"]]},
        {"proxy": 1},
        {"size": 4},
    ],
)
def test_another_shape_is_no_question(wrong: dict[str, Any]) -> None:
    """Nor is half of one: what was to come is not asked without it."""
    assert read(line(**wrong) + b"abc") is None


@pytest.mark.parametrize("name", WHOLE)
def test_a_question_is_whole(name: str) -> None:
    """Nothing may be missing."""
    assert read(json.dumps({key: value for key, value in WHOLE.items() if key != name}).encode() + b"\nabc") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"{",
        b"[]\n",
        b"1\n",
        b"null\n",
        b"\xff\xfe\n",
        b"[" * 60_000,
        b'{"a":' * 12_000,
        b"{" + b" " * LONGEST_LINE + b"}\n",
        b'{"size": ' + b"9" * 5000 + b"}\n",
    ],
    ids=range(11),
)
def test_what_is_no_json_is_no_question(content: bytes) -> None:
    """However deep or long it is."""
    assert read(content) is None


@given(st.binary(max_size=300) | st.builds(lambda a, b: line()[:a] + b, st.integers(0, 120), st.binary(max_size=40)))
def test_any_bytes_are_a_question_or_none(content: bytes) -> None:
    """Nothing raises."""
    found = read(content)
    assert found is None or isinstance(found, Question)


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | texts,
        lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    )
)
def test_any_values_make_texts(value: Any) -> None:
    """Whatever stands where a text should."""
    for name in ("call", "arguments", "session", "place", "proxy"):
        found = read(line(**{name: value}) + b"abc")
        if found is not None:
            parts = [found.call, found.session, found.place, *found.arguments, *found.arguments.values()]
            assert all(isinstance(part, str) for part in [*parts, *(one for pair in found.proxy for one in pair)])


@pytest.mark.slow
@given(st.dictionaries(texts, texts, max_size=5), st.binary(max_size=100), texts)
def test_what_the_web_process_asks_is_what_the_counter_reads(arguments: dict[str, str], body: bytes, text: str) -> None:
    """Byte for byte."""
    seen: list[Question | None] = []

    class Through(Client):
        def _send(self, question: bytes) -> io.BytesIO:
            seen.append(read(question))
            answer = io.BytesIO()
            write_answer(answer, Answer(200, {"said": text}))
            answer.seek(0)
            return answer

    told = Through(Path("none")).ask("call", Who("s", "p", (("a", text),)), arguments, body)
    assert seen == [Question("call", arguments, body, "s", "p", (("a", text),))]
    assert told.document == {"said": text}


def test_an_answer_is_sent_whatever_is_in_it() -> None:
    """Half a letter too, which no encoding has."""
    answer = io.BytesIO()
    write_answer(answer, Answer(400, {"what": "\ud800 x"}))
    head, _, body = answer.getvalue().partition(b"\n")
    assert json.loads(head) == {"status": 400, "size": len(body)}
    assert json.loads(body) == {"what": "? x"}


def test_what_is_too_long_is_not_even_asked(tmp_path: Path) -> None:
    """And is told as that, not as a counter that does not answer."""
    with serving(tmp_path / "s", Echo()) as client:
        for arguments, body in (({"text": "x" * LONGEST_LINE}, b""), ({}, b"x" * (LONGEST_BODY + 1))):
            with pytest.raises(Refused, match="longer") as refused:
                client.ask("home", arguments=arguments, body=body)
            assert refused.value.status == 413
        assert client.ask("home", arguments={"text": "x" * 60_000}, body=b"x" * LONGEST_BODY).document["body"] == LONGEST_BODY


def connect(path: Path) -> socket.socket:
    """A connection by hand."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(HANGING)
    connection.connect(str(path))
    return connection


def test_a_slow_sender_is_given_up(tmp_path: Path) -> None:
    """Who sends a byte now and then has as long as all others for the whole question."""
    with serving(tmp_path / "s", Echo(), seconds=0.3), connect(tmp_path / "s") as slow:
        end = time.monotonic() + HANGING
        with suppress(BrokenPipeError):
            while time.monotonic() < end:
                slow.sendall(b" ")
                time.sleep(0.02)
        assert time.monotonic() < end
        assert slow.recv(1) == b""


def test_slow_ones_keep_nobody_from_asking(tmp_path: Path) -> None:
    """Neither those that send slowly, nor those that take slowly, nor more than there may be of one account."""
    with serving(tmp_path / "s", Echo()) as client, ExitStack() as open_ones:
        for number in range(module.MOST_OF_ONE - 2):
            one = open_ones.enter_context(connect(tmp_path / "s"))
            one.sendall(line()[: number % 60] if number % 2 else line())
        assert client.ask("home").status == 200


def test_an_account_has_so_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is closed unheard; when others are done there is room again."""
    monkeypatch.setattr(module, "MOST_OF_ONE", 3)
    with serving(tmp_path / "s", Echo()) as client:
        with ExitStack() as open_ones:
            for _ in range(3):
                open_ones.enter_context(connect(tmp_path / "s")).sendall(b"{")
            with pytest.raises(Refused) as refused:
                client.ask("home")
            assert refused.value.status == 503
        end = time.monotonic() + HANGING
        while time.monotonic() < end:
            with suppress(Refused):
                assert client.ask("home").status == 200
                break


def test_who_goes_away_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """In the middle of a question or of a file; nothing is printed, and a file that was made for one is gone."""
    (tmp_path / "made").mkdir()
    file = tmp_path / "made" / "file"
    file.write_bytes(b"x" * 10_000_000)
    with caplog.at_level(logging.DEBUG), serving(tmp_path / "s", Echo(file)) as client:
        for content in (b"", b"\n", b"\x00" * 1000, line()[:20], line(call="file", size=0), line(size=0)):
            with connect(tmp_path / "s") as gone:
                gone.sendall(content)
        end = time.monotonic() + HANGING
        while file.parent.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert not file.parent.exists()
        assert client.ask("home").status == 200
    assert caplog.messages == []
    assert capfd.readouterr() == ("", "")


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_the_counter_answers_after_any_bytes(pieces: list[bytes]) -> None:
    """On a real socket."""
    assert fuzzed is not None
    with connect(fuzzed) as connection:
        with suppress(BrokenPipeError):
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            connection.recv(100)
    assert Client(fuzzed).ask("home").status == 200


fuzzed: Path | None = None


@pytest.fixture(scope="module", autouse=True)
def _fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server that many examples ask: one for all, for an example cannot have a fixture of its own."""
    global fuzzed
    fuzzed = tmp_path_factory.mktemp("fuzzed") / "s"
    with serving(fuzzed, Echo()):
        yield


def test_a_socket_is_taken_from_nobody(tmp_path: Path) -> None:
    """A second counter does not come in the place of one that answers, nor of a file; where one died it does."""
    path, echo = tmp_path / "s", cast("Counter", Echo())
    with serving(path, Echo()) as client:
        with pytest.raises(WrongUsage, match="another process answers there"):
            open_counter(path, echo)
        assert client.ask("home").status == 200
    assert path.is_socket()
    open_counter(path, echo).server_close()
    (tmp_path / "file").write_text("x")
    with pytest.raises(Exception, match="the socket cannot be made"):
        open_counter(tmp_path / "file", echo)
    with pytest.raises(Exception, match="the socket cannot be made"):
        open_counter(tmp_path / ("x" * 200), echo)


def test_a_socket_is_for_its_account(tmp_path: Path) -> None:
    """Where no other account is named, no other can open it."""
    with serving(tmp_path / "s", Echo()):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("reply", [b"", b"x\n", b"{}\n", b'{"status": 200, "size": 10}\n{}', b'{"status": 200, "size": 2}\nxx'])
def test_a_counter_that_says_nothing_is_told_as_one_that_does_not_answer(tmp_path: Path, reply: bytes) -> None:
    """In words."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Refused, match="does not answer"):
            Client(tmp_path / "s").ask("home")
        thread.join(HANGING)
    with pytest.raises(Refused, match="does not answer"):
        Client(tmp_path / "none").ask("home")
