"""Whether a site is well: what must be so for any release to go on, looked at without changing anything."""

from __future__ import annotations

import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Annotated, ClassVar, Literal, TypeAlias

from release_pipeline import __version__
from release_pipeline.errors import ReleasePipelineError, StoreBusy
from release_pipeline.ledger.policies import next_releases, words_of
from release_pipeline.ledger.states import FAILED, PUBLISHED, SiteState, read_state
from release_pipeline.operate.alerts.look import outbox_of, read_head, read_spending
from release_pipeline.operate.alerts.matters import Spending
from release_pipeline.operate.alerts.outbox import folder_of, spool_of
from release_pipeline.operate.alerts.settings import read_alerts, read_lineage
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Moment
from release_pipeline.store.environment import format_size
from release_pipeline.store.registry import Event, RegistryChanged
from release_pipeline.store.site import Site

LEAST_FREE = 256 << 20  # bytes of the disk under which a release would hardly end
LONGEST_SILENCE = timedelta(minutes=5)  # Dagster's daemon says every 30 seconds that it lives
Name: TypeAlias = Literal["registry", "chain", "vault", "disk", "daemon"]
Heartbeat: TypeAlias = Callable[[], datetime | None]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that was looked at."""

    name: Annotated[Name, "what"]
    ok: Annotated[bool, "whether it is as it should be"]
    words: Annotated[str, "how it is"]


@dataclass(frozen=True, slots=True)
class HealthDocument:
    """What `status --health --json` prints."""

    FORMAT: ClassVar[str] = "release-pipeline/health/1"

    made: Annotated[Moment, "when"]
    ok: Annotated[bool, "whether every check is"]
    checks: Annotated[tuple[HealthCheck, ...], "in the order in which they were made"]


def check_health(site: Site, *, heartbeat: Heartbeat, now: datetime | None = None) -> HealthDocument:
    """Look at a site. `heartbeat`: when Dagster's daemon last said that it lives, None where it never did."""
    now = now or datetime.now(UTC)
    checks = (*_check_registry(site), _check_vault(site), _check_disk(site), _check_daemon(site, heartbeat, now))
    return HealthDocument(now.isoformat(timespec="seconds"), all(check.ok for check in checks), checks)


def describe_health(found: HealthDocument) -> Iterator[str]:
    """It in lines for a person."""
    for check in found.checks:
        yield f"{'ok' if check.ok else 'NOT OK':<6}  {check.name:<8}  {check.words}"


def _check_registry(site: Site) -> Iterator[HealthCheck]:
    """Whether it can be read, and whether every event fits the one before, the vault's seals, and what was seen before."""
    try:
        with site.open_registry(read_only=True) as registry:
            events = registry.events
    except StoreBusy:
        yield HealthCheck("registry", ok=True, words="another process is working with it; nothing more was looked at")
        return
    except RegistryChanged as error:
        yield HealthCheck("registry", ok=True, words="it can be read")
        yield HealthCheck("chain", ok=False, words=str(error))
        return
    except ReleasePipelineError as error:
        yield HealthCheck("registry", ok=False, words=str(error))
        return
    yield HealthCheck("registry", ok=True, words="it can be read" if events else "nothing has happened at this site yet")
    yield _check_chain(site, events)


def _check_chain(site: Site, events: tuple[Event, ...]) -> HealthCheck:
    whole = f"{len(events)} events, each sealed and after the one before"
    try:
        seen = read_head(folder_of(site))
    except ValueError:
        return HealthCheck("chain", ok=True, words=f"{whole}; what the last look saw cannot be read")
    if seen is None:
        return HealthCheck("chain", ok=True, words=whole)
    if not seen.is_in(events):
        gone = f"event {seen.number}, which the last look saw, is not there any more"
        return HealthCheck("chain", ok=False, words=f"{gone}: the registry is another one, or an older one")
    return HealthCheck("chain", ok=True, words=f"{whole}, up to event {seen.number} as the last look saw them")


