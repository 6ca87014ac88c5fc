"""What can still happen to a published package: it is retracted, or superseded by a later revision. Both are for good.

The officer's signed statement is an event first, and then a tombstone in the package. Stopped in between, a rerun finishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.files import PUBLIC as FOR_ALL
from release_pipeline.flow.files import clear_partials, write_text
from release_pipeline.flow.publication.published import TOMBSTONES
from release_pipeline.flow.secret_files import PLAIN, Probe
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PUBLISHED, RETRACTED, SUPERSEDED, move, read_statuses, status_of
from release_pipeline.flow.texts import check_line
from release_pipeline.flow.trust.keys import PrivateKey, write_statement
from release_pipeline.flow.trust.members import TRUSTED, Trust, need_trust
from release_pipeline.flow.trust.office import OFFICERS, write_officers
from release_pipeline.report.escaping import escape_markdown, format_text
from release_pipeline.sentences import PUBLIC
from release_pipeline.store.folders import sync
from release_pipeline.store.registry import Event, Registry, ReleaseId

KINDS = {RETRACTED: "retract", SUPERSEDED: "supersede"}  # what is signed for each state


def retract(site: Site, release: ReleaseId, *, key: PrivateKey, why: str, probe: Probe = PLAIN) -> Path:
    """The officer takes a published release back, with the reason: its data leave the package, a tombstone stays."""
    if not why.strip():
        raise WrongUsage("a retraction needs its reason.", where=str(release), remedy="Add --why 'REASON'.")
    why = check_line(why)
    return _withdraw(site, release, RETRACTED, key=key, payload={"reason": why}, why=why, probe=probe)


def supersede(
    site: Site, release: ReleaseId, successor: ReleaseId, *, key: PrivateKey, why: str = "", probe: Probe = PLAIN
) -> Path:
    """The officer refers the readers of a published release to a later revision, whose card names it in turn."""
    if (successor.policy, successor.release) != (release.policy, release.release) or successor.revision <= release.revision:
        raise WrongUsage("only a later revision of the same release can supersede it.", where=str(successor))

    def check_successor(registry: Registry) -> None:
        known = read_statuses(registry.events).get(successor)
        state = "not opened" if known is None else known.state
        if state != PUBLISHED:
            raise Blocked(f"it is {state}, not published.", where=str(successor), remedy="Publish it first.")

    words = check_line(f"{successor}: {why}" if why.strip() else str(successor))
    payload = {"successor": str(successor)}
    return _withdraw(site, release, SUPERSEDED, key=key, payload=payload, why=words, probe=probe, check=check_successor)


def _withdraw(
    site: Site,
    release: ReleaseId,
    state: str,
    *,
    key: PrivateKey,
    payload: dict[str, str],
    why: str,
    probe: Probe,
    check: Callable[[Registry], None] = lambda _: None,
) -> Path:
    """The event, unless there is one already, and the tombstone that it asks for. `check` may refuse what is new."""
    with site.publishing_alone():
        with site.open_registry() as registry:
            trust = need_trust(site, registry)
            status = status_of(registry, release)
            if status.state != state:
                check(registry)
            about: dict[str, str] = {"kind": KINDS[state], "subject": str(release), "digest": str(status.package_hash)}
            if status.state == state:
                trust.check_may_sign(key, kind=KINDS[state], subject=str(release))
            else:
                signed = trust.sign(key, **about, why=why)
                move(registry, release, state, **payload, hash=status.package_hash, signed=signed)
            event = _find_event(registry, release, state)
            signed, officers = event.content["signed"], _name_officers(registry, trust, release, event)
            trust.check_event(event, **about)
        probe.reached(f"{state} is noted")
        folder = site.package(str(release))
        if not folder.is_dir():
            raise Blocked(
                "its package is not there.", where=str(release), remedy=f"It was in {folder}; the registry has noted it."
            )
        _bury(folder, state, signed, officers, probe)
    return folder


def _find_event(registry: Registry, release: ReleaseId, state: str) -> Event:
    return next(event for event in registry.events if (event.kind, event.release) == (state, release))


def _name_officers(registry: Registry, trust: Trust, release: ReleaseId, event: Event) -> str:
    """How the officer who signed an event followed the one whom the package names; empty where it is the same."""
    published = next(each for each in registry.events if (each.kind, each.release) == (PUBLISHED, release))
    officers = [each.content["officer"] for each in registry.events[: published.number] if each.kind == TRUSTED]
    signer = event.content["signed"]["statement"]["signer"]
    return write_officers(registry.events, trust.office, upto=signer) if officers[-1] != signer else ""


def _tell(state: str, payload: Mapping[str, str], *, file: str) -> str:
    """What a tombstone says to people."""
    why = escape_markdown(format_text(payload["why"]))  # whatever it says, it is shown and does nothing
    at, said, name = payload["at"], payload["subject"], payload["name"]
    if state == RETRACTED:
        return PUBLIC("note.tombstone.retracted", release=said, at=at, name=name, why=why, file=file)
    later = f"../{payload['why'].partition(':')[0].rpartition('/')[2]}/"
    return PUBLIC("note.tombstone.superseded", release=said, at=at, name=name, why=why, later=later, file=file)


def _bury(folder: Path, state: str, signed: Any, officers: str, probe: Probe) -> None:
    """The tombstone for machines, for people, and then the data away if it is a retraction."""
    name, payload = TOMBSTONES[state], signed["statement"]
    clear_partials(folder)
    write_text(folder / f"{name}.json", write_statement(signed), mode=FOR_ALL)
    if officers:
        write_text(folder / f"{name}.{OFFICERS}", officers, mode=FOR_ALL)
    probe.reached("the tombstone is signed")
    write_text(folder / f"{name}.md", _tell(state, payload, file=f"{name}.json"), mode=FOR_ALL)
    probe.reached("the tombstone is written")
    if state == RETRACTED:
        for file in folder.glob("data.*"):
            file.unlink()
        sync(folder)
    probe.reached(f"{state} is done")
