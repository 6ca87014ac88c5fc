"""What an auditor reads: the chain of a release, its verification in place, its dossier, and all releases in a row."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict

from release_pipeline.desk.backend.approving import OVERSEERS
from release_pipeline.desk.backend.calls import Asked, Call, Document, File
from release_pipeline.desk.backend.lookups import list_lines, shorten_places
from release_pipeline.desk.backend.reviewing import READERS, RELEASE
from release_pipeline.desk.backend.signing import pack
from release_pipeline.desk.people import Role
from release_pipeline.desk.viewings import KEPT_MONTHS
from release_pipeline.door import Refused
from release_pipeline.errors import Blocked
from release_pipeline.flow.opening import find_release
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.verification import measure_release, verify_release
from release_pipeline.flow.states import list_statuses
from release_pipeline.flow.status.history import tell_history

MOST_BYTES = 200_000_000  # of package and candidate, to be verified while somebody waits
_PUBLIC = ("published", "superseded", "retracted")
_working = threading.Lock()  # a site's packages are read from one disk: one at a time


def _show_chain(asked: Asked) -> Document:
    site, release = asked.site, find_release(asked.site, asked.find("release", RELEASE))
    history = tell_history(site, release, reader=asked.person.name)
    line = next((line for line in list_lines(site).lines if line.release == str(release)), None)
    damaged = line is not None and line.state == "damaged"
    may_audit = asked.has(Role.OFFICER, Role.AUDITOR)
    faults = [*([line.reason] if damaged and line is not None else []), *history.faults]
    return shorten_places(
        site,
        {
            **asdict(history),
            "release": str(release),
            "shown_state": "damaged" if damaged else history.state,
            "faults": faults,
            "may_audit": may_audit,
            "viewings": [asdict(one) for one in asked.viewings.list_of(str(release))] if may_audit else [],
            "kept_months": KEPT_MONTHS,
            "is_public": history.state in _PUBLIC,
        },
    )


def _verify(asked: Asked) -> Document:
    site, release = asked.site, find_release(asked.site, asked.find("release", RELEASE))
    status = list_statuses(site)[release]
    if status.candidate_hash is None:
        raise Blocked(f"it is {status.state}: it has neither a candidate nor a package.", where=str(release))
    if (size := measure_release(site, release)) > MOST_BYTES:
        raise Blocked(
            f"its package and candidate have {size // 1_000_000:,} MB, and the desk reads up to {MOST_BYTES // 1_000_000}.",
            where=str(release),
            remedy=f"On the site's machine: release-pipeline verify releases/{release}",
        )
    with _working_alone():
        found = verify_release(site, release)
    findings = [{"level": one.level, "words": one.words} for one in found]
    failed = sum(one.level == "FAIL" for one in found)
    return shorten_places(site, {"release": str(release), "findings": findings, "failed": failed, "size": size})


def _make_dossier(asked: Asked) -> File:
    site, release = asked.site, find_release(asked.site, asked.find("release", RELEASE))
    with _working_alone():
        name = f"dossier-{str(release).replace('/', '-')}.zip"
        return pack(site, name, lambda file: write_dossier(site, release, file, refuse_open=True))


@contextmanager
def _working_alone() -> Generator[None]:
    """Nothing else is verified or packed here meanwhile."""
    if not _working.acquire(blocking=False):
        raise Refused(503, "something else is verified or packed just now. Try again in a moment.")
    try:
        yield
    finally:
        _working.release()


def _list_audited(asked: Asked) -> Document:
    listing = list_lines(asked.site)
    releases = [
        {
            "release": line.release,
            "state": line.state,
            "since": line.since,
            "package": line.package_hash or "",
            "candidate": line.candidate_hash or "",
            "reason": line.reason,
        }
        for line in listing.lines
        if line.id is not None
    ]
    with asked.site.open_registry(read_only=True) as registry:
        events = registry.events
        head = {"number": len(events), "hash": events[-1].hash, "noted": events[-1].noted} if events else None
    return {"releases": releases, "broken": list(listing.faults), "made": listing.made, "head": head}


CALLS = (
    Call("chain", READERS, _show_chain),
    Call("verify-release", OVERSEERS, _verify, changes=True),
    Call("dossier", OVERSEERS, _make_dossier, changes=True, shows="the dossier"),
    Call("audit", OVERSEERS, _list_audited),
)
