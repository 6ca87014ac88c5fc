"""Tries settings on the same records, on all processors: the result of each, or the reason why there is none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from release_pipeline.errors import PolicyInvalid, ReleasePipelineError
from release_pipeline.masking.simulation import Records, Reference, Simulated, list_groupings, simulate
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.loading.load import list_files, read_policy, reader_beside
from release_pipeline.policy.plans.settings import Changed, Setting, apply
from release_pipeline.policy.values.text import read_yaml

CELLS = 4_000_000  # simulated values of a setting, about
FEWEST, MOST = 5, 30  # draws of a setting
SLOW_CELLS, SLOWLY = 1_000_000, 10  # released values from which on slow methods have the fewest draws, and else the most of these
GROUPING = ("mdav", "vectors", "classes")  # released values from which on slow methods have the fewest draws, else the most
WORTH_A_PROCESS = 20_000  # records of all settings: with fewer a process costs more than it saves
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Written:
    """A policy as its file has it: text, and the files that it names. `name`: its name in messages."""

    text: str
    name: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, file: Path) -> Written:
        """Return the policy in a file."""
        text, read = read_policy(file), reader_beside(file)
        return cls(text, str(file), {name: read(name) for name in list_files(text)})

    @cached_property
    def raw(self) -> dict[str, Any]:
        """Return its values."""
        return read_yaml(self.text).value

    def change(self, setting: Setting) -> Changed:
        """Return the policy under a setting."""
        return apply(self.text, setting, name=self.name, read=self.files.__getitem__)


@dataclass(frozen=True)
class Bench:
    """Records on which settings are tried, and how. Each simulated release has separate records, drawn from these with
    repetition, since those of the real release are others. `rows`: of each simulated release; `secret`: for drawing simulated
    noise."""

    written: Written
    policy: Policy
    records: Records
    rows: int
    secret: bytes

    @cached_property
    def groupings(self) -> tuple[str, ...]:
        """Return the columns whose groups are measured."""
        return list_groupings(self.policy, self.records)

    @cached_property
    def reference(self) -> Reference:
        """Return the reference figures of the records."""
        return Reference(self.records, self.policy.noise_columns, self.groupings)

    @cached_property
    def references(self) -> list[Reference]:
        """Return the reference of each draw, in turn."""
        random = make_random(hashlib.sha256(self.secret).digest(), "resampled records")
        drawn = (np.sort((random.random(self.rows) * self.records.count).astype(np.intp)) for _ in range(self.draws))
        return [self.reference.resample(numbers) for numbers in drawn]

    def references_of(self, policy: Policy) -> list[Reference]:
        """Return the reference of each draw of a policy. A record that is drawn twice would be in one class, or cluster of
        several columns, with itself, as no two people are. So for such methods, and for swapped values, every draw has each
        record once."""
        return [self.linked] if policy.method.family in GROUPING or policy.swap is not None else self.references

    @cached_property
    def linked(self) -> Reference:
        """Return the records of the release that linkage is tried on: as many as one release has, or all that there are, each
        once. A record that is there twice cannot be distinguished from itself, and is linked half as often."""
        if self.rows == self.records.count:
            return self.reference
        order = make_random(hashlib.sha256(self.secret).digest(), "linked records").permutation(self.records.count)
        return self.reference.resample(np.sort(order[: self.rows]))

    @property
    def draws(self) -> int:
        """Return how many releases are simulated of a setting."""
        cells = self.rows * max(len(self.policy.noise_columns), 1)
        return int(np.clip(CELLS // cells, FEWEST, MOST))

    def draws_of(self, policy: Policy) -> int:
        """Return how many releases are simulated of a policy's setting, fewer if it may be slow."""
        if policy.method.family not in ("whole-table", *GROUPING):
            return self.draws
        is_large = self.rows * len(policy.released_columns) > SLOW_CELLS
        return FEWEST if is_large else min(SLOWLY, self.draws)


@dataclass(frozen=True, slots=True)
class Tried:
    """A setting that was tried: the policy that it makes, and its results."""

    changed: Changed
    simulated: Simulated


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting without results, and the reason. `by_ledger`: because it exceeds the remaining budget, and `refused` was not
    asked for."""

    setting: Setting
    why: str
    by_ledger: bool = False


def try_settings(
    bench: Bench, settings: Sequence[Setting], *, workers: int | None = None, progress: Progress
) -> list[Tried | Refused]:
    """Return the result of each setting, in their order."""
    results: dict[int, Tried | Refused] = {}

    def note(number: int, result: Tried | Refused) -> None:
        results[number] = result
        progress(f"{len(results)} of {len(settings)} settings tried")

    count = min(workers or _count_processors(), len(settings))
    if count <= 1 or bench.rows * len(settings) < WORTH_A_PROCESS:
        for number, setting in enumerate(settings):
            note(number, _try(bench, setting))
    else:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_start, initargs=(bench,)) as pool:
            waiting = {pool.submit(_try_here, setting): number for number, setting in enumerate(settings)}
            for future in as_completed(waiting):
                note(waiting[future], future.result())
    return [results[number] for number in range(len(settings))]


def explain(error: ReleasePipelineError) -> str:
    """Return what is wrong, in a line, with every fault of columns. It has no line of a file, since this policy has no file."""
    faults: Sequence[Fault] = getattr(error, "faults", ())
    if not faults:
        return f"{error.what} {error.remedy}".strip()
    of_columns = [fault for fault in faults if fault.option.startswith("columns")]
    if faults[0] not in of_columns:
        return f"{faults[0].option}: {faults[0].what} {faults[0].remedy}".strip()
    alike: dict[str, list[str]] = {}  # the required change, and where
    for fault in of_columns:
        alike.setdefault(f"{fault.what} {fault.remedy}".strip(), []).append(fault.option)
    return " ".join(f"{', '.join(options)}: {words}" for words, options in alike.items())


_bench: Bench | None = None  # of a worker


def _start(bench: Bench) -> None:
    global _bench
    _bench = bench


def _try_here(setting: Setting) -> Tried | Refused:
    assert _bench is not None  # noqa: S101  for the type checker
    return _try(_bench, setting)


def _try(bench: Bench, setting: Setting) -> Tried | Refused:
    try:
        changed = bench.written.change(setting)
    except PolicyInvalid as error:
        return Refused(setting, explain(error))
    policy = changed.policy
    try:
        simulated = simulate(
            policy, bench.references_of(policy), secret=bench.secret, draws=bench.draws_of(policy), linked=bench.linked
        )
    except ReleasePipelineError as error:
        return Refused(setting, explain(error))
    return Refused(setting, simulated.refusal) if simulated.refusal else Tried(changed, simulated)


def _count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
