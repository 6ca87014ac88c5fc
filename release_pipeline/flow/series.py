"""A series that publishes random parts of one frozen table, one per release: its secret, and what must not change meanwhile.

The secret says which record is in which part. It is made with the first charge and kept until every part is published: until then
a part that reviewers reject can be made once more. All that time every release reads the same records under the same policy; the
registry holds a check value of the secret and the keyed hash of the records. Nobody is in two parts, so that the series costs
what one release costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from release_pipeline.errors import Blocked, SecretLost
from release_pipeline.flow.secret_files import PLAIN, Probe, check_value, is_secret, keep_secret, read_secret, remove_secret
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import SERIES, read_statuses
from release_pipeline.policy import Policy
from release_pipeline.store.folders import locked
from release_pipeline.store.registry import Event, Registry, ReleaseId

PREFIX = "series."  # of the secret's file; a release's begins with its policy, and no policy has a dot
_WHAT = "a series' secret"


@dataclass(frozen=True, slots=True)
class Begun:
    """What the registry noted when a series began."""

    policy: str
    policy_hash: str
    content: str
    check: str
    releases: tuple[str, ...]


def find_series(events: Iterable[Event], policy: str) -> Begun | None:
    """The series of a policy, if it has begun."""
    for event in events:
        if event.kind == SERIES and event.release is not None and event.release.policy == policy:
            payload = event.content
            return Begun(policy, payload["policy_hash"], payload["records"], payload["check"], tuple(payload["releases"]))
    return None


def check_series(site: Site, registry: Registry, policy: Policy, release: ReleaseId, content: str) -> None:
    """Refuse a release of a series that began under another policy or with other records, or whose secret is gone: before
    anything is charged. `content`: the keyed hash of the records."""
    begun = find_series(registry.events, policy.policy)
    if begun is None:
        return
    if begun.policy_hash != policy.canonical_hash():
        raise Blocked(
            "the series began under another policy, and its parts are published under one.",
            where=str(release),
            remedy="Restore that policy. Under another name a new series can begin, with a charge of its own.",
        )
    if begun.content != content:
        raise Blocked(
            "the series began with other records: its parts are taken from one frozen table.",
            where=str(release),
            remedy="Restore the source as it was, in the same order of rows.",
        )
    _read(site, begun, release)


def series_secret(site: Site, policy: Policy, release: ReleaseId, content: str, probe: Probe = PLAIN) -> bytes:
    """The secret of the series: made and noted with its first release, and the same for all of them."""
    with locked(site.vault / "secrets"):
        with site.open_registry(read_only=True) as registry:
            begun = find_series(registry.events, policy.policy)
        if begun is None:
            secret = probe.new_secret()
            keep_secret(_file(site, policy.policy), secret, probe)
            begun = Begun(policy.policy, policy.canonical_hash(), content, check_value(secret, what=_WHAT), policy.release_names)
            with site.open_registry() as registry:
                registry.add(
                    SERIES,
                    release,
                    policy_hash=begun.policy_hash,
                    records=content,
                    check=begun.check,
                    releases=list(begun.releases),
                )
            probe.reached("the series is noted")
        return _read(site, begun, release)


def check_series_goes_on(site: Site, registry: Registry, policy: Policy, release: ReleaseId) -> None:
    """Refuse to open what could never be made: a part of a series whose secret is gone."""
    begun = find_series(registry.events, policy.policy)
    if policy.publishes_parts and begun is not None:
        _read(site, begun, release)


def forget_series(site: Site, policy: str) -> bool:
    """Forget the secret of a policy's series once every part is published; whether it is gone."""
    with site.open_registry(read_only=True) as registry:
        begun, statuses = find_series(registry.events, policy), read_statuses(registry.events)
    if begun is None:
        return False
    out = {known.release for known, status in statuses.items() if known.policy == policy and status.package_hash is not None}
    if not out >= set(begun.releases):
        return False
    remove_secret(_file(site, policy))
    return True


def _read(site: Site, begun: Begun, release: ReleaseId) -> bytes:
    secret = read_secret(_file(site, begun.policy))
    if not is_secret(secret, begun.check, what=_WHAT):
        what = (
            "is gone: it was forgotten when every part was published, or lost"
            if not secret
            else "is not the one that was made for it"
        )
        raise SecretLost(
            f"the secret that tells the parts of this series apart {what}.",
            where=str(release),
            remedy="No part can be made anew. Under another name a new series can begin, with a charge of its own.",
        )
    return secret


def _file(site: Site, policy: str) -> Path:
    return site.vault / "secrets" / f"{PREFIX}{policy}"
