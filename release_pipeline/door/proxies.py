"""Who somebody is, where a reverse proxy has asked an OIDC provider: its headers count with the secret that it shares with us.

Its address would not do: any account of the machine can connect from 127.0.0.1.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from release_pipeline.door import Refused
from release_pipeline.door.addresses import Addresses, Headers, proxy_addresses, read_one
from release_pipeline.errors import WrongUsage
from release_pipeline.policy.load import read_text
from release_pipeline.policy.messages import raise_problems
from release_pipeline.policy.text import read_yaml

EXAMPLE = "docs/operating.md has an example."
_LEAST_SECRET = 32


@dataclass(frozen=True, slots=True)
class ProxyHeaders:
    """The headers of a proxy, and the names under which it is reached."""

    secret: str
    secret_header: str
    person_header: str
    hosts: tuple[str, ...]

    @property
    def addresses(self) -> Addresses:
        """Pages come from the proxy alone, and by TLS."""
        return proxy_addresses(self.hosts)

    def find_person(self, headers: Headers) -> str:
        """Who asks, as the proxy has them; refuses whoever did not come through it."""
        secret = read_one(headers, self.secret_header.encode()) or ""
        if not hmac.compare_digest(secret.encode("latin-1"), self.secret.encode()):
            raise Refused(403, "this did not come through the proxy that the door trusts.")
        person = read_one(headers, self.person_header.encode())
        if not person:
            raise Refused(403, "the proxy does not say who asks.")
        return person


def read_proxy_file(file: Path, *, headers: Sequence[str], lists: Sequence[str]) -> dict[str, Any]:
    """What a file says of a proxy: its secret from `secret_file`, `headers` in lower case and different, `lists` of texts. Paths
    in it are taken from its folder."""
    document, where = read_yaml(read_text(file)), str(file)
    if document.problems:
        raise_problems(document, document.problems, where, what="file")
    value: Any = document.value
    said = cast("dict[str, Any]", value) if isinstance(value, dict) else dict[str, Any]()
    expected = ("secret_file", *headers, *lists)
    if set(said) != set(expected):
        raise WrongUsage(f"a trusted proxy has exactly these: {', '.join(expected)}.", where=where, remedy=EXAMPLE)
    for name in lists:
        texts = cast("list[Any]", said[name]) if isinstance(said[name], list) else [None]
        if not all(isinstance(one, str) and one and "," not in one for one in texts):
            raise WrongUsage(f"'{name}' is a list of texts without commas.", where=where, remedy=EXAMPLE)
    if not all(isinstance(said[name], str) and re.fullmatch(r"[A-Za-z0-9-]+", said[name]) for name in headers):
        raise WrongUsage("a header has letters, digits and hyphens.", where=where, remedy=EXAMPLE)
    names = {name: said[name].lower() for name in headers}
    if len(set(names.values())) != len(names) or not said["hosts"]:
        count = {2: "two", 3: "three"}[len(names)]
        raise WrongUsage(f"{count} different headers are needed, and a name in 'hosts'.", where=where, remedy=EXAMPLE)
    return {"secret": _read_secret(file.parent / str(said["secret_file"])), **names, **{name: said[name] for name in lists}}


def _read_secret(file: Path) -> str:
    """The secret of the proxy, which nobody else may read."""
    if not file.is_file():
        raise WrongUsage("the file with the proxy's secret is missing.", where=str(file), remedy=EXAMPLE)
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
