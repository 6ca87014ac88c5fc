"""A webhook and a mail server, spoken to for real: what arrives, and what is said when it does not."""

from __future__ import annotations

import base64
import json
import logging
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_string
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.operate.alerts.matters import Alert, read_alert
from release_pipeline.operate.alerts.outbox import NotSent
from release_pipeline.operate.alerts.sending import post, send_mail
from release_pipeline.operate.alerts.settings import EmailSettings
from release_pipeline.policy.documents import to_json
from tests.certificates import make_certificate

SECRET = "kanarie-4711"  # noqa: S105  in every address
ALERT = Alert(
    id="blocked/people/1/r1/event-7",
    kind="blocked",
    site="office",
    moment="2026-03-01T10:00:00+00:00",
    title="people/1/r1 is blocked",
    words="column income: 1 record outside.\nBcc: eva@example.org",
    remedy="Repair it.",
    release="people/1/r1",
    policy="people",
)


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    """The port of a server that answers meanwhile."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def hooked(status: int, got: list[Any], **headers: str) -> Iterator[int]:
    """A web server that answers every POST so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(HTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield port


def test_a_webhook_gets_the_document() -> None:
    """As JSON; a name and password in the address are sent as HTTP has them, and not in the address."""
    got: list[Any] = []
    with hooked(204, got) as port:
        post(f"http://ana:w%40rd@127.0.0.1:{port}/hook?to=x#part", ALERT)
    [(path, headers, document)] = got
    assert (path, headers["Content-Type"]) == ("/hook?to=x", "application/json")
    assert headers["Authorization"] == "Basic YW5hOndAcmQ="
    assert document == to_json(ALERT)
    assert read_alert({**document, "a key of later": 1}) == ALERT


@pytest.mark.parametrize(("status", "words"), [(500, "it answered 500."), (404, "it answered 404."), (301, "it answered 301.")])
def test_whoever_does_not_take_it_is_told_without_the_address(status: int, words: str) -> None:
    """And nobody is followed elsewhere."""
    got: list[Any] = []
    with hooked(status, got, Location=f"http://127.0.0.1:1/{SECRET}") as port, pytest.raises(NotSent) as failed:
        post(f"http://127.0.0.1:{port}/{SECRET}", ALERT)
    assert (str(failed.value), len(got)) == (words, 1)


def mail(port: int, **more: Any) -> EmailSettings:
    """The settings of a mail server here."""
    people: dict[str, Any] = {"to": ("a@example.org", "b@example.org"), "sender": "c@example.org"}
    return EmailSettings.model_construct(**people, host="127.0.0.1", port=port, **more)


@contextmanager
def mailing(got: list[str], answer: Callable[[str], str] = lambda _: "250 OK") -> Iterator[int]:
    """A mail server of ten lines."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            for raw in self.rfile:
                line = raw.decode().rstrip()
                if line == "data":
                    self.say("354 go on")
                    got.append("".join(iter(lambda: self.rfile.readline().decode(), ".\r\n")))
                    self.say("250 OK")
                elif line.lower() == "quit":
                    self.say("221 bye")
                    return
                else:
                    got.append(line)
                    self.say(answer(line))

        def say(self, words: str) -> None:
            self.wfile.write(f"{words}\r\n".encode())

    with serving(socketserver.TCPServer(("127.0.0.1", 0), Handler)) as port:
        yield port


def test_a_mail_has_the_words_and_no_header_of_theirs() -> None:
    """To everybody; the same alert is the same message."""
    got: list[str] = []
    with mailing(got) as port:
        send_mail(mail(port), ALERT)
        send_mail(mail(port), ALERT)
    one, other = (message_from_string(text) for text in got if text.startswith("Subject"))
    assert one["Subject"] == "[office] people/1/r1 is blocked"
    assert (one["To"], one["From"], one["Bcc"]) == ("a@example.org, b@example.org", "c@example.org", None)
    assert one["Message-ID"] == other["Message-ID"]
    assert [line for line in got if line.startswith("rcpt")] == ["rcpt TO:<a@example.org>", "rcpt TO:<b@example.org>"] * 2
    text = one.get_payload()
    assert isinstance(text, str)
    assert "column income: 1 record outside." in text
    assert "Id: blocked/people/1/r1/event-7" in text


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ("mail", "the mail server refused (550)."),
        ("rcpt", "the mail server cannot be reached or used (SMTPRecipientsRefused)."),
        ("ehlo", "the mail server cannot be reached or used"),
    ],
)
def test_a_mail_that_is_refused_is_told_without_addresses(refused: str, words: str) -> None:
    got: list[str] = []

    def answer(line: str) -> str:
        is_it = line.lower().startswith((refused, "helo" if refused == "ehlo" else refused))
        return f"550 no {SECRET} a@example.org" if is_it else "250 OK"

    with mailing(got, answer) as port, pytest.raises(NotSent) as failed:
        send_mail(mail(port), ALERT)
    assert words.rstrip(".").split(" (")[0].split(" cannot")[0] in str(failed.value)
    assert SECRET not in str(failed.value)
    assert "example.org" not in str(failed.value)


def test_a_password_is_not_sent_to_a_server_that_has_no_tls() -> None:
    """STARTTLS is asked for first, and without it nothing goes on."""
    got: list[str] = []
    with mailing(got) as port, pytest.raises(NotSent):
        send_mail(mail(port, starttls=True, user="ana", password=SECRET), ALERT)
    assert SECRET not in "".join(got)
    assert not [line for line in got if line.upper().startswith("AUTH")]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this machine."""
    return make_certificate(tmp_path_factory.mktemp("tls") / "here.pem")


@contextmanager
def mailing_by_tls(got: list[str], certificate: Path) -> Iterator[int]:
    """A mail server that speaks TLS when it is asked to, and lets one log in then."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            secret = False
            while raw := self.rfile.readline():
                line = raw.decode().rstrip()
                got.append(line)
                if line.lower().startswith("ehlo"):
                    self.say("250-here\r\n250 AUTH PLAIN" if secret else "250-here\r\n250 STARTTLS")
                elif line.upper() == "STARTTLS":
                    self.say("220 go on")
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(certificate)
                    try:
                        self.request = context.wrap_socket(self.request, server_side=True)
                    except OSError:  # whoever asked does not trust it
                        return
                    self.setup()
                    secret = True
                elif line.upper().startswith("AUTH"):
                    right = base64.b64decode(line.split()[2]) == f"\0ana\0{SECRET}".encode()
                    self.say("235 you are" if secret and right else "535 you are not")
                elif line.lower() == "data":
                    self.say("354 go on")
                    got.append("".join(iter(lambda: self.rfile.readline().decode(), ".\r\n")))
                    self.say("250 OK")
                elif line.lower() == "quit":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 OK")

        def finish(self) -> None:
            super().finish()
            self.request.close()  # the one of TLS is not the server's

        def say(self, words: str) -> None:
            self.wfile.write(f"{words}\r\n".encode())

    with serving(socketserver.TCPServer(("127.0.0.1", 0), Handler)) as port:
        yield port


def test_a_password_goes_by_tls_to_a_server_that_is_who_it_says(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a certificate that this machine trusts the mail arrives; without nothing but the wish for TLS was said."""
    got: list[str] = []
    with mailing_by_tls(got, certificate) as port:
        settings = mail(port, starttls=True, user="ana", password=SECRET)
        with pytest.raises(NotSent, match="SSLCertVerificationError"):
            send_mail(settings, ALERT)
        assert [line.split()[0].upper() for line in got] == ["EHLO", "STARTTLS"]
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        send_mail(settings, ALERT)
        assert any(text.startswith("Subject: [office]") for text in got)
        with pytest.raises(NotSent, match="the mail server refused \\(535\\)"):
            send_mail(mail(port, starttls=True, user="ana", password="another"), ALERT)  # noqa: S106


def test_no_log_has_the_address(caplog: pytest.LogCaptureFixture) -> None:
    """Neither where it is taken nor where it is not, however much is logged."""
    got: list[Any] = []
    caplog.set_level(logging.DEBUG)
    with hooked(204, got) as port:
        post(f"http://ana:{SECRET}@127.0.0.1:{port}/{SECRET}", ALERT)
    with pytest.raises(NotSent):
        post(f"http://127.0.0.1:1/{SECRET}", ALERT)
    logging.getLogger("httpx.control").info(SECRET)
    assert [record.name for record in caplog.records if SECRET in record.getMessage()] == ["httpx.control"]
    assert len(got) == 1
