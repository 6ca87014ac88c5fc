"""The health of a site: the conditions without which no release can go on, checked without changing anything."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, ClassVar, Literal, TypeAlias

from release_pipeline.errors import ReleasePipelineError, StoreBusy
from release_pipeline.ledger.policies import words_of
from release_pipeline.operate.alerts.look import read_head
from release_pipeline.operate.alerts.outbox import folder_of
from release_pipeline.policy.documents import Moment
from release_pipeline.store.environment import format_size
from release_pipeline.store.registry import Event, RegistryChanged
from release_pipeline.store.site import Site

LEAST_FREE = 256 << 20  # bytes of the disk under which a release would hardly end
LONGEST_SILENCE = timedelta(minutes=5)  # Dagster's daemon reports every 30 seconds that it lives
Name: TypeAlias = Literal["registry", "chain", "vault", "disk", "daemon"]
Heartbeat: TypeAlias = Callable[[], datetime | None]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of one check."""

    name: Annotated[Name, "what"]
    ok: Annotated[bool, "whether it is as it should be"]
    words: Annotated[str, "how it is"]


@dataclass(frozen=True, slots=True)
class HealthDocument:
    """The document that `status --health --json` prints."""

    FORMAT: ClassVar[str] = "release-pipeline/health/1"

    made: Annotated[Moment, "when"]
    ok: Annotated[bool, "whether every check is"]
    checks: Annotated[tuple[HealthCheck, ...], "in the order in which they were made"]


def check_health(site: Site, *, heartbeat: Heartbeat, now: datetime | None = None) -> HealthDocument:
    """Check a site. `heartbeat`: when Dagster's daemon last reported that it lives, None where it never did."""
    now = now or datetime.now(UTC)
    checks = (*_check_registry(site), _check_vault(site), _check_disk(site), _check_daemon(site, heartbeat, now))
    return HealthDocument(now.isoformat(timespec="seconds"), all(check.ok for check in checks), checks)


def describe_health(health: HealthDocument) -> Iterator[str]:
    """Yield the checks in lines for a person."""
    for check in health.checks:
        yield f"{'ok' if check.ok else 'NOT OK':<6}  {check.name:<8}  {check.words}"


def _check_registry(site: Site) -> Iterator[HealthCheck]:
    """Yield the checks of the registry: it can be read, and every event fits the one before, the vault's seals, and the last
    check."""
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
    """Return the check that the vault exists, and no other account can read it."""
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
    """Return whether the site has a registry; true where that cannot be known, which another check reports."""
    try:
        return site.has_registry
    except ReleasePipelineError:
        return True


def _check_disk(site: Site) -> HealthCheck:
    try:
        free = shutil.disk_usage(site.vault if site.vault.is_dir() else site.home).free
    except OSError as error:
        return HealthCheck("disk", ok=False, words=f"it cannot be looked at: {error.strerror}")
    enough = free >= LEAST_FREE
    words = f"{format_size(free)} are free where the vault lies"
    return HealthCheck("disk", ok=enough, words=words if enough else f"{words}, and {format_size(LEAST_FREE)} are the least")


def _check_daemon(site: Site, heartbeat: Heartbeat, now: datetime) -> HealthCheck:
    """Return the check that the daemon works, where a timetable or a publication by schedule needs it."""
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
