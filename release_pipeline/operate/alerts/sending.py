"""How alerts travel: by a webhook, or as a mail. What fails is told in words without an address, for that may be a secret.

Imported only when something is sent: httpx takes long to load.
"""

from __future__ import annotations

import hashlib
import logging
import smtplib
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from functools import cache
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from release_pipeline import __version__
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.operate.alerts.look import look, outbox_of
from release_pipeline.operate.alerts.matters import Alert, read_alert
from release_pipeline.operate.alerts.outbox import Deliver, NotSent, Outbox
from release_pipeline.operate.alerts.settings import (
    EmailSettings,
    Rule,
    WebhookSettings,
    fill,
    read_alerts,
)
from release_pipeline.policy.documents import to_json
from release_pipeline.store.environment import LOCAL
from release_pipeline.store.site import Site

FAULTS = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)  # of a request that got no whole answer
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(lambda _: False)  # they log addresses and headers, which may hold a secret
WAIT_SECONDS = 10.0  # for each step of a connection
_WEB = ("http", "https")
_REFUSED = (400, 413, 422)  # of a document that was read, and is not wanted as it is


def open_client(address: str) -> httpx.Client:
    """A client for an address; it follows no redirection, or a token would go along.

    It asks by the proxy of the environment, except on this machine: a proxy's own `localhost` is another machine. It trusts the
    certificates that this machine trusts."""
    parts = urlsplit(address)
    # By http there is no TLS: the context that trusts nobody is made at once.
    trusted = ssl.create_default_context() if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    headers = {"User-Agent": f"release-pipeline/{__version__}", "Accept-Encoding": "identity"}
    return httpx.Client(timeout=WAIT_SECONDS, headers=headers, verify=trusted, trust_env=parts.hostname not in LOCAL)


def name_fault(error: BaseException) -> str:
    """The kind of what went wrong, without its message, which may have an address."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return type(cause or error).__name__


class Channel(Protocol):
    """One way to tell somebody."""

    def send(self, alert: Alert) -> None:
        """Deliver the alert; where that is not certain raises `NotSent`, in words without an address, and it is sent again."""
        ...


@dataclass(frozen=True, slots=True)
class Webhook:
    """A POST with the alert as JSON."""

    address: str

    def send(self, alert: Alert) -> None:
        """See `Channel`."""
        post(self.address, to_json(alert))


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail with the alert as plain text."""

    to: tuple[str, ...]
    sender: str
    host: str
    port: int
    starttls: bool
    user: str
    password: str

    def send(self, alert: Alert) -> None:
        """See `Channel`. The same alert is the same message, by its id."""
        try:
            message = self._write(alert)
            with smtplib.SMTP(self.host, self.port, timeout=WAIT_SECONDS) as server:
                if self.starttls:
                    server.starttls(context=ssl.create_default_context())
                if self.user:
                    server.login(self.user, self.password)
                if refused := server.send_message(message):  # of some; of all it raises
                    raise NotSent(f"the mail server refused {len(refused)} of {len(self.to)} recipients.")
        except smtplib.SMTPResponseException as error:
            status = error.smtp_code
            raise NotSent(f"the mail server refused ({status}).") from None
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise NotSent(f"the mail server cannot be reached or used ({type(error).__name__}).") from None

    def _write(self, alert: Alert) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = f"[{_one_line(alert.site)}] {_one_line(alert.title)}"
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Message-ID"] = f"<{hashlib.sha256(f'{alert.site} {alert.id}'.encode()).hexdigest()[:32]}@release-pipeline>"
        message["Date"] = formatdate()
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(alert.text)
        return message


def open_channel(site: Site, rule: Rule) -> Channel:
    """The channel of a rule, with what the environment has of it; raises `NotSent` where that lacks something."""
    try:
        return _open(site, rule.channel)
    except ReleasePipelineError as error:
        raise NotSent(f"{error.what} {error.remedy}") from None


def _open(site: Site, said: WebhookSettings | EmailSettings) -> Channel:
    if isinstance(said, WebhookSettings):
        return Webhook(fill(site, said.address))
    return Mail(
        to=tuple(fill(site, one) for one in said.to),
        sender=fill(site, said.sender),
        host=fill(site, said.host),
        port=said.port,
        starttls=said.starttls,
        user=fill(site, said.user),
        password=fill(site, said.password),
    )


def post(address: str, document: Mapping[str, Any]) -> None:
    """Post a document as JSON; whoever answers with 2xx has it. httpx sends a name and password in the address as a header."""
    try:
        parts = urlsplit(address)
        if parts.scheme not in _WEB or not parts.hostname:
            raise NotSent("what it names is no address that begins with https://.")
        with (
            open_client(address) as client,
            client.stream("POST", address, json=document) as reply,  # the answer's body is not read
        ):
            status = reply.status_code
    except FAULTS as error:
        fault = name_fault(error)
        raise NotSent(f"it cannot be reached ({fault}).") from None
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise NotSent(f"it answered {status}.", for_good=status in _REFUSED)


def _one_line(text: str) -> str:
    """A text for a header: no name in it can begin another."""
    return " ".join(text.split())


# Sending what waits in the queues of a site: alerts by their channels.
# What is not taken stays where it is, in order, and is tried again at the next look.


NOBODY = "nothing is told: site.yaml has no 'alerts'"
LONGEST_SECONDS = 30.0  # of one look, all channels together: after that the next one goes on


@dataclass(frozen=True, slots=True)
class Sent:
    """What one receiver got, and how much is left for it."""

    name: str
    sent: int
    left: int
    words: str = ""  # why something is left


def tell(site: Site, *, longest: float = LONGEST_SECONDS) -> list[Sent]:
    """Look, and send what waits. Raises only for what is wrong at the site; who takes nothing is told in what is given."""
    trouble: ReleasePipelineError | None = None
    try:
        look(site)
    except ReleasePipelineError as error:  # of a registry that cannot be read, say: what waits already is sent all the same
        trouble = error
    end = time.monotonic() + longest
    rules = list({rule.name: rule for rule in read_alerts(site)}.values())
    rules.sort(key=lambda rule: outbox_of(site, rule).failing is not None)  # who took nothing last time keeps nobody waiting
    done = [_send(rule.channel.words, outbox_of(site, rule), _alerts_to(site, rule), end) for rule in rules]
    if trouble is not None:
        raise trouble
    return done


def describe_sent(done: list[Sent]) -> Iterator[str]:
    """It in lines for a person."""
    for each in done:
        left = f", {each.left} left{f': {each.words}' if each.words else ''}" if each.left else ""
        yield f"{each.name}: {each.sent} sent{left}"


def _send(name: str, outbox: Outbox, deliver: Deliver, end: float) -> Sent:
    sent = outbox.send(deliver, may_go_on=lambda: time.monotonic() < end)
    left, failing = len(outbox.list_files()), outbox.failing
    return Sent(name, sent, left, "" if failing is None else failing.words)


def _alerts_to(site: Site, rule: Rule) -> Deliver:
    opened = cache(lambda: open_channel(site, rule))

    def deliver(document: Mapping[str, Any]) -> None:
        opened().send(read_alert(document))

    return deliver
