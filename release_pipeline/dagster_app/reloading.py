"""Definitions are made of a site's files, and made anew when one of these was added, changed or taken away.

Dagster makes them anew when somebody asks it to: nothing in it looks at files. Under `release-pipeline ui` the process of the
door asks, as the button Reload does. A run that is going on has read its own, and is left to end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeAlias

STALE = "Policies or settings of the site were changed since these definitions were loaded: reload them."
LOOK_SECONDS = 2.0
Stamps: TypeAlias = "frozenset[tuple[str, int, int, int]]"
_FILES = ("policies/**/*", "populations.yaml", "site.yaml")


def stamp_files(home: Path) -> Stamps:
    """What the definitions of a site depend on, by size, time and number of each file."""
    found: set[tuple[str, int, int, int]] = set()
    for pattern in _FILES:
        for file in home.glob(pattern):
            try:
                known = file.stat()
            except OSError:  # taken away in between, or a link to nowhere
                continue
            found.add((str(file), known.st_size, known.st_mtime_ns, known.st_ino))
    return frozenset(found)


def reload_when_changed(
    home: Path, loaded: Stamps, reload: Callable[[], None], ending: Event, *, seconds: float = LOOK_SECONDS
) -> None:
    """Call `reload` after each change of the site's files, once they stay as they are for one look; until `ending` is set.
    `loaded`: how they were before the definitions were loaded."""
    before = loaded
    while not ending.wait(seconds):
        now = stamp_files(home)
        if now == before and now != loaded:
            loaded = now
            logging.getLogger("dagster").info("Files of the site were changed: its definitions are loaded anew.")
            reload()
        before = now
