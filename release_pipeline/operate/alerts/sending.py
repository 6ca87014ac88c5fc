"""Sends alerts: by a webhook, or as a mail. Messages about failures have no address, since that may be a secret.

Imported only when something is sent: httpx takes long to load.
"""

from __future__ import annotations

import hashlib
import logging
import smtplib
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from functools import cache, partial
from http import HTTPStatus
from typing import Any
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


def open_channel(site: Site, rule: Rule) -> Callable[[Alert], None]:
    """Return the function that sends an alert by the channel of a rule, with its variables from the environment; raises `NotSent`
    where one is missing."""
    channel = rule.channel
    try:
        if isinstance(channel, WebhookSettings):
            return partial(post, fill(site, channel.address))
        texts = {name: fill(site, getattr(channel, name)) for name in ("sender", "host", "user", "password")}
        recipients = tuple(fill(site, address) for address in channel.to)
        return partial(send_mail, channel.model_copy(update={**texts, "to": recipients}))
    except ReleasePipelineError as error:
        raise NotSent(f"{error.what} {error.remedy}") from None


def post(address: str, alert: Alert) -> None:
    """Post an alert as JSON; raises `NotSent` unless the answer is 2xx. httpx sends a name and password in the address as a
    header.

    It asks by the proxy of the environment, except on this machine: a proxy's `localhost` is another machine. It trusts the
    certificates that this machine trusts, and follows no redirection, or a token would go along.
    """
    try:
        parts = urlsplit(address)
        if parts.scheme not in _WEB or not parts.hostname:
            raise NotSent("what it names is no address that begins with https://.")
        # There is no TLS over http: a context without any trusted certificate is made at once.
        trusted = ssl.create_default_context() if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        headers = {"User-Agent": f"release-pipeline/{__version__}", "Accept-Encoding": "identity"}
        use_proxy = parts.hostname not in LOCAL
        with (
            httpx.Client(timeout=WAIT_SECONDS, headers=headers, verify=trusted, trust_env=use_proxy) as client,
            client.stream("POST", address, json=to_json(alert)) as reply,  # the answer's body is not read
        ):
            status = reply.status_code
    except FAULTS as error:
        fault = _name_fault(error)
        raise NotSent(f"it cannot be reached ({fault}).") from None
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise NotSent(f"it answered {status}.", for_good=status in _REFUSED)


def _name_fault(error: BaseException) -> str:
    """Return the kind of an error, without its message, which may have an address."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return type(cause or error).__name__


def send_mail(settings: EmailSettings, alert: Alert) -> None:
    """Send an alert as plain text, the same alert as the same message; raises `NotSent` where a recipient may not have it."""
    message = EmailMessage()
    try:
        message["Subject"] = f"[{_one_line(alert.site)}] {_one_line(alert.title)}"
        message["From"], message["To"] = settings.sender, ", ".join(settings.to)
        message["Message-ID"] = f"<{hashlib.sha256(f'{alert.site} {alert.id}'.encode()).hexdigest()[:32]}@release-pipeline>"
        message["Date"] = formatdate()
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(alert.text)
        with smtplib.SMTP(settings.host, settings.port, timeout=WAIT_SECONDS) as server:
            if settings.starttls:
                server.starttls(context=ssl.create_default_context())
            if settings.user:
                server.login(settings.user, settings.password)
            if refused := server.send_message(message):  # some recipients; it raises if all are refused
                raise NotSent(f"the mail server refused {len(refused)} of {len(settings.to)} recipients.")
    except smtplib.SMTPResponseException as error:
        status = error.smtp_code
        raise NotSent(f"the mail server refused ({status}).") from None
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise NotSent(f"the mail server cannot be reached or used ({type(error).__name__}).") from None


def _one_line(text: str) -> str:
    """Return a text for a header: no name in it can begin another header."""
    return " ".join(text.split())


NOBODY = "nothing is told: site.yaml has no 'alerts'"
LONGEST_SECONDS = 30.0  # for all channels of one check together: after that the next check goes on


@dataclass(frozen=True, slots=True)
class Sent:
    """How many alerts one receiver got, and how many are left for the next check. `reason`: why some are left."""

    name: str
    sent: int
    left: int
    reason: str = ""


def send_alerts(site: Site) -> list[Sent]:
    """Check the site, and send what waits. Returns what each receiver got; raises only for what is wrong at the site."""
    trouble: ReleasePipelineError | None = None
    try:
        look(site)
    except ReleasePipelineError as error:  # for example a registry that cannot be read: waiting alerts are still sent
        trouble = error
    end = time.monotonic() + LONGEST_SECONDS
    rules = list({rule.name: rule for rule in read_alerts(site)}.values())
    rules.sort(key=lambda rule: outbox_of(site, rule).failing is not None)  # receivers that failed delay no other
    done = [_send(rule.channel.title, outbox_of(site, rule), _alerts_to(site, rule), end) for rule in rules]
    if trouble is not None:
        raise trouble
    return done


def describe_sent(done: list[Sent]) -> Iterator[str]:
    """Yield lines for a person on what each receiver got."""
    for each in done:
        left = f", {each.left} left{f': {each.reason}' if each.reason else ''}" if each.left else ""
        yield f"{each.name}: {each.sent} sent{left}"


def _send(name: str, outbox: Outbox, deliver: Deliver, end: float) -> Sent:
    sent = outbox.send(deliver, may_go_on=lambda: time.monotonic() < end)
    left, failing = len(outbox.list_files()), outbox.failing
    return Sent(name, sent, left, "" if failing is None else failing.reason)


def _alerts_to(site: Site, rule: Rule) -> Deliver:
    opened = cache(lambda: open_channel(site, rule))

    def deliver(document: Mapping[str, Any]) -> None:
        opened()(read_alert(document))

    return deliver
