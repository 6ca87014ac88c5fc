"""`python -m experiments.benchmarks.coverage`: how often 95% intervals of releases by dp-table hold, by what is asked.

The confidential table stays as it is, and so do its figures; the mechanism alone is random. Of each of many releases the
analyst's kit reads what a package has, and every interval that it offers is compared with the figure of the confidential table.
The tables in docs/analyst.md were printed by this module. Two tables: one that is made up here, of 2,000 records, whose columns
go together; and year 1 of the RAND Health Insurance Experiment, which comes with statsmodels.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst import Interval, Moments, NoHonestAnswer, Release, read_release
from release_pipeline.analyst.counts import CELLS_HEADER, COUNTS, MISSING, PAIRS, PAIRS_HEADER
from release_pipeline.mechanisms.accounting.budget import NANO, rho_within
from release_pipeline.mechanisms.basis.grid import Grid, IntArray
from release_pipeline.mechanisms.by_value.noise_laws import name_noise
from release_pipeline.mechanisms.noise import Context, NoiseStream, noise_stream
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.mechanisms.whole_table import Column, Design, Measured, TableBudget, make_design, measure_table, synthesise
from release_pipeline.mechanisms.whole_table.measure import CountedArrays
from release_pipeline.operate.demo import find_demo_data

RECORDS, EPSILON, DELTA = 2_000, "3", "0.000001"
DEFINITIONS = ("dp", "zcdp")


@dataclass(frozen=True)
class Known:
    """A column of a confidential table: what is declared of it, and the entry of each record. `domain` is None of listed
    `values`."""

    name: str
    entries: IntArray
    domain: tuple[str, str] | None = None
    step: str = "1"
    values: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @cached_property
    def grid(self) -> Grid | None:
        """Its grid, if it has numbers."""
        return (
            None if self.domain is None else Grid.declare((Decimal(self.domain[0]), Decimal(self.domain[1])), Decimal(self.step))
        )

    @cached_property
    def declared(self) -> Column:
        """As the mechanism sees it: what a policy makes of it, written out here once more."""
        if self.grid is None or self.domain is None:
            return Column(len(self.values) - 1, nominal=True, labels=len(self.reasons))
        zero = round((Decimal(0) - Decimal(self.domain[0])) / Decimal(self.step))
        return Column(
            self.grid.width,
            atoms=tuple(self.grid.units_of(self.atoms)),
            centre=min(max(zero, 0), self.grid.width),
            labels=len(self.reasons),
        )

    def say(self, entry: int) -> str:
        """An entry as a package writes it."""
        beyond = entry - self.declared.width - 1
        if beyond >= 0:
            return MISSING + self.reasons[beyond]
        return self.values[entry] if self.domain is None else str(Decimal(self.domain[0]) + entry * Decimal(self.step))

    def restore(self, entries: IntArray) -> npt.NDArray[np.float64]:
        """Numbers, NaN of those that have none."""
        if self.grid is None:
            raise TypeError(f"{self.name} has no numbers")
        width = self.grid.width
        return np.where(entries > width, np.nan, self.grid.restore(np.minimum(entries, width).astype(np.float64)))


@dataclass(frozen=True)
class Table:
    """A confidential table, its columns in the order of their names."""

    name: str
    columns: tuple[Known, ...]

    @property
    def records(self) -> int:
        """How many it has."""
        return len(self.columns[0].entries)

    def design(self, definition: str) -> Design:
        """What is measured of it."""
        return make_design([known.declared for known in self.columns], self.records, budget_of(definition))


def budget_of(definition: str) -> TableBudget:
    """Epsilon 3, by itself or at a delta of a millionth."""
    if definition == "dp":
        return TableBudget(Fraction(EPSILON))
    return TableBudget(Fraction(rho_within(int(EPSILON) * NANO, Decimal(DELTA)), NANO), by_rho=True)


@lru_cache(maxsize=1)
def make_up() -> Table:
    """2,000 records: a region with rare values, a kind of job, ages, wages that are 0 or have a long tail, and hours that some do
    not tell. All go together."""
    random = make_random(b"c" * 32, "coverage", "made up")
    skill = random.standard_normal(RECORDS)
    region = np.searchsorted(np.cumsum([0.34, 0.25, 0.18, 0.13, 0.07, 0.03]), random.random(RECORDS)).clip(0, 5)
    skill = skill + np.array([0.6, 0.0, -0.5, 0.2, -0.8, 0.4])[region]
    age = np.clip(np.rint(46 + 15 * random.standard_normal(RECORDS) + 3 * skill), 16, 95).astype(np.int64)
    job = np.digitize(skill + 0.7 * random.standard_normal(RECORDS), [-0.9, 0.9])
    idle = (random.random(RECORDS) < 0.12) | (age > 66)
    wage = (
        np.rint(np.exp(6.6 + 0.5 * skill + 0.35 * random.standard_normal(RECORDS) + 0.004 * age)).astype(np.int64).clip(1, 10_000)
    )
    wage[idle] = 0
    hours = np.rint(34 + 5 * skill + 7 * random.standard_normal(RECORDS)).astype(np.int64).clip(0, 60)
    hours[idle] = 0
    silent = random.random(RECORDS)
    hours = np.where(silent < 0.06, 61, np.where(silent < 0.09, 62, hours))
    return Table(
        "made up",
        (
            Known("age", age - 16, ("16", "95")),
            Known("hours", hours, ("0", "60"), reasons=("refused", "not known")),
            Known("job", job, values=("manual", "office", "lead")),
            Known("region", region, values=("north", "south", "east", "west", "hills", "coast")),
            Known("wage", wage, ("0", "10000"), atoms=("0",)),
        ),
    )


@lru_cache(maxsize=1)
def read_hie() -> Table:
    """Year 1 of RAND HIE, with the columns of the demo's policy (policies/rand-hie.yaml)."""
    with find_demo_data().open(newline="", encoding="utf-8") as text:
        rows = [row for row in csv.DictReader(text) if row["year"] == "1"]

    def numbers(name: str, low: str, high: str, step: str, *atoms: str) -> Known:
        grid = Grid.declare((Decimal(low), Decimal(high)), Decimal(step))
        entries = grid.quantise(np.array([float(row[name]) for row in rows]))
        return Known(name, entries, (low, high), step, atoms=atoms)

    def listed(name: str, *values: str) -> Known:
        return Known(name, np.array([values.index(row[name]) for row in rows], dtype=np.int64), values=values)

    return Table(
        "RAND HIE",
        (
            listed("female", "0", "1"),
            numbers("income", "0", "50000", "1"),
            numbers("mdvis", "0", "40", "1", "0"),
            numbers("mhi", "0", "100", "0.1"),
            numbers("outpdol", "0", "1000", "0.01", "0"),
            listed("site", "1", "2", "3", "4", "5", "6"),
        ),
    )


