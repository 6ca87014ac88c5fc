"""Looks at confidential records that parameters are chosen by: each is an event of the registry (`looked`), noted before anything
is read.

What is chosen after a look depends on the records, and no epsilon accounts for what the choice tells of them. Nothing here bounds
that: it is told. Reviewers and auditors read who looked, when, at what, and what was compared, and the card says how often. An
event has neither a cell nor a figure of the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.policies import record_policy
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import POLICY, RESERVED
from release_pipeline.flow.texts import check_name
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Hash, Moment
from release_pipeline.store.registry import Event, Registry, ReleaseId

LOOKED = "looked"
On: TypeAlias = Literal["source", "file"]
LONGEST_SETTING = 200  # characters of what was compared, each
MOST_COMPARED = 1000
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ON = {"source": "at the source", "file": "at a file"}


@dataclass(frozen=True, slots=True)
class Look:
    """A look under a policy, as the event `number` has it: when, by whom, at what, and the settings that were compared. `digest`:
    the hash of what was looked at, empty where the caller gave none; `population`: whose records they are."""

    policy: str
    population: str
    policy_hash: str
    number: int
    noted: str
    by: str
    on: On
    digest: str
    compared: tuple[str, ...]

    @property
    def words(self) -> str:
        """It for a person."""
        return f"{self.noted[:10]} by {self.by}, {_ON[self.on]}: {'; '.join(self.compared)}"


@dataclass(frozen=True, slots=True)
class LookView:
    """A look at confidential records, after which parameters are chosen with knowledge of the data."""

    policy: Annotated[str, "the name of the policy whose parameters were looked for"]
    policy_hash: Annotated[Hash, "of the policy as it was then"]
    event: Annotated[int, "the number of its event in the registry"]
    noted: Annotated[Moment, "when it was noted, before anything was read"]
    by: Annotated[str, "by whom, as they said"]
    on: Annotated[On, "at what: the source of the policy, or a file"]
    compared: Annotated[tuple[str, ...], "the settings that were compared"]


def note_look(site: Site, policy: Policy, *, by: str, on: On, digest: str, compared: Sequence[str]) -> Look:
    """The look is in the registry, and the policy of the site that it is made under; call it before the first record is read.
    `digest`: the SHA-256 of the file, or another hash of what is read, or an empty text. Refused where site.yaml forbids it."""
    by, compared = check_name(by, remedy="Name who looks."), _check_compared(compared)
    if on not in get_args(On) or (digest and not _DIGEST.fullmatch(digest)):
        raise WrongUsage(
            "a look is at the source or at a file, whose hash is 64 hexadecimal digits.",
            where=policy.policy,
            remedy="Leave the hash empty where there is none.",
        )
    if site.forbids_looks:
        raise Blocked(
            "this site forbids to look at confidential records for parameters ('looks: forbidden'). Nothing was read.",
            where=str(site.home / "site.yaml"),
            remedy="Explore on a public table or a made-up one: neither is a look.",
        )
    with site.open_registry() as registry:
        record_policy(site, registry, policy)
        return _read(
            registry.add(
                LOOKED,
                policy=policy.policy,
                population=policy.population,
                policy_hash=policy.canonical_hash(),
                by=by,
                on=on,
                digest=digest,
                compared=list(compared),
            )
        )


def has_noted(site: Site, policy: Policy, *, by: str, on: On, digest: str, compared: Sequence[str]) -> bool:
    """Whether just this look is noted already, by the same person under the policy as it is; never where the site forbids it."""
    if site.forbids_looks or not site.registry.exists():
        return False
    by, compared = check_name(by, remedy="Name who looks."), _check_compared(compared)
    with site.open_registry(read_only=True) as registry:
        looks = find_looks(registry.events, policy.policy)
    wanted = policy.canonical_hash(), by, on, digest, compared
    return any((look.policy_hash, look.by, look.on, look.digest, look.compared) == wanted for look in looks)


def keep_looks(registry: Registry, chain: Iterable[Event]) -> None:
    """The looks of another chain of this site are in the registry, each once and with the moment when it was noted first: nobody
    gets rid of one by putting back a backup."""
    known = [_tell(event) for event in registry.events if event.kind == LOOKED]
    for event in chain:
        if event.kind == LOOKED and (content := _tell(event)) not in known:
            registry.add(LOOKED, **content)


def find_looks(events: Iterable[Event], policy: str) -> tuple[Look, ...]:
    """Every look under a policy of that name, whatever version of it, in order."""
    return group_looks(events).get(policy, ())


def group_looks(events: Iterable[Event]) -> dict[str, tuple[Look, ...]]:
    """Every look by the name of its policy, in order."""
    found: dict[str, list[Look]] = {}
    for event in events:
        if event.kind == LOOKED:
            found.setdefault(event.content["policy"], []).append(_read(event))
    return {policy: tuple(looks) for policy, looks in found.items()}


def find_looks_before(events: Sequence[Event], release: ReleaseId) -> tuple[Look, ...]:
    """The looks that concern a release: all at the records of its population, under whatever policy, and all under a policy of
    its name, that were noted before its charge; of one that is not charged, all so far. By a later look its parameters cannot
    have been chosen."""
    return _Looked(events).before(release)


def count_looks_before(events: Sequence[Event], releases: Iterable[ReleaseId]) -> dict[ReleaseId, int]:
    """How many looks concern each of these releases, which the events are read once for."""
    looked = _Looked(events)
    return {release: len(looked.before(release)) for release in releases}


class _Looked:
    """The looks of a chain, and what tells which releases they concern."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._looks: list[Look] = []
        self._charges: dict[ReleaseId, Event] = {}
        self._populations: dict[str, str] = {}  # of each policy, as it was noted last
        for event in events:
            if event.kind == LOOKED:
                self._looks.append(_read(event))
            elif event.kind == RESERVED and event.release is not None:
                self._charges[event.release] = event
            elif event.kind == POLICY:
                self._populations[event.content["policy"]] = event.content["population"]

    def before(self, release: ReleaseId) -> tuple[Look, ...]:
        """Those that concern a release, in order."""
        if not self._looks:
            return ()
        charge = self._charges.get(release)
        population = self._populations.get(release.policy) if charge is None else charge.content["population"]
        return tuple(
            look
            for look in self._looks
            if (look.policy == release.policy or look.population == population)
            and (charge is None or look.number < charge.number)
        )


