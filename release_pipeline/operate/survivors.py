"""The remains of a site besides its backup, and the officer's entries of what was charged after it.

Events may go on where the backup ends, and packages may be left that people of the site signed. Anyone who can write to a folder
of packages can put an unsigned card there. To believe it would cost the people of a population their budget, and a release its
name. So a card counts if its package is signed under an officer of the site, as the backup or the survivors know them. About any
other the officer decides.

What the officer enters has happened, and people were exposed to it. So it is entered even over the cap: the ledger adds it up,
shows that the cap is overdrawn, and refuses any new release.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from release_pipeline.errors import ReleasePipelineError, StoreBusy, WrongUsage
from release_pipeline.ledger.office import Head, find_waiting, read_office
from release_pipeline.ledger.policies import Caps, open_population, policy_of, read_caps, record_policy
from release_pipeline.ledger.states import LOST_WORDS, POLICY, read_statuses
from release_pipeline.mechanisms.basis.figures import count_of
from release_pipeline.pipeline.vaults import list_files
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Plain
from release_pipeline.policy.loading.load import read_text
from release_pipeline.policy.plans.loss import Loss, release_loss
from release_pipeline.policy.values.text import read_yaml
from release_pipeline.store.ledger import LOST, Charge, add_charge, list_charges
from release_pipeline.store.registry import RESTORED, Event, Registry, ReleaseId, hash_of_json
from release_pipeline.store.registry_server import Server
from release_pipeline.store.site import Site
from release_pipeline.store.vault_files import open_vault
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.trust.members import need_trust
from release_pipeline.trust.revocation import revoked_text
from release_pipeline.verifier.command import examine
from release_pipeline.verifier.documents import RELEASE
from release_pipeline.verifier.documents import WrongUsage as NotVerifiable

_RETRACTED = ": RETRACTED: "  # a retracted package was published


@dataclass(frozen=True, slots=True)
class Card:
    """A release by the card of its package. `doubt`: why it is not believed; empty where it is signed."""

    release: ReleaseId
    policy_hash: str
    records: int
    doubt: str = ""

    @property
    def entry(self) -> dict[str, Any]:
        """Return the card's facts as an event has them."""
        known = {"release": str(self.release), "policy_hash": self.policy_hash, "records": self.records}
        return known | ({"why": self.doubt} if self.doubt else {})


@dataclass(frozen=True, slots=True)
class Survivor:
    """The remains in a folder: its events, if they can be read and go on where the backup ends; cards of packages; the releases
    in its vault; and whether its vault records that its last event was the last of all."""

    home: Path
    events: tuple[Event, ...] | None
    cards: tuple[Card, ...]
    in_vault: tuple[ReleaseId, ...] = ()
    is_last: bool = False


def read_survivors(site: Site, folders: Iterable[Path], head: Head) -> list[Survivor]:
    """Return the remains in these folders. `site`: the backup's, whose key sealed it; `head`: the last event of the backup."""
    events_by_folder = {folder: _read_events(site, folder, head) for folder in folders}
    with site.open_registry(read_only=True) as registry:
        chains = [registry.events, *(events for events in events_by_folder.values() if events is not None)]
    judge = _Judge(site, chains)
    return [
        Survivor(folder, events, tuple(judge.read_cards(folder)), list_in_vault(folder), _is_last(site, folder, events))
        for folder, events in events_by_folder.items()
    ]


def list_in_vault(folder: Path) -> tuple[ReleaseId, ...]:
    """Return the releases that were charged according to a site's vault: those of its candidates, and those in populations'
    files. Somebody who puts an older registry back would have to remove all of them, too."""
    names = {"/".join(candidate.parts[-3:]) for candidate in (folder / "vault" / "candidates").glob("*/*/r*")}
    for population in list_files(folder / "vault"):
        try:
            with open_vault(folder / "vault", population, wait=0) as reader:
                names |= set(reader.charged())
        except StoreBusy:
            raise
        except ReleasePipelineError:  # damaged: the other files must suffice
            continue
    return tuple(sorted(read_release(name) for name in names if RELEASE.fullmatch(name)))


def _is_last(site: Site, folder: Path, events: tuple[Event, ...] | None) -> bool:
    """Return whether the vault of a registry records that its last event was the last of all: an older copy has no vault, or one
    with more events."""
    try:
        known = site.read_other_head(folder / "vault" / "registry.head")
    except ReleasePipelineError:
        return False
    return bool(events) and known == (events[-1].number, events[-1].hash)


