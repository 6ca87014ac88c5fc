"""A Spark Connect server of the tests' own, on this machine. Spark itself is not among the dependencies, since it is large: where
it lies is said by RELEASE_PIPELINE_SPARK_HOME (CONTRIBUTING: how to have it)."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

NAMED = "RELEASE_PIPELINE_SPARK_HOME"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
LONGEST = 120  # seconds that it may take to begin


@dataclass(frozen=True, slots=True)
class Server:
    """One that is up. What Spark writes lies in `folder`."""

    port: int
    process: int
    folder: Path

    @property
    def url(self) -> str:
        """Where it is to be had."""
        return f"sc://127.0.0.1:{self.port}"

    @property
    def processes(self) -> list[psutil.Process]:
        """All that it began, workers among them."""
        return psutil.Process(self.process).children(recursive=True)

    def kill(self) -> None:
        """At once, with everything that it began."""
        there = psutil.Process(self.process)
        for process in (there, *self.processes):
            process.send_signal(signal.SIGKILL)


def find_spark() -> Path:
    """Spark's folder. Where there is none, or no Java, the test skips; in CI it fails."""
    home = Path(os.environ.get(NAMED, ""))
    if not os.environ.get(NAMED) or not (home / "bin" / "spark-submit").is_file():
        missing = f"{NAMED} does not name a folder with Spark's bin/spark-submit"
    elif shutil.which("java") is None:
        missing = "there is no Java, which Spark needs (Debian's package default-jre-headless)"
    else:
        return home
    if os.environ.get("CI"):
        pytest.fail(f"in CI Spark is required: {missing}")
    pytest.skip(missing)


@contextmanager
def start_spark(folder: Path, master: str = "local-cluster[2,1,512]") -> Iterator[Server]:
    """A server with two executors of a worker each, which try each task four times; gone afterwards."""
    home, events, port = folder / "home", folder / "events", _free_port()
    for made in (home, events):
        made.mkdir(parents=True)
    for part in find_spark().iterdir():
        if part.name != "work":  # where executors write, which is to be in the folder too
            (home / part.name).symlink_to(part)
    said = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.executor.memory": "512m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": "false",
    }
    command = [str(home / "bin" / "spark-submit"), "--class", SERVER, "--master", master, "--driver-memory", "768m"]
    command += [part for name, value in said.items() for part in ("--conf", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "COV_"))}
    environment |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": str(make_python(folder / "python")),
    }
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "spark-internal"], stdout=out, stderr=out, cwd=folder, env=environment, start_new_session=True
        )
    server = Server(port, process.pid, folder)
    try:
        _wait(server, process, log)
        yield server
    finally:
        if process.poll() is None:
            server.kill()
        process.wait()


def make_python(folder: Path) -> Path:
    """A Python that has NumPy and PyArrow alone, and nothing of ours."""
    venv.create(folder, symlinks=True, with_pip=False)
    [packages] = folder.glob("lib/python*/site-packages")
    for package in ("numpy", "pyarrow"):
        found = find_spec(package)
        assert found is not None
        there = Path(str(found.origin)).parent
        for part in (there, there.with_name(f"{there.name}.libs")):
            if part.is_dir():
                (packages / part.name).symlink_to(part)
    return folder / "bin" / "python"


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + LONGEST
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"the Spark server did not begin: {log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]
