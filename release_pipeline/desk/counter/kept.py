"""What takes long to find out of a site's policies, kept until something of the site changes, and for a few seconds at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from release_pipeline.desk.counter.places import shorten_place
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy, load_policy
from release_pipeline.policy.load import check_name

Found = TypeVar("Found")
_SECONDS = 20.0  # what depends on the clock, or on files elsewhere, shows so late
_MOST = 200
_lock = threading.Lock()


@dataclass(slots=True)
class _Kept:
    """What was found once, if anything was: for which stamp, and when. Who asks while it is looked for waits for that."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: Any = None
    until: float = float("-inf")
    found: Any = None


_kept: dict[tuple[Path, Hashable], _Kept] = {}


@dataclass(frozen=True, slots=True)
class Read:
    """A policy file: its name, and the policy, or why it cannot be read."""

    name: str
    policy: Policy | None
    faults: tuple[str, ...] = ()


def keep(
    site: Site, key: Hashable, find: Callable[[], Found], *, stamp: Callable[[], Any] | None = None, seconds: float = _SECONDS
) -> Found:
    """What `find` gives, or gave some seconds ago if nothing was changed since: of the site, unless another `stamp` says so."""
    with _lock:
        if len(_kept) >= _MOST:
            _kept.clear()
        known = _kept.setdefault((site.home, key), _Kept())
    with known.lock:
        now = stamp_site(site) if stamp is None else stamp()
        if known.stamp != now or time.monotonic() >= known.until:
            known.found = find()
            known.stamp, known.until = now, time.monotonic() + seconds
        return known.found


def stamp_site(site: Site) -> tuple[tuple[str, int, int, int], ...]:
    """What is another one when a policy, a file beside it, a cap, a setting or the registry is another."""
    files = [site.registry, site.populations_file, site.home / "site.yaml", site.home / "trusted-keys.yaml"]
    found: list[tuple[str, int, int, int]] = []
    for file in (*files, *sorted((site.home / "policies").rglob("*"))):
        try:
            known = file.stat()
        except OSError:
            continue
        found.append((str(file), known.st_ino, known.st_mtime_ns, known.st_size))
    return tuple(found)


def read_policies(site: Site) -> tuple[Read, ...]:
    """Every policy file of the site, by name; one that cannot be read takes no other down."""
    return keep(site, "policies", lambda: tuple(_read(site, file) for file in site.policy_files()))


def _read(site: Site, file: Path) -> Read:
    try:
        return Read(file.stem, check_name(load_policy(file), file))
    except ReleasePipelineError as error:
        told = error.details or (str(error),)
        return Read(file.stem, None, tuple(shorten_place(site, words) for words in told))
