"""A Spark Connect server of the tests' own, on this machine. Spark itself is not among the dependencies, since it is large: where
it lies is said by RELEASE_PIPELINE_SPARK_HOME (CONTRIBUTING: how to have it)."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

NAMED = "RELEASE_PIPELINE_SPARK_HOME"
ROOT = Path(__file__).parents[2]
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

    def kill(self) -> None:
        """At once, with everything that it began."""
        there = psutil.Process(self.process)
        for process in (there, *there.children(recursive=True)):
            process.send_signal(signal.SIGKILL)


def find_spark() -> Path:
    """Spark's folder; skips the test where there is none, or no Java."""
    home = Path(os.environ.get(NAMED, ""))
    if not os.environ.get(NAMED) or not (home / "bin" / "spark-submit").is_file():
        pytest.skip(f"{NAMED} does not name a folder with Spark's bin/spark-submit")
    if shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs (Debian's package default-jre-headless)")
    return home


@contextmanager
def start_spark(folder: Path, port: int | None = None) -> Iterator[Server]:
    """A server with two workers, which try each task four times; gone afterwards."""
    home, port = find_spark(), port or _free_port()
    folder.mkdir(parents=True, exist_ok=True)
    said = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [str(home / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[2,4]", "--driver-memory", "1g"]
    command += [part for name, value in said.items() for part in ("--conf", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "COV_"))}
    environment |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
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
