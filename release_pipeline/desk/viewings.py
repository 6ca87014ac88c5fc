"""Who saw what of a candidate at the desk, or took it away, and when: a line for each, in a file for each month that nobody but
the site's account reads. Kept for two years, which is long enough for an audit and no record of people for ever."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from release_pipeline.door import Refused
from release_pipeline.flow.site import Site

KEPT_MONTHS = 24
AGAIN_SECONDS = 600  # a page that is loaded once more within that is the same viewing
_MOST_RECENT = 10_000
_FILE = re.compile(r"viewings-(\d{4})-(\d{2})\.jsonl")


@dataclass(frozen=True, slots=True)
class Viewing:
    """Somebody saw something of a release."""

    at: str
    person: str
    saw: str
    release: str


class Viewings:
    """Those of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._recent: dict[tuple[str, str, str], float] = {}
        self._lock = threading.Lock()

    def note(self, person: str, saw: str, asked: str, *, find: Callable[[str], str] = str, now: datetime | None = None) -> None:
        """One more, of the release that `find` says was asked for by this name, unless the same was asked a few minutes ago;
        `Refused` where it cannot be noted."""
        key, moment = (person, saw, asked), monotonic()
        with self._lock:
            if moment - self._recent.get(key, -AGAIN_SECONDS) < AGAIN_SECONDS:
                return
            at, release = now or datetime.now(UTC), find(asked)
            line = json.dumps(asdict(Viewing(at.isoformat(timespec="seconds"), person, saw, release)))
            try:
                with self._site.changing_desk():
                    self._write(at, line)
            except OSError:
                raise Refused(
                    503, "who sees this could not be noted, so that it is not shown. Tell the operator: is the site's disk full?"
                ) from None
            if len(self._recent) >= _MOST_RECENT:
                self._recent.clear()
            self._recent[key] = moment

    def list_of(self, release: str) -> list[Viewing]:
        """Those of a release, the newest first; a line that was not written whole is none."""
        found = [one for one in self._read(json.dumps(release).encode()) if one.release == release]
        return sorted(found, key=lambda one: one.at, reverse=True)

    def forget_old(self, *, now: datetime | None = None) -> None:
        """Those of months that are over for long enough are removed."""
        today = now or datetime.now(UTC)
        for file, months in self._list_files():
            if 12 * today.year + today.month - months > KEPT_MONTHS:
                file.unlink(missing_ok=True)

    def _write(self, at: datetime, line: str) -> None:
        file = self._site.desk / f"viewings-{at:%Y-%m}.jsonl"
        is_new = not file.exists()
        with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "r+b") as lines:
            if (size := lines.seek(0, os.SEEK_END)) > 0:
                lines.seek(size - 1)
                line = line if lines.read(1) == b"\n" else f"\n{line}"  # a crash, or a full disk, left a part of one
            lines.write(f"{line}\n".encode())
        if is_new:
            self.forget_old(now=at)

    def _read(self, part: bytes) -> Iterator[Viewing]:
        """Those whose line has this in it."""
        for file, _ in self._list_files():
            for line in file.read_bytes().split(b"\n"):
                if part in line:
                    with suppress(ValueError, TypeError):
                        yield Viewing(**json.loads(line))

    def _list_files(self) -> list[tuple[Path, int]]:
        """The files, and of each the number of its month."""
        named = [(file, _FILE.fullmatch(file.name)) for file in self._site.desk.glob("viewings-*.jsonl")]
        return sorted((file, 12 * int(name[1]) + int(name[2])) for file, name in named if name is not None)
