"""Keys that count no more from a date on, and the list of them that the public gets; and events of a clock that was wrong.

Inside the site the chain says what came before and what after: a moment in a statement is the word of who has the key. A stranger
with a package has no chain, so the list names what stands of each key, by hash; whatever else the key signed does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.files import PUBLIC, write_text
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PUBLISHED, RETRACTED, SUPERSEDED
from release_pipeline.flow.texts import check_line
from release_pipeline.flow.trust.clocks import CLOCK, find_doubted, is_ahead
from release_pipeline.flow.trust.keys import PrivateKey, PublicKey
from release_pipeline.flow.trust.members import TRUSTED, Trust, check_officer, last_trust, need_trust
from release_pipeline.flow.trust.office import OFFICERS, REVOKE, REVOKED, list_links, read_office, write_officers
from release_pipeline.store.folders import make_folder
from release_pipeline.store.registry import Event, Registry, canonical_json, hash_of_json
from release_pipeline.verify import REVOKED_FORMAT

REVOKED_FILE = "revoked.json"  # of releases/


def revoke(site: Site, name: str, *, since: datetime, why: str, key: PrivateKey) -> str:
    """The officer revokes a key, by its fingerprint or by the name that it has or last had in the list; gives the fingerprint.
    Once more with the same date only writes the public list anew."""
    if not why.strip():
        raise WrongUsage("a revocation needs its reason.", where=name, remedy="Add --why 'REASON'.")
    if since > datetime.now(UTC):
        raise WrongUsage("a key is revoked from a moment that has come.", where=f"{since:%Y-%m-%d %H:%M}")
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        fingerprint = _find_key(registry, name)
        if fingerprint == trust.officer.key.fingerprint:
            raise WrongUsage(
                "this is the officer's own key.",
                where=name,
                remedy="The next officer revokes it (`officer hand-over`), or who holds recovery keys (`officer recover`).",
            )
        if (fingerprint, since) not in _list_standing(registry, trust):
            note_revocation(site, registry, trust, fingerprint, since=since, why=check_line(why), key=key)
        write_public(site, registry.events)
    return fingerprint


def note_revocation(
    site: Site, registry: Registry, trust: Trust, fingerprint: str, *, since: datetime, why: str, key: PrivateKey
) -> None:
    """Sign the list of revoked keys with one more, and note it."""
    events = registry.events
    before = [
        entry for entry in _list_entries(events, trust) if (entry["key"], entry["from"]) != (fingerprint, since.isoformat())
    ]
    entry = {
        "key": fingerprint,
        "name": _last_name(events, fingerprint),
        "from": since.isoformat(timespec="seconds"),
        "why": why,
        "stands": _list_what_stands(events, fingerprint, since),
    }
    officers = list(trust.office.chain) if trust.office else [trust.officer.key.fingerprint]
    number = sum(event.kind == REVOKED for event in events) + 1
    document = {"format": REVOKED_FORMAT, "number": number, "officers": officers, "revoked": [*before, entry]}
    digest = hash_of_json(document)
    signed = key.sign(kind=REVOKE, subject=fingerprint, digest=digest, name=trust.officer.name, why=why)
    registry.add(REVOKED, key=fingerprint, document=document, signed=signed)
    last_trust(site, registry)  # everything is verified; what does not hold is not written


def write_public(site: Site, events: Sequence[Event]) -> None:
    """What strangers get of the office, beside the packages: the keys that were revoked, and who followed whom."""
    for name, text in list_public(events).items():
        make_folder(site.releases, mode=0o755)
        write_text(site.releases / name, text, mode=PUBLIC)


def list_public(events: Sequence[Event]) -> dict[str, str]:
    """These files, as the last events that stand have them: none where one officer has always been it, and no key was revoked."""
    texts = {REVOKED_FILE: revoked_text(events) or "", OFFICERS: write_officers(events, read_office(events))}
    return {name: text for name, text in texts.items() if text}


def revoked_text(events: Sequence[Event]) -> str | None:
    """What the public list must be."""
    office = read_office(events)
    standing = [] if office is None else [each for each in office.revoked if not each.quorum]
    if office is None or not standing:
        return None
    event = events[max(each.event for each in standing) - 1]
    upto = event.content["document"]["officers"][-1]
    links = list_links(events[: event.number], office, upto=upto if len(event.content["document"]["officers"]) > 1 else None)
    signed, document = event.content["signed"], event.content["document"]
    return canonical_json({"document": document, "signed": signed, "officers": links}) + "\n"


def repair_clock(site: Site, *, key: PrivateKey, now: datetime | None = None) -> list[Event]:
    """The officer says of every event that is dated later than now that its moment is not to be believed; gives these events."""
    seconds = (now or datetime.now(UTC)).timestamp()
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        doubted = find_doubted(registry.events)
        ahead = [event for event in registry.events if event.number not in doubted and is_ahead(event, seconds)]
        for event in ahead:
            signed = key.sign(kind=CLOCK, subject=str(event.number), digest=event.hash, name=trust.officer.name)
            registry.add(CLOCK, event=event.number, signed=signed)
    return ahead


def _find_key(registry: Registry, name: str) -> str:
    lists: list[Mapping[str, Any]] = [event.content["keys"] for event in registry.events if event.kind == TRUSTED]
    known = {PublicKey.parse(entry["key"]).fingerprint for keys in lists for entry in keys.values()}
    named = [PublicKey.parse(keys[name]["key"]).fingerprint for keys in lists if name in keys]
    if name not in known and not named:
        raise WrongUsage("no list of trusted keys ever had this name or fingerprint.", where=name)
    return name if name in known else named[-1]


def _last_name(events: Sequence[Event], fingerprint: str) -> str:
    for event in reversed(events):
        for name, entry in event.content["keys"].items() if event.kind == TRUSTED else ():
            if PublicKey.parse(entry["key"]).fingerprint == fingerprint:
                return name
    return ""


def _list_standing(registry: Registry, trust: Trust) -> set[tuple[str, datetime]]:
    return {(each.key, each.since) for each in (trust.office.revoked if trust.office else ()) if not each.quorum}


def _list_entries(events: Sequence[Event], trust: Trust) -> list[Mapping[str, Any]]:
    """What the revocations that stand have added."""
    standing = [each for each in (trust.office.revoked if trust.office else ()) if not each.quorum]
    return [events[each.event - 1].content["document"]["revoked"][-1] for each in sorted(standing, key=lambda each: each.event)]


def _list_what_stands(events: Sequence[Event], fingerprint: str, since: datetime) -> list[list[str]]:
    """Kind, subject and hash of what the public has that the key signed before the moment, by the place of its event."""
    office = read_office(events, revoked=((fingerprint, since),))
    found: list[list[str]] = []
    for event in events if office else ():
        if event.kind in (TRUSTED, PUBLISHED, RETRACTED, SUPERSEDED):
            statement = event.content["signed"]["statement"]
            taken = office is None or office.is_taken_back(event.number, statement["signer"])
            named = [statement["kind"], statement["subject"], statement["hash"]]
            if statement["signer"] == fingerprint and not taken and named not in found:
                found.append(named)
    return found
