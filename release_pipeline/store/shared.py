"""Arrays in a folder that other machines see, and what these do to them: tasks, which are told by a file of that folder.

Whoever hands the tasks out is told the path of that file, its hash and how many tasks it has; everything else goes through the
folder, arrays, functions and results alike. A task may be done twice, or by two machines at once: it gives the same bytes, and
nothing that it reads is written by one of the same pass. A machine that comes too late finds its files gone.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count as numbers
from mmap import ACCESS_READ, ACCESS_WRITE, mmap
from pathlib import Path
from shutil import rmtree
from time import sleep
from typing import Any, Protocol, TypeVar, cast
from weakref import finalize

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import StoreError, storage_full
from release_pipeline.privacy.arrays import join, pieces
from release_pipeline.store.passes import Looked
from release_pipeline.store.scratch import OnDisk, disk_errors, reserve_bytes
from release_pipeline.store.tasks import ARRAY, FULL, SALT, TARGET, TRIAL, UNREAD, UNSEEN, Failure, tell_software, write_file

Scalar = TypeVar("Scalar", bound=np.generic)
Found = TypeVar("Found")
TASK, MOST = 1 << 22, 1 << 24  # entries that one task works on, at the least and at the most
TASKS = 256  # of a pass, if they are between these
_UNTOLD = {
    UNSEEN: ("does not see the shared folder", "Let all machines have it, 'storage' of 'spark' in site.yaml, under one path."),
    UNREAD: ("may not read the shared folder", "Let workers run as this account: the files of the folder are for it alone."),
}
BY_VALUE = 1 << 16  # bytes: a longer array is told by where it lies


def is_shared(rows: int) -> bool:
    """Whether arrays of so many entries are for others to work on: more than one task has."""
    return rows > TASK


class Workers(Protocol):
    """Who does tasks."""

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """What `run_task` gives of tasks 0, 1, ... of a job, in their order. Each is done at least once."""
        ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers, and the folder that they share with this process."""

    storage: Path
    workers: Workers
    site: str  # a name that no other site has that shares the folder
    is_used: bool = True  # else only what is left there is removed

    @contextmanager
    def open(self, file: Path, local: Path) -> Generator[OnCluster]:
        """Arrays for the room of a vault's file, whose lock the caller has, in a folder of their own. The caller has removed what
        somebody left there who was killed; nothing is left afterwards."""
        mine = self._folder_of(file)
        folder = mine / os.urandom(8).hex()  # a task of somebody who was killed finds no file that is ours
        check_storage(self.storage)
        try:
            mine.mkdir(mode=0o700)
            folder.mkdir(mode=0o700)
        except OSError:
            raise _refuse_storage(self.storage, _NO_FOLDER) from None
        try:
            yield OnCluster(folder, TASK, self.workers, local)
        finally:
            self.remove(file)

    def remove(self, file: Path) -> None:
        """Remove what lies in the shared folder for the room of a vault's file; whoever calls has its lock. Under another name
        first, by which no task finds a file; what cannot be removed, since another machine has it open, goes the next time."""
        folder = self._folder_of(file)
        with suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
                folder.rename(folder.with_name(f"{folder.name}.{os.urandom(8).hex()}.gone"))
        for gone in self.storage.glob(f"{folder.name}.*.gone"):
            for wait in (0.0, 0.1, 0.5):
                sleep(wait)
                rmtree(gone, ignore_errors=True)
                if not gone.exists():
                    break

    def _folder_of(self, file: Path) -> Path:
        return self.storage / f"{self.site}-{file.stem}"


_NO_FOLDER = "this is no folder, or this account cannot write to it."


def check_storage(storage: Path) -> None:
    """Refuse a folder that others may write to, or this account may not."""
    try:
        found = storage.stat()
    except OSError:
        raise _refuse_storage(storage, _NO_FOLDER) from None
    if found.st_mode & 0o022 or found.st_uid != os.geteuid():
        raise _refuse_storage(storage, "this folder is another account's, or others may write to it.")
    if not storage.is_dir() or not os.access(storage, os.W_OK | os.X_OK):
        raise _refuse_storage(storage, _NO_FOLDER)


def _refuse_storage(storage: Path, what: str) -> StoreError:
    remedy = "Confidential records go there: name a folder that this account alone writes to, on all machines of the cluster."
    return StoreError(what, where=str(storage), remedy=f"{remedy} It is 'storage' of 'spark' in site.yaml.")