def read_release(text: str) -> ReleaseId:
    """Return the release of that name: POLICY/RELEASE/rN."""
    if RELEASE.fullmatch(text) is None:
        raise WrongUsage("this is not a release.", where=text, remedy="Write POLICY/RELEASE/rN.")
    policy, release, revision = text.split("/")
    return ReleaseId(policy, release, int(revision[1:]))


def _read_events(site: Site, folder: Path, head: Head) -> tuple[Event, ...] | None:
    other = Site(folder, site.environment)
    try:
        registry = other.registry_file if other.registry_file.is_file() else other.registry
        events = site.read_other_registry(registry) if isinstance(registry, Server) or registry.is_file() else ()
    except StoreBusy:
        raise
    except ReleasePipelineError:  # damaged: the other files must suffice
        return None
    return _if_later(events, head)


def _if_later(events: tuple[Event, ...], head: Head) -> tuple[Event, ...] | None:
    """Return these events, if they go on where the backup ends; else None."""
    return events if [event.hash for event in events[head.number - 1 : head.number]] == [head.hash] else None


def read_server(site: Site, folder: Path, survivors: list[Survivor], head: Head) -> Head | None:
    """Return the last event on the server that the site.yaml of a backup names, None where there is none or it cannot be read.
    Adds the server's events to the survivors, unless the site that is replaced had them."""
    server = Site(folder, site.environment).registry
    try:
        events = site.read_other_registry(server) if isinstance(server, Server) else ()
    except StoreBusy:
        raise
    except ReleasePipelineError:
        return None
    if events and all(survivor.events is None or survivor.events[-1:] != events[-1:] for survivor in survivors):
        survivors.append(Survivor(folder, _if_later(events, head), ()))
    return Head.of(events[-1]) if events else None


def _read_card(file: Path) -> Card:
    try:
        card: Any = json.loads(file.read_text(encoding="utf-8"))
        release, policy_hash, records = card["release"], card["hashes"]["policy"], card["rows"]["in"]
        if not (isinstance(release, str) and isinstance(policy_hash, str) and type(records) is int and records > 0):
            raise ValueError
        return Card(read_release(release), policy_hash, records)
    except (OSError, ValueError, KeyError, TypeError, WrongUsage):
        raise WrongUsage(
            "this card cannot be read, so nobody knows which release was published.",
            where=str(file),
            remedy="Put the package back as it was published, or take it away and name the release with --charged.",
        ) from None


class _Judge:
    """Believes packages under any officer in a chain of the site's events, except those signed with revoked keys."""

    def __init__(self, site: Site, chains: Sequence[tuple[Event, ...]]) -> None:
        self._officers = {site.officer} if site.officer else set[str]()
        for events in chains:
            office = read_office(events)
            self._officers |= set(office.chain) if office is not None and not office.faults else set[str]()
        self._revoked = next((text for events in sorted(chains, key=len, reverse=True) if (text := revoked_text(events))), None)

    def read_cards(self, folder: Path) -> Iterator[Card]:
        """Yield the cards of packages in a site or in a folder of packages."""
        packages = folder / "releases" if (folder / "releases").is_dir() else folder
        for file in sorted(packages.glob("*/*/r*/privacy-card.json")):
            yield replace(_read_card(file), doubt=self._find_doubt(file.parent))

    def _find_doubt(self, folder: Path) -> str:
        """Return why a package is not believed; empty if it is signed under an officer of the site."""
        if not self._officers:
            return "the site names no officer, so nobody can tell who signed it"
        try:
            with tempfile.TemporaryDirectory() as private:
                findings = examine(folder, self._officers, self._keep_revoked(Path(private))).findings
        except NotVerifiable:
            return "it is no package: what is signed is missing"
        faults = [finding.words for finding in findings if finding.level == "FAIL" and _RETRACTED not in finding.words]
        return faults[0] if faults else ""

    def _keep_revoked(self, folder: Path) -> str:
        if self._revoked is None:
            return ""
        file = folder / "revoked.json"
        file.write_text(self._revoked, encoding="utf-8")
        return str(file)


