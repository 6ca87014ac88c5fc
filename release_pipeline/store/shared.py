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
import platform
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_UN, lockf
from functools import cache
from itertools import count as numbers
from mmap import ACCESS_READ, ACCESS_WRITE, mmap
from pathlib import Path
from shutil import rmtree
from time import process_time, sleep
from typing import Any, Protocol, TypeVar, cast
from weakref import finalize

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import release_pipeline
from release_pipeline.errors import ReleasePipelineError, StoreError, is_full, memory_full, own_frame, storage_full
from release_pipeline.privacy.arrays import join, pieces
from release_pipeline.store.scratch import OnDisk, disk_errors, reserve_bytes

Scalar = TypeVar("Scalar", bound=np.generic)
Found = TypeVar("Found")
TASK, MOST = 1 << 20, 1 << 24  # entries that one task works on, at the least and at the most
TASKS = 256  # of a pass, if they are between these
BY_VALUE = 1 << 16  # bytes: a longer array is told by where it lies
_ARRAY, _TARGET, _FULL = "array", "target", "full"
_SALT = 32  # random bytes before what is hashed: its hash goes by others, and must tell nothing of it


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
        """Arrays for the room of a vault's file, whose lock the caller has, in a folder of their own. What somebody left there
        who was killed is removed before, and nothing is left afterwards."""
        self.remove(file)
        mine = self._folder_of(file)
        folder = mine / os.urandom(8).hex()  # a task of somebody who was killed finds no file that is ours
        try:
            found = self.storage.stat()
            if found.st_mode & 0o022 or found.st_uid != os.geteuid():
                raise _refuse_storage(self.storage, "this folder is another account's, or others may write to it.")
            mine.mkdir(mode=0o700)
            folder.mkdir(mode=0o700)
        except OSError:
            raise _refuse_storage(self.storage, "this is no folder, or this account cannot write to it.") from None
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
            reserve_bytes(handle, count * kind.itemsize)
            os.fsync(handle)  # where the file system has no bytes to promise they were written, and must not be written later
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

    def work(self, task: Callable[[int], Found], count: int) -> list[Found]:
        """By the workers. What they find comes back by the folder, too."""
        if not count:
            return []
        kept: list[Any] = []  # arrays that were stored for this alone
        content = os.urandom(_SALT) + tell_software() + self._pickle(task, kept)
        job = self.folder / f"{next(self._numbers):08}.job"
        try:
            with disk_errors():
                _write_file(job, content)
            self.effort.passes, self.effort.tasks = self.effort.passes + 1, self.effort.tasks + count
            return [self._read_result(one) for one in self.workers.run(job, hashlib.sha256(content).hexdigest(), count)]
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
        return _ARRAY, name, array.dtype.str, place, array.shape

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
        if name == _FULL:
            raise storage_full()
        path = self.folder / name
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise StoreError(
                "what a task found is not what it wrote.", where=str(path.parent), remedy="Find out who wrote there."
            )
        found = pickle.loads(content[_SALT:])  # noqa: S301  by its hash it is what the task wrote
        if isinstance(found, _Failure):
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
            return OnDisk.over(self, function, count, size)
        step = next(pieces(count, size)).stop
        each = max(self.cut(count) // step, 1)
        groups = self.work(Looked(function, count, step, each), -(-count // (each * step)))
        return (found for group in groups for found in group)

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


@dataclass(frozen=True, slots=True)
class Looked:
    """What a function gives of some slices of so many entries."""

    function: Callable[[slice], Any]
    count: int
    step: int
    each: int

    def __call__(self, number: int) -> list[Any]:
        """Of those of one task."""
        first = number * self.each * self.step
        beyond = min(first + self.each * self.step, self.count)
        return [self.function(slice(first + part.start, first + part.stop)) for part in pieces(beyond - first, self.step)]


class _Pickler(pickle.Pickler):
    """Arrays and targets by where they lie."""

    def __init__(self, file: io.BytesIO, arrays: OnCluster, kept: list[Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._arrays, self._kept = arrays, kept

    def persistent_id(self, obj: Any) -> Any:
        """Where it lies; None of what is told by its value."""
        if type(obj) is Written:
            return _TARGET, obj.name, obj.dtype
        if type(obj) is not np.ndarray or cast(Any, obj).nbytes <= BY_VALUE or cast(Any, obj).dtype.hasobject:
            return None
        located = self._arrays.locate(cast(Any, obj), self._kept)
        self._arrays.flush(located[1])
        return located


class _Unpickler(pickle.Unpickler):
    """The same for who does the tasks."""

    def __init__(self, content: bytes, folder: Path, closed: ExitStack) -> None:
        super().__init__(io.BytesIO(content))
        self._folder, self._closed = folder, closed

    def persistent_load(self, pid: Any) -> Any:
        """An array that lies in a file of the folder, or one to be written."""
        if pid[0] == _TARGET:
            return _Target.open(self._folder / pid[1], np.dtype(pid[2]), self._closed)
        _, name, dtype, place, shape = pid
        return np.memmap(self._folder / name, dtype=np.dtype(dtype), mode="r", offset=place, shape=shape).view(np.ndarray)


@dataclass(frozen=True, slots=True)
class _Target:
    """A file that parts of an array are written to, each at its place; on the disk for good when it is closed."""

    file: int
    dtype: np.dtype[Any]

    @classmethod
    def open(cls, path: Path, dtype: np.dtype[Any], closed: ExitStack) -> _Target:
        """One that is there."""
        file = os.open(path, os.O_WRONLY)
        closed.callback(os.close, file)
        closed.callback(os.fsync, file)
        return cls(file, dtype)

    def __setitem__(self, part: slice, values: npt.NDArray[Any], /) -> None:
        content = np.ascontiguousarray(values, dtype=self.dtype)
        if len(content) != part.stop - part.start:
            raise StoreError("a task made another number of entries than it should.")
        left, place = memoryview(cast(Any, content.view(np.uint8))), part.start * self.dtype.itemsize
        # locked: Linux' client of NFS would write whole pages otherwise, with what it believes of a neighbour's part
        lockf(self.file, LOCK_EX, len(left), place)
        begin, length = place, len(left)
        try:
            while len(left):
                written = os.pwrite(self.file, left, place)
                left, place = left[written:], place + written
        finally:
            lockf(self.file, LOCK_UN, length, begin)


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a task did not find what it should: in words, and no more of it than a person may read."""

    error: ReleasePipelineError | None
    kind: str = ""

    def raise_it(self) -> None:
        """As if it had been here."""
        if self.error is not None:
            raise self.error
        raise StoreError(f"a task failed on the cluster: {self.kind}.", remedy="Tell whoever makes this software what it was.")


def run_task(job: str, digest: str, number: int) -> str:
    """Do one task of a job, whose file must have this hash: by another process, mostly on another machine. Gives its seconds of a
    processor, and of what it found the name of the file and its hash; neither where it only wrote. What goes wrong is told there
    as well, so that no cell is in anybody's log, unless it may go right if it is done again."""
    path, begun = Path(job), process_time()
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise OSError("a file of tasks is not what it should be")
    told, content = tell_software(), content[_SALT:]
    if content.startswith(told):
        found = _attempt(content[len(told) :], path.parent, number)
    else:
        found = _Failure(_refuse_software(content[: len(told)], told))
    result = " " if found is None else _write_result(path, number, found)
    return f"{process_time() - begun:.6f} {result}"


@cache
def tell_software() -> bytes:
    """The versions that workers must have, too: of Python and NumPy, and of this software a hash over all of it."""
    digest, folder = hashlib.sha256(), Path(release_pipeline.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return f"Python {platform.python_version()}, NumPy {np.__version__}, release-pipeline {digest.hexdigest()}\n".encode()


def _refuse_software(told: bytes, own: bytes) -> StoreError:
    there, here = (text.decode(errors="replace").split(", release-pipeline ")[0] for text in (own, told))
    how = "its files are not those that are here" if there == here else f"{there}, and here it is {here}"
    what = f"a worker of the cluster has another version of this software: {how}."
    return StoreError(what, remedy="Have the very same release-pipeline, Python and NumPy on all of its machines.")


def _attempt(content: bytes, folder: Path, number: int) -> Any:
    """What a task gives, its files on the disk for good; or what went wrong."""
    try:
        with ExitStack() as closed:
            task: Callable[[int], Any] = _Unpickler(content, folder, closed).load()
            return task(number)
    except ReleasePipelineError as error:
        return _Failure(error)
    except MemoryError:
        return _Failure(memory_full("a worker of the cluster"))
    except OSError as error:
        if is_full(error):
            return _Failure(storage_full())
        raise OSError(error.errno, "a file of the shared folder cannot be read or written") from None
    except Exception as error:
        return _Failure(None, f"{type(error).__name__} at {own_frame(error)}")


def run_batches(job: str, digest: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`run_task` of the numbers that come as the first column: number by number, with what it gives."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.record_batch({"number": pa.array([number], pa.int64()), "told": pa.array([run_task(job, digest, number)])})


def _write_result(job: Path, number: int, found: Any) -> str:
    content = os.urandom(_SALT) + pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)  # nobody guesses it by its hash
    name = f"{job.stem}-{number}-{os.urandom(8).hex()}.found"
    try:
        _write_file(job.with_name(name), content)
    except OSError as error:
        if is_full(error):
            return f"{_FULL} "
        raise OSError(error.errno, "a file of the shared folder cannot be written") from None
    return f"{name} {hashlib.sha256(content).hexdigest()}"


def _write_file(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _forget(process: int, folder: Path, files: dict[int, tuple[int, str]], address: int, name: str) -> None:
    """An array is gone: the file goes with the last one that lies in it, in the process that made it."""
    if os.getpid() != process:
        return
    files.pop(address, None)
    if all(other != name for _, other in files.values()):
        (folder / name).unlink(missing_ok=True)
