"""Which names the door answers to, and which pages may change something: against DNS rebinding and forged requests.

A browser sends the name that it was told in Host, and the page that asks in Origin; no page can change either. Cookies alone say
nothing: the browser adds them whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from release_pipeline.door import Refused

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Addresses:
    """The names of the door, each NAME or NAME:PORT, and the origins of its own pages."""

    hosts: frozenset[str]
    origins: frozenset[str]

    def check_host(self, headers: Headers) -> None:
        """Refuse a request for a name that is not the door's."""
        if (read_one(headers, b"host") or "").lower() not in self.hosts:
            raise Refused(403, "the door has another name. Use the address that it printed, or start it with --allow-host.")

    def check_change(self, headers: Headers) -> None:
        """Refuse what could change something unless a page of the door's own asks."""
        own = (read_one(headers, b"origin") or "").lower() in self.origins
        if not own or read_one(headers, b"sec-fetch-site") not in (None, "same-origin"):
            raise Refused(403, "this was asked by a page that is not the door's own, or by no page at all.")

    def check_look(self, headers: Headers) -> None:
        """Refuse to be a picture, a script or a frame of another page; links may lead here."""
        if read_one(headers, b"sec-fetch-site") in (None, "none", "same-origin"):
            return
        if (read_one(headers, b"sec-fetch-mode"), read_one(headers, b"sec-fetch-dest")) != ("navigate", "document"):
            raise Refused(403, "another page asks for this, and not the person who looks at it.")


def local_addresses(port: int, also: Iterable[str] = ()) -> Addresses:
    """The door on this machine, and the names under which it is reached besides."""
    hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}", *(name.lower() for name in also)})
    return Addresses(hosts, frozenset(f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts))


def proxy_addresses(hosts: Iterable[str]) -> Addresses:
    """The names under which a proxy is reached: its pages come by TLS."""
    names = frozenset(host.lower() for host in hosts)
    return Addresses(names, frozenset(f"https://{name}" for name in names))


def read_one(headers: Headers, name: bytes) -> str | None:
    """The value of a header that may stand once; twice, two readers could take different ones."""
    found = [value for key, value in headers if key.lower() == name]
    if len(found) > 1:
        raise Refused(400, "a header stands twice that may stand once.")
    return found[0].decode("latin-1").strip() if found else None
