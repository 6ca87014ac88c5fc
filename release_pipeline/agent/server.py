"""Listens on 127.0.0.1 alone, and answers the browser of the person who began it."""

from __future__ import annotations

import hmac
import os
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from release_pipeline.agent import pages
from release_pipeline.agent.desk import DeskError
from release_pipeline.agent.guard import Refused, check_change, check_host, check_look
from release_pipeline.agent.origins import PORT
from release_pipeline.agent.peers import is_ours
from release_pipeline.agent.reviews import OPEN, REFUSED, TAKEN, BundleWrong, NotSigned, Review, Reviews
from release_pipeline.errors import ReleasePipelineError, WrongUsage, own_frame, read_out_of_space
from release_pipeline.sentences import AGENT
from release_pipeline.verify import printable

HOST = "127.0.0.1"
MOST_FORM = 2**15
QUIET_SECONDS = 60.0  # after which a browser that says nothing is not waited for
_COMMON = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",  # the desk's tab cannot lead this one elsewhere
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # none to the desk; with no-referrer a form of our own would come from the origin "null"
    "X-Content-Type-Options": "nosniff",
}
_PAGE = (
    "default-src 'none'; style-src 'sha256-{style}'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_REPORT = (  # a page of the bundle: nothing runs in it, and it is of an origin that is nobody's
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; "
    "sandbox"
)


