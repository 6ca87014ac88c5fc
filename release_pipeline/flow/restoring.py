"""A backup is put back: whole, beside what is left of the site, and told from that what came after it.

The ledger of a backup knows nothing of later charges, and a release that it does not know would be drawn anew, with other noise
for the same people: a second answer that nobody paid for. So what is found of later releases is noted with the restore, nothing
is charged, drawn or published until the officer has signed what must be entered, and no lost release is made under its name
again.
A release whose secret the backup has noted, and which nobody saw published, goes on: the same secret and the same records give
the same bits.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release_pipeline.errors import ReleasePipelineError, StoreBusy, WrongUsage
from release_pipeline.flow.accepted import RESTORED, RESTORING, find_waiting
from release_pipeline.flow.backup import Backup, read_backup, unpack
from release_pipeline.flow.cap import open_account
from release_pipeline.flow.policies import policy_of, read_caps, record_policy
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import (
    LOST,
    LOST_WORDS,
    POLICY,
    PRUNED,
    PUBLISHED,
    PUBLISHING,
    REJECTED,
    RETRACTED,
    SUPERSEDED,
    read_statuses,
)
from release_pipeline.flow.trust.clocks import CLOCK
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.flow.trust.members import TRUSTED, need_trust
from release_pipeline.flow.trust.office import REVOKED
from release_pipeline.flow.witness import Head
from release_pipeline.policy import Policy
from release_pipeline.policy.load import read_text
from release_pipeline.policy.loss import Loss, release_loss
from release_pipeline.policy.text import read_yaml
from release_pipeline.policy.typed import Plain
from release_pipeline.store.folders import sync
from release_pipeline.store.ledger import RESERVED, Charge, add_charge, list_charges
from release_pipeline.store.registry import Event, Registry, ReleaseId, hash_of_json

_RELEASE = re.compile(r"([a-z][a-z0-9-]*)/([A-Za-z0-9][A-Za-z0-9._-]*)/r([1-9][0-9]{0,5})")
_OUT = (PUBLISHING, PUBLISHED, REJECTED, RETRACTED, SUPERSEDED)  # after one of these a release is judged, or seen by others
_AGAIN = (TRUSTED, "recovery", REVOKED, CLOCK, REJECTED, RETRACTED, SUPERSEDED, PRUNED)  # what people must do again
_MOST_ROWS = 10**12


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, where the site that was there is now, which releases are lost, what must be done again, in words, and
    whether everything that happened after the backup is known."""

    backup: Backup
    aside: Path | None
    lost: Sequence[Mapping[str, Any]]
    again: Sequence[str]
    all_known: bool


@dataclass(frozen=True, slots=True)
class _Survivor:
    """What is left of a site: its events, if they can be read and go on where the backup ends; and cards of packages."""

    home: Path
    events: tuple[Event, ...] | None
    cards: tuple[Mapping[str, Any], ...]


def restore(file: Path, home: Path, *, survived: Iterable[Path] = (), witnessed: Head | None = None) -> Restored:
    """Put a backup into a folder that is new or empty, or in the place of a site, which is moved aside and never deleted.

    `survived`: other places where something of the site is left, a site or a folder of packages; `witnessed`: the last event that
    somebody outside knows of.
    """
    backup, home = read_backup(file), home.resolve()
    aside = _find_aside(home)
    staged = home.with_name(f".{home.name}.restoring-{secrets.token_hex(4)}")
    try:
        unpack(file, staged)
        site = Site(staged, dict(os.environ))
        places = [*([home] if aside else []), *(place.resolve() for place in survived)]
        found = [_read_survivor(site, place, backup) for place in places]
        lost, all_known = _note(site, backup, found, witnessed)
        if aside is not None:
            home.rename(aside)
        elif home.exists():
            home.rmdir()
        staged.rename(home)
        sync(home.parent)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    later = [event for survivor in found for event in (survivor.events or ())[backup.head.number :]]
    again = [f"{event.kind}{f' of {event.release}' if event.release else ''}" for event in later if event.kind in _AGAIN]
    return Restored(backup, aside, lost, list(dict.fromkeys(again)), all_known)


