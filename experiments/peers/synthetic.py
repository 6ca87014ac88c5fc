"""Whole tables with categories, as dp-table sees them, and how far a synthetic table is from the original one.

Adult is without the weight, with its complete records alone (30,162 x 14); RAND HIE are the first year's people in the file of
the statsmodels wheel; census and wine are as everywhere here. Domains are what a steward would declare, and wider than the data.

What is measured, of any table of the same entries:

- `pairs`, `triples`: total variation distance of the tables of two and of three columns, in at most 12 groups a
  column (`audit.structure`);
- `spearman`: of the columns that have an order, how far rank correlations are off, mean over pairs;
- `group_means`: the median of how far means are off, relative to the true ones, of every number by every category that a
  twentieth of the records have;
- `auc`: of a random forest that learned from the synthetic rows, on a third of the original records.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.forests import measure_ranking
from experiments.papers.tables import CENSUS, KEY, REFERENCES, read_table
from release_pipeline.audit.structure import measure_structure
from release_pipeline.mechanisms import Grid, noise_stream
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.utility import rank_correlation_matrix
from release_pipeline.mechanisms.noise import shuffled_positions
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.mechanisms.whole_table import Column
from release_pipeline.mechanisms.whole_table.measure import CountedArrays
from release_pipeline.operate.demo import find_demo_data

LEAST_SHARE = 0.05  # of the records, that a category has whose means are compared
Texts = Mapping[str, Sequence[str]]
Number = tuple[str, str, str]  # the domain, and the grid


@dataclass(frozen=True, slots=True)
class Whole:
    """A table of entries. `grids`: of the columns of numbers, by name; `target`: the column of which a model tells whether its
    entry is `least` or more."""

    name: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    entries: tuple[IntArray, ...]
    grids: Mapping[str, Grid]
    target: str
    least: int

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.entries[0])

    @property
    def ordered(self) -> list[str]:
        """The columns of numbers."""
        return [name for name in self.names if name in self.grids]


ADULT: dict[str, Number | None] = {
    "age": ("17", "90", "1"),
    "workclass": None,
    "education": None,
    "education_num": ("1", "16", "1"),
    "marital_status": None,
    "occupation": None,
    "relationship": None,
    "race": None,
    "sex": None,
    "capital_gain": ("0", "99999", "1"),
    "capital_loss": ("0", "5000", "1"),
    "hours_per_week": ("1", "99", "1"),
    "native_country": None,
    "income": None,
}
RAND: dict[str, Number | None] = {
    "site": None,
    "female": None,
    "income": ("0", "50000", "1"),
    "mhi": ("0", "100", "0.1"),
    "mdvis": ("0", "100", "1"),
    "outpdol": ("0", "5000", "0.01"),
}
ATOMS = {"hours_per_week": (40,)}  # a full week's work: declared, as everybody knows of it
MISSING = "?"


def read_whole(data: Path, name: str) -> Whole:
    """A table by its name."""
    return WHOLE[name](data)


@lru_cache(maxsize=1)
def _read_adult(data: Path) -> Whole:
    texts = read_table(data, "adult")
    complete = [row for row in range(REFERENCES["adult"].rows) if all(texts[name][row] != MISSING for name in ADULT)]
    return _make("adult", {name: [texts[name][row] for row in complete] for name in ADULT}, ADULT, "income", 1)


@lru_cache(maxsize=1)
def _read_rand(_: Path) -> Whole:
    with find_demo_data().open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["year"] == "1"]
    return _make("rand-hie", {name: [row[name] for row in rows] for name in RAND}, RAND, "mdvis", 1)


@lru_cache(maxsize=1)
def _read_census(data: Path) -> Whole:
    texts = {name: read_table(data, "census")[name] for name in CENSUS}
    declared: dict[str, Number | None] = {name: ("0", str(2 * max(map(int, own))), "1") for name, own in texts.items()}
    return _make("census", texts, declared, "AGI", 45_000)


@lru_cache(maxsize=1)
def _read_wine(data: Path) -> Whole:
    ends: dict[str, Number | None] = {
        "fixed_acidity": ("0", "20", "0.05"),
        "volatile_acidity": ("0", "2", "0.005"),
        "citric_acid": ("0", "2", "0.01"),
        "residual_sugar": ("0", "100", "0.05"),
        "chlorides": ("0", "0.5", "0.001"),
        "free_sulfur_dioxide": ("0", "400", "0.5"),
        "total_sulfur_dioxide": ("0", "600", "0.5"),
        "density": ("0.9", "1.1", "0.0001"),
        "pH": ("2", "5", "0.01"),
        "sulphates": ("0", "2", "0.01"),
        "alcohol": ("5", "20", "0.1"),
        "quality": ("0", "10", "1"),
    }
    return _make("wine", read_table(data, "wine"), ends, "quality", 7)


WHOLE: dict[str, Callable[[Path], Whole]] = {
    "adult": _read_adult,
    "rand-hie": _read_rand,
    "census": _read_census,
    "wine": _read_wine,
}


def _make(name: str, texts: Texts, declared: Mapping[str, Number | None], target: str, least: int) -> Whole:
    columns: list[Column] = []
    entries: list[IntArray] = []
    grids: dict[str, Grid] = {}
    for column, ends in declared.items():
        if ends is None:
            values, found = np.unique(np.array(texts[column]), return_inverse=True)
            columns.append(Column(len(values) - 1, nominal=True))
            entries.append(found.astype(np.int64))
            continue
        grid = grids[column] = Grid.declare((ends[0], ends[1]), ends[2])
        atoms = grid.quantise(np.array(ATOMS.get(column, ()), dtype=np.float64))
        columns.append(Column(grid.width, atoms=tuple(atoms.tolist())))
        entries.append(grid.quantise(np.array(texts[column], dtype=np.float64)))
    if target in grids:
        least = int(grids[target].quantise(np.array([least], dtype=np.float64))[0])
    return Whole(name, tuple(declared), tuple(columns), tuple(entries), grids, target, least)


def compare(whole: Whole, rows: Sequence[IntArray]) -> dict[str, float]:
    """What is measured of synthetic rows of the table."""
    both = dict(zip(whole.names, zip(whole.entries, rows, strict=True), strict=True))
    nominal = [name for name in whole.names if name not in whole.grids]
    sizes = {name: column.width + 1 + column.labels for name, column in zip(whole.names, whole.columns, strict=True)}
    before, after = (CountedArrays(side.__getitem__) for side in (whole.entries, rows))
    structure = measure_structure(sizes, before, after, nominal, make_random(KEY, "whole", whole.name))
    numbers = {name: [whole.grids[name].restore(own.astype(np.float64)) for own in both[name]] for name in whole.ordered}
    return {
        "pairs": structure["pairs"],
        "triples": structure["triples"],
        "spearman": _compare_ranks([numbers[name] for name in whole.ordered]),
        "group_means": _compare_means([both[name] for name in nominal], list(numbers.values())),
        "auc": learn(whole, rows),
    }


def learn(whole: Whole, rows: Sequence[IntArray]) -> float:
    """How well a model that learned from rows ranks a third of the original records."""
    tested = shuffled_positions(whole.records, noise_stream(KEY, "tested", whole.name))[: whole.records // 3]
    place = whole.names.index(whole.target)
    kept = [other for other in range(len(whole.names)) if other != place]
    known = np.stack([rows[other] for other in kept], axis=1).astype(np.float64)
    asked = np.stack([whole.entries[other][tested] for other in kept], axis=1).astype(np.float64)
    return measure_ranking(known, rows[place] >= whole.least, asked, whole.entries[place][tested] >= whole.least, seed=1)


def _compare_ranks(numbers: Sequence[Sequence[npt.NDArray[np.float64]]]) -> float:
    before, after = (rank_correlation_matrix([column[side] for column in numbers]) for side in range(2))
    return float(np.abs(np.nan_to_num(before) - np.nan_to_num(after))[np.triu_indices(len(numbers), 1)].mean())


def _compare_means(groups: Sequence[tuple[IntArray, IntArray]], numbers: Sequence[Sequence[npt.NDArray[np.float64]]]) -> float:
    found: list[float] = []
    for before, after in groups:
        counts = np.bincount(before)
        for value in np.flatnonzero(counts >= LEAST_SHARE * len(before)).tolist():
            for was, now in numbers:
                true = float(was[before == value].mean())
                rows = now[after == value]
                if true:
                    found.append(abs(float(rows.mean()) - true) / abs(true) if len(rows) else 1.0)
    return float(np.median(found)) if found else float("nan")
