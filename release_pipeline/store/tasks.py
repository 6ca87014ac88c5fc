"""What a worker of a cluster does: one task of those that a file of the shared folder tells, whoever began the worker. `shared`
has the other side, where tasks are made."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import pickle
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_UN, lockf
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import release_pipeline
from release_pipeline.errors import ReleasePipelineError, StoreError, is_full, memory_full, own_frame, storage_full

ARRAY, TARGET = "array", "target"  # what is told by where it lies: to be read, and to be written
FULL = "full"  # in the place of the name of a file that had no room
UNSEEN, UNREAD = "unseen", "unread"  # and where there is no such folder, or it is another account's
TRIAL = ".trial"  # ends the name of a job that is done to see whether workers can
SALT = 32  # random bytes before what is hashed: its hash goes by others, and must tell nothing of it


class Unpickler(pickle.Unpickler):
    """A task, with arrays and targets by where they lie."""

    def __init__(self, content: bytes, folder: Path, closed: ExitStack) -> None:
        super().__init__(io.BytesIO(content))
        self._folder, self._closed = folder, closed

    def persistent_load(self, pid: Any) -> Any:
        """An array that lies in a file of the folder, or one to be written."""
        if pid[0] == TARGET:
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
class Failure:
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
    try:
        content = path.read_bytes()
    except OSError as error:
        if path.suffix != TRIAL:  # it may go right if it is done again, elsewhere
            raise
        return f"{process_time() - begun:.6f} {UNREAD if isinstance(error, PermissionError) else UNSEEN} "
    if hashlib.sha256(content).hexdigest() != digest:
        raise OSError("a file of tasks is not what it should be")
    told, content = tell_software(), content[SALT:]
    if content.startswith(told):
        found = _attempt(content[len(told) :], path.parent, number)
    else:
        found = Failure(_refuse_software(content[: len(told)], told))
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
            task: Callable[[int], Any] = Unpickler(content, folder, closed).load()
            return task(number)
    except ReleasePipelineError as error:
        return Failure(error)
    except MemoryError:
        return Failure(memory_full("a worker of the cluster"))
    except OSError as error:
        if is_full(error):
            return Failure(storage_full())
        raise OSError(error.errno, "a file of the shared folder cannot be read or written") from None
    except Exception as error:
        return Failure(None, f"{type(error).__name__} at {own_frame(error)}")


def run_batches(job: str, digest: str, batches: Iterable[Any]) -> Iterator[Any]:
    """`run_task` of the numbers that come as the first column of Arrow's batches: number by number, with what it gives."""
    import pyarrow as pa  # a large library: only where it is used

    _freeze_modules()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.record_batch({"number": pa.array([number], pa.int64()), "told": pa.array([run_task(job, digest, number)])})


@cache
def _freeze_modules() -> None:
    """Once in a process: what was loaded for tasks is no garbage. Spark's workers look for some behind every task, which takes
    ten times what handing it out does."""
    gc.freeze()


def _write_result(job: Path, number: int, found: Any) -> str:
    content = os.urandom(SALT) + pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)  # nobody guesses it by its hash
    name = f"{job.stem}-{number}-{os.urandom(8).hex()}.found"
    try:
        write_file(job.with_name(name), content)
    except OSError as error:
        if is_full(error):
            return f"{FULL} "
        raise OSError(error.errno, "a file of the shared folder cannot be written") from None
    return f"{name} {hashlib.sha256(content).hexdigest()}"


def write_file(path: Path, content: bytes) -> None:
    """A new one, for its owner alone, on the disk for good."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