def _check_vault(site: Site) -> HealthCheck:
    """Whether it is there, and nobody else's to read."""
    try:
        mode = site.vault.stat().st_mode
    except FileNotFoundError:
        is_new = not _has_registry(site)
        return HealthCheck("vault", ok=is_new, words="there is none yet" if is_new else "it is gone: restore it from a backup")
    except OSError as error:
        return HealthCheck("vault", ok=False, words=f"it cannot be looked at: {error.strerror}")
    if not stat.S_ISDIR(mode):
        return HealthCheck("vault", ok=False, words="it is no folder")
    if mode & 0o077:
        return HealthCheck("vault", ok=False, words="other accounts may look into it: chmod 700 vault")
    if not (site.vault / "key").is_file() and _has_registry(site):
        return HealthCheck("vault", ok=False, words="its key is missing: restore it from a backup")
    return HealthCheck("vault", ok=True, words="it is there, for its owner alone")


def _has_registry(site: Site) -> bool:
    """Whether anything was noted, as far as is known: what is wrong with the registry is another check's."""
    try:
        return site.has_registry
    except ReleasePipelineError:
        return True


def read_free(site: Site) -> int:
    """The bytes that this account may still write where the vault lies, or will."""
    return shutil.disk_usage(site.vault if site.vault.is_dir() else site.home).free


def _check_disk(site: Site) -> HealthCheck:
    try:
        free = read_free(site)
    except OSError as error:
        return HealthCheck("disk", ok=False, words=f"it cannot be looked at: {error.strerror}")
    enough = free >= LEAST_FREE
    words = f"{format_size(free)} are free where the vault lies"
    return HealthCheck("disk", ok=enough, words=words if enough else f"{words}, and {format_size(LEAST_FREE)} are the least")


def _check_daemon(site: Site, heartbeat: Heartbeat, now: datetime) -> HealthCheck:
    """Whether it lives, where something waits for it: a timetable, or what is published by schedule."""
    try:
        last = heartbeat()
    except ReleasePipelineError as error:
        return HealthCheck("daemon", ok=False, words=str(error))
    if last is None:
        return HealthCheck("daemon", ok=True, words="none ever ran here")
    policies, _ = site.read_policies()
    is_needed = site.publishes_by_itself or any(policy.cron is not None for policy in policies)
    lives = now - last <= LONGEST_SILENCE
    words = f"it said last that it lives {words_of(last)}"
    return HealthCheck(
        "daemon", ok=lives or not is_needed, words=words if lives or is_needed else f"{words}; nothing waits for it"
    )


# A site in figures for who watches many: OpenMetrics text, counts and ages alone. What Prometheus'
# older text format reads too: gauges and counters, without moments of their own.


TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
WAITING = ("candidate", "approved")
Sample = tuple[dict[str, str], int | float]


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one name. `unit` ends the name where there is one."""

    name: str
    kind: Literal["gauge", "counter"]
    words: str
    samples: tuple[Sample, ...]
    unit: str = ""

    def lines(self) -> Iterator[str]:
        """It as OpenMetrics has it."""
        name = f"release_pipeline_{self.name}"
        yield f"# TYPE {name} {self.kind}"
        if self.unit:
            yield f"# UNIT {name} {self.unit}"
        yield f"# HELP {name} {_escape(self.words)}"
        for labels, value in self.samples:
            said = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
            yield f"{name}{'_total' * (self.kind == 'counter')}{f'{{{said}}}' * bool(said)} {_format(value)}"


def write_metrics(site: Site, *, now: datetime | None = None) -> str:
    """The figures of a site as they are now. Releases are in the states of the registry: no candidate or package is read."""
    now = now or datetime.now(UTC)
    policies, broken = site.read_policies()
    with site.open_registry(read_only=True) as registry:
        state = read_state(registry.events)
    families = (
        Family("version", "gauge", "1, with the version of the program.", (({"version": __version__}, 1),)),
        Family("policies_broken", "gauge", "Policy files that cannot be read.", (({}, len(broken)),)),
        *_of_releases(state, now),
        _late(policies, state, now),
        _spent(read_spending(site, policies, state.events)),
        *_of_events(state),
        Family("vault_free_bytes", "gauge", "Free where the vault lies.", (({}, read_free(site)),), "bytes"),
        _unsent(site),
    )
    return "".join(f"{line}\n" for family in families for line in family.lines()) + "# EOF\n"


def _of_releases(state: SiteState, now: datetime) -> Iterator[Family]:
    counts = Counter((known.id.policy, known.state) for known in state.releases.values())
    samples = tuple(({"policy": policy, "state": state}, count) for (policy, state), count in sorted(counts.items()))
    yield Family("releases", "gauge", "Releases that were begun, by their state in the registry; each revision is one.", samples)
    longest: dict[tuple[str, str], float] = {}
    for known in state.releases.values():
        if known.state in WAITING and known.replaced is None:
            age = max((now - datetime.fromisoformat(known.since)).total_seconds(), 0.0)
            key = (known.id.policy, known.state)
            longest[key] = max(longest.get(key, 0.0), age)
    waiting = tuple(({"policy": policy, "state": state}, age) for (policy, state), age in sorted(longest.items()))
    words = "How long the oldest release has waited for its reviewers (candidate) or its publication (approved)."
    yield Family("waiting_seconds", "gauge", words, waiting, "seconds")


def _late(policies: Iterable[Policy], state: SiteState, now: datetime) -> Family:
    """Of every policy with a timetable, 0 where it is kept or the series is held."""
    samples = list[Sample]()
    for policy in policies:
        if policy.cron is not None:
            late = takewhile(lambda upcoming: upcoming.is_late(now), next_releases(policy, state.events, now))
            first = next(late, None) if policy.policy not in state.holds else None
            age = 0.0 if first is None or first.due is None else (now - first.due).total_seconds()
            samples.append(({"policy": policy.policy}, age))
    return Family(
        "late_seconds", "gauge", "For how long the oldest release that is not opened has been due.", tuple(samples), "seconds"
    )


def _spent(spending: Iterable[Spending]) -> Family:
    samples = list[Sample]()
    for each in spending:
        cap, share = each.account.cap.cap, each.share
        counted = "releases" if cap.releases is not None else "rho" if cap.rho is not None else "epsilon"
        names = {"population": each.account.population, "counted": counted}
        labels = {**names, "definition": cap.definition or "", "scope": cap.scope or ""}
        samples.append((labels, float("inf") if share is None else float(share)))
    return Family("cap_spent_ratio", "gauge", "The part of a population's cap that is spent.", tuple(samples), "ratio")


def _of_events(state: SiteState) -> Iterator[Family]:
    yield Family("chain_events", "counter", "Events of the registry.", (({}, len(state.events)),))
    failed = Counter(event.release.policy for event in state.events if event.kind == FAILED and event.release is not None)
    samples = tuple(({"policy": policy}, count) for policy, count in sorted(failed.items()))
    yield Family("runs_failed", "counter", "Runs that ended without a candidate, since the site began.", samples)
    last: dict[str, float] = {}
    for status in state.releases.values():
        if (moment := status.moments.get(PUBLISHED)) is not None:
            seconds = datetime.fromisoformat(moment).timestamp()
            last[status.id.policy] = max(last.get(status.id.policy, 0.0), seconds)
    published = tuple(({"policy": policy}, seconds) for policy, seconds in sorted(last.items()))
    yield Family("published_timestamp_seconds", "gauge", "When a release was last published.", published, "seconds")


def _unsent(site: Site) -> Family:
    """Of every channel by its place in site.yaml, and of lineage; nothing where site.yaml cannot be read: `status` tells that."""
    samples = list[Sample]()
    try:
        for number, rule in enumerate(read_alerts(site), start=1):
            samples.append(({"to": f"alerts {number}"}, len(outbox_of(site, rule).list_files())))
        if read_lineage(site) is not None:
            samples.append(({"to": "lineage"}, len(spool_of(site).list_files())))
    except ReleasePipelineError:
        pass
    return Family("unsent", "gauge", "Alerts and lineage events that are not sent yet.", tuple(samples))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _format(value: float) -> str:
    """A number as OpenMetrics writes it."""
    return "+Inf" if value == float("inf") else repr(value)
