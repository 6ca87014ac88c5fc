"""What is left of a site beside its backup: events that go on where the backup ends, and packages that its people signed.

Whoever can write to a folder of packages can put a card there that nobody signed: believed, it costs the people of a population
their budget, and a release its name. So a card counts as found when its package is signed under an officer of the site, as the
backup or what survived knows them; any other is told to the officer, who decides.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from release_pipeline.errors import ReleasePipelineError, StoreBusy, WrongUsage
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.office import read_office
from release_pipeline.flow.trust.revocation import revoked_text
from release_pipeline.flow.vaults import list_files
from release_pipeline.flow.witness import Head
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.store.registry_server import Server
from release_pipeline.store.rooms import open_rooms
from release_pipeline.verify import RELEASE, examine
from release_pipeline.verify import WrongUsage as NotVerifiable

_RETRACTED = ": RETRACTED: "  # a package of which that is told was published, whatever became of it


@dataclass(frozen=True, slots=True)
class Card:
    """A release as the card of a package tells it. `doubt`: why it is not believed; empty where it is signed."""

    release: ReleaseId
    policy_hash: str
    records: int
    doubt: str = ""

    @property
    def entry(self) -> dict[str, Any]:
        """It as an event has it."""
        known = {"release": str(self.release), "policy_hash": self.policy_hash, "records": self.records}
        return known | ({"why": self.doubt} if self.doubt else {})


@dataclass(frozen=True, slots=True)
class Survivor:
    """What is left in a place: its events, if they can be read and go on where the backup ends; the cards of packages; the
    releases that its vault knows of; and whether its events are all that there were, as the vault beside them says."""

    home: Path
    events: tuple[Event, ...] | None
    cards: tuple[Card, ...]
    kept: tuple[ReleaseId, ...] = ()
    is_last: bool = False


def read_survivors(site: Site, places: Iterable[Path], head: Head) -> list[Survivor]:
    """What is left in these places. `site`: the backup's, whose key sealed it; `head`: the last event of the backup."""
    found = [(place, _read_events(site, place, head)) for place in places]
    with site.open_registry(read_only=True) as registry:
        chains = [registry.events, *(events for _, events in found if events is not None)]
    judge = _Judge(site, chains)
    return [
        Survivor(place, events, tuple(judge.read_cards(place)), list_kept(place), _is_last(site, place, events))
        for place, events in found
    ]


def list_kept(place: Path) -> tuple[ReleaseId, ...]:
    """The releases that a vault knows to have been charged: those of its candidates, and those that populations' files keep.
    Whoever puts an older registry back has to take all of them away, too."""
    found = {"/".join(folder.parts[-3:]) for folder in (place / "vault" / "candidates").glob("*/*/r*")}
    for population in list_files(place / "vault"):
        try:
            with open_rooms(place / "vault", population, wait=0) as rooms:
                found |= set(rooms.charged())
        except StoreBusy:
            raise
        except ReleasePipelineError:  # damaged: then what lies beside it must do
            continue
    return tuple(sorted(read_release(name) for name in found if RELEASE.fullmatch(name)))


def _is_last(site: Site, place: Path, events: tuple[Event, ...] | None) -> bool:
    """Whether the vault beside a registry says that its last event was the last of all: an older copy has none beside it, or one
    that knows of more."""
    try:
        known = site.read_other_head(place / "vault" / "registry.head")
    except ReleasePipelineError:
        return False
    return bool(events) and known == (events[-1].number, events[-1].hash)


def read_release(text: str) -> ReleaseId:
    """The release of that name: POLICY/RELEASE/rN."""
    if RELEASE.fullmatch(text) is None:
        raise WrongUsage("this is not a release.", where=text, remedy="Write POLICY/RELEASE/rN.")
    policy, release, revision = text.split("/")
    return ReleaseId(policy, release, int(revision[1:]))


def _read_events(site: Site, place: Path, head: Head) -> tuple[Event, ...] | None:
    other = Site(place, site.environment)
    try:
        registry = other.registry_file if other.registry_file.is_file() else other.registry
        found = site.read_other_registry(registry) if isinstance(registry, Server) or registry.is_file() else ()
    except StoreBusy:
        raise
    except ReleasePipelineError:  # damaged: then what lies beside it must do
        return None
    return _if_later(found, head)


def _if_later(events: tuple[Event, ...], head: Head) -> tuple[Event, ...] | None:
    """These events, if they go on where the backup ends."""
    return events if [event.hash for event in events[head.number - 1 : head.number]] == [head.hash] else None


def read_server(site: Site, place: Path, survivors: list[Survivor], head: Head) -> Head | None:
    """The last event on the server that the site.yaml of a backup names, if one is there that can be read. What the server has
    joins the survivors, unless the site that is replaced has shown it."""
    server = Site(place, site.environment).registry
    try:
        events = site.read_other_registry(server) if isinstance(server, Server) else ()
    except StoreBusy:
        raise
    except ReleasePipelineError:
        return None
    if events and all(survivor.events is None or survivor.events[-1:] != events[-1:] for survivor in survivors):
        survivors.append(Survivor(place, _if_later(events, head), ()))
    return Head.of(events[-1]) if events else None


def _read_card(file: Path) -> Card:
    try:
        said: Any = json.loads(file.read_text(encoding="utf-8"))
        release, policy_hash, records = said["release"], said["hashes"]["policy"], said["rows"]["in"]
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
    """Whose packages are believed: those of every officer whom some chain of the site's events knows, but for revoked keys."""

    def __init__(self, site: Site, chains: Sequence[tuple[Event, ...]]) -> None:
        self._officers = {site.officer} if site.officer else set[str]()
        for events in chains:
            office = read_office(events)
            self._officers |= set(office.chain) if office is not None and not office.faults else set[str]()
        self._revoked = next((text for events in sorted(chains, key=len, reverse=True) if (text := revoked_text(events))), None)

    def read_cards(self, place: Path) -> Iterator[Card]:
        """The releases that packages in a site or in a folder of packages are of, as their cards tell them."""
        folder = place / "releases" if (place / "releases").is_dir() else place
        for file in sorted(folder.glob("*/*/r*/privacy-card.json")):
            yield replace(_read_card(file), doubt=self._find_doubt(file.parent))

    def _find_doubt(self, folder: Path) -> str:
        """Why a package is not believed; empty where an officer of the site stands behind it."""
        if not self._officers:
            return "the site names no officer, so nobody can tell who signed it"
        try:
            with tempfile.TemporaryDirectory() as private:
                found = examine(folder, self._officers, self._keep_revoked(Path(private))).findings
        except NotVerifiable:
            return "it is no package: what is signed is missing"
        faults = [finding.words for finding in found if finding.level == "FAIL" and _RETRACTED not in finding.words]
        return faults[0] if faults else ""

    def _keep_revoked(self, folder: Path) -> str:
        if self._revoked is None:
            return ""
        file = folder / "revoked.json"
        file.write_text(self._revoked, encoding="utf-8")
        return str(file)


def list_later(survivors: Iterable[Survivor], head: Head) -> list[tuple[Event, ...]]:
    """What each chain has after the backup, the longest first."""
    chains = [survivor.events[head.number :] for survivor in survivors if survivor.events is not None]
    return sorted(chains, key=len, reverse=True)
