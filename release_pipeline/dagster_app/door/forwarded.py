"""Who somebody is, where a reverse proxy has asked an OIDC provider: its headers count with the secret that it shares with us.

Its address would not do: any account of the machine can connect from 127.0.0.1.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.dagster_app.door.addresses import Addresses, Headers, read_one
from release_pipeline.dagster_app.door.refusal import Refused
from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.dagster_app.door.sessions import Visitor
from release_pipeline.errors import WrongUsage
from release_pipeline.policy.load import read_text
from release_pipeline.policy.messages import raise_problems
from release_pipeline.policy.text import read_yaml

_TEXTS, _LISTS = ("secret_file", "secret_header", "person_header", "groups_header"), ("hosts", "view", "operate")
_EXAMPLE = "docs/operating.md has an example."
_LEAST_SECRET = 32


@dataclass(frozen=True, slots=True)
class TrustedProxy:
    """The headers of a proxy, the groups that each role is of, and the names under which the proxy is reached."""

    secret: str
    secret_header: str
    person_header: str
    groups_header: str
    hosts: tuple[str, ...]
    view: frozenset[str]
    operate: frozenset[str]

    @property
    def addresses(self) -> Addresses:
        """Pages come from the proxy alone, and by TLS."""
        hosts = frozenset(host.lower() for host in self.hosts)
        return Addresses(hosts, frozenset(f"https://{host}" for host in hosts))

    def find(self, headers: Headers) -> Visitor:
        """Who asks; refuses whoever did not come through the proxy, or is of no group that has a role."""
        secret = read_one(headers, self.secret_header.encode()) or ""
        if not hmac.compare_digest(secret.encode("latin-1"), self.secret.encode()):
            raise Refused(403, "this did not come through the proxy that the door trusts.")
        if not read_one(headers, self.person_header.encode()):
            raise Refused(403, "the proxy does not say who asks.")
        groups = {group.strip() for group in (read_one(headers, self.groups_header.encode()) or "").split(",")} - {""}
        for role, named in ((Role.OPERATE, self.operate), (Role.VIEW, self.view)):
            if groups & named:
                return Visitor(role, lambda: True)
        raise Refused(403, "none of your groups may look at this site, or operate it.")


def read_proxy(file: Path) -> TrustedProxy:
    """What a file says of a trusted proxy; paths in it are taken from its folder."""
    document, where = read_yaml(read_text(file)), str(file)
    if document.problems:
        raise_problems(document, document.problems, where, what="file")
    said: Any = document.value
    if not isinstance(said, dict) or set(said) != {*_TEXTS, *_LISTS}:
        names = ", ".join((*_TEXTS, *_LISTS))
        raise WrongUsage(f"a trusted proxy has exactly these: {names}.", where=where, remedy=_EXAMPLE)
    for name in _LISTS:
        if not isinstance(said[name], list) or not all(isinstance(one, str) and one and "," not in one for one in said[name]):
            raise WrongUsage(f"'{name}' is a list of texts without commas.", where=where, remedy=_EXAMPLE)
    headers = [said[name] for name in _TEXTS[1:]]
    if not all(isinstance(one, str) and re.fullmatch(r"[A-Za-z0-9-]+", one) for one in headers):
        raise WrongUsage("a header has letters, digits and hyphens.", where=where, remedy=_EXAMPLE)
    names = [one.lower() for one in headers]
    if len(set(names)) != len(names) or not said["hosts"]:
        raise WrongUsage("three different headers are needed, and a name in 'hosts'.", where=where, remedy=_EXAMPLE)
    return TrustedProxy(
        secret=_read_secret(file.parent / str(said["secret_file"])),
        secret_header=names[0],
        person_header=names[1],
        groups_header=names[2],
        hosts=tuple(said["hosts"]),
        view=frozenset(said["view"]),
        operate=frozenset(said["operate"]),
    )


def _read_secret(file: Path) -> str:
    """The secret of the proxy, which nobody else may read."""
    if not file.is_file():
        raise WrongUsage("the file with the proxy's secret is missing.", where=str(file), remedy=_EXAMPLE)
    if file.stat().st_mode & 0o007:
        raise WrongUsage("every account can read the proxy's secret.", where=str(file), remedy="chmod o= FILE")
    secret = read_text(file).strip()
    if len(secret) < _LEAST_SECRET or not secret.isascii() or not secret.isprintable():
        raise WrongUsage(
            f"the proxy's secret is one line of {_LEAST_SECRET} or more plain characters.",
            where=str(file),
            remedy="openssl rand -hex 32",
        )
    return secret
