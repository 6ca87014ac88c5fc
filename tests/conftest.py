"""Shared fixtures. Reference data are found through RELEASE_PIPELINE_REFERENCE_DATA; in CI their absence is a failure, unless the
variable says `absent`: a machine that cannot have them, and says what it leaves out."""

from __future__ import annotations

import csv
import gc
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as a command has it; workers of tests are as many as processors
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

Columns: TypeAlias = dict[str, tuple[npt.NDArray[np.float64], Decimal]]

threadpool_limits(1)  # of this process itself: a plugin has loaded NumPy before the variable was set
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("quick", settings.get_profile("default"), max_examples=20)
settings.load_profile("default")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a script's background job: commands would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # below `nohup`, likewise
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
MEMORY, ENOUGH = Path("/dev/shm"), 4 << 30  # noqa: S108  bytes
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ENOUGH:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # above every `tmp_path`: no test waits for a disk there
gc.set_threshold(10_000)  # objects: thousands of tests are alive, and Python's 700 have them looked through all the time

TESTS = Path(__file__).parent
# Files that take minutes: benchmarks, daemons, servers, browsers, memory, whole matrices. `make test` leaves them out.
LONG = (TESTS / "long.txt").read_text().split()
FIRST = ("test_release_flow", "test_dagster_release", "test_attacks", *LONG)  # so that no worker has one by itself at the end
ABSENT = "absent"  # in the place of the folder of reference data
COMPILED = ("release_pipeline.mechanisms.clusters.cuts.mondrian",)  # examples in docstrings that wait for a compiler


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--long`: which of the long files run; all of them where it is not given."""
    parser.addoption("--long", metavar="none|K/N", help="no long file, or nothing but every Nth of them from the Kth on")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a `--long` that means nothing, and a list that names a file that has gone."""
    chosen = config.getoption("--long")
    if chosen not in (None, "none") and not re.fullmatch(r"\d+/[1-9]\d*", chosen):
        raise pytest.UsageError(f"--long is 'none' or like 3/8, not {chosen!r}")
    if missing := [name for name in LONG if not (TESTS / name).is_file()]:
        raise pytest.UsageError(f"tests/long.txt names files that are not there: {', '.join(missing)}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that `--long` does not choose, before they are imported."""
    chosen = config.getoption("--long")
    if chosen is None or collection_path.is_dir():
        return None
    name = str(collection_path.relative_to(TESTS)) if collection_path.is_relative_to(TESTS) else ""
    if chosen == "none":
        return True if name in LONG else None
    share, shares = map(int, chosen.split("/"))
    return None if name in LONG[share % shares :: shares] else True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """The longest files first, so that no worker has them alone at the end; the others in their random order. An example in a
    docstring cannot be marked where it stands: here it is, before anything is chosen by its marks."""
    for item in items:
        if item.name in COMPILED:
            item.add_marker(pytest.mark.slow)
    yield
    items.sort(key=lambda item: next((place for place, name in enumerate(FIRST) if name in item.nodeid), len(FIRST)))


def pytest_xdist_auto_num_workers() -> int:
    """As many as there are processors: each worker collects all tests, for half a minute of a processor's time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The folder of reference data (see CONTRIBUTING: what it is for)."""
    named = os.environ.get("RELEASE_PIPELINE_REFERENCE_DATA")
    if named == ABSENT:
        pytest.skip("the reference data are absent here, as RELEASE_PIPELINE_REFERENCE_DATA says")
    folder = Path(named) if named else None
    if folder is not None and (folder / "census.csv").is_file():
        return folder
    reason = "RELEASE_PIPELINE_REFERENCE_DATA does not name a folder with census.csv and wine_white.csv"
    if os.environ.get("CI"):
        pytest.fail(f"in CI the reference data are required: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def reference_columns(reference_data: Path) -> Callable[[str], Columns]:
    """Columns of a reference table by name, each with the resolution of its numbers (at most six decimals)."""

    def load(name: str) -> Columns:
        with (reference_data / f"{name}.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        texts = {column: [row[i] for row in rows] for i, column in enumerate(header)}
        return {column: (np.array(text, dtype=np.float64), _resolution(text)) for column, text in texts.items()}

    return load


def _resolution(texts: list[str]) -> Decimal:
    decimals = max(len(text.partition(".")[2].rstrip("0")) for text in texts)
    return Decimal(1).scaleb(-min(decimals, 6))
