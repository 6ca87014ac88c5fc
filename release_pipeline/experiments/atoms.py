"""What consistency does to values that many records share: zeros, codes, heaps of ages.

Each column is masked by every rank method with its declared atoms left where they are, with order alone restored, and with
neither. Measured are the largest difference of the share of records at an atom, the Kolmogorov-Smirnov distance, both in points
of 100, and the error (mean square over variance), against the values on their declared grid; means over secrets.

    python -m release_pipeline.experiments.atoms FOLDER

prints the table of docs/policy.md, in a minute or two; FOLDER has the reference data. Secrets and made-up columns are fixed.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.experiments.tables import Numbers, find_data
from release_pipeline.flow.demo import find_demo_data
from release_pipeline.privacy import mask_column
from release_pipeline.privacy.grid import Number
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.privacy.utility import column_error, ks_distance

SECRETS, EPSILON, K = 5, "0.5", 50
METHODS = (
    ("dp-um", "column"),
    ("idp-ls", "column"),
    ("idp-cbls", "column"),
    ("laplace", "column"),
    ("idp-ls", "centroid"),
    ("idp-cbls", "centroid"),
)
WAYS = ("atoms", "isotonic", "none")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a policy would declare it."""

    name: str
    values: Numbers
    domain: tuple[Number, Number]
    grid: Number
    atoms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over secrets: of the largest difference of a share at an atom, of KS, and of the error."""

    share: float
    ks: float
    error: float


def make_zero_heavy(n: int, *, zeros: float = 0.9, losses: float = 0.01, seed: int = 1) -> Numbers:
    """Incomes from self-employment: most are 0, some are losses, and the others have a heavy tail; whole numbers from -9,999 to
    999,999."""
    rng = np.random.default_rng(seed)
    values = np.rint(np.minimum(np.exp(rng.normal(9.5, 1.3, n)) + 1, 999_999))
    kind = rng.random(n)
    values[kind < losses] = -np.rint(rng.uniform(1, 9_999, n))[kind < losses]
    values[kind > 1 - zeros] = 0
    return values


def make_heaped_ages(n: int, *, heaped: float = 0.3, seed: int = 2) -> Numbers:
    """Ages of adults, of which a share was said in round fives."""
    rng = np.random.default_rng(seed)
    ages = np.clip(np.rint(rng.normal(47, 16, n)), 18, 99)
    return np.where(rng.random(n) < heaped, 5 * np.rint(ages / 5), ages)


def list_columns(folder: Path) -> Iterator[Column]:
    """The made-up columns, and reference columns with values that many records share."""
    yield Column("zeros, 90%", make_zero_heavy(30_000), (-9_999, 999_999), 1, (0,))
    yield Column("ages, heaped", make_heaped_ages(30_000), (0, 99), 1, tuple(range(20, 85, 5)))
    adult = partial(_read, folder / "adult.csv")
    yield Column("adult capital gain", adult("capital_gain"), (0, 99_999), 1, (0,))
    yield Column("adult capital loss", adult("capital_loss"), (0, 4_400), 1, (0,))
    yield Column("adult hours per week", adult("hours_per_week"), (0, 99), 1, (40,))
    demo = partial(_read, find_demo_data(), only=("year", "1"))
    yield Column("demo mdvis", demo("mdvis"), (0, 40), 1, (0,))
    yield Column("demo outpdol", demo("outpdol"), (0, 1_000), "0.01", (0,))
    yield Column("demo mhi", demo("mhi"), (0, 100), "0.1", (100,))
    yield Column("wine quality", _read(folder / "wine_white.csv", "quality"), (0, 10), 1, (5, 6, 7))
    yield Column("wine citric acid", _read(folder / "wine_white.csv", "citric_acid"), (0, 2), "0.01", (0,))
    yield Column("census EMCONTRB", _read(folder / "census.csv", "EMCONTRB"), (0, 8_000), 1, (0,))


def _read(file: Path, name: str, only: tuple[str, str] | None = None) -> Numbers:
    with file.open(newline="", encoding="utf-8") as text:
        rows = csv.DictReader(text)
        return np.array([float(row[name]) for row in rows if only is None or float(row[only[0]]) == float(only[1])])


def measure(column: Column, method: str, scope: str, way: str, *, secrets: int = SECRETS, k: int = K) -> Measured:
    """One way to mask a column."""
    from release_pipeline.privacy.grid import Grid

    grid = Grid.declare(column.domain, column.grid)
    units = grid.quantise(column.values)
    original = grid.restore(units.astype(np.float64))
    found: list[tuple[float, float, float]] = []
    for number in range(secrets):
        masked = mask_column(
            column.values,
            domain=column.domain,
            grid=column.grid,
            method=method,
            epsilon=EPSILON,
            k=None if method == "laplace" else k,
            scope=scope,
            consistency="none" if way == "none" else None,
            atoms=column.atoms if way == "atoms" else (),
            secret=(1000 + number).to_bytes(SECRET_BYTES, "little"),
        )
        released = grid.quantise(masked.values)
        shares = [abs(float(np.mean(released == atom)) - float(np.mean(units == atom))) for atom in grid.units_of(column.atoms)]
        found.append((max(shares), ks_distance(original, masked.values), column_error(original, masked.values)))
    return Measured(*np.mean(found, axis=0).tolist())
