"""`grouping`: OLA and Mondrian against plain ones with the same task on the same data, and other packages for context.

The data are the 30,162 complete records of Adult, or more records drawn from them with replacement; k = 10, and 5% may be
suppressed. Drawn records repeat each other, so that with k = 10 nothing needs to be generalised: a second case takes k in
proportion. Where the reference data are not there, random columns with as many values and levels take their place.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.clock import cpu_seconds, nothing_kept
from benchmarks.figures import Figure, Target
from release_pipeline.privacy.cuts import cut_classes
from release_pipeline.privacy.hierarchy import Hierarchy
from release_pipeline.privacy.lattice import search_lattice

ADULT = 30_162
K, SHARE = 10, Fraction(5, 100)
LABELLED = ("age", "sex", "race", "marital_status", "workclass", "education", "occupation", "native_country")
EIGHT = ("age", "workclass", "education", "marital_status", "occupation", "race", "sex", "native_country")
NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
PEERS = {"anjana": "k_anonymity by greedy levels", "crowds": "OLA", "anonypy": "Mondrian"}
TWICE = Target("at most", 2)

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with hierarchies as value numbers, numeric columns as they are."""

    hierarchies: dict[str, Hierarchy]
    codes: dict[str, Ints]
    numbers: Ints
    synthetic: bool

    def drawn(self, n: int) -> Table:
        """The same table if it has n records, else n of its records, with replacement."""
        if n == len(self.numbers):
            return self
        rows = np.random.default_rng(n).integers(0, len(self.numbers), n)
        codes = {name: column[rows] for name, column in self.codes.items()}
        return Table(self.hierarchies, codes, self.numbers[rows], self.synthetic)

    def matrix(self, names: Sequence[str]) -> tuple[Ints, list[Hierarchy]]:
        """Some of the labelled columns."""
        return np.column_stack([self.codes[name] for name in names]), [self.hierarchies[name] for name in names]