def accept(site: Site, *, key: PrivateKey, named: Mapping[ReleaseId, Mapping[str, Any]]) -> list[Charge]:
    """The officer enters what was charged after the backup: what the restore found, and what they name. Gives these charges."""
    with site.open_registry() as registry:
        trust, waiting = need_trust(site, registry), find_waiting(registry.events)
        if waiting is None:
            raise WrongUsage("no backup was put back that waits to be accepted.", where=str(site.home))
        statuses = read_statuses(registry.events)
        entries = {_parse(entry["release"]): entry for entry in waiting.content["releases"]}
        entries |= {release: entry for release, entry in named.items() if release not in entries}
        uncharged = {name: entry for name, entry in entries.items() if name not in statuses or statuses[name].charge is None}
        charges = [_make_charge(site, registry, name, entry) for name, entry in sorted(uncharged.items())]
        charged = [
            {"release": str(charge.id), "policy_hash": charge.policy_hash, "records": charge.records, "loss": asdict(charge.loss)}
            for charge in charges
        ]
        lost = [str(name) for name in sorted(entries)]
        document = {"event": waiting.number, "hash": waiting.hash, "charged": charged, "lost": lost}
        digest = hash_of_json(document)
        signed = trust.sign(key, kind=RESTORED, subject=str(waiting.number), digest=digest)
        registry.add(RESTORED, document=document, signed=signed)
        for charge in charges:
            policy = policy_of(registry, charge.policy_hash)
            account = open_account(read_caps(site), policy, list_charges(registry))
            add_charge(registry, replace(charge, carries=account.carries), account)
        for name in sorted(entries):
            registry.add(LOST, name, entered=name in uncharged, reason=LOST_WORDS)
    return charges


def read_named(file: Path) -> dict[ReleaseId, Mapping[str, Any]]:
    """What the officer names: a line for each release, like `people/2/r1: {records: 400}`."""
    document = read_yaml(read_text(file))
    content: Plain = document.value
    if document.problems or not isinstance(content, dict):
        raise _refuse_named(file)
    found: dict[ReleaseId, Mapping[str, Any]] = {}
    for name, entry in content.items():
        records = entry.get("records") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or set(entry) - {"records", "policy"} or _RELEASE.fullmatch(name) is None:
            raise _refuse_named(file)
        if type(records) is not int or not 0 < records <= _MOST_ROWS or not isinstance(entry.get("policy", ""), str):
            raise _refuse_named(file)
        found[_parse(name)] = {"records": records, "policy_hash": entry.get("policy", "")}
    return found


def _refuse_named(file: Path) -> WrongUsage:
    return WrongUsage(
        "this does not say which releases were charged.",
        where=str(file),
        remedy="A line for each: POLICY/RELEASE/rN: {records: NUMBER}, and if the policy is another by now, policy: HASH.",
    )


def _find_aside(home: Path) -> Path | None:
    """Where the site that is there goes; None if there is none."""
    if not home.exists() or (home.is_dir() and not any(home.iterdir())):
        return None
    if not any((home / name).exists() for name in ("registry.duckdb", "vault", "policies")):
        raise WrongUsage("something lies here that is no site.", where=str(home), remedy="Name a new folder.")
    return home.with_name(f"{home.name}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S}")


def _read_survivor(site: Site, place: Path, backup: Backup) -> _Survivor:
    """What is left there. `site`: the backup's, whose key sealed it."""
    events, file = None, place / "registry.duckdb"
    try:
        found = site.read_other_registry(file) if file.is_file() else ()
        head = backup.head
        if [event.hash for event in found[head.number - 1 : head.number]] == [head.hash]:
            events = found
    except StoreBusy:
        raise
    except ReleasePipelineError:  # damaged: then what lies beside it must do
        pass
    return _Survivor(place, events, tuple(_read_cards(place)))


def _read_cards(place: Path) -> Iterator[Mapping[str, Any]]:
    """The releases that packages in a site or in a folder of packages are of, as their cards tell them."""
    folder = place / "releases" if (place / "releases").is_dir() else place
    for file in sorted(folder.glob("*/*/r*/privacy-card.json")):
        try:
            card: Any = json.loads(file.read_text(encoding="utf-8"))
            entry = {"release": card["release"], "policy_hash": card["hashes"]["policy"], "records": card["rows"]["in"]}
        except (OSError, ValueError, KeyError, TypeError):
            entry = {}
        texts = all(isinstance(entry.get(name), str) for name in ("release", "policy_hash"))
        if not texts or _RELEASE.fullmatch(entry["release"]) is None or type(entry["records"]) is not int:
            raise WrongUsage(
                "this card cannot be read, so nobody knows which release was published.",
                where=str(file),
                remedy="Put the package back as it was published, or take it away and name the release with --charged.",
            )
        yield entry


