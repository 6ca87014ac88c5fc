"""A queue of documents to send, a file each, in order. A file is written whole or not at all, so that a crash loses none, and
removed after it was sent, so that a crash in between sends it once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from release_pipeline.formats import versions as formats
from release_pipeline.formats.versions import FormatNewer
from release_pipeline.store.files import locked, locked_if_free, own_folder, write_private_json
from release_pipeline.store.site import Site

_FAILING, _REFUSED = "failing", "refused"
_ENDING = ".json"
Deliver: TypeAlias = Callable[[Mapping[str, Any]], None]  # raises `NotSent`


class NotSent(Exception):
    """A receiver did not take a document. The message never has an address, which may hold a
    secret. `for_good`: it was read and refused, and will be refused again."""

    def __init__(self, message: str, *, for_good: bool = False) -> None:
        self.for_good = for_good
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Failing:
    """Since when a receiver takes nothing, and why."""

    since: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outbox:
    """The queue of one receiver, in a folder."""

    folder: Path

    def put(self, document: Mapping[str, Any], *, name: str) -> None:
        """Keep a document until it is sent, after all others; one of that name is kept once."""
        own_folder(self.folder.parent)
        with locked(self.folder):
            files = self.list_files()
            if any(file.stem.partition("-")[2] == name for file in files):
                return
            number = int(files[-1].stem.partition("-")[0]) + 1 if files else 1
            write_private_json(self.folder / f"{number:010}-{name}{_ENDING}", document)

    def list_files(self) -> list[Path]:
        """Return the files of documents that are kept, in order."""
        return sorted(self.folder.glob(f"[0-9]*-*{_ENDING}"))

    def list_refused(self) -> list[Path]:
        """Return the files of documents that were refused for good, and are kept for a person to read."""
        return sorted((self.folder / _REFUSED).glob(f"*{_ENDING}"))

    def send(self, deliver: Deliver, *, may_go_on: Callable[[], bool] = lambda: True) -> int:
        """Deliver the documents, the oldest first, up to the first that is not taken; returns how many were. Does nothing while
        another process delivers."""
        sent = 0
        if not self.folder.is_dir():
            return 0
        with locked_if_free(self.folder / "sending") as is_mine:
            for file in self.list_files() if is_mine else []:
                if not may_go_on():
                    break
                try:
                    deliver(formats.OUTBOX.read(json.loads(file.read_text(encoding="utf-8")), where=str(file)))
                except NotSent as failed:
                    self._note(str(failed))
                    if not failed.for_good:
                        break
                    own_folder(self.folder / _REFUSED)  # the documents after it need not wait for it
                    file.rename(self.folder / _REFUSED / file.name)
                    continue
                except FormatNewer as newer:
                    self._note(str(newer))
                    break
                file.unlink()
                sent += 1
                (self.folder / _FAILING).unlink(missing_ok=True)
        return sent

    @property
    def failing(self) -> Failing | None:
        """Return since when nothing is taken, and why; None where the last attempt went well, or there was none."""
        try:
            note = json.loads((self.folder / _FAILING).read_text(encoding="utf-8"))
            return Failing(note["since"], note["words"])
        except FileNotFoundError:
            return None

    def _note(self, reason: str) -> None:
        before = self.failing
        since = before.since if before is not None else datetime.now(UTC).isoformat(timespec="seconds")
        write_private_json(self.folder / _FAILING, {"since": since, "words": reason})


def folder_of(site: Site) -> Path:
    """Return the folder of a site's queues, and of the ids of alerts that were queued."""
    return site.dagster_home / "outbox"


def count_orphans(site: Site, known: Collection[str]) -> int:
    """Return how many documents wait in queues that are not among these: for channels that site.yaml no longer names."""
    folders = [folder for folder in folder_of(site).glob("*") if folder.is_dir() and folder.name not in known]
    return sum(len(Outbox(folder).list_files()) for folder in folders)


def describe_unsent(name: str, outbox: Outbox) -> Iterator[str]:
    """Yield sentences on documents that one receiver did not take; none while all goes well."""
    failing, count = outbox.failing, len(outbox.list_files())
    if failing is not None and count:
        yield f"{name}: {count} not sent, tried since {failing.since}: {failing.reason}"
    if refused := outbox.list_refused():
        yield f"{name}: {len(refused)} refused for good, in {refused[0].parent}"
