"""What the registry's events say of packages at targets, and what is outstanding: pure functions of events and settings.

    delivering -> delivered -> recalled (as superseded, as retracted)

None of these events changes the state of a release: what is public in `releases/` is so whatever becomes of a delivery.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from release_pipeline.flow.publication.targets import TargetSettings
from release_pipeline.flow.states import PUBLISHED, RETRACTED, SUPERSEDED, ReleaseStatus
from release_pipeline.policy.documents import Moment
from release_pipeline.store.registry import Event, ReleaseId

DELIVERING, DELIVERED, RECALLED = "delivering", "delivered", "recalled"


@dataclass(frozen=True, slots=True)
class Place:
    """A target at an address: what is delivered to another address under the same name is another delivery."""

    target: str
    kind: str
    address: str

    @property
    def words(self) -> str:
        """It for a person."""
        return f"{self.target} ({self.address})"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one package at one place: when it was begun and done (or empty), where people find it, what the target
    calls it, and the states of which the target knows."""

    place: Place
    begun: str
    delivered: str = ""
    where: str = ""
    deposit: str = ""
    recalled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Task:
    """Something that is to be done yet: a package is to be delivered, or a target to be told what became of it. `delivery`: what
    was done of it before, if anything was."""

    release: ReleaseId
    place: Place
    state: str  # of the release; published: nothing is to be told
    delivery: Delivery | None = None

    @property
    def is_recall(self) -> bool:
        """Whether the target has the package, or something of it that it is not to have."""
        return self.state == RETRACTED or (self.delivery is not None and bool(self.delivery.delivered))

    @property
    def words(self) -> str:
        """It for a person."""
        if self.is_recall:
            return f"{self.release}: {self.place.words} is not told yet that it was {self.state}"
        begun = "" if self.delivery is None else f", begun at {self.delivery.begun}"
        return f"{self.release}: not delivered to {self.place.words}{begun}"


@dataclass(frozen=True, slots=True)
class OutstandingView:
    """What is to be done yet at a target; `release-pipeline deliver` does it."""

    release: Annotated[str, "POLICY/PARTITION/rN"]
    target: Annotated[str, "its name in site.yaml, or in that of then"]
    address: Annotated[str, "where that is"]
    what: Annotated[Literal["delivery", "recall"], "the package is to go there, or what became of it is to be told there"]
    begun: Annotated[Moment | None, "when the delivery was begun; null where it was not"]


def view_task(task: Task) -> OutstandingView:
    """A task for a script."""
    begun = None if task.delivery is None else task.delivery.begun
    what = "recall" if task.is_recall else "delivery"
    return OutstandingView(str(task.release), task.place.target, task.place.address, what, begun)


def place_of(settings: TargetSettings) -> Place:
    """The place that a target is now."""
    return Place(settings.name, settings.kind, settings.address)


def read_deliveries(events: Iterable[Event]) -> dict[ReleaseId, dict[Place, Delivery]]:
    """What became of each package at each place where anything was begun."""
    found: dict[ReleaseId, dict[Place, Delivery]] = {}
    for event in events:
        if event.kind not in (DELIVERING, DELIVERED, RECALLED) or event.release is None:
            continue
        content, mine = event.content, found.setdefault(event.release, {})
        place = Place(content["target"], content["via"], content["address"])
        known = mine.get(place, Delivery(place, event.noted))
        if event.kind == DELIVERED:
            known = replace(known, delivered=event.noted, where=content["where"], deposit=content["deposit"])
        elif event.kind == RECALLED:
            known = replace(known, recalled=known.recalled | {content["state"]})
        mine[place] = known
    return found


def list_tasks(
    events: Sequence[Event], statuses: Mapping[ReleaseId, ReleaseStatus], targets: Sequence[TargetSettings]
) -> list[Task]:
    """Everything that is to be done yet, release by release."""
    begun = read_deliveries(events)
    return [
        task
        for id, status in sorted(statuses.items())
        if status.package_hash is not None
        for task in _list_tasks_of(status, begun.get(id, {}), targets)
    ]


def _list_tasks_of(status: ReleaseStatus, begun: Mapping[Place, Delivery], targets: Sequence[TargetSettings]) -> Iterator[Task]:
    places = [place_of(target) for target in targets if target.wants(status.id.policy)]
    for place in dict.fromkeys([*places, *begun]):
        known = begun.get(place)
        wanted = place in places and (known is None or not known.delivered) and status.state in (PUBLISHED, SUPERSEDED)
        if wanted or (known is not None and _is_untold(known, status.state)):
            yield Task(status.id, place, status.state, known)


def _is_untold(known: Delivery, state: str) -> bool:
    """Whether a target is to be told that the release came into a state: what it never had whole is only taken away."""
    return state not in known.recalled and (state == RETRACTED or (state == SUPERSEDED and bool(known.delivered)))