class Agent(ThreadingHTTPServer):
    """The server, with the reviews that it shows. `tell` is where it says what was signed; with `once` it ends when a desk has
    taken something."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # elsewhere it lets others listen on the same port

    def __init__(self, reviews: Reviews, *, port: int = PORT, once: bool = False, tell: Callable[[str], None] = print) -> None:
        self.reviews, self.once, self.tell = reviews, once, tell
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise WrongUsage(
                f"port {port} cannot be listened on: {error.strerror}.",
                where="--port",
                remedy=f"Perhaps an agent runs already: end it. Desks lead to port {PORT} alone.",
            ) from None

    @property
    def host(self) -> str:
        """Its address as browsers send it."""
        return f"{HOST}:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """Its address as people open it."""
        return f"http://{self.host}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is nobody's matter; anything else is told by its place, for its words may be anything."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.tell(f"internal error: {type(error).__name__} at {own_frame(error)}")

    def end_soon(self) -> None:
        """The server ends when what it is about to say was said."""
        threading.Thread(target=self.shutdown, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    timeout = QUIET_SECONDS

    @property
    def _agent(self) -> Agent:
        return cast(Agent, self.server)

    def do_GET(self) -> None:
        self._answer(self._look)

    def do_POST(self) -> None:
        self._answer(self._change)

    def version_string(self) -> str:
        """What the header Server says: no versions."""
        return "agent"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests hold tickets."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses, in words of ours."""
        self._send_error(code, AGENT("error.refused"), AGENT("error.method"))

    def _answer(self, answer: Callable[[], None]) -> None:
        """Every outcome is a page."""
        try:
            check_host(self.headers, self._agent.host)
            if not is_ours(self.client_address, self.connection.getsockname()):
                raise Refused(AGENT("error.stranger"))
            answer()
        except Refused as error:
            self._fail(403, AGENT("error.refused"), error)
        except BundleWrong as error:
            self._fail(422, AGENT("error.bundle"), error)
        except DeskError as error:
            self._fail(502, AGENT("error.desk"), error, words=error.words)
        except NotSigned as error:
            self._fail(400, AGENT("error.title"), error)
        except ReleasePipelineError as error:
            self._fail(500, AGENT("error.failed"), error)
        except OSError as error:
            if (full := read_out_of_space(error)) is None:
                raise  # the browser went away
            self._fail(500, AGENT("error.failed"), full)
        except Exception as error:
            where = f"{type(error).__name__} at {own_frame(error)}"
            self._agent.tell(f"internal error: {where}")
            self._send_error(500, AGENT("error.failed"), AGENT("error.internal", where=where))

    def _look(self) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query, keep_blank_values=True, max_num_fields=10)
        match parts.path.split("/")[1:]:
            case [""] if not asked:
                check_look(self.headers)
                reviews = self._agent.reviews
                self._send(200, pages.build_start(list(reviews.desks.values()), reviews.signers, self._agent.address))
            case [""]:
                check_look(self.headers)
                self._open(asked)
            case ["review", name] if (review := self._agent.reviews.find(name)) is not None:
                check_look(self.headers)
                self._show(review, asked)
            case ["review", name, "report"] if (review := self._agent.reviews.find(name)) is not None:
                check_look(self.headers, frame=True)
                self._show_report(review)
            case _:
                self._send_error(404, AGENT("error.nothing"), AGENT("error.nothing_is"))

    def _open(self, asked: dict[str, list[str]]) -> None:
        """Fetch what a ticket is for, and go on at an address without it, which may be seen and copied."""
        origins, tickets = asked.pop("desk", []), asked.pop("ticket", [])
        if len(origins) != 1 or len(tickets) != 1 or asked:
            raise NotSigned("this is no link of a desk.", remedy="Follow the desk's own link, and do not type it.")
        review = self._agent.reviews.open(origins[0], tickets[0])
        self.send_response(303)
        self.send_header("Location", f"/review/{review.name}")
        self._send_body(b"", _PAGE.format(style=pages.hash_style()))

    def _show(self, review: Review, asked: dict[str, list[str]]) -> None:
        if review.state != OPEN:
            self._send(200, pages.build_outcome(review, self._agent.address))
            return
        chosen = asked.get("verdict", [review.ticket.verdict])[-1]
        verdict = chosen if chosen in review.verdicts else review.verdicts[0]
        self._send(200, pages.build_review(review, self._agent.address, verdict))

    def _show_report(self, review: Review) -> None:
        page = review.read_report()
        if page is None:
            self._send_error(404, AGENT("error.nothing"), AGENT("error.nothing_is"))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self._send_body(page, _REPORT, frame="SAMEORIGIN")

    def _change(self) -> None:
        check_change(self.headers, f"http://{self._agent.host}")
        review = self._find_changed()
        if review is None:
            self._send_error(404, AGENT("error.nothing"), AGENT("error.nothing_is"))
            return
        given = self._read_form()
        if not hmac.compare_digest(given.get("token", "").encode(), review.token.encode()):
            raise Refused(AGENT("error.foreign"))
        match given.get("do"):
            case "sign":
                self._sign(review, given)
            case "again":
                self._agent.reviews.hand_in_again(review)
            case "refuse":
                self._agent.reviews.refuse(review)
            case _:
                raise Refused(AGENT("error.foreign"))
        if review.state != OPEN:
            self._tell_outcome(review)

    def _find_changed(self) -> Review | None:
        match urlsplit(self.path).path.split("/")[1:]:
            case ["review", name]:
                return self._agent.reviews.find(name)
            case _:
                return None

    def _read_form(self) -> dict[str, str]:
        """What was sent, each name once."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or not length.isascii() or int(length[:9]) > MOST_FORM:
            raise Refused(AGENT("error.large"))
        try:
            found = parse_qs(self.rfile.read(int(length)).decode(), keep_blank_values=True, max_num_fields=10)
        except ValueError:
            raise Refused(AGENT("error.foreign")) from None
        if any(len(values) != 1 for values in found.values()):
            raise Refused(AGENT("error.foreign"))
        return {name: values[0] for name, values in found.items()}

    def _sign(self, review: Review, given: dict[str, str]) -> None:
        verdict, why = given.get("verdict", ""), given.get("why", "")
        if review.signer is not None and review.state == OPEN:
            what = f"{verdict} {review.bundle.subject}, {' '.join(review.words)}"
            self._agent.tell(f"{what}: ssh-keygen signs now; it may ask here for a passphrase or a touch")
        try:
            self._agent.reviews.sign(review, verdict, why, given.get("typed", ""))
        except NotSigned as error:
            shown = verdict if verdict in review.verdicts else review.verdicts[0]
            page = pages.build_review(review, self._agent.address, shown, trouble=str(error), why=why)
            self._send(400, page)

    def _tell_outcome(self, review: Review) -> None:
        ended = self._agent.once and review.state in (TAKEN, REFUSED)
        if review.signed:
            first = review.signed[0]["statement"]
            where = "the desk says that it has it" if review.state == TAKEN else "the desk did not say that it has it"
            self._agent.tell(f"signed: {first['kind']} of {first['subject']}, hash {first['hash']}, by {first['name']}; {where}")
        else:
            self._agent.tell(f"not signed: {review.bundle.subject}")
        self._send(200, pages.build_outcome(review, self._agent.address, ended=ended))
        if ended:
            self._agent.end_soon()

    def _fail(self, status: int, title: str, error: ReleasePipelineError, *, words: str = "") -> None:
        self._send(status, pages.build_failure(title, error, self._agent.address, words=words))

    def _send_error(self, status: int, title: str, what: str) -> None:
        self._send(status, pages.build_error(title, what, self._agent.address))

    def _send(self, status: int, page: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self._send_body(page.encode("utf-8", "backslashreplace"), _PAGE.format(style=pages.hash_style()))

    def _send_body(self, body: bytes, policy: str, *, frame: str = "DENY") -> None:
        headers = {**_COMMON, "Content-Security-Policy": policy, "X-Frame-Options": frame, "Content-Length": str(len(body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def say(line: str) -> None:
    """A line at the terminal, at once, which plays no tricks on it."""
    print(printable(line), flush=True)
