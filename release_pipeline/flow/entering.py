"""The officer enters what was charged after a backup that was put back: what the restore found, and what they name.

What is entered has happened, and people were exposed to it. So it is entered even over the cap: the ledger adds up what people
were exposed to, tells that it is overdrawn, and refuses whatever is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.accepted import RESTORED, find_waiting
from release_pipeline.flow.cap import open_account
from release_pipeline.flow.policies import Caps, policy_of, read_caps, record_policy
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import LOST, LOST_WORDS, POLICY, read_statuses
from release_pipeline.flow.survivors import read_release
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.flow.trust.members import need_trust
from release_pipeline.policy import Policy
from release_pipeline.policy.load import read_text
from release_pipeline.policy.loss import Loss, release_loss
from release_pipeline.policy.text import read_yaml
from release_pipeline.policy.typed import Plain
from release_pipeline.privacy.figures import count_of
from release_pipeline.store.ledger import Charge, add_charge, list_charges
from release_pipeline.store.registry import Event, Registry, ReleaseId, hash_of_json

NEVER = "never charged"  # what the officer says of a release that a package tells of which nobody signed
_MOST_ROWS = 10**12


@dataclass(frozen=True, slots=True)
class Entered:
    """What was charged, and in words the populations that are over their caps with it."""

    charges: tuple[Charge, ...]
    overdrawn: tuple[str, ...]


def accept(
    site: Site,
    *,
    key: PrivateKey,
    named: Mapping[ReleaseId, Mapping[str, Any] | None],
    show: Callable[[str], None] = lambda _: None,
) -> Entered:
    """The officer signs and enters what was charged after the backup. `named`: what they know of releases beside what was found;
    None says of one that only a doubted package tells of it, and that it was never charged. `show` gets, before anything is
    signed, each charge in words."""
    with site.open_registry() as registry:
        trust, waiting = need_trust(site, registry), find_waiting(registry.events)
        if waiting is None:
            raise WrongUsage("no backup was put back that waits to be accepted.", where=str(site.home))
        entries, denied = _decide(waiting, named)
        statuses, caps = read_statuses(registry.events), read_caps(site)
        uncharged = {name: entry for name, entry in entries.items() if name not in statuses or statuses[name].charge is None}
        charges = [_make_charge(site, registry, name, entry) for name, entry in sorted(uncharged.items())]
        for charge in charges:
            show(_format_charge(registry, caps, charge))
        document = {
            "event": waiting.number,
            "hash": waiting.hash,
            "charged": [_describe_charge(charge) for charge in charges],
            "lost": [str(name) for name in sorted(entries)],
        }
        document |= {"denied": [str(name) for name in denied]} if denied else {}
        signed = trust.sign(key, kind=RESTORED, subject=str(waiting.number), digest=hash_of_json(document))
        registry.add(RESTORED, document=document, signed=signed)
        for charge in charges:
            _enter(registry, caps, charge)
        for name in sorted(entries):
            words = f"{LOST_WORDS} The officer entered its charge." if name in uncharged else LOST_WORDS
            registry.add(LOST, name, entered=name in uncharged, reason=words)
        return Entered(tuple(charges), tuple(_find_overdrawn(registry, caps, charges)))


def read_named(file: Path) -> dict[ReleaseId, Mapping[str, Any] | None]:
    """What the officer names: a line for each release, like `people/2/r1: {records: 400}`, or `people/9/r1: never charged`."""
    document = read_yaml(read_text(file))
    content: Plain = document.value
    if document.problems or not isinstance(content, dict):
        raise _refuse_named(file)
    try:
        names = {name: read_release(name) for name in content}
    except WrongUsage:
        raise _refuse_named(file) from None
    return {names[name]: None if entry == NEVER else _read_entry(file, entry) for name, entry in content.items()}


def _read_entry(file: Path, entry: Plain) -> Mapping[str, Any]:
    records = entry.get("records") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or set(entry) - {"records", "policy"}:
        raise _refuse_named(file)
    if type(records) is int and records < 1:
        raise WrongUsage(
            f"a release of {records} records was never charged.",
            where=str(file),
            remedy="Write how many records it was made of, 1 or more: what is charged may depend on it.",
        )
    if type(records) is not int or not 0 < records <= _MOST_ROWS or not isinstance(entry.get("policy", ""), str):
        raise _refuse_named(file)
    return {"records": records, "policy_hash": entry.get("policy", "")}


def _refuse_named(file: Path) -> WrongUsage:
    return WrongUsage(
        "this does not say which releases were charged.",
        where=str(file),
        remedy="A line for each: POLICY/RELEASE/rN: {records: NUMBER}, and if the policy is another by now, policy: HASH. Of "
        f"what only a package tells that nobody signed: POLICY/RELEASE/rN: {NEVER}.",
    )


def _decide(
    waiting: Event, named: Mapping[ReleaseId, Mapping[str, Any] | None]
) -> tuple[dict[ReleaseId, Mapping[str, Any]], list[ReleaseId]]:
    """What was charged or lost, with what is known of it, and which doubted releases never were: each of them is decided on."""
    entries: dict[ReleaseId, Mapping[str, Any]] = {read_release(entry["release"]): entry for entry in waiting.content["releases"]}
    doubted = {read_release(entry["release"]) for entry in waiting.content.get("doubted", ())}
    denied = sorted(name for name, entry in named.items() if entry is None)
    for name in denied:
        if name not in doubted:
            what = "was found in the registry or in a signed package" if name in entries else "is told of by no package"
            raise WrongUsage(f"this {what}, so it is not for the officer to deny.", where=str(name), remedy="Leave it out.")
    if open_names := sorted(doubted - set(named)):
        raise WrongUsage(
            f"of {', '.join(map(str, open_names))} there are packages that nobody of this site signed, or only a vault knows "
            "of them, and the officer has not said what they are.",
            where=f"event {waiting.number}",
            remedy=f"In --charged FILE, a line for each: POLICY/RELEASE/rN: {{records: NUMBER}}, or POLICY/RELEASE/rN: {NEVER}.",
        )
    return entries | {name: entry for name, entry in named.items() if entry is not None and name not in entries}, denied


def _enter(registry: Registry, caps: Caps, charge: Charge) -> None:
    account = open_account(caps, policy_of(registry, charge.policy_hash), list_charges(registry))
    add_charge(registry, replace(charge, carries=account.carries), account, happened=True)


def _find_overdrawn(registry: Registry, caps: Caps, charges: Iterable[Charge]) -> Iterable[str]:
    policies = {charge.population: policy_of(registry, charge.policy_hash) for charge in charges}
    for population, policy in sorted(policies.items()):
        account = open_account(caps, policy, list_charges(registry))
        if not account.admits():
            yield f"{population}: {account.spent} of {account.limit} ({account.unit}) is spent: over the cap, for it has happened"


def _format_charge(registry: Registry, caps: Caps, charge: Charge) -> str:
    """What the officer reads before they sign: whom it is charged to, for how many records, and how much."""
    account = open_account(caps, policy_of(registry, charge.policy_hash), list_charges(registry))
    amount = f"{account.words(account.of(charge.loss))} ({account.unit})"
    return f"{charge.id}: {count_of(charge.records, 'record')}, charged to {charge.population}: {amount}"


def _describe_charge(charge: Charge) -> dict[str, Any]:
    """What the officer signs of a charge: the people, the policy (and so k), how many records, and epsilon."""
    known = {"release": str(charge.id), "policy_hash": charge.policy_hash, "records": charge.records}
    return known | {"loss": asdict(charge.loss), "population": charge.population}


def _make_charge(site: Site, registry: Registry, release: ReleaseId, entry: Mapping[str, Any]) -> Charge:
    """The charge of a lost release: as it was noted, or else the whole bound of its policy."""
    digest = entry.get("policy_hash", "")
    if digest not in {event.content["hash"] for event in registry.events if event.kind == POLICY}:
        digest = _note_policy_of(site, registry, release, digest)
    policy: Policy = policy_of(registry, digest)
    loss = Loss.read(entry["loss"]) if "loss" in entry else release_loss(policy, records=entry["records"])
    return Charge(release, policy.population, digest, entry.get("source", ""), entry["records"], loss)


def _note_policy_of(site: Site, registry: Registry, release: ReleaseId, digest: str) -> str:
    """Note the policy as its file is now, when it is the one that is asked for, or none is; gives its hash."""
    policy = site.policy(release.policy)
    if digest not in ("", policy.canonical_hash()):
        raise WrongUsage(
            f"the policy that it was charged under ({digest[:12]}) is not known here.",
            where=str(release),
            remedy=f"Put it back as policies/{release.policy}.yaml, as it was then.",
        )
    record_policy(site, registry, policy)
    return policy.canonical_hash()
