"""The tables that experiments are run on: reference data that others publish, checked by shape and hash, and one made up.

The project ships none of the reference data. A copy is known by what is in it, not by its bytes: separators, quotes, spaces, the
ends of lines and how a number is written may differ, so that the files can be had from where they are published.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import SourceError, WrongUsage
from release_pipeline.mechanisms import Grid, Hierarchy, noise_stream
from release_pipeline.mechanisms.basis.utility import column_error
from release_pipeline.mechanisms.vectors.vectors import quantise_columns

VARIABLE = "RELEASE_PIPELINE_REFERENCE_DATA"
KEY = bytes(range(32))  # of made-up numbers: the same in every run

MADE_UP = {  # column: mean and deviation of its logarithm, correlation with the common factor, top of the domain
    "income": (10.2, 0.7, 0.8, 250_000),
    "spending": (9.6, 0.6, 0.7, 120_000),
    "savings": (9.0, 1.2, 0.6, 500_000),
    "debts": (8.5, 1.0, 0.3, 200_000),
}
MADE_UP_RECORDS = 100_000

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reference:
    """A file that others publish: columns, number of rows, the hash of them (in order if `ordered`), and where to get it."""

    file: str
    names: tuple[str, ...]
    rows: int
    content: str
    where: str
    ordered: bool = True


def _hierarchy(name: str, rows: int, levels: int, content: str) -> Reference:
    return Reference(
        f"adult_hierarchies/{name}.csv",
        tuple(f"level{level}" for level in range(levels)),
        rows,
        content,
        f"the ARX project, data/adult/adult_hierarchy_{name.replace('_', '-')}.csv (Apache-2.0), saved as {name}.csv",
        ordered=False,
    )


REFERENCES = {
    "census": Reference(
        "census.csv",
        ("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "PEARNVAL", "FICA",
         "WSALVAL", "ERNVAL"),
        1080,
        "2e61efa3011cd1585cc8c25a3ddc1fed101f640adf48a5391d80e70d17d7a2c6",
        "the CASC project's reference microdata; in R: write.csv(sdcMicro::CASCrefmicrodata, 'census.csv', row.names = FALSE)",
    ),
    "wine": Reference(
        "wine_white.csv",
        ("fixed_acidity", "volatile_acidity", "citric_acid", "residual_sugar", "chlorides", "free_sulfur_dioxide",
         "total_sulfur_dioxide", "density", "pH", "sulphates", "alcohol", "quality"),
        4898,
        "f9362bcd5deb16db2074bb14308ec1bbf3f17643b5bce1e9f8ceb11d2818d29c",
        "UCI Machine Learning Repository, Wine Quality, winequality-white.csv as it is (CC BY 4.0), saved as wine_white.csv",
    ),
    "adult": Reference(
        "adult.csv",
        ("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race",
         "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
        32561,
        "58fad3194d6cafb0cc477374e56e562b815766f0e82123837c75fc910dd38d62",
        "UCI Machine Learning Repository, Adult, adult.data as it is (CC BY 4.0), saved as adult.csv",
    ),
    "sex": _hierarchy("sex", 2, 2, "a361acf4e1edaa6fbec070d49b60e553ac6c382ba23a45bc45df4098f29af346"),
    "race": _hierarchy("race", 5, 2, "559ced887c23af25306bc99e584925c14505ed9e72a004115a22189f969cfc7f"),
    "marital_status": _hierarchy("marital_status", 7, 3, "8ce000d1cc4176475b9dd3d076486f9043c1997dbf0b800694bd4bf7842f3f7f"),
}  # fmt: skip
CENSUS = ("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "FICA")  # methods.md section 6
COLUMNS = {"census": CENSUS, "wine": REFERENCES["wine"].names}


@dataclass(frozen=True, slots=True)
class Source:
    """Numeric columns, records by columns, with their declared grids."""

    name: str
    values: Numbers
    grids: tuple[Grid, ...]

    @property
    def units(self) -> npt.NDArray[np.int64]:
        """The numbers on their grids."""
        return quantise_columns(list(self.values.T), self.grids)

    def measure(self, released: Numbers) -> tuple[float, float]:
        """The error of released values in record order, mean and median over columns."""
        errors = [column_error(x, y) for x, y in zip(self.values.T, released.T, strict=True)]
        return float(np.mean(errors)), float(np.median(errors))


def find_data(named: Path | None, tables: Iterable[str]) -> Path:
    """The folder with these tables: as named, or that of the environment variable. What is missing, and where to get it, is said
    of all of them at once."""
    wanted = [REFERENCES[table] for table in tables]
    given = os.environ.get(VARIABLE)
    folder = named or (Path(given) if given else None)
    if folder is None and not wanted:
        return Path()
    if folder is not None and not folder.is_dir():
        raise WrongUsage(
            "there is no such folder.", where=str(folder), remedy="Name the folder with the reference data: --data FOLDER."
        )
    missing = [one for one in wanted if folder is None or not (folder / one.file).is_file()]
    if folder is None or missing:
        error = WrongUsage(
            f"{len(missing)} of the {len(wanted)} files are missing that this needs and that the project does not ship.",
            where="data" if folder is None else str(folder),
            remedy=f"Put them into one folder and name it: --data FOLDER, or {VARIABLE}.",
        )
        error.details = tuple(f"{one.file}: {one.where}" for one in missing)
        raise error
    for table in tables:
        read_table(folder, table)
    return folder


@lru_cache(maxsize=16)
def read_table(data: Path, table: str) -> dict[str, list[str]]:
    """The columns of a reference table as texts, after its shape and the hash of what is in it were found right."""
    reference, file = REFERENCES[table], data / REFERENCES[table].file
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    first, _, _ = text.partition("\n")
    lines = csv.reader(text.splitlines(), delimiter=";" if first.count(";") > first.count(",") else ",")
    rows = [[cell.strip() for cell in row] for row in lines if row]
    if rows and tuple(name.replace(" ", "_").replace("-", "_") for name in rows[0]) == reference.names:
        rows = rows[1:]
    if len(rows) != reference.rows or hash_content(rows, ordered=reference.ordered) != reference.content:
        raise SourceError(
            f"it has {len(rows):,} of {reference.rows:,} rows, or a cell or an order that the committed figures are not of.",
            where=str(file),
            remedy=f"Get it anew: {reference.where}.",
        )
    return {name: [row[place] for row in rows] for place, name in enumerate(reference.names)}


def hash_content(rows: Sequence[Sequence[str]], *, ordered: bool = True) -> str:
    """SHA-256 of cells, however numbers are written.

    >>> hash_content([["7", "a"]]) == hash_content([["7.0", "a"]]) != hash_content([["7.1", "a"]])
    True
    """
    lines = [",".join(map(_normal, row)) + "\n" for row in rows]
    return hashlib.sha256("".join(lines if ordered else sorted(lines)).encode()).hexdigest()


def _normal(cell: str) -> str:
    try:
        return repr(float(cell))
    except ValueError:
        return cell


@lru_cache(maxsize=64)
def read_source(data: Path, table: str, columns: tuple[str, ...] | None = None, alpha: str = "1.5") -> Source:
    """A numeric reference table, or some of its columns, with domain [0, alpha max] and grid half of the resolution: learned from
    the data, as no release may."""
    texts = read_table(data, table)
    chosen = [texts[column] for column in columns or COLUMNS[table]]
    values = np.array(chosen, dtype=np.float64).T
    grids = [
        Grid.declare((0, max(map(Fraction, column)) * Fraction(alpha)), Fraction(_resolution(column)) / 2) for column in chosen
    ]
    return Source(table, values, tuple(grids))


def read_hierarchy(data: Path, name: str) -> Hierarchy:
    """One of Adult's hierarchies."""
    return Hierarchy.of(list(zip(*read_table(data, name).values(), strict=True)))


