"""Real processes that a test starts, and what they tell."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from tests.guards import HANGING

LONGEST = HANGING  # seconds that a process may take before it counts as hanging
TOGETHER = HANGING  # seconds that one waits for the other to be ready

PROCESSES = multiprocessing.get_context("forkserver")  # a fork of this process would copy locks that DuckDB's threads hold
PROCESSES.set_forkserver_preload(
    [
        "tests.integration.sites",
        "release_pipeline.flow.status.ledger",
        "release_pipeline.flow.status.overview",
        "pandas",
        "scipy.optimize",
        "sklearn.ensemble",  # every audit trains models
        "sklearn.linear_model",
    ]
)


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