@dataclass(frozen=True, slots=True)
class Written:
    """An array in the folder, for tasks to write to."""

    name: str
    dtype: str

    def __setitem__(self, part: slice, values: npt.NDArray[Any], /) -> None:
        raise StoreError("an array of the shared folder is written by tasks alone.")


@dataclass(slots=True)
class Effort:
    """How much was handed out: passes over arrays, their tasks, and the seconds of a processor that these said they took."""

    passes: int = 0
    tasks: int = 0
    seconds: float = 0.0

    @property
    def facts(self) -> dict[str, Any]:
        """It as facts of a stage; none where nothing was."""
        if not self.passes:
            return {}
        return {"cluster_passes": self.passes, "cluster_tasks": self.tasks, "cluster_cpu_seconds": round(self.seconds, 1)}


@dataclass(frozen=True, slots=True)
class OnCluster(OnDisk):
    """Arrays of any length in files of `folder`, which the machines of `workers` see by the same path; passes over what is longer
    than `piece` are theirs. A file goes with the last array that lies in it."""

    workers: Workers
    local: Path | None = None  # where what no task reads may lie
    effort: Effort = field(default_factory=Effort)
    _files: dict[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])  # by address: how long, and which
    _numbers: Iterator[int] = field(default_factory=numbers)

    def empty(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A file of its own."""
        kind = np.dtype(dtype)
        if not count:
            return np.empty(0, dtype=kind)
        name = f"{next(self._numbers):08}.array"
        handle = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with disk_errors(storage_full):
                reserve_bytes(handle, count * kind.itemsize)
                os.fsync(handle)  # where the file system has no bytes to promise they were written, and must not be later
        except BaseException:
            (self.folder / name).unlink()
            raise
        finally:
            os.close(handle)
        return self._open(name, kind, count, ACCESS_WRITE)

    def _open(self, name: str, kind: np.dtype[Any], count: int, access: int) -> npt.NDArray[Any]:
        """It as an array: the file goes when nobody has one of them."""
        with (self.folder / name).open("r+b") as file:
            mapped = mmap(file.fileno(), 0, access=access)
        array = np.ndarray((count,), dtype=kind, buffer=mapped)
        address = array.__array_interface__["data"][0]
        self._files[address] = array.nbytes, name
        finalize(mapped, _forget, os.getpid(), self.folder, self._files, address, name)
        return array

    def cut(self, count: int) -> int:
        """More of more entries, so that tasks do not become too many."""
        return max(self.piece, min(count // TASKS, MOST))

    def target(self, array: npt.NDArray[Any]) -> Written:
        """The file that it lies in."""
        found = self._find(array)
        assert found is not None  # noqa: S101  every array that passes write is one of `empty`
        return Written(found[0], array.dtype.str)

    def done(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The file opened again, since what another machine wrote is seen by who opens it afterwards; and for reading alone: a
        task that is late may write its part again, and would undo what was changed here."""
        found = self._find(array)
        return array if found is None else self._open(found[0], array.dtype, len(array), ACCESS_READ)

    def anew(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Another array: a task that is done again must find what it found the first time."""
        return self.empty(len(values), values.dtype)

    def work(self, task: Callable[[int], Found], count: int, *, is_trial: bool = False) -> list[Found]:
        """By the workers. What they find comes back by the folder, too. In a trial, those that do not see it are told of, and
        nobody else does their tasks."""
        return list(self._find_results(task, count, is_trial=is_trial))

    def _find_results(self, task: Callable[[int], Found], count: int, *, is_trial: bool = False) -> Iterator[Found]:
        """The same, one after the other: each is read when it is asked for."""
        if not count:
            return
        kept: list[Any] = []  # arrays that were stored for this alone
        content = os.urandom(SALT) + tell_software() + self._pickle(task, kept)
        job = self.folder / f"{next(self._numbers):08}{TRIAL if is_trial else '.job'}"
        try:
            with disk_errors(storage_full):
                write_file(job, content)
            self.effort.passes, self.effort.tasks = self.effort.passes + 1, self.effort.tasks + count
            for told in self.workers.run(job, hashlib.sha256(content).hexdigest(), count):
                yield self._read_result(told)
        finally:
            for left in [job, *self.folder.glob(f"{job.stem}-*.found")]:
                left.unlink(missing_ok=True)

    def _pickle(self, task: Any, kept: list[Any]) -> bytes:
        """A task for others: of long arrays where they lie. Those that lie nowhere yet are stored, and kept as long."""
        content = io.BytesIO()
        _Pickler(content, self, kept).dump(task)
        return content.getvalue()

    def locate(self, array: npt.NDArray[Any], kept: list[Any]) -> tuple[str, str, str, int, tuple[int, ...]]:
        """The file, type, place in bytes and shape of an array."""
        found = self._find(array)
        if found is None:
            flat = np.ascontiguousarray(array)
            stored = self.empty(flat.size, flat.dtype)
            stored[:] = flat.reshape(-1)
            kept.append(stored)
            found = self._find(stored)
            assert found is not None  # noqa: S101  it was just made
        name, place = found
        return ARRAY, name, array.dtype.str, place, array.shape

    def flush(self, name: str) -> None:
        """What this process wrote to a file is seen by the others."""
        with (self.folder / name).open("rb") as file:
            os.fsync(file.fileno())

    def _find(self, array: npt.NDArray[Any]) -> tuple[str, int] | None:
        """The file that an array lies in, and the place in it; none where it lies in none, or not in one piece."""
        if not array.flags.c_contiguous:
            return None
        address = array.__array_interface__["data"][0]
        for begin, (length, name) in list(self._files.items()):  # one may go meanwhile
            if begin <= address and address + array.nbytes <= begin + length:
                return name, address - begin
        return None

    def _read_result(self, told: str) -> Any:
        seconds, name, digest = told.split(" ")
        self.effort.seconds += float(seconds)
        if not name:
            return None
        if name == FULL:
            raise storage_full()
        if name in _UNTOLD:
            what, remedy = _UNTOLD[name]
            raise StoreError(f"a worker of the cluster {what}.", remedy=remedy)
        path = self.folder / name
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise StoreError(
                "what a task found is not what it wrote.", where=str(path.parent), remedy="Find out who wrote there."
            )
        found = pickle.loads(content[SALT:])  # noqa: S301  by its hash it is what the task wrote
        if isinstance(found, Failure):
            found.raise_it()
        return found

    def sort(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """By the workers, where it is more than a piece."""
        return np.sort(values) if len(values) <= self.piece else OnDisk.sort(self, values)

    @property
    def texts(self) -> Path:
        """On this machine: tasks are given numbers alone."""
        return self.local or self.folder

    def over(self, function: Callable[[slice], Found], count: int, size: int | None = None) -> Iterator[Found]:
        """By the workers, where it is more than a piece."""
        if count <= self.piece:
            yield from OnDisk.over(self, function, count, size)
            return
        step = next(pieces(count, size)).stop
        each = max(self.cut(count) // step, 1)
        for group in self._find_results(Looked(function, count, step, each), -(-count // (each * step))):
            yield from group

    def fill(self, function: Callable[[slice], npt.NDArray[Any]], count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """By the workers, where it is more than a piece."""
        if count > self.piece:
            return OnDisk.fill(self, function, count, dtype)
        return join(self, map(function, pieces(count)), count, dtype)

    def chain(
        self, function: Callable[[slice], npt.NDArray[Any]], lengths: Sequence[int], count: int, dtype: npt.DTypeLike
    ) -> npt.NDArray[Any]:
        """By the workers, where what it is made of is more than a piece."""
        if count > self.piece:
            return OnDisk.chain(self, function, lengths, count, dtype)
        return join(self, map(function, pieces(count)), sum(lengths), dtype)


class _Pickler(pickle.Pickler):
    """Arrays and targets by where they lie."""

    def __init__(self, file: io.BytesIO, arrays: OnCluster, kept: list[Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._arrays, self._kept = arrays, kept

    def persistent_id(self, obj: Any) -> Any:
        """Where it lies; None of what is told by its value."""
        if type(obj) is Written:
            return TARGET, obj.name, obj.dtype
        if type(obj) is not np.ndarray or cast(Any, obj).nbytes <= BY_VALUE or cast(Any, obj).dtype.hasobject:
            return None
        located = self._arrays.locate(cast(Any, obj), self._kept)
        self._arrays.flush(located[1])
        return located


def _forget(process: int, folder: Path, files: dict[int, tuple[int, str]], address: int, name: str) -> None:
    """An array is gone: the file goes with the last one that lies in it, in the process that made it."""
    if os.getpid() != process:
        return
    files.pop(address, None)
    if all(other != name for _, other in files.values()):
        (folder / name).unlink(missing_ok=True)
