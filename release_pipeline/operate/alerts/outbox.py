"""What is to be sent and was not yet, a file each, in order. Written whole or not at all, so that a crash loses none; what was
sent is removed afterwards, so that a crash in between sends it once more."""

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
    """Somebody did not take what was sent. The words never have an address, which may hold a secret. `for_good`: it was read and
    refused, and will be refused again."""

    def __init__(self, words: str, *, for_good: bool = False) -> None:
        self.for_good = for_good
        super().__init__(words)


@dataclass(frozen=True, slots=True)
class Failing:
    """Since when somebody takes nothing, and why in words."""

    since: str
    words: str


@dataclass(frozen=True, slots=True)
class Outbox:
    """What one receiver is still to get, in a folder of its own."""

    folder: Path

    def put(self, document: Mapping[str, Any], *, name: str) -> None:
        """Keep a document until it is sent, after all others; one of that name is kept once."""
        own_folder(self.folder.parent)
        with locked(self.folder):
            kept = self.list_files()
            if any(file.stem.partition("-")[2] == name for file in kept):
                return
            number = int(kept[-1].stem.partition("-")[0]) + 1 if kept else 1
            write_private_json(self.folder / f"{number:010}-{name}{_ENDING}", document)

    def list_files(self) -> list[Path]:
        """What is kept, in order."""
        return sorted(self.folder.glob(f"[0-9]*-*{_ENDING}"))

    def list_refused(self) -> list[Path]:
        """What was refused for good, and is kept for a person to look at."""
        return sorted((self.folder / _REFUSED).glob(f"*{_ENDING}"))

    def send(self, deliver: Deliver, *, may_go_on: Callable[[], bool] = lambda: True) -> int:
        """Deliver what is kept, the oldest first, up to the first that is not taken; gives how many were. Where another process
        is at it, it is left to that."""
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
                    own_folder(self.folder / _REFUSED)  # what comes after it does not wait for it
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
        """Since when nothing is taken, and why; None where the last attempt went well, or there was none."""
        try:
            said = json.loads((self.folder / _FAILING).read_text(encoding="utf-8"))
            return Failing(said["since"], said["words"])
        except FileNotFoundError:
            return None

    def _note(self, words: str) -> None:
        before = self.failing
        since = before.since if before is not None else datetime.now(UTC).isoformat(timespec="seconds")
        write_private_json(self.folder / _FAILING, {"since": since, "words": words})


def folder_of(site: Site) -> Path:
    """Where a site keeps what is to be sent, and what was told."""
    return site.dagster_home / "outbox"


def count_orphans(site: Site, known: Collection[str]) -> int:
    """How many documents wait in queues that are not among these: of channels that site.yaml names no more."""
    folders = [folder for folder in folder_of(site).glob("*") if folder.is_dir() and folder.name not in known]
    return sum(len(Outbox(folder).list_files()) for folder in folders)


def describe_unsent(name: str, outbox: Outbox) -> Iterator[str]:
    """What one receiver was to get and did not take, in words; nothing while all goes well."""
    failing, kept = outbox.failing, len(outbox.list_files())
    if failing is not None and kept:
        yield f"{name}: {kept} not sent, tried since {failing.since}: {failing.words}"
    if refused := outbox.list_refused():
        yield f"{name}: {len(refused)} refused for good, in {refused[0].parent}"
