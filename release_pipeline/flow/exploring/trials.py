"""Many settings tried on the same records, on all processors: what each came to, kept so that nothing is tried twice."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from release_pipeline import __version__
from release_pipeline.errors import PolicyInvalid, ReleasePipelineError
from release_pipeline.flow.exploring.kept import ENDING, keep, read_kept
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.load import list_files, read_policy, reader_beside
from release_pipeline.policy.settings import Changed, Setting, apply
from release_pipeline.policy.text import read_yaml
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.stages.measures.subgroups import LEAST
from release_pipeline.stages.simulation import Records, Reference, Simulated, known, list_groupings, simulate

CELLS = 4_000_000  # simulated values of a setting, about
FEWEST, MOST = 5, 30  # draws of a setting
SLOW_CELLS, SLOW, SLOWLY = 1_000_000, 3, 10  # draws of methods that are slow: on tables with so many values, and on others
GROUPING = ("mdav", "vectors", "classes")  # families that put records together by several columns
RESULTS = 5  # another number than before where the same request has other figures now: what was kept is not used then
WORTH_A_PROCESS = 20_000  # records of all settings: with fewer a process costs more than it saves
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Written:
    """A policy as its file has it: text, and the files that it names. `name`: how messages call it."""

    text: str
    name: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, file: Path) -> Written:
        """The policy in a file."""
        text, read = read_policy(file), reader_beside(file)
        return cls(text, str(file), {name: read(name) for name in list_files(text)})

    @cached_property
    def raw(self) -> dict[str, Any]:
        """Its values."""
        return read_yaml(self.text).value

    def change(self, setting: Setting, *, rows: int | None = None) -> Changed:
        """The policy that it would be under a setting."""
        return apply(self.text, setting, name=self.name, read=self.files.__getitem__, rows=rows)


@dataclass(frozen=True)
class Bench:
    """Records on which settings are tried, and how. `rows`: of each simulated release; `secret`: what simulated noise is drawn
    with; `resampled`: whether each draw has records of its own, drawn of these with repetition, since those of the release are
    others; `kept`: where results are kept; `is_look`: whether the records are confidential, and fewer than ten stay hidden."""

    written: Written
    policy: Policy
    records: Records
    rows: int
    secret: bytes
    resampled: bool
    kept: Path | None = None
    is_look: bool = False

    @cached_property
    def groupings(self) -> tuple[str, ...]:
        """The columns whose groups are looked at."""
        return list_groupings(self.policy, self.records)

    @cached_property
    def reference(self) -> Reference:
        """What the records are like."""
        return Reference(self.records, self.policy.noise_columns, self.groupings)

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The columns whose figures are not told: of a look, where fewer than ten people have a value in them."""
        columns = self.policy.noise_columns.items() if self.is_look else ()
        return frozenset(name for name, column in columns if len(known(column, self.reference.seen[name])) < LEAST)

    @cached_property
    def references(self) -> list[Reference]:
        """What each draw is of, in turn."""
        if not self.resampled:
            return [self.reference]
        random = make_random(hashlib.sha256(self.secret).digest(), "resampled records")
        first, *rest = (np.sort((random.random(self.rows) * self.records.count).astype(np.intp)) for _ in range(self.draws))
        is_enough = self.rows <= self.records.count
        return [self.attacked if is_enough else self.reference.resample(first), *map(self.reference.resample, rest)]

    def references_of(self, policy: Policy) -> list[Reference]:
        """What each draw of a policy is of. Records that are there twice are in one class, or cluster of several columns, as no
        two people are: of methods that make such, and of swapped values, all draws are of records that are there once."""
        return [self.attacked] if policy.method.family in GROUPING or policy.swap is not None else self.references

    @cached_property
    def attacked(self) -> Reference:
        """What the release is of that is attacked and learned from: as many records as one has, or all that there are, each once.
        One that is there twice is never told from itself, and linked half as often."""
        if not self.resampled or self.rows == self.records.count:
            return self.reference
        order = make_random(hashlib.sha256(self.secret).digest(), "attacked records").permutation(self.records.count)
        return self.reference.resample(np.sort(order[: self.rows]))

    @property
    def draws(self) -> int:
        """How many releases are simulated of a setting."""
        return int(np.clip(CELLS // self.cells, FEWEST, MOST))

    @property
    def cells(self) -> int:
        """How many values a simulated release has."""
        return self.rows * max(len(self.policy.noise_columns), 1)

    def draws_of(self, policy: Policy, *, times: int = 1) -> int:
        """The same, of one that may be slow; so many `times` as many, where they are cheap."""
        is_slow = policy.method.family in ("whole-table", *GROUPING)
        if is_slow and self.rows * len(policy.released_columns) > SLOW_CELLS:
            return SLOW
        return min(SLOWLY, self.draws) if is_slow else max(self.draws, min(times * CELLS // self.cells, times * self.draws))

    @cached_property
    def digest(self) -> str:
        """What tells these records from others."""
        found = hashlib.sha256(f"{self.rows} {self.resampled} {RESULTS}".encode() + self.secret)
        for name, column in sorted(self.records.columns.items()):
            found.update(name.encode())
            for buffer in pa.concat_arrays([column]).buffers():
                found.update(b"-" if buffer is None else memoryview(buffer))
        return found.hexdigest()

    def file_of(self, policy: Policy) -> Path | None:
        """Where the result of a policy is kept."""
        if self.kept is None:
            return None
        told = json.dumps([__version__, self.digest, policy.canonical_hash(), self.draws_of(policy), *self.groupings])
        return self.kept / f"{hashlib.sha256(told.encode()).hexdigest()}{ENDING}"


@dataclass(frozen=True, slots=True)
class Tested:
    """A setting that was tried: the policy that it makes, and what came of it."""

    changed: Changed
    found: Simulated

    @property
    def setting(self) -> Setting:
        """The setting."""
        return self.changed.setting

    @property
    def policy(self) -> Policy:
        """Its policy."""
        return self.changed.policy


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting of which nothing came, and why. `by_ledger`: since the ledger has no room for it, and nobody asked for more."""

    setting: Setting
    why: str
    by_ledger: bool = False


def try_settings(
    bench: Bench, settings: Sequence[Setting], *, workers: int | None = None, progress: Progress
) -> list[Tested | Refused]:
    """What each setting comes to, in their order."""
    found: dict[int, Tested | Refused] = {}
    wanted: dict[int, Changed] = {}
    for number, setting in enumerate(settings):
        try:
            changed = bench.written.change(setting, rows=bench.rows)
        except PolicyInvalid as error:
            found[number] = Refused(setting, explain(error))
            continue
        file = bench.file_of(changed.policy)
        if file is not None and (known := read_kept(file)) is not None:
            found[number] = Tested(changed, known)
        else:
            wanted[number] = changed
    if found and wanted:
        progress(f"{len(found)} of {len(settings)} settings are known already, or refused")
    clock, started = Clock(wanted, workers or _count_processors()), monotonic()
    for done, (number, came, seconds) in enumerate(_run(bench, wanted, workers), 1):
        changed = wanted[number]
        clock.note(number, seconds)
        if isinstance(came, Simulated):
            found[number] = Tested(changed, came)
            if (file := bench.file_of(changed.policy)) is not None:
                keep(file, came)
        else:
            found[number] = Refused(changed.setting, came)
        left = clock.estimate(monotonic() - started)
        progress(f"{done} of {len(wanted)} settings tried" + (f", about {left:.0f} s to go" if (left or 0) >= 1 else ""))
    return [found[number] for number in range(len(settings))]


def pick_tested(results: Iterable[Tested | Refused]) -> list[Tested]:
    """Those that were tried."""
    return [one for one in results if isinstance(one, Tested)]


def explain(error: ReleasePipelineError) -> str:
    """What is wrong, in a line, without its place: that is of a file that nobody wrote. Of columns all that is."""
    faults: Sequence[Fault] = getattr(error, "faults", ())
    if not faults:
        return f"{error.what} {error.remedy}".strip()
    of_columns = [fault for fault in faults if fault.option.startswith("columns")]
    if faults[0] not in of_columns:
        return f"{faults[0].option}: {faults[0].what} {faults[0].remedy}".strip()
    alike: dict[str, list[str]] = {}  # what has to be otherwise, and where
    for fault in of_columns:
        alike.setdefault(f"{fault.what} {fault.remedy}".strip(), []).append(fault.option)
    return " ".join(f"{', '.join(places)}: {words}" for words, places in alike.items())


class Clock:
    """How long settings take, method by method: those of one may take ten times as long as those of another."""

    def __init__(self, wanted: Mapping[int, Changed], workers: int) -> None:
        self._left = {number: changed.setting.method for number, changed in wanted.items()}
        self._workers = max(min(workers, len(wanted)), 1)
        self._seconds: dict[str, list[float]] = {}

    def note(self, number: int, seconds: float) -> None:
        """A setting took so long."""
        self._seconds.setdefault(self._left.pop(number), []).append(seconds)

    def estimate(self, elapsed: float) -> float | None:
        """How long the others take together, by those that were measured, when all began so many seconds ago; None as long as
        there is a method of which none was measured."""
        if any(method not in self._seconds for method in self._left.values()):
            return None
        means = {method: sum(found) / len(found) for method, found in self._seconds.items()}
        whole = sum(map(sum, self._seconds.values())) + sum(means[method] for method in self._left.values())
        return max(whole / self._workers - elapsed, 0.0)


def order_settings(wanted: Mapping[int, Changed]) -> list[int]:
    """One of each method first, which tells how long the others take, then the rest; the slow ones first in both."""
    slow_first = sorted(wanted, key=lambda number: wanted[number].policy.method.family not in ("whole-table", "mdav", "classes"))
    first = list({wanted[number].setting.method: number for number in reversed(slow_first)}.values())[::-1]
    return [*first, *(number for number in slow_first if number not in first)]


def _run(bench: Bench, wanted: Mapping[int, Changed], workers: int | None) -> Iterator[tuple[int, Simulated | str, float]]:
    """The results as they come, or why there is none, and how many seconds each took."""
    order = order_settings(wanted)
    count = min(workers or _count_processors(), len(order))
    if count <= 1 or bench.rows * len(order) < WORTH_A_PROCESS:
        yield from ((number, *_time(bench, wanted[number].policy)) for number in order)
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_start, initargs=(bench,)) as pool:
        waiting = {pool.submit(_simulate_here, wanted[number].setting): number for number in order}
        for future in as_completed(waiting):
            yield waiting[future], *future.result()


_bench: Bench | None = None  # of a worker


def _start(bench: Bench) -> None:
    global _bench
    _bench = bench


def _simulate_here(setting: Setting) -> tuple[Simulated | str, float]:
    assert _bench is not None  # noqa: S101  for the type checker
    return _time(_bench, _bench.written.change(setting).policy)


def _time(bench: Bench, policy: Policy) -> tuple[Simulated | str, float]:
    started = monotonic()
    return _simulate(bench, policy), monotonic() - started


def _simulate(bench: Bench, policy: Policy) -> Simulated | str:
    try:
        found = simulate(
            policy, bench.references_of(policy), secret=bench.secret, draws=bench.draws_of(policy), attacked=bench.attacked
        )
    except ReleasePipelineError as error:
        return explain(error)
    return found.refusal or found


def _count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
