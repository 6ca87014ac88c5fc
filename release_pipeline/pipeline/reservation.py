"""The steps before the noise: the charge under the cap, once, and then the secret that the noise is drawn with.

The secret is in a private file from the reservation until the noise is committed, and never in a database, where a deleted row
stays readable. The registry has a check value of it (a hash from which it cannot be computed), which detects a replaced or lost
secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release_pipeline.errors import Blocked, SecretLost
from release_pipeline.ledger.looks import has_origins
from release_pipeline.ledger.office import check_accepted
from release_pipeline.ledger.states import LOST_WORDS, SECRET, ReleaseStatus, check_move, move, read_statuses, status_of
from release_pipeline.pipeline.cap import check_cap
from release_pipeline.policy import Policy
from release_pipeline.store.files import Probe, check_value, is_secret, keep_secret, locked, read_secret, remove_secret
from release_pipeline.store.ledger import RESERVED, Charge, add_charge
from release_pipeline.store.registry import Registry, ReleaseId
from release_pipeline.store.site import Site

_WHAT = "a secret"


@dataclass(frozen=True, slots=True)
class Reservation:
    """The subject of a charge: these records of this release under this policy. `source` is the keyed hash of the records for
    this release. `origins`: hashes that identify the source of the records."""

    policy: Policy
    release: ReleaseId
    records: int
    source: str
    origins: tuple[str, ...] = ()


def reserve(site: Site, wanted: Reservation, probe: Probe) -> bytes:
    """Charge the loss of a release once, before anything random, and return its secret: new, or that of an unfinished attempt.

    After a charge the registry records the check value of the secret before it is used. So without that record a secret may be
    made again, whatever file there is; with it, only that very secret is accepted.
    """
    with locked(site.vault / "secrets"):
        with site.open_registry() as registry:
            check_accepted(registry.events)
            statuses = read_statuses(registry.events)
            status = statuses.get(wanted.release, ReleaseStatus(wanted.release))
            _refuse_other(status, wanted)
            if status.charge is None:
                _charge(registry, site, wanted)
        _sweep(site, statuses, keep=wanted.release)
        probe.reached("the loss is charged")
        check = status.secret
        if check is None:
            secret = probe.new_secret()
            check = check_value(secret, what=_WHAT)
            keep_secret(_secret_file(site, wanted.release), secret, probe)
            probe.reached("the secret is on the disk")
            with site.open_registry() as registry:
                move(registry, wanted.release, SECRET, check=check)
            probe.reached("the secret is noted")
        return _read_reserved(site, wanted.release, check)


def reserved_secret(site: Site, policy: Policy, release: ReleaseId, *, source: str) -> bytes:
    """Return the secret of a release that was charged for these records under this policy and is not drawn yet; without it the
    release is lost."""
    with site.open_registry(read_only=True) as registry:
        status = status_of(registry, release)
    if status.charge is None:
        raise Blocked(
            "the registry has no charge for this release.", where=str(release), remedy="Was the registry replaced? Restore it."
        )
    _refuse_other(status, Reservation(policy, release, status.charge.records, source))
    return _read_reserved(site, release, status.secret or "")


def _read_reserved(site: Site, release: ReleaseId, check: str) -> bytes:
    """Return the stored secret, when it is the one whose check value was recorded."""
    secret = read_secret(_secret_file(site, release))
    if not is_secret(secret, check, what=_WHAT):
        what = "is lost" if not secret else "is not the one that was made for it"
        raise SecretLost(
            f"the secret of this release {what}, after it was charged: its noise cannot be made.",
            where=str(release),
            remedy=next_revision(release),
        )
    return secret


def forget_secret(site: Site, release: ReleaseId) -> None:
    """Remove the secret, and the remains of broken attempts to write it."""
    remove_secret(_secret_file(site, release))


def next_revision(release: ReleaseId) -> str:
    """Return what to do when a release can only be made again: the revision that a fresh charge opens, and the command."""
    return (
        f"Only {release.next} can replace it, with a fresh charge: "
        f"release-pipeline run {release.policy} --release {release.release} --revise 'REASON'."
    )


def _refuse_other(status: ReleaseStatus, wanted: Reservation) -> None:
    """Refuse a release that was charged for something else, was given up, or is drawn: the same secret never masks two inputs."""
    release, charge = wanted.release, status.charge
    if status.lost:
        raise Blocked(LOST_WORDS, where=str(release), remedy=next_revision(release))
    if status.replaced is not None and status.drawn is None:
        raise Blocked(f"it was given up for {status.replaced}.", where=str(release), remedy="Run that one.")
    if charge is None:
        return
    if charge.policy_hash != wanted.policy.canonical_hash() or charge.population != wanted.policy.population:
        raise Blocked(
            "this release was charged under another policy, so its noise must not be drawn under this one.",
            where=str(release),
            remedy=f"Restore that policy. {next_revision(release)}",
        )
    if charge.source != wanted.source:
        raise Blocked(
            "this release was charged for other data; its secret must not mask these.",
            where=str(release),
            remedy=f"Restore the source. {next_revision(release)}",
        )
    if status.drawn is not None:
        raise Blocked(
            "the registry says that the noise of this release was drawn, and the vault has no record of it.",
            where=str(release),
            remedy=f"Was an older vault put back? Restore the right one. {next_revision(release)}",
        )


def _charge(registry: Registry, site: Site, wanted: Reservation) -> None:
    """Record the charge, with the cap check in its transaction."""
    policy, release = wanted.policy, wanted.release
    account, loss = check_cap(site, registry, policy, release, records=wanted.records)
    check_move(registry, release, RESERVED)
    charge = Charge(
        release,
        policy.population,
        policy.canonical_hash(),
        wanted.source,
        wanted.records,
        loss,
        carries=account.carries,
        origins=wanted.origins if has_origins(registry.events) else (),
    )
    add_charge(registry, charge, account)


def _secret_file(site: Site, release: ReleaseId) -> Path:
    return site.vault / "secrets" / release.file_name


def _sweep(site: Site, statuses: Mapping[ReleaseId, ReleaseStatus], *, keep: ReleaseId) -> None:
    """Remove every secret that may no longer be used: an older copy of the vault may have brought it back."""
    usable = [keep, *(name for name, known in statuses.items() if known.secret and not known.drawn and not known.replaced)]
    names = {_secret_file(site, release).name for release in usable}
    for file in (site.vault / "secrets").iterdir():
        if file.name not in names and not any(file.name.startswith(f".{name}.") for name in names):
            file.unlink(missing_ok=True)
