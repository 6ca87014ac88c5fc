"""Which role somebody has whom a reverse proxy names: by their groups, which it takes from its OIDC provider."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from release_pipeline.dagster_app.door import Role
from release_pipeline.door import Refused
from release_pipeline.door.addresses import Headers, read_one
from release_pipeline.door.proxies import ProxyHeaders, read_proxy_file

_HEADERS, _LISTS = ("secret_header", "person_header", "groups_header"), ("hosts", "view", "operate")


@dataclass(frozen=True, slots=True)
class TrustedProxy(ProxyHeaders):
    """A proxy, and the groups that each role is of."""

    groups_header: str
    view: frozenset[str]
    operate: frozenset[str]

    def find(self, headers: Headers) -> Role:
        """The role of who asks; refuses whoever did not come through the proxy, or is of no group that has a role."""
        self.find_person(headers)
        groups = {group.strip() for group in (read_one(headers, self.groups_header.encode()) or "").split(",")} - {""}
        for role, named in ((Role.OPERATE, self.operate), (Role.VIEW, self.view)):
            if groups & named:
                return role
        raise Refused(403, "none of your groups may look at this site, or operate it.")


def read_proxy(file: Path) -> TrustedProxy:
    """What a file says of a trusted proxy."""
    said = read_proxy_file(file, headers=_HEADERS, lists=_LISTS)
    lists = {"hosts": tuple(said["hosts"]), "view": frozenset(said["view"]), "operate": frozenset(said["operate"])}
    return TrustedProxy(**{**said, **lists})
