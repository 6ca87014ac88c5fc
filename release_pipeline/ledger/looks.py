"""Trials on confidential records, after which parameters may be chosen (looks): each is an event of the registry (`looked`),
noted before anything is shown. A run that read records and released nothing is a trial too: a refusal answers a question about
them.

A choice after a trial depends on the records, and no epsilon accounts for what it reveals. Nothing here bounds that: reviewers
and auditors read who made it, when, on what, and what was compared, and the card shows how often. An event contains no cell and
no figure of the data.

Using a file that somebody calls public is not a trial, but is noted too (`public`): if a release is later charged for the same
file, it was one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.formats import versions as formats
from release_pipeline.ledger.policies import policy_of, read_caps, record_policy
from release_pipeline.ledger.states import POLICY
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Hash, Moment, read_as
from release_pipeline.policy.loading.populations import Population, list_ancestors
from release_pipeline.policy.plans.settings import own_setting
from release_pipeline.store.files import check_line, check_name, clear_partials, locked, write_private_json
from release_pipeline.store.ledger import RESERVED
from release_pipeline.store.registry import RESTORING, Event, Registry, ReleaseId
from release_pipeline.store.site import Site

LOOKED, PUBLIC = "looked", "public"
On: TypeAlias = Literal["mask", "run", "public"]
Populations: TypeAlias = Mapping[str, Population]
KINDS = (LOOKED, PUBLIC)
_NONE: Populations = {}
LONGEST_SETTING = 200  # characters of each compared setting
MOST_COMPARED = 1000
SHOWN_COMPARED = 6  # in a line
WITHHELD = "This site forbids trials on confidential data ('looks: forbidden'), so figures and counts are withheld."
_ON = {
    "mask": "at a source, which was masked",
    "run": "by a run that released nothing",
    "public": "at a file that is public, as they said",
}


@dataclass(frozen=True, slots=True)
class Look:
    """A trial under a policy, as the event `number` has it: when, by whom (empty for a run), on what, and the compared settings.
    `digest`: the hash of the records, empty if the caller gave none; `population`: whose records they are, and `carries` its
    predecessors; `origins`: what identifies the records, under any name; `where`: the place of a public file, as the person gave
    it; `stopped`: the release of a run that was not refused."""

    policy: str
    population: str
    policy_hash: str
    number: int
    noted: str
    by: str
    on: On
    digest: str
    compared: tuple[str, ...]
    carries: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    where: str = ""
    stopped: str = ""

    @property
    def description(self) -> str:
        """Return the trial in one line of text."""
        at = _ON[self.on] + f" ({self.where})" * bool(self.where)
        more = len(self.compared) - SHOWN_COMPARED
        compared = "; ".join(self.compared[:SHOWN_COMPARED]) + (f" and {more} more" if more > 0 else "")
        return f"{self.noted[:10]} " + f"by {self.by}, " * bool(self.by) + f"{at}: {compared}"

    def concerns(self, charged: Charged) -> bool:
        """Return whether parameters of a release with this charge can have been chosen after the trial."""
        is_same = not charged.origins.isdisjoint(self.origins)
        if self.on == "public":
            return is_same
        is_of_these = self.population in charged.before or charged.population in (self.population, *self.carries)
        return is_same or is_of_these or self.policy == charged.policy


@dataclass(frozen=True, slots=True)
class Charged:
    """The object of a charge, noted or planned: its policy's name, its population and all its predecessors, and the origins of
    its records, if they are known."""

    policy: str
    population: str = ""
    before: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LookView:
    """A look at confidential records, after which parameters may be chosen with knowledge of the data."""

    policy: Annotated[str, "the name of the policy whose parameters were looked for"]
    policy_hash: Annotated[Hash, "of the policy as it was then"]
    event: Annotated[int, "the number of its event in the registry"]
    noted: Annotated[Moment, "when it was noted, before anything was read"]
    by: Annotated[str, "by whom, as they said; empty for a run"]
    on: Annotated[
        On,
        "at what: a source by `mask`, or by a run that released nothing; or at a file that is public, as they said",
    ]
    compared: Annotated[tuple[str, ...], "the settings that were compared"]


def note_look(
    site: Site,
    policy: Policy,
    *,
    by: str,
    digest: str,
    compared: Sequence[str],
    origins: Sequence[str] = (),
    is_here: bool = True,
) -> Look:
    """Note that a source is masked under a policy, and return the trial; call it before the first record is read. `digest`: the
    keyed hash of the file; `origins`: of the records read; `is_here`: whether the policy is in the site. Refused if site.yaml
    forbids trials, and for people who are not declared."""
    by, compared = check_name(by, remedy="Name who looks."), _check_compared(compared)
    check_allowed(site)
    carries = _find_carried(site, policy, declared=is_here)
    with site.open_registry() as registry:
        if is_here:
            record_policy(site, registry, policy)
        content: dict[str, Any] = {"by": by, "on": "mask", "digest": digest, "compared": list(compared)}
        content |= {"carries": carries} if carries else {}
        content |= {"origins": list(origins)} if origins else {}
        return _read(registry.add(LOOKED, **_name(policy), **content))


def note_run(site: Site, policy_hash: str, *, digest: str, origins: Sequence[str], stopped: str = "") -> None:
    """Note a run that read records under the policy with this hash and releases nothing: once for the same policy and the same
    records (`digest`, keyed). `stopped`: the release whose run was not refused; a charge of it under that policy takes the run
    out of its trials."""
    with site.open_registry() as registry:
        policy = policy_of(registry, policy_hash)
        compared = say_compared([own_setting(json.loads(policy.canonical_json())).summary])
        noted: dict[str, Any] = {"policy": policy.policy, "population": policy.population, "policy_hash": policy_hash}
        noted |= {"by": "", "on": "run", "digest": digest, "compared": compared, "origins": list(origins)}
        noted |= {"stopped": stopped} if stopped else {}
        runs = [event.content for event in registry.events if event.kind == LOOKED and event.content["on"] == "run"]
        if any(all(run.get(key) == noted.get(key) for key in ("policy_hash", "digest", "stopped")) for run in runs):
            return
        noted |= {"carries": carries} if (carries := _find_carried(site, policy, declared=False)) else {}
        registry.add(LOOKED, **noted)


def note_public(site: Site, policy: Policy, *, by: str, where: str, digest: str, compared: Sequence[str]) -> Look:
    """Note once that somebody calls a file public, and where it is published, and return the entry. `digest`: its keyed hash."""
    by, compared = check_name(by, remedy="Name who says so."), _check_compared(compared)
    where = check_line(where, where="--public", longest=LONGEST_SETTING)
    content: dict[str, Any] = {**_name(policy), "by": by, "where": where, "origins": [digest], "compared": [*compared]}
    with site.open_registry() as registry:
        for event in registry.events:
            if event.kind == PUBLIC and {**event.content, "noted": ""} == {**content, "noted": ""}:
                return _read(event)
        return _read(registry.add(PUBLIC, **content))


def check_allowed(site: Site) -> None:
    """Refuse a trial if site.yaml forbids all."""
    if site.forbids_looks:
        raise Blocked(
            "this site forbids to look at confidential records for parameters ('looks: forbidden'). Nothing was read.",
            where=str(site.home / "site.yaml"),
            remedy="Explore on a public table or a made-up one: neither is a look.",
        )


def keep_looks(registry: Registry, chain: Iterable[Event]) -> None:
    """Add the trials of another chain of this site to the registry, each once and with the moment when it was first noted: nobody
    can remove one by restoring a backup."""
    known = [_tell(event) for event in registry.events if event.kind in KINDS]
    for event in chain:
        if event.kind in KINDS and (content := _tell(event)) not in known:
            registry.add(event.kind, **content)


def group_looks(events: Iterable[Event]) -> dict[str, tuple[Look, ...]]:
    """Return every trial by the name of its policy, in order; without runs whose release was charged."""
    looks_by_policy: dict[str, list[Look]] = {}
    events = tuple(events)
    charged = {(str(event.release), event.content["policy_hash"]) for event in events if event.kind == RESERVED}
    for event in events:
        if event.kind in KINDS and ((look := _read(event)).stopped, look.policy_hash) not in charged:
            looks_by_policy.setdefault(look.policy, []).append(look)
    return {policy: tuple(looks) for policy, looks in looks_by_policy.items()}


def find_looks_before(events: Sequence[Event], release: ReleaseId) -> tuple[Look, ...]:
    """Return the trials that concern a release (`Look.concerns`) and were noted before its charge: on the records of its
    population or a predecessor, on the same source, or under a policy of its name. For a release that is not charged, return all
    so far. Later trials cannot have influenced its parameters."""
    return _Looked(events, _NONE).before(release)


def count_looks_before(
    events: Sequence[Event], releases: Iterable[ReleaseId], populations: Populations = _NONE
) -> dict[ReleaseId, int]:
    """Return how many trials concern each of these releases, reading the events only once."""
    looked = _Looked(events, populations)
    return {release: len(looked.before(release)) for release in releases}


def find_gap_before(events: Sequence[Event], release: ReleaseId) -> tuple[str, str] | None:
    """Return when the last backup restored before a release's charge was made, and when it was restored, if the registry does not
    know everything that happened in between: trials may be lost. None without such a gap."""
    gap: tuple[str, str] | None = None
    for event in events:
        if event.kind == RESERVED and event.release == release:
            break
        if event.kind == RESTORING and not event.content["all_known"]:
            gap = event.content["made"], event.noted
    return gap


def has_origins(events: Iterable[Event]) -> bool:
    """Return whether a trial is noted by the origins of its records: then a charge notes its own origins too."""
    return any(event.kind in KINDS and event.content.get("origins") for event in events)


class _Looked:
    """The trials of a chain, and what decides which releases they concern."""

    def __init__(self, events: Iterable[Event], populations: Populations) -> None:
        self._declared = populations
        self._looks: list[Look] = []
        self._charges: dict[ReleaseId, Event] = {}
        self._charged: dict[tuple[str, str], int] = {}  # by release and hash of its policy: the number of its charge
        self._populations: dict[str, str] = {}  # the last noted population of each policy
        for event in events:
            if event.kind in KINDS:
                self._looks.append(_read(event))
            elif event.kind == RESERVED and event.release is not None:
                self._charges[event.release] = event
                self._charged[str(event.release), event.content.get("policy_hash", "")] = event.number
            elif event.kind == POLICY:
                self._populations[event.content["policy"]] = event.content["population"]

    def before(self, release: ReleaseId) -> tuple[Look, ...]:
        """Return the trials that concern a release, in order."""
        if not self._looks:
            return ()
        charge = self._charges.get(release)
        looks = self._looks if charge is None else [look for look in self._looks if look.number < charge.number]
        charged = self._foresee(release) if charge is None else read_charged(charge, release.policy)
        last = None if charge is None else charge.number
        return tuple(look for look in looks if look.concerns(charged) and not self._became_charge(look, last))

    def _became_charge(self, look: Look, last: int | None) -> bool:
        """Return whether the run of a trial led to its charge, up to the event `last`: later charges change no card."""
        number = self._charged.get((look.stopped, look.policy_hash)) if look.stopped else None
        return number is not None and (last is None or number <= last)

    def _foresee(self, release: ReleaseId) -> Charged:
        population = self._populations.get(release.policy)
        if population is None:
            return Charged(release.policy)
        return Charged(release.policy, population, list_ancestors(self._declared, population))


def read_charged(charge: Event, policy: str) -> Charged:
    """Return what a charge was for, as its event has it."""
    content = charge.content
    before, origins = content.get("carries", ()), content.get("origins", ())
    return Charged(policy, content["population"], frozenset(before), frozenset(origins))


def view_looks(events: Iterable[Event]) -> tuple[LookView, ...]:
    """Return every trial for a script, in order."""
    looks = sorted((look for of_policy in group_looks(events).values() for look in of_policy), key=lambda look: look.number)
    return tuple(
        LookView(look.policy, look.policy_hash, look.number, look.noted, look.by, look.on, look.compared) for look in looks
    )


def describe_looks(looks: Mapping[str, Sequence[Look]]) -> Iterator[str]:
    """Yield a line for each trial, by policy."""
    for policy in sorted(looks):
        yield from (f"looked {policy}: {look.description}" for look in looks[policy])


def note_looks(looks: Sequence[Look]) -> list[dict[str, Any]]:
    """Return the trials as evidence and dossiers have them: without the hash of the records."""
    return [
        {"event": look.number, "noted": look.noted, "by": look.by, "on": look.on, "compared": list(look.compared)}
        for look in looks
    ]


def list_looked(events: Iterable[Event]) -> set[str]:
    """Return the hashes of the policies that trials were made under."""
    return {event.content["policy_hash"] for event in events if event.kind in KINDS}


def say_compared(settings: Iterable[str]) -> list[str]:
    """Return the settings that an exploration compares, as its event has them."""
    return list(dict.fromkeys(map(_shorten, settings)))


def _shorten(text: str) -> str:
    """Return a text, shortened if it is too long to its beginning and a hash that identifies it."""
    if len(text) <= LONGEST_SETTING:
        return text
    end = f"... ({hashlib.sha256(text.encode()).hexdigest()[:16]})"
    return text[: LONGEST_SETTING - len(end)] + end


def _name(policy: Policy) -> dict[str, str]:
    return {"policy": policy.policy, "population": policy.population, "policy_hash": policy.canonical_hash()}


def _find_carried(site: Site, policy: Policy, *, declared: bool) -> list[str]:
    """Return the predecessors of the population. Refused if it has to be declared and is not."""
    caps = read_caps(site)
    if declared:
        caps.of(policy)
    return sorted(list_ancestors(caps.declared, policy.population))


def _tell(event: Event) -> dict[str, Any]:
    """Return the content of an event, with when it was first noted; for one that a restore added, that is before the restore."""
    return {"noted": event.noted, **event.content}


def _read(event: Event) -> Look:
    content = _tell(event)
    is_public = event.kind == PUBLIC
    return Look(
        content["policy"],
        content["population"],
        content["policy_hash"],
        event.number,
        content["noted"],
        content["by"],
        "public" if is_public else content["on"],
        "" if is_public else content["digest"],
        tuple(content["compared"]),
        tuple(content.get("carries", ())),
        tuple(content.get("origins", ())),
        content.get("where", ""),
        content.get("stopped", ""),
    )


def _check_compared(compared: Sequence[str]) -> tuple[str, ...]:
    """Return what was compared; refused unless every text can be printed in one line."""
    texts = tuple(text.strip() for text in compared)
    if not 0 < len(texts) <= MOST_COMPARED or not all(0 < len(text) <= LONGEST_SETTING and text.isprintable() for text in texts):
        raise WrongUsage(
            f"a look names what is compared: 1 to {MOST_COMPARED:,} settings, each a line, {LONGEST_SETTING} characters at most.",
            remedy="It stays in the registry.",
        )
    return texts


# Runs that read confidential records. Before a run judges records, the vault keeps a note of it,
# one file for each release.
#
# A charge for those records settles it. Otherwise the run becomes a trial in the registry: at once if it is refused. A run that
# somebody stopped becomes one before the release reads other records or another policy, and before another policy is charged. The
# note needs no seal: anyone who can write to the vault can read the records there without a run.


@dataclass(frozen=True, slots=True)
class Run:
    """The last run of a release that read records (`digest`: their keyed hash, empty if the source had too few) under the policy
    with this hash. `told`: the registry has it as a trial; `charged`: the release was charged for it."""

    release: str
    policy_hash: str
    digest: str
    origins: tuple[str, ...]
    told: bool = False
    charged: bool = False


def begin_run(site: Site, release: ReleaseId, policy_hash: str, *, digest: str, origins: list[str]) -> None:
    """Note a run before anything is judged. The run before it becomes a trial if it was for other records or another policy, and
    was not charged. A run that found too few records, and now has enough under the same policy, counts as the same."""
    with _held(site) as folder:
        file = _file_of(folder, release)
        known, run = _read_run(file), Run(str(release), policy_hash, digest, tuple(origins))
        if known is not None:
            if (known.policy_hash, known.digest) == (policy_hash, digest):
                return
            if known.digest or known.policy_hash != policy_hash:
                _tell_run(site, known)
        _write(file, run)


def refuse_run(site: Site, release: ReleaseId) -> None:
    """Note the last run of a release as a trial, unless the release was charged for it; call it before anybody reads why it was
    refused."""
    with _held(site) as folder:
        file = _file_of(folder, release)
        known = _read_run(file)
        if known is not None and not known.charged:
            _tell_run(site, known)
            _write(file, replace(known, told=True))


def tell_stopped_runs(site: Site, release: ReleaseId, policy_hash: str) -> None:
    """Note every run under another policy that was neither charged nor refused as a trial; call it before a release is charged. A
    run of another release that is still going is one too, until it is charged: it cannot be distinguished from one that was
    stopped."""
    with _held(site) as folder:
        for file in sorted(folder.glob("*.json")):
            known = _read_run(file)
            if known is None or known.charged or known.told:
                continue
            if known.release != str(release) and known.policy_hash != policy_hash:
                _tell_run(site, known, stopped=known.release)
                _write(file, replace(known, told=True))


def charge_run(site: Site, release: ReleaseId) -> None:
    """Note that the release was charged for its last run, which is then no trial."""
    with _held(site) as folder:
        file = _file_of(folder, release)
        known = _read_run(file)
        if known is not None and not known.charged:
            _write(file, replace(known, charged=True))


def _tell_run(site: Site, run: Run, *, stopped: str = "") -> None:
    if not run.charged:
        note_run(site, run.policy_hash, digest=run.digest, origins=run.origins, stopped=stopped)


@contextmanager
def _held(site: Site) -> Generator[Path]:
    folder = site.vault / "runs"
    with locked(folder):
        clear_partials(folder)  # left by a killed run
        yield folder


def _file_of(folder: Path, release: ReleaseId) -> Path:
    return folder / f"{release.file_name}.json"


def _read_run(file: Path) -> Run | None:
    if not file.exists():
        return None
    content = formats.RUN.read(json.loads(file.read_text()), where=file.name)
    return read_as(Run, content, where=file.name)


def _write(file: Path, run: Run) -> None:
    write_private_json(file, asdict(run))
