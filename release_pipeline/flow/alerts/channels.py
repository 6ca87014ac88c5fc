"""How alerts travel: by a webhook, or as a mail. What fails is told in words without an address, for that may be a secret.

Imported only when something is sent: httpx takes long to load.
"""

from __future__ import annotations

import hashlib
import smtplib
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.alerts.alert import Alert
from release_pipeline.flow.alerts.outbox import NotSent
from release_pipeline.flow.alerts.settings import EmailSettings, Rule, WebhookSettings, fill
from release_pipeline.flow.site import Site
from release_pipeline.policy.documents import to_json
from release_pipeline.store.web import FAULTS, name_fault, open_client

Made = TypeVar("Made")
WAIT_SECONDS = 10.0  # for each step of a connection
_WEB = ("http", "https")
_REFUSED = (400, 413, 422)  # of a document that was read, and is not wanted as it is


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
    said = rule.channel
    return _filled(lambda: _open(site, said))


def open_address(site: Site, address: str) -> Callable[[Mapping[str, Any]], None]:
    """What posts documents to an address; raises `NotSent` likewise."""
    filled = _filled(lambda: fill(site, address))
    return lambda document: post(filled, document)


def _filled(read: Callable[[], Made]) -> Made:
    try:
        return read()
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
            open_client(address, timeout=WAIT_SECONDS) as client,
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
