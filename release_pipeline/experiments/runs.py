"""Measuring many settings: in parallel, and so that what was measured before an interruption is not measured again.

A setting is what is held fixed while noise is drawn several times: a method on a table with a k, an epsilon, and so on. Each of
its runs has a secret of its own, made from the seed and the number of the run, so that the same seed gives the same figures. What
a setting gave is kept in a file of lines, beside a fingerprint of all that it depends on: the code, the data, the libraries, the
seed. A line with another fingerprint is not used.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import signal
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import release_pipeline
from release_pipeline.errors import InvalidArgument, ReleasePipelineError, WrongUsage
from release_pipeline.privacy.noise import SECRET_BYTES

Field: TypeAlias = "str | int"
Row: TypeAlias = "dict[str, Field | float]"
Progress: TypeAlias = Callable[[str], object]

CODE = ("privacy", "policy", "stages", "experiments/measuring", "experiments/tables.py", "experiments/runs.py")
TELL_EVERY, LOOK_EVERY, LISTEN_EVERY = 5.0, 2.0, 0.5  # seconds
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow", "cryptography")


class StoppedWorker(ReleasePipelineError):
    """A process that measured was killed from outside."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is held fixed: `kind` names the table of results that its rows belong to, `fields` their first columns."""

    kind: str
    fields: tuple[tuple[str, Field], ...]
    runs: int

    @classmethod
    def of(cls, kind: str, runs: int, **fields: Field) -> Setting:
        """A setting of these fields, in this order."""
        return cls(kind, tuple(fields.items()), runs)

    @property
    def key(self) -> str:
        """The setting in one line, for people and for files; the number of runs is no part of it."""
        return f"{self.kind}: " + ", ".join(f"{name} {value}" for name, value in self.fields)

    @property
    def without_numbers(self) -> str:
        """The fields that are no numbers, as in `key`."""
        return ", ".join(f"{name} {value}" for name, value in self.fields if not _is_number(value))

    def text(self, name: str) -> str:
        """A field that is a text."""
        return str(dict(self.fields)[name])

    def number(self, name: str) -> int:
        """A field that is a whole number."""
        return int(dict(self.fields)[name])


def _is_number(value: Field) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


Measure: TypeAlias = Callable[[Path, Setting, Sequence[bytes]], list[dict[str, float]]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A setting with what each of its runs gave."""

    setting: Setting
    rows: list[dict[str, float]]

    def runs(self, measure: str) -> npt.NDArray[np.float64]:
        """A measure in all runs."""
        return np.array([row[measure] for row in self.rows], dtype=np.float64)


class Results:
    """Everything that an experiment measured."""

    def __init__(self, measured: Iterable[Measured]) -> None:
        self.measured = list(measured)
        self._by_kind: dict[str, list[tuple[dict[str, Field], Measured]]] = {}
        for one in self.measured:
            self._by_kind.setdefault(one.setting.kind, []).append((dict(one.setting.fields), one))

    @property
    def tables(self) -> dict[str, list[Row]]:
        """For each kind a table with a row for each run of each setting: fields, run, measures."""
        return {
            kind: [{**fields, "run": run, **row} for fields, one in entries for run, row in enumerate(one.rows)]
            for kind, entries in self._by_kind.items()
        }

    def runs(self, kind: str, measure: str, **fields: Field) -> npt.NDArray[np.float64]:
        """A measure in all runs of the setting with these fields."""
        found = self.of(kind, **fields)
        if len(found) != 1:
            raise InvalidArgument(f"there are {len(found)} settings of {kind} with {fields}, not one.", where="results")
        return found[0].runs(measure)

    def of(self, kind: str, **fields: Field) -> list[Measured]:
        """The settings of a kind with these fields."""
        return [one for its, one in self._by_kind.get(kind, []) if all(its.get(name) == value for name, value in fields.items())]

    def mean(self, kind: str, measure: str, **fields: Field) -> float:
        """The mean of a measure over the runs of one setting."""
        return float(self.runs(kind, measure, **fields).mean())

    def values(self, kind: str, field: str, **fields: Field) -> list[Any]:
        """Every value of a field, in the order in which they were asked for."""
        return list(dict.fromkeys(dict(one.setting.fields)[field] for one in self.of(kind, **fields)))


def measure_all(
    settings: Sequence[Setting],
    measure: Measure,
    data: Path,
    *,
    seed: int,
    jobs: int,
    kept: Path,
    fingerprint: str,
    progress: Progress,
) -> Results:
    """All settings, `jobs` at a time, but for those that the file `kept` has; each is added to it as soon as it is measured."""
    with _only_one(kept):
        found = _read_kept(kept, fingerprint)
        todo = [setting for setting in settings if (setting.key, setting.runs) not in found]
        if len(todo) < len(settings):
            progress(f"{len(settings) - len(todo):,} of {len(settings):,} settings were measured before")
        content = time.monotonic()
        with kept.open("a", encoding="utf-8") as file:
            if kept.stat().st_size and not kept.read_bytes().endswith(b"\n"):
                file.write("\n")  # of a line that was cut off
            for number, (setting, rows) in enumerate(_measure(todo, measure, data, seed, jobs), 1):
                found[setting.key, setting.runs] = rows
                line = {"fingerprint": fingerprint, "setting": setting.key, "runs": setting.runs, "rows": rows}
                file.write(json.dumps(line) + "\n")
                file.flush()
                if time.monotonic() > content + TELL_EVERY or number == len(todo):
                    content = time.monotonic()
                    progress(f"{number:,} of {len(todo):,}: {setting.key}")
    return Results(Measured(setting, found[setting.key, setting.runs]) for setting in settings)


@contextmanager
def _only_one(kept: Path) -> Generator[None]:
    """Nobody else adds to this file meanwhile."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise WrongUsage(
                "another run goes on in this folder.", where=str(kept), remedy="Wait for it, or name another."
            ) from None
        yield


