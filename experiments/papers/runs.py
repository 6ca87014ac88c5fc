"""Many settings measured, several at a time, and what they gave as one table for each kind.

A setting is what is held fixed while noise is drawn several times: a method on a table with a k, an epsilon, and so on. Each of
its runs has a secret of its own, made from the seed and the number of the run, so that the same seed gives the same figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from release_pipeline.mechanisms.noise import SECRET_BYTES

Field: TypeAlias = "str | int"
Progress: TypeAlias = Callable[[str], object]
RUN, TELL_EVERY = "run", 5.0  # the last field of a table; seconds


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
        """The setting in one line; the number of runs is no part of it."""
        return f"{self.kind}: " + ", ".join(f"{name} {value}" for name, value in self.fields)

    def text(self, name: str) -> str:
        """A field that is a text."""
        return str(dict(self.fields)[name])

    def number(self, name: str) -> int:
        """A field that is a whole number."""
        return int(dict(self.fields)[name])


Measure: TypeAlias = Callable[[Path, Setting, Sequence[bytes]], list[dict[str, float]]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A setting with what each of its runs gave."""

    setting: Setting
    rows: list[dict[str, float]]

    def runs(self, measure: str) -> npt.NDArray[np.float64]:
        """A measure in all runs."""
        return np.array([row[measure] for row in self.rows], dtype=np.float64)


def measure_all(
    settings: Sequence[Setting], measure: Measure, data: Path, *, seed: int, jobs: int, progress: Progress
) -> list[Measured]:
    """All settings, `jobs` at a time."""
    found: list[Measured] = []
    told = time.monotonic()
    for done in _measure(settings, partial(_measure_one, measure, data, seed), jobs):
        found.append(done)
        if time.monotonic() > told + TELL_EVERY or len(found) == len(settings):
            told = time.monotonic()
            progress(f"{len(found):,} of {len(settings):,}: {done.setting.key}")
    return found


def _measure(settings: Sequence[Setting], measure: Callable[[Setting], Measured], jobs: int) -> Iterator[Measured]:
    if jobs == 1:
        yield from map(measure, settings)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(measure, settings)


def _measure_one(measure: Measure, data: Path, seed: int, setting: Setting) -> Measured:
    return Measured(setting, measure(data, setting, make_secrets(seed, setting.runs)))


def make_secrets(seed: int, runs: int) -> list[bytes]:
    """A secret for each run; known, as no release's may be."""
    half = SECRET_BYTES // 2
    return [seed.to_bytes(half, "big") + run.to_bytes(half, "big") for run in range(runs)]


def tabulate(measured: Sequence[Measured]) -> dict[str, pd.DataFrame]:
    """A table for each kind: its index is the fields and the number of the run, its columns are the measures."""
    rows: dict[str, list[dict[str, Any]]] = {}
    fields: dict[str, list[str]] = {}
    for one in measured:
        own = dict(one.setting.fields)
        fields[one.setting.kind] = [*own, RUN]
        rows.setdefault(one.setting.kind, []).extend({**own, RUN: run, **row} for run, row in enumerate(one.rows))
    return {kind: pd.DataFrame(own).set_index(fields[kind]) for kind, own in rows.items()}
