"""The state of packages at targets by the registry's events, and what is outstanding: pure functions of events and settings.

    delivering -> delivered -> recalled (as superseded, as retracted)

None of these events changes the state of a release: a package in `releases/` stays public whatever happens to a delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage
from release_pipeline.ledger.office import OFFICERS
from release_pipeline.ledger.states import PUBLISHED, RETRACTED, SUPERSEDED, ReleaseStatus, read_statuses, status_of
from release_pipeline.policy.documents import Moment
from release_pipeline.store.files import PLAIN, SUMS, Probe, is_whole, read_sums
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.targets.settings import TargetSettings, find_target_faults, open_target, read_targets
from release_pipeline.targets.target import Recall, Stored, Target, TargetFailed, recall_files
from release_pipeline.trust.keys import write_statement

DELIVERING, DELIVERED, RECALLED = "delivering", "delivered", "recalled"
_FILES = "to"  # the kind of target in events: files in a folder or an object store


@dataclass(frozen=True, slots=True)
class Destination:
    """A target at an address. Under another address the same name is another delivery."""

    target: str
    address: str

    @property
    def description(self) -> str:
        """Return the line that people read."""
        return f"{self.target} ({self.address})"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of one package to one place: when it was begun and done (or empty), where people find it, and the states that
    were reported to the target."""

    destination: Destination
    begun: str
    delivered: str = ""
    where: str = ""
    recalled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Task:
    """An outstanding task: to deliver a package, or to report its new state to a target. `delivery`: what was done of it before,
    if anything."""

    release: ReleaseId
    destination: Destination
    state: str  # of the release; published: there is nothing to report
    delivery: Delivery | None = None

    @property
    def is_recall(self) -> bool:
        """Return whether the target has the package, or files of it that it must not have."""
        return self.state == RETRACTED or (self.delivery is not None and bool(self.delivery.delivered))

    @property
    def description(self) -> str:
        """Return the line that people read."""
        if self.is_recall:
            return f"{self.release}: {self.destination.description} is not told yet that it was {self.state}"
        begun = "" if self.delivery is None else f", begun at {self.delivery.begun}"
        return f"{self.release}: not delivered to {self.destination.description}{begun}"


@dataclass(frozen=True, slots=True)
class OutstandingView:
    """An outstanding task at a target; `release-pipeline deliver` does it."""

    release: Annotated[str, "POLICY/PARTITION/rN"]
    target: Annotated[str, "its name in site.yaml, or in that of then"]
    address: Annotated[str, "where that is"]
    what: Annotated[Literal["delivery", "recall"], "the package is to go there, or what became of it is to be told there"]
    begun: Annotated[Moment | None, "when the delivery was begun; null where it was not"]


def view_task(task: Task) -> OutstandingView:
    """Return a task for a script."""
    begun = None if task.delivery is None else task.delivery.begun
    what = "recall" if task.is_recall else "delivery"
    return OutstandingView(str(task.release), task.destination.target, task.destination.address, what, begun)


def name_destination(settings: TargetSettings) -> Destination:
    """Return the place that a target is now."""
    return Destination(settings.name, settings.address)


def read_deliveries(events: Iterable[Event]) -> dict[ReleaseId, dict[Destination, Delivery]]:
    """Return the delivery of each package to each place where one was begun."""
    deliveries: dict[ReleaseId, dict[Destination, Delivery]] = {}
    for event in events:
        if event.kind not in (DELIVERING, DELIVERED, RECALLED) or event.release is None:
            continue
        content, mine = event.content, deliveries.setdefault(event.release, {})
        destination = Destination(content["target"], content["address"])
        known = mine.get(destination, Delivery(destination, event.noted))
        if event.kind == DELIVERED:
            known = replace(known, delivered=event.noted, where=content["where"])
        elif event.kind == RECALLED:
            known = replace(known, recalled=known.recalled | {content["state"]})
        mine[destination] = known
    return deliveries


def list_tasks(
    events: Sequence[Event], statuses: Mapping[ReleaseId, ReleaseStatus], targets: Sequence[TargetSettings]
) -> list[Task]:
    """Return all outstanding tasks, release by release."""
    begun = read_deliveries(events)
    return [
        task
        for id, status in sorted(statuses.items())
        if status.package_hash is not None
        for task in _list_tasks_of(status, begun.get(id, {}), targets)
    ]


def _list_tasks_of(
    status: ReleaseStatus, begun: Mapping[Destination, Delivery], targets: Sequence[TargetSettings]
) -> Iterator[Task]:
    places = [name_destination(target) for target in targets if target.wants(status.id.policy)]
    for destination in dict.fromkeys([*places, *begun]):
        known = begun.get(destination)
        wanted = destination in places and (known is None or not known.delivered) and status.state in (PUBLISHED, SUPERSEDED)
        if wanted or (known is not None and _is_untold(known, status.state)):
            yield Task(status.id, destination, status.state, known)


