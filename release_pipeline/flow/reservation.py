"""What comes before the noise: the charge under the cap, once, and then the secret that the noise is drawn with.

The secret lies in a private file from the reservation until the noise is committed, and never in a database, where a deleted row
stays readable.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from release_pipeline.errors import Blocked, OverCap, SecretLost
from release_pipeline.flow.files import make_private_folder, sync
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import Account, Loss, release_loss
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.store.registry import Charge, Registry, ReleaseId, open_registry


def reserve(site: Site, policy: Policy, release: ReleaseId, *, records: int, source: str) -> bytes:
    """Charge the loss of a release once, before anything random, and give its secret: new, or that of an unfinished attempt.

    `source` is the keyed hash of the records that the noise is for: the same secret never masks other ones.
    """
    with open_registry(site.registry) as registry:
        mine = [charge for charge in registry.charges() if charge.id == release]
        if not mine:
            _charge(registry, site, policy, release, records, source)
    if not mine:
        return _make_secret(_secret_file(site, release))
    if mine[0].policy_hash != policy.canonical_hash() or mine[0].population != policy.population:
        raise Blocked(
            "this release was charged under another policy, so its noise must not be drawn again.",
            where=str(release),
            remedy="Restore that policy, or open the next revision.",
        )
    if mine[0].source != source:
        raise Blocked(
            "this release was charged for other data; its secret must not mask these.",
            where=str(release),
            remedy="Restore the source, or open the next revision.",
        )
    return reserved_secret(site, release)


def reserved_secret(site: Site, release: ReleaseId) -> bytes:
    """The secret of a release that was charged; without it the release is lost."""
    try:
        secret = _secret_file(site, release).read_bytes()
    except FileNotFoundError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise SecretLost(
            "the secret of this release is lost after it was charged, so its noise cannot be made again.",
            where=str(release),
            remedy="Open the next revision, which is charged anew.",
        )
    return secret


def check_charged(site: Site, policy: Policy, release: ReleaseId) -> None:
    """Refuse to draw for a release that the registry does not know as charged under this policy."""
    with open_registry(site.registry) as registry:
        mine = [charge for charge in registry.charges() if charge.id == release]
    if [(charge.policy_hash, charge.population) for charge in mine] != [(policy.canonical_hash(), policy.population)]:
        raise Blocked(
            "the registry has no charge for this release under this policy.",
            where=str(release),
            remedy="Was the registry replaced? Restore it.",
        )


def forget_secret(site: Site, release: ReleaseId) -> None:
    """The secret is gone after this."""
    file = _secret_file(site, release)
    file.unlink(missing_ok=True)
    if file.parent.is_dir():
        sync(file.parent)


def open_account(site: Site, policy: Policy, charges: Sequence[Charge]) -> Account:
    """The account of the policy's population with these charges."""
    return Account(policy.population, site.population(policy), tuple(charge.loss for charge in charges))


def refuse_over_cap(account: Account, loss: Loss, release: ReleaseId) -> OverCap:
    """The refusal in words: what is spent, and what this release would make of it."""
    return OverCap(
        f"this release would bring {account.population} to {account.after(loss)} of {account.limit} ({account.unit}); "
        f"{account.spent} is spent.",
        where=str(release),
        remedy="The cap is the privacy officer's: populations.yaml.",
    )


def _charge(registry: Registry, site: Site, policy: Policy, release: ReleaseId, records: int, source: str) -> None:
    """The plain cap check, in the transaction of the charge."""
    loss = release_loss(policy, records=records)
    account = open_account(site, policy, registry.charges(policy.population))
    if not account.admits(loss):
        raise refuse_over_cap(account, loss, release)
    registry.charge(Charge(release, policy.population, policy.canonical_hash(), source, loss))
    registry.set_state(release, "reserved", policy_hash=policy.canonical_hash())


def _secret_file(site: Site, release: ReleaseId) -> Path:
    return site.vault / "secrets" / str(release).replace("/", "~")


def _make_secret(file: Path) -> bytes:
    """A new secret from the operating system, on disk before anybody uses it."""
    make_private_folder(file.parent)
    secret = secrets.token_bytes(SECRET_BYTES)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
            new.write(secret)
            new.flush()
            os.fsync(new.fileno())
        partial.replace(file)
        sync(file.parent)
    finally:
        partial.unlink(missing_ok=True)
    return secret