def grouping(sizes: Sequence[int]) -> Iterator[Figure]:
    """Both methods at every size, held to twice the plain ones; then what other packages need for the smallest size."""
    table = _load_table()
    data = ", synthetic" if table.synthetic else ""
    yield _compiling(table, anew=max(sizes) >= ADULT)
    for n in sizes:
        drawn = table.drawn(n)
        for names in (LABELLED[:4], EIGHT):
            for k in sorted({K, max(K, K * n // ADULT)}):
                yield from _searching(drawn, names, k, f"{len(names)} columns, k={k}{data}")
        yield from _cutting(drawn, f"{len(NUMERIC)} columns, k={K}{data}")
    yield from _peers(table.drawn(sizes[0]), data)


def notes() -> list[str]:
    """What a reader has to know before the figures."""
    lines = [f"grouping: {name} is not installed and left out." for name in PEERS if find_spec(name) is None]
    if _reference_folder() is None:
        lines.append("grouping: RELEASE_PIPELINE_REFERENCE_DATA has no Adult; random columns of its shape take its place.")
    return lines


def _compiling(table: Table, *, anew: bool) -> Figure:
    start = perf_counter()
    with nothing_kept(when=anew):
        cut_classes(table.numbers[: 4 * K], K)
    seconds = perf_counter() - start
    return Figure("grouping", "Mondrian, its first call", 4 * K, "wall time", seconds, seconds, "seconds, once a machine")


def _searching(table: Table, names: Sequence[str], k: int, case: str) -> Iterator[Figure]:
    from benchmarks.plain_grouping import plain_search

    codes, hierarchies = table.matrix(names)
    ours, plain = cpu_seconds(
        partial(search_lattice, codes, hierarchies, k, SHARE), partial(plain_search, codes, hierarchies, k, SHARE), runs=3
    )
    yield from _pair("OLA", "plain search", case, len(codes), ours, plain, "plain searches")


def _cutting(table: Table, case: str) -> Iterator[Figure]:
    from benchmarks.plain_grouping import plain_mondrian

    plain_mondrian(table.numbers[: 4 * K], K)
    ours, plain = cpu_seconds(partial(cut_classes, table.numbers, K), partial(plain_mondrian, table.numbers, K), runs=5)
    yield from _pair("Mondrian", "plain Mondrian", case, len(table.numbers), ours, plain, "plain Mondrians")


def _pair(name: str, other: str, case: str, n: int, ours: float, plain: float, unit: str) -> Iterator[Figure]:
    yield Figure("grouping", f"{name}, {case}", n, "CPU time", ours, ours / plain, unit, TWICE)
    yield Figure("grouping", f"{other}, {case}", n, "CPU time", plain, 1.0, unit)


def _peers(table: Table, data: str) -> Iterator[Figure]:
    """Others on the same records, one run each: what they make of the data differs, so this is no race."""
    import pandas as pd

    n = len(table.numbers)
    codes, hierarchies = table.matrix(LABELLED[:4])
    search, cut = cpu_seconds(
        partial(search_lattice, codes, hierarchies, K, SHARE), partial(cut_classes, table.numbers, K), runs=3
    )
    tasks: dict[str, tuple[Callable[[], object], float]] = {}
    if find_spec("anjana") is not None:
        tasks["anjana, greedy levels"] = _anjana(table), search
    if find_spec("crowds") is not None:
        tasks["crowds, OLA"] = _crowds(table), search
    if find_spec("anonypy") is not None:
        tasks["anonypy, Mondrian"] = _anonypy(table), cut
    for case, (task, ours) in tasks.items():
        # they print, and know no pandas that keeps texts in Arrow
        with redirect_stdout(StringIO()), pd.option_context("future.infer_string", False):
            [seconds] = cpu_seconds(task, runs=1)
        yield Figure("grouping", case + data, n, "CPU time", seconds, seconds / ours, "times ours")


def _texts(table: Table) -> Any:
    import pandas as pd

    texts = {name: np.array(table.hierarchies[name].values, dtype=object)[table.codes[name]] for name in LABELLED[:4]}
    return pd.DataFrame(texts, dtype=object)


def _labels(hierarchy: Hierarchy) -> list[Any]:
    return [np.array(labels, dtype=object)[codes] for labels, codes in zip(hierarchy.labels, hierarchy.codes, strict=True)]


def _anjana(table: Table) -> Callable[[], object]:
    from anjana.anonymity import k_anonymity  # pyright: ignore[reportMissingImports]

    levels = {name: dict(enumerate(_labels(table.hierarchies[name]))) for name in LABELLED[:4]}
    return partial(k_anonymity, _texts(table), [], list(LABELLED[:4]), K, float(100 * SHARE), levels)


def _crowds(table: Table) -> Callable[[], object]:
    from crowds.kanonymity.generalizations import GenRule  # pyright: ignore[reportMissingImports]
    from crowds.kanonymity.ola import anonymize  # pyright: ignore[reportMissingImports]

    def rules(hierarchy: Hierarchy) -> Any:
        of_level = _labels(hierarchy)
        return GenRule([dict(zip(of_level[0], labels, strict=True)).get for labels in of_level[1:]])

    by_name = {name: rules(table.hierarchies[name]) for name in LABELLED[:4]}
    return partial(anonymize, _texts(table), by_name, k=K, max_sup=float(100 * SHARE))


def _anonypy(table: Table) -> Callable[[], object]:
    import pandas as pd
    from anonypy.mondrian import Mondrian  # pyright: ignore[reportMissingImports]

    frame = pd.DataFrame(table.numbers, columns=list(NUMERIC)).assign(nothing=0)
    return partial(Mondrian(frame, list(NUMERIC), "nothing").partition, K)


def _reference_folder() -> Path | None:
    named = os.environ.get("RELEASE_PIPELINE_REFERENCE_DATA")
    folder = Path(named) if named else None
    return folder if folder is not None and (folder / "adult.csv").is_file() else None


@cache
def _load_table() -> Table:
    folder = _reference_folder()
    return _synthetic_table() if folder is None else _read_adult(folder)


def _read_adult(folder: Path) -> Table:
    with (folder / "adult.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if "?" not in row.values()]
    hierarchies: dict[str, Hierarchy] = {}
    for name in LABELLED:
        with (folder / "adult_hierarchies" / f"{name}.csv").open(newline="") as file:
            hierarchies[name] = Hierarchy.of(list(csv.reader(file))[1:])
    codes = {name: hierarchy.encode([row[name] for row in rows]) for name, hierarchy in hierarchies.items()}
    return Table(hierarchies, codes, np.array([[int(row[name]) for name in NUMERIC] for row in rows]), synthetic=False)


def _synthetic_table() -> Table:
    """Skewed random columns with Adult's numbers of values and levels, and numbers with ties, zeros and a wide range."""
    rng = np.random.default_rng(1)
    shapes = {"age": (100, 5), "sex": (2, 2), "race": (5, 2), "marital_status": (7, 3), "workclass": (8, 3), "education": (16, 4)}
    shapes |= {"occupation": (14, 3), "native_country": (41, 3)}
    hierarchies: dict[str, Hierarchy] = {}
    codes: dict[str, Ints] = {}
    for name, (values, levels) in shapes.items():
        step = round(values ** (1 / (levels - 1)) + 0.5)
        groups = [[f"{level}:{value // step**level}" for level in range(levels - 1)] for value in range(values)]
        hierarchies[name] = Hierarchy.of([[*labels, "*"] for labels in groups])
        weight = 1 / np.arange(1, values + 1) ** (0.3 if values > 50 else 1.2)
        codes[name] = rng.choice(values, ADULT, p=weight / weight.sum())
    zeros = np.where(rng.random(ADULT) < 0.92, 0, rng.integers(100, 100_000, ADULT))
    numbers = [
        codes["age"] + 17,
        rng.integers(12_285, 1_484_705, ADULT),
        rng.integers(1, 16, ADULT, endpoint=True),
        zeros,
        np.where(rng.random(ADULT) < 0.95, 0, rng.integers(155, 4356, ADULT)),
        np.where(rng.random(ADULT) < 0.5, 40, rng.integers(1, 99, ADULT, endpoint=True)),
    ]
    return Table(hierarchies, codes, np.column_stack(numbers), synthetic=True)