def _is_untold(known: Delivery, state: str) -> bool:
    """Return whether a state of the release is still to be reported to a target. Files that it never had whole are only
    removed."""
    return state not in known.recalled and (state == RETRACTED or (state == SUPERSEDED and bool(known.delivered)))


# The expected content of a published package: its files, its signature, and the tombstones next to it.


SIGNATURE = "SHA256SUMS.sig"
TOMBSTONES = {RETRACTED: "RETRACTED", SUPERSEDED: "SUPERSEDED"}  # a state, and the name of the files that report it


def package_is_whole(folder: Path, status: ReleaseStatus) -> bool:
    """Return whether a package is as it was published, with signature and tombstones, and without the data if it was
    retracted."""
    signature = folder / SIGNATURE
    if not signature.is_file() or signature.read_bytes() != write_statement(status.package_signed).encode():
        return False
    retracted = status.state == RETRACTED
    if retracted and any(folder.glob("data.*")):
        return False
    away = [name for name in read_sums(folder, status.package_hash) if name.startswith("data.")] if retracted else ()
    return is_whole(folder, status.package_hash, besides=(SIGNATURE, *tombstone_files()), without=away)


def tombstone_files() -> list[str]:
    """Return the files that may be in a package and not in its list of sums, since they came later."""
    return [f"{name}.{ending}" for name in TOMBSTONES.values() for ending in ("json", "md", OFFICERS)]


# Published packages go to targets, which later get reports of their state. Boundaries: the intent is an event before the first
# byte leaves. Files that the target does not have yet go there one by one, the signature last; when all are there, that is
# recorded, with the address. After a stop at any point, a rerun compares the target and goes on: nothing is sent twice, and an
# incomplete package never passes for a whole one. A retraction or supersession, recorded long before, is the intent of its own
# recall.


class NotDelivered(ReleasePipelineError):
    """A package is public in the site's folder, and is missing or outdated at some target. `details`: the reason at each."""

    def __init__(self, what: str, *, details: tuple[str, ...] = (), where: str = "", remedy: str = "") -> None:
        self.details = details
        super().__init__(what, where=where, remedy=remedy)


@dataclass(slots=True)
class _Work:
    """The work at one target for one release."""

    site: Site
    task: Task
    settings: TargetSettings
    probe: Probe
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.site.package(str(self.task.release))

    @property
    def name(self) -> dict[str, str]:
        """Return the place, as events have it."""
        return {"target": self.task.destination.target, "via": _FILES, "address": self.task.destination.address}


def deliver(
    site: Site,
    release: ReleaseId | None = None,
    *,
    only: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
    waiting: Callable[[], None] | None = None,
    probe: Probe = PLAIN,
) -> None:
    """Do what is outstanding for one release or for all, at every target or `only` one. `tell` gets a line for each completed
    step; a failure stops nothing else, and raises `NotDelivered` at the end."""
    targets = read_targets(site)
    if only is not None and only not in {target.name for target in targets}:
        known = ", ".join(target.name for target in targets) or "none"
        raise WrongUsage(f"site.yaml has no target '{only}'.", where=str(site.home), remedy=f"There are: {known}.")
    if not _list(site, targets, release, only):
        return
    failed: list[str] = []
    with site.delivering_alone(waiting=waiting):
        tasks = _list(site, targets, release, only)  # another process may have done some meanwhile
        for task in tasks:
            try:
                _do(site, task, targets, tell, probe)
            except ReleasePipelineError as error:
                failed.append(f"{task.description}: {error.in_full}")
    if failed:
        releases = {str(task.release) for task in tasks}
        named = f" {next(iter(releases))}" if len(releases) == 1 else ""
        raise NotDelivered(
            f"{len(failed)} of {len(tasks)} things to be done at targets could not be. What is in {site.releases} is as it was.",
            details=tuple(failed),
            where="" if release is None else str(release),
            remedy=f"`release-pipeline deliver{named}` finishes what is left.",
        )


def list_outstanding(site: Site) -> list[Task]:
    """Return all outstanding tasks at targets; none where site.yaml cannot be read, which `status` reports."""
    return [] if find_target_faults(site) else _list(site, read_targets(site), None, None)


def _list(site: Site, targets: Sequence[TargetSettings], release: ReleaseId | None, only: str | None) -> list[Task]:
    with site.open_registry(read_only=True) as registry:
        statuses = read_statuses(registry.events)
        if release is not None and statuses.get(release, ReleaseStatus(release)).package_hash is None:
            state = statuses.get(release, ReleaseStatus(release)).state
            raise Blocked(f"it is {state}, not published.", where=str(release), remedy="Publish it first.")
        tasks = list_tasks(registry.events, statuses, targets)
    return [task for task in tasks if release in (None, task.release) and only in (None, task.destination.target)]


