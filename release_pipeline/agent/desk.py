"""Asking a desk, by a ticket: what is to be signed, its bundle, and taking what was signed.

A ticket is a capability: of one person, for one signature. It stands in no message and in no file. A desk is asked directly, by
no proxy; a redirect is not followed; TLS is verified against what this machine trusts; every answer is bounded in size and time.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.agent.origins import Origin
from release_pipeline.errors import ReleasePipelineError, read_out_of_space
from release_pipeline.sign import DRAFTS, MOST_BUNDLE
from release_pipeline.verify import VOTES, Fault, Json, get, read_json

TICKET = re.compile(r"[A-Za-z0-9_-]{20,100}")
FORMAT = "release-pipeline/ticket/1"
APPROVE = VOTES[0]  # what a policy and caps are wished, too
REMARK = "remarks"  # in the place of a verdict: remarks, and nothing else
MOST_WORDS, MOST_WHY, MOST_ANSWER = 2000, 500, 2**16
WAIT_SECONDS, LONGEST_SECONDS = 30.0, 900.0  # for one step of the network, and for all of an answer
_PATH = re.compile(r"/(?!/)[A-Za-z0-9._~/%-]{0,300}")
_NAME = re.compile(r"[^\s]{1,100}")
_CHUNK = 2**18


class DeskError(ReleasePipelineError):
    """A desk could not be asked, or did not give what it must. `words`: what it said itself, if anything."""

    words = ""


class NotTaken(DeskError):
    """What was signed is not known to be at the desk."""


@dataclass(frozen=True)
class Ticket:
    """What a desk says of a ticket. All of it is the desk's word: what is signed is computed from the bundle."""

    person: str
    what: str
    subject: str
    verdict: str
    why: str
    back: str


