"""What an operator sees of a site: what does not go on, and why; what waits; what is kept; whether it is well; who comes in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from release_pipeline.desk.backend.calls import Asked, Call, Document, allow
from release_pipeline.desk.backend.lookups import Listing, keep, list_lines, shorten_place
from release_pipeline.desk.people import Role, read_people
from release_pipeline.desk.tokens import list_tokens
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.alerts.report import find_trouble
from release_pipeline.flow.dagster_pages import DagsterPages
from release_pipeline.flow.publication.delivery import list_outstanding
from release_pipeline.flow.publication.publish import list_publishable
from release_pipeline.flow.retention import list_kept, list_stores
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import FAILED, Event, ReleaseId, ReleaseStatus, read_statuses
from release_pipeline.flow.status.health import check_stores
from release_pipeline.flow.status.overview import Line
from release_pipeline.flow.status.stopped import describe_progress

MOST_RUNS = 30  # that broke off, the last ones
_JUDGED_SECONDS = 300.0  # after which what hangs on the clock is looked at again
_UNDONE, _PUBLISHED_NEXT = ("late", "blocked", "damaged", "returned"), ("approved", "publishing")
_RESTORE = "It cannot be approved or published so: put back what was frozen, from a backup, and find out who changed it."


def _show_operations(asked: Asked) -> Document:
    site, listing = asked.site, list_lines(asked.site)
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    statuses = {str(known): status for known, status in read_statuses(events).items()}
    kept = list_kept(site)
    return {
        "troubles": list(_list_troubles(listing.lines, statuses)),
        "runs": _list_broken_runs(events, statuses),
        "waiting": list(_list_waiting(site, listing)),
        "publishes": _describe_publishing(site),
        "outstanding": [shorten_place(site, task.words) for task in list_outstanding(site)],
        "kept": [
            {
                "release": str(one.release),
                "state": one.state,
                "since": one.since,
                "retain": one.retain,
                "goes": "" if one.goes is None else one.goes.isoformat(timespec="seconds"),
                "is_due": one.is_due,
            }
            for one in kept
        ],
        "stores": [{"population": name, "size": size} for name, size in list_stores(site)],
        "health": [
            {"name": check.name, "ok": check.ok, "words": shorten_place(site, check.words)} for check in check_stores(site)
        ],
        "unsent": [shorten_place(site, words) for words in find_trouble(site)],
        "broken": list(listing.faults),
        "unapproved": list(listing.unapproved),
        "people": _list_people(site),
        "dagster": _link_dagster(asked.settings.dagster, listing.lines),
        "runs_here": asked.settings.runs,
        "made": listing.made,
    }


def _list_troubles(lines: Iterable[Line], statuses: Mapping[str, ReleaseStatus]) -> Iterator[Document]:
    """The releases that do not go on by themselves: why, and what somebody may do about each."""
    for line in lines:
        if line.given_up_for or not (line.state in _UNDONE or line.failed):
            continue
        state = "failed" if line.failed and line.state not in _UNDONE else line.state
        reason = line.failed if state == "failed" and line.failed else line.reason
        remedy = _find_remedy(line, statuses.get(line.release))
        yield {
            "release": line.release,
            "policy": line.policy,
            "partition": line.partition,
            "state": state,
            "since": line.since or line.due or "",
            "reason": reason,
            "remedy": remedy,
        }


def _find_remedy(line: Line, status: ReleaseStatus | None) -> str:
    """What somebody may do about a release that does not go on."""
    run = f"`release-pipeline run {line.policy} --release {line.partition}`"
    if line.state == "damaged":
        return _RESTORE
    if line.state == "returned":
        return "Its steward answers the reasons, or makes a revision; the reviewers vote again."
    if line.state == "late" and line.has_room is False:
        return "The ledger has no room for it: this is the privacy officer's, and a run would be refused."
    if line.state == "late":
        return f"See whether Dagster's daemon runs and the source has come; {run} opens it by hand."
    if status is not None and status.lost:
        return f"A revision takes its place: `release-pipeline run {line.policy} --release {line.partition} --revise REASON`."
    return describe_progress(ReleaseId(line.policy, line.partition, line.revision or 1), status) + "."


def _list_broken_runs(events: tuple[Event, ...], statuses: Mapping[str, ReleaseStatus]) -> list[Document]:
    """The last runs that broke off, the latest first; `stands` where nothing got further since."""
    failed = [event for event in events if event.kind == FAILED and event.release is not None]
    last = {str(event.release): event.number for event in failed}
    return [
        {
            "release": (release := str(event.release)),
            "policy": release.partition("/")[0],
            "moment": event.noted,
            "reason": str(event.content.get("reason", "")),
            "stands": last[release] == event.number and bool(statuses[release].failed),
        }
        for event in failed[: -MOST_RUNS - 1 : -1]
    ]


def _list_waiting(site: Site, listing: Listing) -> Iterator[Document]:
    """What is approved and not public, with everything that is in its way; then what waits for its reviewers."""
    obstacles = _find_obstacles(site, listing)
    for line in sorted(listing.lines, key=lambda line: line.state == "candidate"):
        if line.given_up_for:
            continue
        if line.state in ("candidate", *_PUBLISHED_NEXT):
            obstacle = obstacles.get(line.release, "Nothing is in its way.")
            words = "Its reviewers decide." if line.state == "candidate" else obstacle
            yield {"release": line.release, "state": line.state, "since": line.since, "words": words}


def _find_obstacles(site: Site, listing: Listing) -> dict[str, str]:
    """Why approved releases cannot be published now, by release. Everything is looked at anew for that, which takes a while: so
    once for as long as no line of the listing, which sees folders that change, is another."""
    seen = (listing.lines, listing.broken)
    return keep(site, "obstacles", lambda: _look_for_obstacles(site, listing), stamp=lambda: seen, seconds=_JUDGED_SECONDS)


def _look_for_obstacles(site: Site, listing: Listing) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = {line.policy for line in listing.lines if line.state in _PUBLISHED_NEXT and not line.given_up_for}
    for policy in sorted(waiting):
        try:
            _, reasons = list_publishable(site, policy)
        except ReleasePipelineError as error:
            mine = [line.release for line in listing.lines if line.policy == policy]
            found |= dict.fromkeys(mine, shorten_place(site, error.in_full))
            continue
        for reason in reasons:
            release, _, words = reason.partition(": ")
            found[release] = shorten_place(site, words)
    return found


def _describe_publishing(site: Site) -> str:
    """Who publishes what is approved, in words."""
    by_hand = "`release-pipeline publish RELEASE --key KEY`"
    try:
        named = site.service_key
    except ReleasePipelineError as error:
        return f"site.yaml cannot be read, so that nothing is published by itself: {shorten_place(site, error.in_full)}"
    if named is None:
        return f"Nothing is published by itself here, for site.yaml names no service key: {by_hand}."
    if not named.is_file():
        return (
            f"site.yaml names a service key, and there is no {shorten_place(site, str(named))}: nothing is published by itself."
        )
    return f"The site's service publishes what is approved, as often as Dagster's daemon asks it to; by hand: {by_hand}."


def _list_people(site: Site) -> list[Document]:
    """Who may come in, as whom, and until when their tokens let them; tokens themselves are not kept anywhere."""
    tokens = list_tokens(site)
    return [
        {
            "name": person.name,
            "roles": sorted(role.value for role in person.roles),
            "tokens": [{"made": one.made, "ends": one.ends} for one in tokens if one.person == person.name],
        }
        for person in read_people(site).values()
    ]


def _link_dagster(address: str, lines: Iterable[Line]) -> Document | None:
    """Where the site's own Dagster has its runs, daemons and chains; nothing where site.yaml does not say where it is."""
    if not address:
        return None
    pages = DagsterPages(address)
    policies = sorted({line.policy for line in lines})
    return {
        "runs": pages.show_runs(),
        "daemons": pages.show_daemons(),
        "policies": [{"policy": name, "runs": pages.show_runs(name), "asset": pages.show_asset(name)} for name in policies],
    }


CALLS = (Call("operations", allow(Role.OPERATOR), _show_operations),)