TABLES: dict[str, Callable[[], Table]] = {"made up": make_up, "RAND HIE": read_hie}


def measure_release(table: Table, definition: str, number: int) -> Measured:
    """What is measured in one of many releases."""

    def stream(*purpose: Context) -> NoiseStream:
        return noise_stream(b"coverage".ljust(32), table.name, definition, number, *purpose)

    return measure_table(CountedArrays(lambda place: table.columns[place].entries), table.design(definition), stream)


def publish(table: Table, definition: str, measured: Measured, rows: Sequence[IntArray], folder: Path) -> Release:
    """What the kit reads of a package with these counts and rows."""
    (folder / "privacy-card.json").write_text(json.dumps(_card(table, definition)), encoding="utf-8")
    _write(folder / COUNTS, CELLS_HEADER, _cells(table, measured))
    _write(folder / PAIRS, PAIRS_HEADER, _pairs(table, measured))
    return read_release(folder, data=_data(table, rows))


def _card(table: Table, definition: str) -> dict[str, Any]:
    """What the kit reads of a card."""
    budget = budget_of(definition).amount
    is_zcdp = definition == "zcdp"
    amounts = {"total": EPSILON, "delta": DELTA if is_zcdp else None, "rho": str(Decimal(int(budget * NANO)) / NANO)}
    return {
        "format": "privacy-card/1",
        "claim": {
            "records_per_person": 1,
            "scope": {"name": "table"},
            "epsilon": amounts,
        },
        "method": {"name": "dp-table", "consistency": "none", "values": "inside", "grid": "on"},
        "k": {"value": None},
        "parts": [],
        "rows": {"in": table.records, "out": table.records},
        "columns": [column for known in table.columns for column in _columns(known)],
    }


def _columns(known: Known) -> Iterator[dict[str, Any]]:
    yield {
        "name": known.name,
        "done": "synthesise",
        "type": "string" if known.domain is None else "number",
        "domain": known.domain,
        "grid": None if known.domain is None else known.step,
        "values": known.values,
        "epsilon": None,
        "atoms": known.atoms,
    }
    if known.reasons:
        empty = {"domain": None, "grid": None, "epsilon": None}
        yield {"name": f"{known.name}_missing", "done": "missing", "type": "string", "values": known.reasons, **empty}