def _do(site: Site, task: Task, targets: Sequence[TargetSettings], tell: Callable[[str], None], probe: Probe) -> None:
    """Do a task. A package that is delivered after it was superseded also gets that report."""
    settings = next((target for target in targets if name_destination(target) == task.destination), None)
    if settings is None:
        what = "site.yaml has no target of this name and address any more."
        raise TargetFailed(what, remedy="Put it back until this is done; what lies there cannot be taken back without.")
    work = _Work(site, task, settings, probe)
    if not task.is_recall:
        where, delivery = _deliver(work)
        tell(f"{task.release}: delivered to {task.destination.target}: {where}")
        if task.state != SUPERSEDED:
            return
        work = _Work(site, Task(task.release, task.destination, SUPERSEDED, delivery), settings, probe)
    tell(_recall(work))


def _deliver(work: _Work) -> tuple[str, Delivery]:
    """Bring the whole package to the target; returns its address, and the state of the delivery."""
    task, probe = work.task, work.probe
    with work.site.open_registry() as registry:
        status = _check_state(registry, task.release, (PUBLISHED, SUPERSEDED))
        if not package_is_whole(work.folder, status):
            raise Blocked("its package is not what was published.", remedy=f"Look at {work.folder}. Nothing was sent.")
        known = read_deliveries(registry.events).get(task.release, {}).get(task.destination)
        if known is None:
            registry.add(DELIVERING, task.release, **work.name, package_hash=status.package_hash)
    probe.reached("delivering is noted")
    target = open_target(work.site, work.settings, str(status.id))
    _send(target, work, _list_files(work.folder, status))
    probe.reached("everything is there")
    with work.site.open_registry() as registry:
        _check_state(registry, task.release, (PUBLISHED, SUPERSEDED))
        content = {**work.name, "package_hash": status.package_hash, "where": target.where}
        event = registry.add(DELIVERED, task.release, **content)
    probe.reached("delivered is noted")
    begun = event.noted if known is None else known.begun
    return target.where, Delivery(task.destination, begun, event.noted, target.where)


def _send(target: Target, work: _Work, names: Sequence[str]) -> None:
    """Send every file of the package that the target lacks, and remove any others there."""
    there = target.find()
    if others := set(there) - set(names) - set(tombstone_files()):
        raise TargetFailed(
            f"{len(others)} other file{'s are' if len(others) > 1 else ' is'} where the package belongs.",
            where=work.task.destination.target,
            remedy="Look there, and move them away.",
        )
    missing = [name for name in names if name not in there or not there[name].is_same(work.folder / name)]
    if missing and SIGNATURE in there:  # people recognize a whole package by it
        target.remove(SIGNATURE)
        missing = [*(name for name in missing if name != SIGNATURE), SIGNATURE]
    for name in missing:
        target.put(work.folder / name)
        work.probe.reached(f"{name} is sent")
    if missing:
        _check_sent(target.find(), work, names)


def _check_sent(there: Mapping[str, Stored], work: _Work, names: Sequence[str]) -> None:
    wrong = [name for name in names if name not in there or not there[name].may_be(work.folder / name)]
    if wrong:
        what = f"{', '.join(wrong)}: what is there is not what was sent."
        raise TargetFailed(what, where=work.task.destination.target, remedy="Try again; if it stays so, ask who runs it.")


def _recall(work: _Work) -> str:
    """Report the package's state to the target and record that; returns a line on what was done."""
    task, probe = work.task, work.probe
    known = task.delivery
    with work.site.open_registry(read_only=True) as registry:
        status = _check_state(registry, task.release, (task.state,))
    if not package_is_whole(work.folder, status):
        raise Blocked("its package is not what it should be.", remedy=f"Look at {work.folder}; `{task.state}` again first.")
    target = open_target(work.site, work.settings, str(status.id))
    tombstones = [file for file in sorted(work.folder.iterdir()) if file.name in tombstone_files()]
    is_whole = known is not None and bool(known.delivered)
    done = recall_files(target, Recall(_list_files(work.folder, status), tombstones, task.state == RETRACTED, is_whole))
    probe.reached("it is recalled there")
    with work.site.open_registry() as registry:
        _check_state(registry, task.release, (task.state,))
        content = {**work.name, "package_hash": status.package_hash, "state": task.state}
        registry.add(RECALLED, task.release, **content, put=[*done.put], removed=[*done.removed])
    probe.reached("recalled is noted")
    what = [f"put there: {', '.join(done.put)}"] * bool(done.put) + [f"removed: {', '.join(done.removed)}"] * bool(done.removed)
    words = "; ".join(what) or "nothing was done there"
    return f"{task.release}: {task.state} at {task.destination.target}: {words}"


def _check_state(registry: Registry, release: ReleaseId, states: tuple[str, ...]) -> ReleaseStatus:
    """Return the status of a release; raises if it has changed since the work began."""
    status = status_of(registry, release)
    if status.state not in states or status.package_hash is None:
        raise Blocked(f"it is {status.state} by now.", remedy="Try again: what is to be done is another thing.")
    return status


def _list_files(folder: Path, status: ReleaseStatus) -> list[str]:
    """Return the files of a package in the order in which they are sent."""
    return [*sorted(read_sums(folder, status.package_hash)), SUMS, SIGNATURE]