def view_looks(events: Iterable[Event]) -> tuple[LookView, ...]:
    """Every look for a script, in order."""
    looks = sorted((look for found in group_looks(events).values() for look in found), key=lambda look: look.number)
    return tuple(
        LookView(look.policy, look.policy_hash, look.number, look.noted, look.by, look.on, look.compared) for look in looks
    )


def describe_looks(looks: Mapping[str, Sequence[Look]]) -> Iterator[str]:
    """They in lines for a person, by policy."""
    for policy in sorted(looks):
        yield from (f"looked {policy}: {look.words}" for look in looks[policy])


def note_looks(looks: Sequence[Look]) -> list[dict[str, Any]]:
    """They as the evidence of a candidate and a dossier have them: without the hash of what was looked at."""
    return [
        {"event": look.number, "noted": look.noted, "by": look.by, "on": look.on, "compared": list(look.compared)}
        for look in looks
    ]


def list_looked(events: Iterable[Event]) -> set[str]:
    """The hashes of the policies that looks were made under."""
    return {event.content["policy_hash"] for event in events if event.kind == LOOKED}


def _tell(event: Event) -> dict[str, Any]:
    """What an event says, with when it was noted first: of one that a restore put back, before that."""
    return {"noted": event.noted, **event.content}


def _read(event: Event) -> Look:
    content = _tell(event)
    return Look(
        content["policy"],
        content["population"],
        content["policy_hash"],
        event.number,
        content["noted"],
        content["by"],
        content["on"],
        content["digest"],
        tuple(content["compared"]),
    )


def _check_compared(compared: Sequence[str]) -> tuple[str, ...]:
    """What was compared, if every text of it can be printed in a line."""
    texts = tuple(text.strip() for text in compared)
    if not 0 < len(texts) <= MOST_COMPARED or not all(0 < len(text) <= LONGEST_SETTING and text.isprintable() for text in texts):
        raise WrongUsage(
            f"a look names what is compared: 1 to {MOST_COMPARED:,} settings, each a line, {LONGEST_SETTING} characters at most.",
            remedy="It stays in the registry.",
        )
    return texts
