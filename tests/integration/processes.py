"""Real processes that a test starts, and what they tell. They are forked by one that has everything loaded: Dagster and Great
Expectations take each four seconds of a processor to import, which is most of what a small release takes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Lock
from typing import Any

from tests.guards import HANGING

LONGEST = HANGING  # seconds that a process may take before it counts as hanging
TOGETHER = HANGING  # seconds that one waits for the other to be ready

PROCESSES = multiprocessing.get_context("forkserver")  # a fork of this process would copy locks that DuckDB's threads hold
PROCESSES.set_forkserver_preload(["tests.integration.warm"])
_READING = Lock()  # an exit code can be read once, and to start a process reads those of all that have ended: who comes second
# while the first is at it finds nothing, and takes the process for a failed one


def wait_for(happened: Callable[[], object]) -> None:
    """Returns when it has happened; fails when it takes too long."""
    deadline = time.monotonic() + HANGING
    while not happened():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether the process is neither gone nor a zombie. One that is killed may run for a moment yet: wait for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def both(work: Callable[[int], Any], count: int) -> list[Any]:
    """`work` for 0, 1, ...: two at a time. Whoever starts and ends processes there does it by `begin` and `finish`."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, range(count)))


def begin(process: BaseProcess) -> None:
    """Starts it, while no other thread reads how one has ended."""
    with _READING:
        process.start()


def finish(process: BaseProcess) -> int:
    """How it ends: its exit code, when it is through or has been killed because it hangs. It is closed then."""
    if not wait([process.sentinel], LONGEST):
        process.kill()
        wait([process.sentinel])
    with _READING:
        process.join()
        code = process.exitcode
        process.close()
    assert code is not None
    return code


@contextmanager
def child(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """`work` in a process of its own, which is gone after this; what it tells is read here."""
    hears, tells = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=work, args=(*arguments, tells))
    process.start()
    tells.close()
    try:
        yield hears
    finally:
        process.kill()
        process.join()
        process.close()
        hears.close()


def hear(hears: Connection) -> Any:
    """The next thing that a child tells."""
    assert hears.poll(LONGEST), "the child hangs"
    return hears.recv()


COMMAND = "import sys\nfrom release_pipeline.apps.cli import main\nsys.exit(main(sys.argv[1:]))\n"


@dataclass(frozen=True)
class Program:
    """A program in a process of its own."""

    process: BaseProcess
    folder: tempfile.TemporaryDirectory[str]

    def end(self) -> subprocess.CompletedProcess[str]:
        """Its exit code, and what it printed, when it is through."""
        self.process.join(LONGEST)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        out, err = (Path(self.folder.name, name).read_text() for name in ("out", "err"))
        self.process.close()
        self.folder.cleanup()
        assert code is not None, f"the program hangs: {err[-3000:]}"
        return subprocess.CompletedProcess([], code, out, err)


def start_program(
    arguments: Sequence[str | Path],
    *,
    program: str = COMMAND,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Program:
    """`python -W ignore -c PROGRAM ARGUMENTS`, in a fork: `release-pipeline` without another program."""
    written = tempfile.TemporaryDirectory(prefix="program-")
    variables = {**os.environ} if environment is None else dict(environment)
    given = (program, [str(argument) for argument in arguments], variables, str(folder or Path.cwd()), written.name)
    process = PROCESSES.Process(target=_be, args=given)
    process.start()
    return Program(process, written)


def run_program(arguments: Sequence[str | Path], **how: Any) -> subprocess.CompletedProcess[str]:
    """Likewise, to its end."""
    return start_program(arguments, **how).end()


def _be(program: str, arguments: Sequence[str], variables: Mapping[str, str], folder: str, written: str) -> None:
    files = {0: (os.devnull, os.O_RDONLY), 1: (f"{written}/out", os.O_WRONLY), 2: (f"{written}/err", os.O_WRONLY)}
    for number, (file, mode) in files.items():
        opened = os.open(file, mode | (os.O_CREAT | os.O_APPEND if number else 0), 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    warnings.simplefilter("ignore")
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})  # noqa: S102  a test's own