@lru_cache(maxsize=4)
def make_up(records: int) -> Source:
    """Skewed and correlated columns of whole numbers: logarithms are normal, with a common factor for each record and one of each
    column's own; the same numbers in every run."""
    drawn = draw_normal((1 + len(MADE_UP)) * records, "multivariate", "made up")
    common, *own = drawn.reshape(-1, records)
    columns = [
        np.clip(np.rint(np.exp(mean + deviation * (share * common + np.sqrt(1 - share**2) * mine))), 0, top)
        for (mean, deviation, share, top), mine in zip(MADE_UP.values(), own, strict=True)
    ]
    return Source("made up", np.stack(columns, axis=1), tuple(Grid.declare((0, top), 1) for *_, top in MADE_UP.values()))


def draw_normal(count: int, *context: str) -> Numbers:
    """So many standard normal numbers from a stream of the project's own, the same in every run."""
    words = np.empty(count, dtype=np.uint64)
    noise_stream(KEY, *context).words(0, 0, words)
    normal = NormalDist()
    return np.array([normal.inv_cdf((word + 0.5) / 2**52) for word in (words >> np.uint64(12)).tolist()])


def _resolution(texts: Iterable[str]) -> Decimal:
    decimals = max(len(text.partition(".")[2].rstrip("0")) for text in texts)
    return Decimal(1).scaleb(-min(decimals, 6))
