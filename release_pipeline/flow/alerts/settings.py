"""What site.yaml says of who is told what: `alerts`, and where lineage goes. No password stands there: ${NAME} is taken from the
environment when something is sent, and whatever comes from there, or may be a secret, is never shown."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.flow.alerts.alert import KINDS
from release_pipeline.flow.site import Site
from release_pipeline.policy.messages import suggest
from release_pipeline.policy.text import Path as Place
from release_pipeline.policy.text import Problem
from release_pipeline.policy.typed import Plain
from release_pipeline.store.addresses import LOCAL, is_mail
from release_pipeline.store.expansion import expand

_NAME = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SHARE = re.compile(r"([1-9][0-9]?)%")
_RULE, _EMAIL, _LINEAGE = (
    ("on", "webhook", "email", "share"),
    ("to", "from", "host", "port", "starttls", "user", "password"),
    ("openlineage", "namespace"),
)
_TEXTS = ("from", "host", "user", "password")
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """An address that gets a POST, as it is declared."""

    address: str

    @property
    def words(self) -> str:
        """It for a person: its host, or the variable that it begins with, and nothing that may be a secret."""
        if (name := _NAME.match(self.address)) is not None:
            return f"webhook {name[0]}"
        parts = urlsplit(self.address)
        return f"webhook {parts.scheme}://{parts.hostname}"


@dataclass(frozen=True, slots=True)
class EmailSettings:
    """Mails by a server, as they are declared."""

    to: tuple[str, ...]
    sender: str
    host: str
    port: int = 25
    starttls: bool = False
    user: str = ""
    password: str = ""

    @property
    def words(self) -> str:
        """It for a person."""
        return f"e-mail to {', '.join(self.to)}"


@dataclass(frozen=True, slots=True)
class Rule:
    """Who is told what. `share`: of a cap, the percent that may be spent before it is told; None asks whether a release that is
    to come still fits."""

    on: frozenset[str]
    channel: WebhookSettings | EmailSettings
    share: int | None = None

    @property
    def name(self) -> str:
        """The channel as a name that stays as long as site.yaml says the same of it, and shows nothing of it."""
        said = json.dumps([type(self.channel).__name__, *(getattr(self.channel, part) for part in self.channel.__slots__)])
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def wants(self, kind: str, share: int | None) -> bool:
        """Whether it is about such an alert."""
        return kind in self.on and share == (self.share if kind == "cap" else None)


@dataclass(frozen=True, slots=True)
class LineageSettings:
    """Where OpenLineage events go: an address, or a folder; and the namespace of jobs and tables."""

    address: str
    namespace: str
    folder: Path | None = None

    @property
    def words(self) -> str:
        """It for a person."""
        return "lineage to a folder" if self.folder else f"lineage to {WebhookSettings(self.address).words}"


def read_alerts(site: Site) -> tuple[Rule, ...]:
    """The rules of a site; none where site.yaml has none. Refuses what it does not mean, with every fault and its place."""
    said = site.read_section("alerts", lambda said: _find_faults(said) if said is not None else ())
    return tuple(_build(rule) for rule in cast(list[dict[str, Any]], said or []))


def read_lineage(site: Site) -> LineageSettings | None:
    """Where the lineage of a site goes, if site.yaml says so."""

    def find_faults(said: Plain) -> Iterable[Problem]:
        return () if said is None else [*_find_faults_of_lineage(said)] or _find_published(site, said)

    said = site.read_section("lineage", find_faults)
    return None if said is None else _build_lineage(site, cast(dict[str, str], said))


def fill(site: Site, text: str) -> str:
    """A declared text with what the environment has for every ${NAME} in it."""
    try:
        return expand(text, site.environment)
    except SourceError as error:
        what = "what it names is not in the environment."
        raise ReleasePipelineError(what, where=str(site.home / "site.yaml"), remedy=error.remedy) from None


def is_open_road(address: str) -> bool:
    """Whether what goes to an address can be read on its way: by http, and not to this machine."""
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname not in LOCAL


def _build(said: Mapping[str, Any]) -> Rule:
    share = _SHARE.fullmatch(said.get("share", ""))
    on, percent = frozenset(said["on"]), None if share is None else int(share[1])
    if "webhook" in said:
        return Rule(on, WebhookSettings(said["webhook"]), percent)
    mail = said["email"]
    texts = {name: mail.get(name, "") for name in ("host", "user", "password")}
    more = {"port": mail.get("port", 25), "starttls": mail.get("starttls", False)}
    return Rule(on, EmailSettings(tuple(mail["to"]), mail["from"], **texts, **more), percent)


def _build_lineage(site: Site, said: Mapping[str, str]) -> LineageSettings:
    address, namespace = said["openlineage"], said.get("namespace", site.home.name)
    folder = None if _is_web(address) else (site.home / address).resolve()
    return LineageSettings(address, namespace, folder)


def _is_web(address: str) -> bool:
    return address.startswith(("http://", "https://")) or _NAME.match(address) is not None


def _find_faults(said: Plain) -> Iterator[Problem]:
    if not isinstance(said, list) or not said:
        yield ("alerts",), "this is no list of who is told what.", "As in: - {on: [blocked], webhook: '${ALERTS_URL}'}."
        return
    for number, rule in enumerate(said):
        place: Place = ("alerts", number)
        if not isinstance(rule, dict):
            yield place, "this is no mapping.", "As in {on: [blocked], webhook: '${ALERTS_URL}'}."
            continue
        yield from _find_unknown(rule, _RULE, place)
        yield from _find_wrong_kinds(rule.get("on"), (*place, "on"))
        if ("webhook" in rule) == ("email" in rule):
            yield place, "either 'webhook' or 'email' says where it goes.", "Name one of them; a second rule may name the other."
        elif "webhook" in rule:
            yield from _find_wrong_address(rule["webhook"], (*place, "webhook"))
        else:
            yield from _find_wrong_mail(rule["email"], (*place, "email"))
        on = rule.get("on")
        if "share" in rule and not (isinstance(on, list) and "cap" in on and _SHARE.fullmatch(str(rule["share"]))):
            yield (
                (*place, "share"),
                "share is the part of a cap that is spent, from 1% to 99%, and goes with 'cap'.",
                "As in 80%.",
            )


def _find_unknown(said: Mapping[str, Plain], known: Collection[str], place: Place) -> Iterator[Problem]:
    for name in said:
        if name not in known:  # where a space is missing the address, or a password, is a part of the key
            key = name.partition(":")[0]
            what = f"'{key}' is not known here." if key == name else f"a space is missing behind '{key}:'."
            yield place, what, suggest(key, known)


def _find_wrong_kinds(said: Plain, place: Place) -> Iterator[Problem]:
    if not isinstance(said, list) or not said or any(kind not in KINDS for kind in said):
        yield place, "on is a list of what is told.", f"Of these: {', '.join(KINDS)}."


def _find_wrong_address(said: Plain, place: Place) -> Iterator[Problem]:
    """What is wrong with the address of a webhook; it is not repeated, for it may be a secret."""
    if not isinstance(said, str) or not _is_web(said) or any(letter.isspace() for letter in said):
        yield place, "this is no address.", "It begins with https:// or is ${NAME}, which is taken from the environment."
        return
    try:
        parts = urlsplit(_NAME.sub("name", said))
        named, inside = (parts.hostname or not said.startswith("http")) and (parts.port or True), "@" in parts.netloc
    except ValueError:
        named, inside = False, False
    if not named:
        yield place, "this is no address.", "As in https://alerts.example.org/hook."
    if inside:
        yield place, "a name or password stands in the address.", "Put the whole address into the environment: ${NAME}."


def _find_wrong_mail(said: Plain, place: Place) -> Iterator[Problem]:
    if not isinstance(said, dict):
        yield place, "this is no mapping.", "As in {to: [a@example.org], from: b@example.org, host: localhost}."
        return
    yield from _find_unknown(said, _EMAIL, place)
    to = said.get("to")
    if not isinstance(to, list) or not to or not all(_is_mail(one) for one in to):
        yield (*place, "to"), "to is a list of mail addresses.", "As in [a@example.org]."
    if not _is_mail(said.get("from")):
        yield (*place, "from"), "from is a mail address.", "As in b@example.org."
    for name in _TEXTS[1:]:
        if (name in said or name == "host") and not (isinstance(said.get(name), str) and said[name]):
            yield (*place, name), f"{name} is a text.", ""
    if type(port := said.get("port", 25)) is not int or not 1 <= port <= _LAST_PORT:
        yield (*place, "port"), f"port is a number from 1 to {_LAST_PORT}.", ""
    if type(said.get("starttls", False)) is not bool:
        yield (*place, "starttls"), "starttls is true or false.", ""
    if ("user" in said) != ("password" in said):
        yield place, "user and password go together.", "Name both or neither."
    if "password" in said and not _NAME.fullmatch(str(said["password"])):
        yield (*place, "password"), "a password stands here.", "Put it into the environment: ${NAME}."
    if "password" in said and said.get("starttls") is not True and said.get("host") not in LOCAL:
        yield (*place, "password"), "the password would be readable on its way.", "Add starttls: true."


def _is_mail(said: Plain) -> bool:
    return is_mail(said) or (isinstance(said, str) and _NAME.fullmatch(said) is not None)


def _find_faults_of_lineage(said: Plain) -> Iterator[Problem]:
    if not isinstance(said, dict):
        yield ("lineage",), "this is no mapping.", "As in {openlineage: '${OPENLINEAGE_URL}'}."
        return
    yield from _find_unknown(said, _LINEAGE, ("lineage",))
    for name in _LINEAGE:
        text = said.get(name, "" if name == "openlineage" else name)
        if not isinstance(text, str) or not text.strip():
            yield ("lineage", name), f"{name} is a text.", "openlineage is an address, or a folder."
        elif name == "openlineage" and ("://" in text or _is_web(text)):
            yield from _find_wrong_address(text, ("lineage", name))


def _find_published(site: Site, said: Plain) -> Iterator[Problem]:
    """A folder in which somebody else than who reads lineage would find it, or the queue itself."""
    folder = _build_lineage(site, cast(dict[str, str], said)).folder
    parents = () if folder is None else (folder, *folder.parents)
    if site.releases.resolve() in parents:
        yield ("lineage", "openlineage"), "this folder is published.", "Name another: lineage is not for the public."
    elif any(own.resolve() in parents for own in (site.vault, site.dagster_home, site.home / "policies")):
        yield ("lineage", "openlineage"), "this folder is the site's own.", "Name another."