def _note(
    site: Site, backup: Backup, survivors: Sequence[_Survivor], witnessed: Head | None
) -> tuple[list[Mapping[str, Any]], bool]:
    """Note what was put back, and what is known of later releases."""
    chain = max((survivor.events for survivor in survivors if survivor.events is not None), key=len, default=())
    with site.open_registry() as registry:
        if (registry.events[-1].number, registry.events[-1].hash) != (backup.head.number, backup.head.hash):
            raise WrongUsage("the registry in the backup does not end as its manifest says.", remedy="Take another backup.")
        cards = [card for survivor in survivors for card in survivor.cards]
        lost = _find_lost(registry, chain[backup.head.number :], cards)
        _note_policies(site, registry, chain, lost, survivors)
        last = Head.of(chain[-1]) if chain else backup.head
        all_known = bool(chain)
        if witnessed is not None and witnessed.number > last.number:
            last, all_known = witnessed, False
        head = {"event": last.number, "hash": last.hash}
        registry.add(RESTORING, made=backup.made, last=head, releases=[*lost.values()], all_known=all_known)
    return list(lost.values()), all_known


def _find_lost(
    registry: Registry, later: Sequence[Event], cards: Iterable[Mapping[str, Any]]
) -> dict[ReleaseId, Mapping[str, Any]]:
    """The releases that must not be made under their names again, with what is known of their charges."""
    statuses, found = read_statuses(registry.events), dict[ReleaseId, Mapping[str, Any]]()
    for name, status in statuses.items():
        if status.charge is not None and status.secret is None and status.replaced is None and not status.lost:
            found[name] = {"release": str(name)}  # another secret may have been made for it since
    for event in later:
        if event.release is not None and event.kind == RESERVED:
            known = {name: event.content[name] for name in ("policy_hash", "records", "loss", "source")}
            found[event.release] = {"release": str(event.release), **known} | _pick(event.content, "series", "cohort")
        elif event.release is not None and event.kind in _OUT:
            status = statuses.get(event.release)
            if status is not None and status.package_hash is None:
                found.setdefault(event.release, {"release": str(event.release)})
    for card in cards:
        name = _parse(card["release"])
        if name not in statuses or statuses[name].package_hash is None:
            found.setdefault(name, card)
    return found


def _note_policies(
    site: Site,
    registry: Registry,
    chain: Sequence[Event],
    lost: Mapping[ReleaseId, Mapping[str, Any]],
    survivors: Sequence[_Survivor],
) -> None:
    """The policies of lost charges that the backup does not know, as they were noted, or as their files are."""
    wanted = {entry["policy_hash"] for entry in lost.values() if "policy_hash" in entry}
    wanted -= {event.content["hash"] for event in registry.events if event.kind == POLICY}
    for event in chain:
        if event.kind == POLICY and event.content["hash"] in wanted:
            registry.add(POLICY, **event.content)
            wanted.remove(event.content["hash"])
    for survivor in survivors:
        other = Site(survivor.home, site.environment)
        for policy in other.read_policies()[0] if wanted else ():
            if policy.canonical_hash() in wanted:
                record_policy(other, registry, policy)
                wanted.remove(policy.canonical_hash())


def _make_charge(site: Site, registry: Registry, release: ReleaseId, entry: Mapping[str, Any]) -> Charge:
    """The charge of a lost release: as it was noted, or else the whole bound of its policy."""
    digest = entry.get("policy_hash", "")
    if digest not in {event.content["hash"] for event in registry.events if event.kind == POLICY}:
        digest = _note_policy_of(site, registry, release, digest)
    policy: Policy = policy_of(registry, digest)
    loss = Loss(**entry["loss"]) if "loss" in entry else release_loss(policy, records=entry["records"])
    series, cohort = entry.get("series", ""), entry.get("cohort", "")
    return Charge(
        release, policy.population, digest, entry.get("source", ""), entry["records"], loss, series=series, cohort=cohort
    )


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


def _pick(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: content[name] for name in names if name in content}


def _parse(text: str) -> ReleaseId:
    match = _RELEASE.fullmatch(text)
    if match is None:
        raise WrongUsage("this is not a release.", where=text, remedy="Write POLICY/RELEASE/rN.")
    return ReleaseId(match[1], match[2], int(match[3]))