def list_later(survivors: Iterable[Survivor], head: Head) -> list[tuple[Event, ...]]:
    """Return the events of each chain after the backup, the longest first."""
    chains = [survivor.events[head.number :] for survivor in survivors if survivor.events is not None]
    return sorted(chains, key=len, reverse=True)


NEVER = "never charged"  # the officer's entry for a release whose package has no valid signature
_MOST_ROWS = 10**12


@dataclass(frozen=True, slots=True)
class Entered:
    """The charges that were entered, and sentences about the populations that are over their caps with them."""

    charges: tuple[Charge, ...]
    overdrawn: tuple[str, ...]


def accept(
    site: Site,
    *,
    key: PrivateKey,
    named: Mapping[ReleaseId, Mapping[str, Any] | None],
    show: Callable[[str], None] = lambda _: None,
) -> Entered:
    """Sign and enter, as the officer, what was charged after the backup. `named`: what they know of releases besides what the
    restore found, None for one that was never charged and has only a doubted package. `show` gets a line on each charge before
    anything is signed."""
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
            reason = f"{LOST_WORDS} The officer entered its charge." if name in uncharged else LOST_WORDS
            registry.add(LOST, name, entered=name in uncharged, reason=reason)
        return Entered(tuple(charges), tuple(_find_overdrawn(registry, caps, charges)))


def read_named(file: Path) -> dict[ReleaseId, Mapping[str, Any] | None]:
    """Return the releases in an officer's file, a line each, like `people/2/r1: {records: 400}` or `people/9/r1: never
    charged`."""
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
    """Return the releases that were charged or lost, with what is known of them, and the doubted ones that the officer denies;
    raises `WrongUsage` unless the officer has decided on every doubted one."""
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
    account = open_population(caps, policy_of(registry, charge.policy_hash).population, list_charges(registry))
    add_charge(registry, replace(charge, carries=account.carries), account, happened=True)


def _find_overdrawn(registry: Registry, caps: Caps, charges: Iterable[Charge]) -> Iterable[str]:
    policies = {charge.population: policy_of(registry, charge.policy_hash) for charge in charges}
    for population, policy in sorted(policies.items()):
        account = open_population(caps, policy.population, list_charges(registry))
        if not account.admits():
            yield f"{population}: {account.spent} of {account.limit} ({account.unit}) is spent: over the cap, for it has happened"


def _format_charge(registry: Registry, caps: Caps, charge: Charge) -> str:
    """Return what the officer reads before they sign: the population that is charged, for how many records, and how much."""
    account = open_population(caps, policy_of(registry, charge.policy_hash).population, list_charges(registry))
    amount = f"{account.format(account.of(charge.loss))} ({account.unit})"
    return f"{charge.id}: {count_of(charge.records, 'record')}, charged to {charge.population}: {amount}"


def _describe_charge(charge: Charge) -> dict[str, Any]:
    """Return what the officer signs of a charge: the population, the policy (and so k), how many records, and epsilon."""
    known = {"release": str(charge.id), "policy_hash": charge.policy_hash, "records": charge.records}
    return known | {"loss": asdict(charge.loss), "population": charge.population}


def _make_charge(site: Site, registry: Registry, release: ReleaseId, entry: Mapping[str, Any]) -> Charge:
    """Return the charge of a lost release: as it was recorded, or else the whole bound of its policy."""
    digest = entry.get("policy_hash", "")
    if digest not in {event.content["hash"] for event in registry.events if event.kind == POLICY}:
        digest = _note_policy_of(site, registry, release, digest)
    policy: Policy = policy_of(registry, digest)
    loss = Loss.read(entry["loss"]) if "loss" in entry else release_loss(policy, records=entry["records"])
    return Charge(release, policy.population, digest, entry.get("source", ""), entry["records"], loss)


def _note_policy_of(site: Site, registry: Registry, release: ReleaseId, digest: str) -> str:
    """Record the policy as its file is now, if it has the requested hash or none is requested; returns its hash."""
    policy = site.policy(release.policy)
    if digest not in ("", policy.canonical_hash()):
        raise WrongUsage(
            f"the policy that it was charged under ({digest[:12]}) is not known here.",
            where=str(release),
            remedy=f"Put it back as policies/{release.policy}.yaml, as it was then.",
        )
    record_policy(site, registry, policy)
    return policy.canonical_hash()
