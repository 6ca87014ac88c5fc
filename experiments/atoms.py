"""What order restored does to values that many records share: zeros, codes, heaps of ages.

Each column is masked by every rank method with its declared atoms left where they are (`atoms`), with order alone restored
(`isotonic`), and with neither (`none`). Measured are the largest difference of the share of records at an atom and the
Kolmogorov-Smirnov distance, both in points of 100, and the error (mean square over variance), against the values on their
declared grid; means over secrets.

`python -m experiments.atoms FOLDER` prints the table of docs/measured.md; FOLDER has the reference data.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import NormalDist

import numpy as np

from experiments.papers.tables import Numbers, draw_normal, find_data, read_table
from release_pipeline.mechanisms import Grid, mask_column
from release_pipeline.mechanisms.basis.grid import Number
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import column_error, find_gap, share_at
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.operate.demo import find_demo_data

SECRETS, EPSILON, K, RECORDS = 20, "0.5", 50, 30_000
METHODS = (
    ("dp-um", "column"),
    ("idp-ls", "column"),
    ("idp-cbls", "column"),
    ("laplace", "column"),
    ("idp-ls", "centroid"),
    ("idp-cbls", "centroid"),
)
WAYS = ("atoms", "isotonic", "none")
INCOMES = (-9_999, 999_999)
FIVES = tuple(range(20, 85, 5))


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


def make_zero_heavy(records: int, *, zeros: float = 0.9, losses: float = 0.01) -> Numbers:
    """Incomes from self-employment: most are 0, some are losses, and the others have a heavy tail; whole numbers in `INCOMES`."""
    kind, size = draw_normal(2 * records, "atoms", "incomes").reshape(2, -1)
    gains = np.minimum(np.rint(np.exp(9.5 + 1.3 * size)) + 1, INCOMES[1])
    values = np.where(kind < NormalDist().inv_cdf(losses), np.maximum(-gains, INCOMES[0]), gains)
    return np.where(kind > NormalDist().inv_cdf(1 - zeros), 0.0, values)


def make_heaped_ages(records: int, *, heaped: float = 0.3) -> Numbers:
    """Ages of adults, of which a share was said in round fives."""
    kind, size = draw_normal(2 * records, "atoms", "ages").reshape(2, -1)
    ages = np.clip(np.rint(47 + 16 * size), 18, 99)
    return np.where(kind < NormalDist().inv_cdf(heaped), 5 * np.rint(ages / 5), ages)


def list_columns(folder: Path) -> Iterator[Column]:
    """The made-up columns, and reference columns with values that many records share."""
    yield Column("incomes, 90% zeros (made up)", make_zero_heavy(RECORDS), INCOMES, 1, (0,))
    yield Column("ages, heaped (made up)", make_heaped_ages(RECORDS), (0, 99), 1, FIVES)
    adult, wine, census = (read_table(folder, name) for name in ("adult", "wine", "census"))
    yield Column("adult capital_gain", _numbers(adult["capital_gain"]), (0, 99_999), 1, (0,))
    yield Column("adult capital_loss", _numbers(adult["capital_loss"]), (0, 4_400), 1, (0,))
    yield Column("adult hours_per_week", _numbers(adult["hours_per_week"]), (0, 99), 1, (40,))
    demo = _read_demo()
    yield Column("demo mdvis", demo("mdvis"), (0, 40), 1, (0,))
    yield Column("demo outpdol", demo("outpdol"), (0, 1_000), "0.01", (0,))
    yield Column("wine quality", _numbers(wine["quality"]), (0, 10), 1, (5, 6, 7))
    yield Column("census INTVAL", _numbers(census["INTVAL"]), (0, 20_000), 1, (0,))


def _numbers(texts: Sequence[str]) -> Numbers:
    return np.array(texts, dtype=np.float64)


def _read_demo() -> Callable[[str], Numbers]:
    """The columns of the demo's first wave."""
    with find_demo_data().open(newline="", encoding="utf-8") as text:
        rows = [row for row in csv.DictReader(text) if float(row["year"]) == 1]
    return lambda name: _numbers([row[name] for row in rows])


def ways_of(method: str, scope: str) -> tuple[str, ...]:
    """Those that a method may go: order cannot be restored for free with every claim."""
    return WAYS if method == "dp-um" or (method != "laplace" and scope == "column") else ("none",)


def measure(
    column: Column, method: str, scope: str, way: str, *, epsilon: str = EPSILON, k: int = K, secrets: int = SECRETS
) -> Measured:
    """One way to mask a column."""
    grid = Grid.declare(column.domain, column.grid)
    original = grid.restore(grid.quantise(column.values).astype(np.float64))
    atoms = np.array(column.atoms, dtype=np.float64)
    mask = partial(
        mask_column,
        original,
        domain=column.domain,
        grid=column.grid,
        method=method,
        epsilon=epsilon,
        k=None if method == "laplace" else k,
        scope=scope,
        consistency="none" if way == "none" else None,
        atoms=column.atoms if way == "atoms" else (),
    )
    found: list[tuple[float, float, float]] = []
    for number in range(secrets):
        released = mask(secret=(1000 + number).to_bytes(SECRET_BYTES, "little")).values
        moved = np.abs(share_at(Tally.of(released), atoms) - share_at(Tally.of(original), atoms))
        found.append((float(np.max(moved)), find_gap(Tally.of(original), Tally.of(released)), column_error(original, released)))
    return Measured(*np.mean(found, axis=0).tolist())


def main() -> None:
    """Print the table of docs/measured.md: in each cell points of share, points of KS, and the error."""
    folder = find_data(Path(sys.argv[1]) if len(sys.argv) > 1 else None, ("adult", "wine", "census"))
    print(f"| column, share at its atoms | method | {' | '.join(WAYS)} |\n|{' --- |' * (2 + len(WAYS))}")
    for column in list_columns(folder):
        head = f"{column.name}, {np.mean(np.isin(column.values, column.atoms)):.1%}"
        for method, scope in METHODS:
            found = {way: measure(column, method, scope, way) for way in ways_of(method, scope)}
            cells = (f"{100 * own.share:.1f}; {100 * own.ks:.1f}; {own.error:.3g}" for own in found.values())
            by_way = dict.fromkeys(WAYS, "") | dict(zip(found, cells, strict=True))
            name = method if method in ("laplace", "dp-um") else f"{method}, {scope}"
            print(f"| {head} | {name} | {' | '.join(by_way.values())} |", flush=True)
            head = ""


if __name__ == "__main__":
    main()