@dataclass(frozen=True)
class Desk:
    """A desk that the person named when they began the agent."""

    origin: Origin

    def fetch_ticket(self, ticket: str) -> Ticket:
        """What the ticket is for; `DeskError` where it is for nothing, or no longer."""
        with self._ask("GET", f"/tickets/{ticket}") as response:
            content = self._read_answer(response)
        if response.status != 200:
            raise self._tell_refusal(response.status, content)
        try:
            return read_ticket(read_json(content))
        except Fault as fault:
            raise DeskError(
                f"what it says of the ticket cannot be used: {fault.what}.",
                where=self.origin.text,
                remedy="Nothing was signed. Desk and agent are of different versions, or the desk is not what it should be.",
            ) from None

    def fetch_bundle(self, ticket: str, file: Path) -> None:
        """Write the bundle of the ticket into a new file; `DeskError` where it does not come whole."""
        with self._ask("GET", f"/tickets/{ticket}/bundle") as response:
            if response.status != 200:
                raise self._tell_refusal(response.status, self._read_answer(response))
            left = MOST_BUNDLE
            with file.open("xb") as new:
                while chunk := response.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise self._tell_too_large()
                    new.write(chunk)
            if response.length:  # what was announced and did not come
                raise self._tell_broken("it broke off")

    def hand_in(self, ticket: str, statements: Sequence[Mapping[str, Any]]) -> str:
        """Give the desk what was signed; gives its words, or `NotTaken`."""
        body = json.dumps({"statements": list(statements)}).encode()
        try:
            with self._ask("POST", f"/tickets/{ticket}/statements", body) as response:
                content = self._read_answer(response)
        except DeskError as error:
            raise NotTaken(error.what, where=error.where, remedy=error.remedy) from None
        if response.status != 200:
            refusal = self._tell_refusal(response.status, content)
            raised = NotTaken(refusal.what, where=refusal.where, remedy=refusal.remedy)
            raised.words = refusal.words
            raise raised
        return _read_words(content)

    @contextmanager
    def _ask(self, method: str, path: str, body: bytes | None = None) -> Generator[http.client.HTTPResponse]:
        """The response to one request, on a connection of its own that is cut when it takes too long."""
        connection, over = self._make_connection(), threading.Event()
        cutting: threading.Timer | None = None
        try:
            connection.connect()
            whole = connection.sock  # which the connection forgets, while its response is still read

            def cut() -> None:
                over.set()
                with suppress(OSError):  # of the plain socket: that of TLS would forget its state while it is read from
                    socket.socket.shutdown(whole, socket.SHUT_RDWR)

            cutting = threading.Timer(LONGEST_SECONDS, cut)
            cutting.daemon = True
            cutting.start()
            headers = {"Accept": "application/json, application/zip"}
            if body is not None:
                headers["Content-Type"] = "application/json"
            connection.request(method, path, body, headers)
            yield connection.getresponse()
            if over.is_set():
                raise TimeoutError
        except ssl.SSLCertVerificationError as error:
            raise self._tell_broken(f"its certificate is not trusted here: {error.verify_message}") from None
        except TimeoutError:
            raise self._tell_broken("it does not answer in time") from None
        except (http.client.HTTPException, OSError) as error:
            if (full := read_out_of_space(error)) is not None:  # where the bundle is written
                raise full from None
            reason = "it takes too long" if over.is_set() else "it cannot be reached, or speaks something else"
            raise self._tell_broken(f"{reason} ({type(error).__name__})") from None
        finally:
            if cutting is not None:
                cutting.cancel()
            connection.close()

    def _make_connection(self) -> http.client.HTTPConnection:
        """One that is not there yet."""
        host, port = self.origin.host, self.origin.port
        if self.origin.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=WAIT_SECONDS, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=WAIT_SECONDS)

    def _read_answer(self, response: http.client.HTTPResponse) -> bytes:
        content = response.read(MOST_ANSWER + 1)
        if len(content) > MOST_ANSWER:
            raise self._tell_too_large()
        return content

    def _tell_refusal(self, status: int, content: bytes) -> DeskError:
        if 300 <= status < 400:
            error = self._tell_broken("it sends the agent elsewhere, which is not followed")
        elif status in (404, 410):
            error = DeskError(
                "it does not know this ticket: it was used, or is over.",
                where=self.origin.text,
                remedy="Go back to the desk and ask for another one.",
            )
        else:
            error = DeskError(
                f"it refused (status {status}).", where=self.origin.text, remedy="Go back to the desk: it should say why."
            )
        error.words = _read_words(content)
        return error

    def _tell_too_large(self) -> DeskError:
        return self._tell_broken("it gives more than anything of ours is large")

    def _tell_broken(self, why: str) -> DeskError:
        remedy = "Try it again from the desk. If that does not help, tell its operator."
        return DeskError(f"the desk could not be asked: {why}.", where=self.origin.text, remedy=remedy)


def read_ticket(document: Json) -> Ticket:
    """What a ticket says; `Fault` unless it is one. What later versions add is not looked at: it is neither shown nor signed."""
    if get(document, "format", str) != FORMAT:
        raise Fault(f"its format is not {FORMAT}")
    wish, what = get(document, "wish", dict), get(document, "what", str)
    verdict, why = get(wish, "verdict", str), " ".join(get(wish, "why", str).split())
    if what not in DRAFTS or verdict not in (*VOTES, REMARK):
        raise Fault("it is for nothing that is signed so")
    if len(why) > MOST_WHY or not (why or " ").isprintable():
        raise Fault(f"its reason is no line of at most {MOST_WHY} characters that can be seen")
    subject, back = get(document, "subject", str), get(document, "back", _PATH)
    if len(subject) > 200:
        raise Fault("its subject is too long")
    return Ticket(get(document, "person", _NAME), what, subject, verdict, why, back)


def _read_words(content: bytes) -> str:
    """What a desk says in its answer, if it says anything that can be shown."""
    try:
        document = read_json(content)
        return get(document, "words", str)[:MOST_WORDS]
    except Fault:
        return ""