def _measure(
    settings: Sequence[Setting], measure: Measure, data: Path, seed: int, jobs: int
) -> Iterable[tuple[Setting, list[dict[str, float]]]]:
    if jobs == 1 or len(settings) < 2:
        for setting in settings:
            yield setting, measure(data, setting, make_secrets(seed, setting.runs))
        return
    begin = (os.getpid(), hash_code())
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=begin)
    waiting: dict[Future[list[dict[str, float]]], Setting] = {}
    with _put_off(signal.SIGINT, signal.SIGTERM) as heard, pool:
        try:
            with _handled(signal.SIGINT, signal.SIG_IGN):  # the processes begin with the first setting, and inherit that
                for setting in settings:
                    waiting[pool.submit(measure, data, setting, make_secrets(seed, setting.runs))] = setting
            while waiting:
                if heard:
                    waiting = {future: setting for future, setting in waiting.items() if not future.cancel()}
                done, _ = wait(waiting, LISTEN_EVERY, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool:
            raise StoppedWorker(
                "a process that measured was killed, perhaps for want of memory, or the code was changed meanwhile; what was "
                "measured is kept.",
                remedy="Run the same command again, with fewer --jobs.",
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _put_off(*signals: signal.Signals) -> Generator[list[int]]:
    """These signals only add their number to the list, and do what they do at the end: an exception in the midst of a wait for
    other processes would leave its locks held for ever."""
    heard: list[int] = []
    try:
        with ExitStack() as handlers:
            for one in signals:
                handlers.enter_context(_handled(one, lambda number, _: heard.append(number)))
            yield heard
    finally:
        for number in heard[:1]:
            signal.raise_signal(number)


@contextmanager
def _handled(one: signal.Signals, handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Generator[None]:
    """A signal is handled in this way, but where it was ignored, or cannot be: outside of the main thread."""
    before = signal.getsignal(one)
    if before in (None, signal.SIG_IGN) or current_thread() is not main_thread():
        yield
        return
    signal.signal(one, handler)
    try:
        yield
    finally:
        signal.signal(one, before)


def _begin(parent: int, code: str) -> None:
    """In a process that measures: nobody goes on without the one that began it, or with other code than it has."""
    if hash_code() != code:
        raise StoppedWorker("the code was changed while it was measured with.")

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def make_secrets(seed: int, runs: int) -> list[bytes]:
    """A secret for each run; known, as no release's may be."""
    half = SECRET_BYTES // 2
    return [seed.to_bytes(half, "big") + run.to_bytes(half, "big") for run in range(runs)]


def _read_kept(file: Path, fingerprint: str) -> dict[tuple[str, int], list[dict[str, float]]]:
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    if not file.is_file():
        return found
    for line in file.read_bytes().splitlines():
        try:
            entry = json.loads(line)
            if entry["fingerprint"] == fingerprint:
                found[entry["setting"], entry["runs"]] = entry["rows"]
        except (ValueError, TypeError, KeyError):
            continue  # cut off when the run before was stopped, or damaged: measured again
    return found


def hash_code() -> str:
    """SHA-256 of the modules that figures depend on."""
    package = Path(release_pipeline.__file__).parent
    found = hashlib.sha256()
    for name in CODE:
        place = package / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found.update(f"{file.relative_to(package)}\n".encode() + file.read_bytes())
    return found.hexdigest()


def list_versions() -> dict[str, str]:
    """The versions of Python and of the libraries that figures depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def make_fingerprint(seed: int, contents: Iterable[str]) -> str:
    """Everything that a figure depends on but its setting: code, libraries, seed, and the contents of the data."""
    parts = (hash_code(), json.dumps(list_versions()), str(seed), *contents)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
