"""What takes long to find out of a site's policies, kept until something of the site changes, and for a few seconds at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy, load_policy
from release_pipeline.policy.load import check_name

Found = TypeVar("Found")
_SECONDS = 20.0  # what depends on the clock, or on files elsewhere, shows so late
_MOST = 200
_lock = threading.Lock()
_found: dict[tuple[Path, Hashable], tuple[Any, float, Any]] = {}


@dataclass(frozen=True, slots=True)
class Read:
    """A policy file: its name, and the policy, or why it cannot be read."""

    name: str
    policy: Policy | None
    faults: tuple[str, ...] = ()


def keep(site: Site, key: Hashable, find: Callable[[], Found]) -> Found:
    """What `find` gives, or gave a few seconds ago if nothing of the site was changed since."""
    stamps = stamp_site(site)
    with _lock:
        known = _found.get((site.home, key))
    if known is not None and known[0] == stamps and time.monotonic() - known[1] < _SECONDS:
        return known[2]
    found = find()
    with _lock:
        if len(_found) >= _MOST:
            _found.clear()
        _found[site.home, key] = (stamps, time.monotonic(), found)
    return found


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
        return Read(file.stem, None, tuple(words.replace(f"{site.home}/", "") for words in told))
