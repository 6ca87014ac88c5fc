"""The section `alerts` of site.yaml: who gets which alerts. It has no password: ${NAME} is taken from the environment when
something is sent. No secret, nor anything that may be one, is ever shown."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, StrictStr, TypeAdapter, ValidationInfo

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.operate.alerts.matters import KINDS
from release_pipeline.policy.values.text import Problem
from release_pipeline.store.environment import LOCAL, expand, is_mail
from release_pipeline.store.settings import Say, Settings, meets, wrong
from release_pipeline.store.site import Site

_NAME = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SHARE = re.compile(r"([1-9][0-9]?)%")
_LAST_PORT = 65535
_RULE = "As in {on: [blocked], webhook: '${ALERTS_URL}'}."


def _check_address(address: str) -> str:
    """Return the address of a web hook; an error message does not repeat it, since it may be a secret."""
    is_web = address.startswith(("http://", "https://")) or _NAME.match(address) is not None
    if not is_web or any(letter.isspace() for letter in address):
        raise wrong("this is no address.", "It begins with https:// or is ${NAME}, which is taken from the environment.")
    try:
        parts = urlsplit(_NAME.sub("name", address))
        named, inside = (parts.hostname or not address.startswith("http")) and (parts.port or True), "@" in parts.netloc
    except ValueError:
        named, inside = False, False
    if not named:
        raise wrong("this is no address.", "As in https://alerts.example.org/hook.")
    if inside:
        raise wrong("a name or password stands in the address.", "Put the whole address into the environment: ${NAME}.")
    return address


def _read_share(share: Any, info: ValidationInfo) -> int:
    percent = _SHARE.fullmatch(str(share))
    if percent is None or "cap" not in info.data.get("on", ()):
        raise ValueError
    return int(percent[1])


def _check_password(password: str, info: ValidationInfo) -> str:
    if _NAME.fullmatch(password) is None:
        raise wrong("a password stands here.", "Put it into the environment: ${NAME}.")
    if not info.data.get("starttls") and info.data.get("host") not in LOCAL:
        raise wrong("the password would be readable on its way.", "Add starttls: true.")
    return password


def _is_list(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError
    return cast("list[Any]", value)


_Mail = Annotated[StrictStr, meets(lambda text: is_mail(text) or _NAME.fullmatch(text) is not None)]


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """An address that gets a POST, as it is declared."""

    address: str

    @property
    def title(self) -> str:
        """Return the channel for a person: its host, or the variable that it begins with, and nothing that may be a secret."""
        if (name := _NAME.match(self.address)) is not None:
            return f"webhook {name[0]}"
        parts = urlsplit(self.address)
        return f"webhook {parts.scheme}://{parts.hostname}"


class EmailSettings(Settings):
    """Mails by a server, as they are declared."""

    mapping: ClassVar[tuple[str, str]] = (
        "this is no mapping.",
        "As in {to: [a@example.org], from: b@example.org, host: localhost}.",
    )

    to: Annotated[
        tuple[_Mail, ...],
        Field(min_length=1),
        BeforeValidator(_is_list),
        Say("to is a list of mail addresses.", "As in [a@example.org]."),
    ]
    sender: Annotated[_Mail, Say("from is a mail address.", "As in b@example.org.")] = Field(alias="from")
    host: Annotated[StrictStr, Field(min_length=1), Say("host is a text.")]
    port: Annotated[StrictInt, Field(ge=1, le=_LAST_PORT), Say(f"port is a number from 1 to {_LAST_PORT}.")] = 25
    starttls: Annotated[StrictBool, Say("starttls is true or false.")] = False
    user: Annotated[StrictStr, Field(min_length=1), Say("user is a text.")] = ""
    password: Annotated[StrictStr, AfterValidator(_check_password), Say("password is a text.")] = ""

    @classmethod
    def find_faults(cls, said: Mapping[str, Any], context: Any) -> Iterator[Problem]:
        """Yield a problem if there is a user without a password."""
        if ("user" in said) != ("password" in said):
            yield (), "user and password go together.", "Name both or neither."

    @property
    def title(self) -> str:
        """Return the channel for a person."""
        return f"e-mail to {', '.join(self.to)}"


class Rule(Settings):
    """The alerts for one channel. `share`: the percent of a cap that may be spent before an alert; None asks whether a coming
    release still fits."""

    mapping: ClassVar[tuple[str, str]] = ("this is no mapping.", _RULE)

    on: Annotated[
        frozenset[Annotated[str, meets(lambda kind: kind in KINDS)]],
        Field(min_length=1),
        BeforeValidator(_is_list),
        Say("on is a list of what is told.", f"Of these: {', '.join(KINDS)}."),
    ]
    webhook: Annotated[StrictStr, AfterValidator(_check_address), Say("this is no address.", "As in https://a.example.org.")] = ""
    email: EmailSettings | None = None
    share: (
        Annotated[
            int,
            BeforeValidator(_read_share),
            Say("share is the part of a cap that is spent, from 1% to 99%, and goes with 'cap'.", "As in 80%."),
        ]
        | None
    ) = None

    @classmethod
    def find_faults(cls, said: Mapping[str, Any], context: Any) -> Iterator[Problem]:
        """Yield a problem unless the rule has one channel."""
        if ("webhook" in said) == ("email" in said):
            yield (), "either 'webhook' or 'email' says where it goes.", "Name one of them; a second rule may name the other."

    @property
    def channel(self) -> WebhookSettings | EmailSettings:
        """Return the channel that it names."""
        return WebhookSettings(self.webhook) if self.email is None else self.email

    @property
    def name(self) -> str:
        """Return the channel's name: a hash of its entry in site.yaml, which reveals none of it."""
        channel = json.dumps(self.webhook if self.email is None else self.email.model_dump())
        return hashlib.sha256(channel.encode()).hexdigest()[:16]

    def wants(self, kind: str, share: int | None) -> bool:
        """Return whether it is about an alert of this kind and, of a cap, this share."""
        return kind in self.on and share == (self.share if kind == "cap" else None)


_RULES: TypeAdapter[tuple[Rule, ...]] = TypeAdapter(
    Annotated[
        tuple[Rule, ...],
        Field(min_length=1),
        BeforeValidator(_is_list),
        Say("this is no list of who is told what.", "As in: - {on: [blocked], webhook: '${ALERTS_URL}'}."),
    ]
)


def read_alerts(site: Site) -> tuple[Rule, ...]:
    """Return the rules of a site, none where site.yaml has none; raises an error with every fault and its place."""
    return site.read_section("alerts", _RULES) or ()


def fill(site: Site, text: str) -> str:
    """Return a declared text with the environment's value for every ${NAME} in it."""
    try:
        return expand(text, site.environment)
    except SourceError as error:
        what = "what it names is not in the environment."
        raise ReleasePipelineError(what, where=str(site.home / "site.yaml"), remedy=error.remedy) from None


def is_open_road(address: str) -> bool:
    """Return whether others can read what goes to an address: by http, and not to this machine."""
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname not in LOCAL
