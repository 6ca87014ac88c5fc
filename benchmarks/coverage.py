"""`python -m benchmarks.coverage`: how often 95% intervals of releases by dp-table hold, by what is asked.

The confidential table stays as it is, and so do its figures; the mechanism alone is random. Of each of many releases the
analyst's kit reads what a package has, and every interval that it offers is compared with the figure of the confidential table.
The tables in docs/analyst.md were printed by this module. Two tables: one that is made up here, of 2,000 records, whose columns
go together; and year 1 of the RAND Health Insurance Experiment, which comes with statsmodels. Households with slots are a third,
made up too, for what is asked of people.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst import Interval, Release, read_release
from release_pipeline.analyst.counts import COUNTS, MISSING
from release_pipeline.analyst.facts import EMPTY
from release_pipeline.analyst.pairs import CELLS_HEADER, PAIRS, PAIRS_HEADER
from release_pipeline.flow.demo import find_demo_data
from release_pipeline.privacy.budget import NANO
from release_pipeline.privacy.by_value.noise_laws import name_noise
from release_pipeline.privacy.concentrated import rho_within
from release_pipeline.privacy.grid import Grid, IntArray
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table import Column, Design, Measured, TableBudget, make_design, measure_table, synthesise

LEVEL = 0.95
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

    @property
    def grid(self) -> Grid | None:
        """Its grid, if it has numbers."""
        return None if self.domain is None else Grid.declare((Decimal(self.domain[0]), Decimal(self.domain[1])), Decimal(self.step))

    @property
    def declared(self) -> Column:
        """As the mechanism sees it: what a policy makes of it, written out here once more."""
        slots = EMPTY in self.reasons
        if self.grid is None or self.domain is None:
            return Column(len(self.values) - 1, nominal=True, labels=len(self.reasons), in_slots=slots)
        zero = round((Decimal(0) - Decimal(self.domain[0])) / Decimal(self.step))
        return Column(
            self.grid.width,
            atoms=tuple(self.grid.units_of(self.atoms)),
            centre=min(max(zero, 0), self.grid.width),
            labels=len(self.reasons),
            in_slots=slots,
        )

    def say(self, entry: int) -> str:
        """An entry as a package writes it."""
        beyond = entry - self.declared.width - 1
        if beyond >= 0:
            return MISSING + self.reasons[beyond]
        return self.values[entry] if self.domain is None else str(Decimal(self.domain[0]) + entry * Decimal(self.step))

    def restore(self, entries: IntArray) -> npt.NDArray[np.float64]:
        """Numbers, NaN of those that have none."""
        assert self.grid is not None
        return np.where(entries > self.grid.width, np.nan, self.grid.restore(np.minimum(entries, self.grid.width).astype(np.float64)))


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
    wage = np.rint(np.exp(6.6 + 0.5 * skill + 0.35 * random.standard_normal(RECORDS) + 0.004 * age)).astype(np.int64).clip(1, 10_000)
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


@lru_cache(maxsize=1)
def make_households() -> Table:
    """700 households with 4 slots each, of which a part stands for nobody: sex, age and a wage."""
    random = make_random(b"h" * 32, "coverage", "households")
    size = random.integers(1, 5, 700)
    filled = (np.arange(4) < size[:, None]).ravel()
    age = np.clip(np.rint(40 + 20 * random.standard_normal(2_800)), 0, 90).astype(np.int64)
    wage = np.rint(np.exp(6 + 0.02 * age + 0.5 * random.standard_normal(2_800))).astype(np.int64).clip(0, 5_000)
    sex = random.integers(0, 2, 2_800)
    return Table(
        "households",
        (
            Known("age", np.where(filled, age, 91), ("0", "90"), reasons=(EMPTY,)),
            Known("sex", np.where(filled, sex, 2), values=("f", "m"), reasons=(EMPTY,)),
            Known("wage", np.where(filled, wage, 5_001), ("0", "5000"), reasons=(EMPTY,)),
        ),
    )


TABLES: dict[str, Callable[[], Table]] = {"made up": make_up, "RAND HIE": read_hie, "households": make_households}


def measure_release(table: Table, definition: str, number: int) -> Measured:
    """What is measured in one of many releases."""

    def stream(*purpose: Context) -> NoiseStream:
        return noise_stream(b"coverage".ljust(32), table.name, definition, number, *purpose)

    return measure_table(lambda place: table.columns[place].entries, table.design(definition), stream)


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
    has_slots = any(EMPTY in known.reasons for known in table.columns)
    return {
        "format": "privacy-card/1",
        "claim": {
            "records_per_person": 1,
            "scope": {"name": "table"},
            "epsilon": amounts,
            **({"household_size": "protected"} if has_slots else {}),
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
        law = name_noise(measured.design.pairs[one, other])
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