def _write(file: Path, header: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as text:
        csv.writer(text).writerows([header, *rows])


def _cells(table: Table, measured: Measured) -> Iterator[Sequence[object]]:
    law = name_noise(measured.design.margins)
    for known, cells, margin, groups in zip(table.columns, measured.cells, measured.margins, measured.groups, strict=True):
        beyond = known.declared.width + 1 + np.arange(len(known.reasons))
        first, last = np.append(cells.edges[:-1], beyond).tolist(), np.append(cells.edges[1:] - 1, beyond).tolist()
        for low, high, group, count in zip(first, last, groups.tolist(), margin.tolist(), strict=True):
            yield known.name, known.say(low), known.say(high), group, count, law


def _pairs(table: Table, measured: Measured) -> Iterator[Sequence[object]]:
    for (one, other), counts in measured.pairs.items():
        law = measured.noise[one, other].name
        for i, row in enumerate(counts.tolist()):
            for j, count in enumerate(row):
                yield table.columns[one].name, i, table.columns[other].name, j, count, law


def _data(table: Table, rows: Sequence[IntArray]) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {}
    for known, entries in zip(table.columns, rows, strict=True):
        width, lacking = known.declared.width, np.array(["", *known.reasons])
        texts = np.array([*known.values, *("" for _ in known.reasons)])
        found[known.name] = texts[entries] if known.domain is None else known.restore(entries)
        if known.reasons:
            found[f"{known.name}_missing"] = lacking[np.maximum(entries - width, 0)]
    return found


@dataclass(frozen=True)
class Answer:
    """An interval and the confidential figure. `kind`: what was asked, and `figure`: of what."""

    kind: str
    figure: str
    interval: Interval | Moments
    truth: float

    @property
    def holds(self) -> bool:
        """Whether the figure is in it. A hair is allowed for: both are floats."""
        hair = 1e-9 * max(abs(self.truth), 1.0)
        return isinstance(self.interval, Interval) and self.interval.low - hair <= self.truth <= self.interval.high + hair


def ask_counts(table: Table, release: Release, measured: Measured) -> Iterator[Answer]:
    """All that the counts are asked."""
    for place, known in enumerate(table.columns):
        if known.domain is None:
            for entry, value in enumerate(known.values):
                yield Answer(
                    "share_of", f"{known.name} {value}", release.share_of(known.name, value), _part(known.entries == entry)
                )
        else:
            yield from _ask_numbers(release, known, measured.cells[place].edges)
        if known.reasons and known.domain is not None:
            lacking = known.entries > known.declared.width
            yield Answer("missing", f"{known.name}, any", release.missing(known.name), _part(lacking))
            for number, reason in enumerate(known.reasons):
                truth = _part(known.entries == known.declared.width + 1 + number)
                yield Answer("missing", f"{known.name}, {reason}", release.missing(known.name, reason), truth)
    for one, other in measured.pairs:
        yield from _ask_pair(table, release, measured, one, other)
        yield from _ask_pair(table, release, measured, other, one)


def _part(which: npt.NDArray[np.bool_]) -> float:
    return float(which.mean())


SHARES = (0.05, 0.25, 0.5, 0.75, 0.9)


def _ask_numbers(release: Release, known: Known, edges: IntArray) -> Iterator[Answer]:
    """Ranges that are made of whole cells, and ranges that are not; quantiles and the mean, of those that have a value."""
    valued = np.sort(known.entries[known.entries <= known.declared.width])
    numbers = known.restore(valued)

    def share(kind: str, figure: str, first: int, last: int) -> Answer:
        low, high = known.restore(np.array([first, last])).tolist()
        truth = float(((valued >= first) & (valued <= last)).sum()) / len(known.entries)
        return Answer(kind, f"{known.name} {figure}", release.share(known.name, low, high), truth)

    middle = len(edges) // 2
    yield share("share, whole cells", "lowest value", 0, 0)
    yield share("share, whole cells", "lower half", 0, int(edges[middle]) - 1)
    yield share("share, whole cells", "middle", int(edges[len(edges) // 4]), int(edges[3 * len(edges) // 4]) - 1)
    if known.declared.is_wide:
        for low, high in ((0.1, 0.4), (0.3, 0.8), (0.6, 0.99)):
            first, last = (int(valued[int(part * (len(valued) - 1))]) for part in (low, high))
            yield share("share, any range", f"{low} to {high}", first, last)
    for part in SHARES:
        truth = float(numbers[math.ceil(part * len(numbers) - 1e-9) - 1])
        yield Answer("quantile", f"{known.name} {part}", release.quantile(known.name, part), truth)
    yield Answer("mean", known.name, release.mean(known.name), float(numbers.mean()))


def _ask_pair(table: Table, release: Release, measured: Measured, one: int, other: int) -> Iterator[Answer]:
    groups = [measured.groups[place][measured.cells[place].find(table.columns[place].entries)] for place in (one, other)]
    columns = table.columns[one], table.columns[other]
    pair, figure = release.pair(columns[0].name, columns[1].name), f"{columns[0].name} and {columns[1].name}"
    if one < other:
        width = len(pair.groups_of_other)
        true = np.bincount(groups[0] * width + groups[1], minlength=len(pair.groups_of_one) * width)
        for count, truth in zip(pair.cells(), true.tolist(), strict=True):
            yield Answer("pair: cells", figure, count.count, float(truth))
    if columns[1].domain is None or any(group.first is not None and group.has_missing for group in pair.groups_of_other):
        return
    valued = columns[1].entries <= columns[1].declared.width
    held = np.bincount(groups[0][valued], minlength=len(pair.groups_of_one))
    totals = np.bincount(groups[0][valued], columns[1].restore(columns[1].entries[valued]), len(pair.groups_of_one))
    for interval, count, total in zip(pair.means().values(), held.tolist(), totals.tolist(), strict=True):
        if count:
            yield Answer("pair: means", figure, interval, total / count)


def ask_rows(table: Table, release: Release, *, times: int, number: int) -> Iterator[Answer]:
    """All that the rows are asked, by running the method again."""
    again = release.rerun(times=times, seed=number)
    for known in (known for known in table.columns if known.domain is not None):
        valued = known.entries <= known.declared.width
        numbers = known.restore(known.entries)
        yield Answer("rerun: mean", known.name, again.mean(known.name), float(numbers[valued].mean()))
        for by in table.columns:
            if by is known:
                continue
            try:
                means = again.means(known.name, by=by.name)
            except NoHonestAnswer:
                continue
            at = {by.say(entry): entry for entry in range(by.declared.width + 1)} if len(means) else {}
            for name, interval in means.items():
                truth = float(numbers[valued & (by.entries == at[name])].mean())
                yield Answer("rerun: means", f"{known.name} by {by.name} {name}", interval, truth)


def make_rows(table: Table, definition: str, measured: Measured, number: int) -> list[IntArray]:
    """The rows of that release."""
    return synthesise(measured, make_random(b"coverage".ljust(32), table.name, definition, number, "rows"))


Asked = tuple[str, str, bool]  # the kind, the figure, and whether the interval held


def try_release(name: str, definition: str, times: int, number: int) -> list[Asked]:
    """One release: by its counts, or by its rows where the method is run again so many `times`."""
    table = TABLES[name]()
    measured = measure_release(table, definition, number)
    with tempfile.TemporaryDirectory() as folder:
        rows = make_rows(table, definition, measured, number) if times else [known.entries for known in table.columns]
        release = publish(table, definition, measured, rows, Path(folder))
        answers = ask_rows(table, release, times=times, number=number) if times else ask_counts(table, release, measured)
        return [(answer.kind, answer.figure, answer.holds) for answer in answers]


def measure_coverage(name: str, definition: str, times: int, releases: int, workers: int) -> Iterator[list[str]]:
    """How often intervals of each kind of question held: how many figures, the mean over figures, and the least, of those figures
    that half of the releases answered for."""
    with ProcessPoolExecutor(workers) as pool:
        asked = [found for own in pool.map(partial(try_release, name, definition, times), range(releases)) for found in own]
    held: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for kind, figure, holds in asked:
        held[kind][figure].append(holds)
    for kind, figures in held.items():
        shares = {figure: float(np.mean(known)) for figure, known in figures.items() if len(known) >= releases / 2}
        least = min(shares, key=shares.__getitem__)
        worst = f"{shares[least]:.1%} ({least})" if len(shares) > 1 else ""
        yield [kind, str(releases), str(len(shares)), f"{np.mean(list(shares.values())):.1%}", worst]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each kind of question, table and definition, as soon as it is measured."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks.coverage", description="How often 95% intervals of dp-table hold."
    )
    parser.add_argument("--releases", type=int, default=500, help="of each table and definition, asked by their counts (500)")
    parser.add_argument("--reruns", type=int, default=500, help="of these, the method run again on their rows (500)")
    parser.add_argument("--times", type=int, default=12, help="how many times it is run again on each (12)")
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    parser.add_argument("--table", choices=list(TABLES), action="append", help="of these tables alone")
    options = parser.parse_args(arguments)
    print("| table | claim | asked | releases | figures | held | least often |\n|---|---|---|---|---|---|---|", flush=True)
    for name in options.table or TABLES:
        for definition in DEFINITIONS:
            for times, count in (
                (0, options.releases),
                (options.times, options.reruns),
            ):
                for row in measure_coverage(name, definition, times, count, options.workers):
                    print(f"| {name} | {definition} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
