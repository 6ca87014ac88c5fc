"""Tasks done by a Spark cluster, by Spark Connect: this process needs no JVM, and Spark is told nothing but paths, hashes and
numbers. Arrays, functions and what tasks find go through the shared folder (`shared`)."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import StoreError
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays
from release_pipeline.privacy.clusters import rank_clusters
from release_pipeline.privacy.noise import noise_stream, shuffled_positions
from release_pipeline.store.shared import OnCluster
from release_pipeline.store.tasks import run_batches

EXTRA = "release-pipeline[spark]"
TRIED = 100_000  # made-up records that a cluster must put in order before it is given any
_PIECE = 1 << 15  # of them in a task
_WAIT = 30  # seconds for a server that does not answer at first
_RETRIES = 6  # waits for one that does no more: half a minute together, for each of some three attempts
_SECRET = hashlib.sha256(b"no secret: the records that it is for are made up").digest()


@dataclass(frozen=True, slots=True)
class SparkWorkers:
    """The executors of the Spark Connect server at an address, which are asked when there is something to do. `where`: what
    messages name instead of the address, which may have a token."""

    url: str = field(repr=False)
    where: str

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """One Spark task each; in this process and this folder for the first time not before they have shown what they can do. A
        session ends when it is not used for an hour, or its server is started again: then another is tried once."""
        is_known = (self.url, job.parent.parent) in _CHECKED
        try:
            return self._run(job, digest, count)
        except SparkGone:
            _connect.cache_clear()
            _CHECKED.clear()
            if not is_known:
                raise
        return self._run(job, digest, count)

    def _run(self, job: Path, digest: str, count: int) -> list[str]:
        session, checked = _connect(self.url, self.where), (self.url, job.parent.parent)
        if checked not in _CHECKED:
            with TemporaryDirectory(dir=job.parent) as folder:
                check_cluster(OnCluster(Path(folder), _PIECE, session))
            _CHECKED.add(checked)
        return session.run(job, digest, count)


_CHECKED: set[tuple[str, Path]] = set()


class SparkGone(StoreError):
    """A server does not answer, or not for this session, or gave up a task."""

    code = StoreError.code


@dataclass(frozen=True, slots=True)
class _Session:
    """A connection."""

    spark: Any
    told: Any  # the columns of what tasks give
    where: str
    host: str

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """Without any question."""
        with _spark_errors(self.where, self.host):
            tasks = self.spark.range(0, count, 1, count)
            rows = tasks.mapInArrow(partial(run_batches, str(job), digest), self.told).toArrow()
        told = dict(zip(rows.column("number").to_pylist(), rows.column("told").to_pylist(), strict=True))
        if sorted(told) != list(range(count)):
            what = "the Spark server did not have every task done."
            raise StoreError(what, where=self.where, remedy="Ask who runs it why.")
        return [told[number] for number in range(count)]


@cache
def _connect(url: str, where: str) -> _Session:
    """Once in a process."""
    with _spark_errors(where, _read_host(url)):
        try:
            os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write on the terminal what is told as an error
            grpc: Any = import_module("grpc")  # these are large: only where they are used
            types: Any = import_module("pyspark.sql.types")
            connect: Any = import_module("pyspark.sql.connect.session")
            client: Any = import_module("pyspark.sql.connect.client")
            retries: Any = import_module("pyspark.sql.connect.client.retries")
        except ImportError:
            raise StoreError("the Spark client is not installed.", where=where, remedy=f"Install {EXTRA}.") from None
        own = [("grpc.use_local_subchannel_pool", 1)]  # it does not wait for what an earlier session of this process waits for
        with client.DefaultChannelBuilder(url, own).toChannel() as channel:  # else a session is tried to be had for ten minutes
            grpc.channel_ready_future(channel).result(timeout=_WAIT)
        builder = connect.SparkSession.builder.channelBuilder(client.DefaultChannelBuilder(url, own))
        session = builder.appName("release-pipeline").create()
        session.client.set_retry_policies([retries.DefaultPolicy(max_retries=_RETRIES, max_backoff=15_000)])
        session.range(1).count()
        told = types.StructType().add("number", types.LongType()).add("told", types.StringType())
    return _Session(session, told, where, _read_host(url))


def _read_host(url: str) -> str:
    """Host and port of an address, and nothing that may be secret."""
    return url.removeprefix("sc://").partition("/")[0]


@contextmanager
def _spark_errors(where: str, host: str) -> Generator[None]:
    """What Spark and the way to it say, as `StoreError`: its words are about paths and machines alone, and long. Its warnings are
    about versions of pandas, which is not used, and about what does not answer, which is told."""
    try:
        with _named_program(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "grpc"):
            raise
        name = type(error).__name__
        if name == "FutureTimeoutError":
            what = f"no Spark Connect server answers at {host}."
            remedy = (
                "Start it, or correct the address: host, port, use_ssl=true for TLS (with a token it is TLS but to localhost)."
            )
        elif name == "PySparkValueError":
            what, remedy = "the address has a parameter that Spark's client does not take.", "Correct it."
        elif "UNAUTHENTICATED" in str(error):
            what = f"the Spark server at {host} does not accept the token, or there is none."
            remedy = "Let the environment have it: as SPARK_CONNECT_AUTHENTICATE_TOKEN, or in the whole address."
        elif name == "PythonException" and "ModuleNotFoundError" in str(error):
            what = "the Python of the cluster's workers has no release-pipeline, or not all that it needs."
            remedy = "Install it for them, and let PYSPARK_PYTHON or spark.pyspark.python name that Python."
        elif name == "PythonException":
            what, remedy = f"a task failed on the Spark server at {host}.", "The server's log says why."
        else:
            what = f"the Spark server at {host} does not answer, or refuses what it is asked ({name})."
            remedy = "Ask who runs it; its log may say why."
        remedy = f"{remedy} Then run the same command again: it goes on after the last stage."
        raise SparkGone(what, where=where, remedy=remedy) from None


@contextmanager
def _named_program() -> Generator[None]:
    """With a file for the program: where it has none, as in a process that another one began, Spark's client takes it for a test
    of its own, and ends it."""
    program: Any = sys.modules["__main__"]
    has_file = hasattr(program, "__file__")
    if not has_file:
        program.__file__ = ""
    try:
        yield
    finally:
        if not has_file:
            del program.__file__


@dataclass(frozen=True, slots=True)
class Machine:
    """What a worker is: how it has numbers, who it runs as, and what it reads in a file of the shared folder."""

    byte_order: str
    account: int
    token: str


@dataclass(frozen=True, slots=True)
class _Look:
    """A task that says what the worker is."""

    file: str

    def __call__(self, number: int) -> Machine:
        return look_at(self.file)


def look_at(file: str) -> Machine:
    """This machine and process."""
    return Machine(sys.byteorder, os.geteuid(), Path(file).read_text(encoding="ascii"))


def check_cluster(arrays: OnCluster) -> None:
    """Refuse workers that do not see the shared folder, are of another account, or do not give the numbers that this machine
    gives of made-up records."""
    mine = arrays.folder / f"{secrets.token_hex(8)}.seen"
    mine.write_text(secrets.token_hex(16), encoding="ascii")
    try:
        here = look_at(str(mine))
        for there in arrays.work(_Look(str(mine)), 8, is_trial=True):
            _compare(here, there)
    finally:
        mine.unlink()
    if _rank_made_up(arrays) != _rank_made_up(IN_MEMORY):
        raise StoreError(
            "the cluster does not put made-up records in the order that this machine puts them in.",
            remedy="It must not be used: tell whoever makes this software which Spark server it is.",
        )


def _compare(here: Machine, there: Machine) -> None:
    told = {
        "byte_order": ("another order of bytes", "Use machines of one kind."),
        "account": ("another account", "Let it be the one of this process: files of the shared folder are for it alone."),
        "token": ("another folder in the place of the shared one", "Let the folder have the same path on all machines."),
    }
    for name, (what, remedy) in told.items():
        if getattr(here, name) != getattr(there, name):
            raise StoreError(f"a worker of the cluster has {what}.", remedy=remedy)


def _rank_made_up(arrays: Arrays) -> list[str]:
    """Hashes of the orders of made-up records, with ties and a constant, and of what is spread over them and shuffled."""
    values = np.floor(np.sqrt(np.arange(TRIED) * 7919 % TRIED)).astype(np.int64)
    values[: TRIED // 4] = 0
    ranked = rank_clusters(values, 25, ties=noise_stream(_SECRET, "ties"), arrays=arrays)
    order = shuffled_positions(TRIED, noise_stream(_SECRET, "shuffle"), arrays)
    made: list[npt.NDArray[Any]] = [ranked.ordered, ranked.cluster, ranked.sums(), arrays.take(ranked.cluster, order)]
    return [hashlib.sha256(one.tobytes()).hexdigest() for one in made]
