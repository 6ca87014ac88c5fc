"""A release for analysis: the facts of its card, and its columns as arrays."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.counts import Counts, Pair, counts_by_value, find_counts, read_cells, read_counts
from release_pipeline.analyst.facts import (
    ColumnFacts,
    Facts,
    NoHonestAnswer,
    check_name,
    find_column,
    label_column,
    read_facts,
)
from release_pipeline.analyst.laws import Law, explain_kit, law_of
from release_pipeline.analyst.means import (
    Interval,
    Moments,
    estimate_mean,
    state_mean,
    state_weighted_mean,
    tell_moments,
)
from release_pipeline.analyst.rerun import USUAL_TIMES, Rerun, rerun
from release_pipeline.analyst.tables import Table, find_table, read_tables
from release_pipeline.errors import InvalidArgument, InvalidType, WrongUsage
from release_pipeline.mechanisms.basis.dates import DATE, Clock
from release_pipeline.mechanisms.basis.grid import as_numbers
from release_pipeline.sentences import ANALYST

CARD, DATA, PARTS = "privacy-card.json", "data.csv", "data.part-*.csv"
RETRACTED = "RETRACTED"  # the name of the files that a retraction leaves in a package
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Release:
    """The card's facts and the released columns. `counts`: the noisy counts of columns that were counted by value; `tables`: the
    tables next to the rows, by name; `pairs`: the noisy counts of two columns, if rows are synthetic."""

    facts: Facts
    data: Arrays
    counts: Mapping[str, Counts] = field(default_factory=dict[str, Counts])
    tables: Mapping[str, Table] = field(default_factory=dict[str, Table])
    pairs: Mapping[tuple[str, str], Pair] = field(default_factory=dict[tuple[str, str], Pair])

    def __repr__(self) -> str:
        return f"<Release of {self.facts.rows_out:,} records by {self.facts.method}: {', '.join(self.data)}>"

    def noise_of(self, column: str) -> Law:
        """Return what public facts say about the noise of a column."""
        return law_of(self.facts, column)

    def mean(self, column: str, *, weights: str | None = None, level: float = 0.95) -> Any:
        """Return the mean of a column in the confidential table, over all its records, as an `Interval`, or `Moments` for dates
        and times; raises `NoHonestAnswer` if there is none. For a column without noise it is exact; with the `weights` of another
        such column it is the weighted mean."""
        check_name(column)
        if weights is not None:
            return state_weighted_mean(self.facts, column, *self._exact_pair(column, weights), level)
        if column in self.data and self.facts.is_exact(column):
            return state_mean(self.facts, column, read_numbers(self.data, column), level)
        self.facts.masked_column(column)
        if self.counts or counts_by_value(self.facts):
            return self._as_moments(column, find_counts(self.counts, self.facts, column).mean(level))
        return self._as_moments(column, estimate_mean(self.facts, column, self._numbers(column), level))

    def share(self, column: str, low: Any, high: Any, *, level: float = 0.95) -> Interval:
        """Return the share of all records of the confidential table from `low` to `high` in a column that was counted by value;
        raises `NoHonestAnswer` for other columns. Dates and times are given as such, or in ISO 8601."""
        check_name(column)
        clock = self.facts.masked_column(column).clock
        if clock is not None:
            low, high = count_moments([low, high], clock, column).tolist()
        return find_counts(self.counts, self.facts, column).share(low, high, level)

    def missing(self, column: str, reason: str | None = None, *, level: float = 0.95) -> Interval:
        """Return the share of all records of the confidential table that have no value in a column that was counted by value, for
        one reason or for any; raises `NoHonestAnswer` for other columns. `mean` and `quantile` are over records with a value."""
        check_name(column)
        return find_counts(self.counts, self.facts, column).lacking(reason, level)

    def quantile(self, column: str, share: float, *, level: float = 0.95) -> Any:
        """Return the least value that this share of all records of the confidential table does not exceed, in a column that was
        counted by value, as an `Interval`, or `Moments` for dates or times; raises `NoHonestAnswer` for other columns."""
        check_name(column)
        return self._as_moments(column, find_counts(self.counts, self.facts, column).quantile(share, level))

    def label(self, column: str) -> str | None:
        """Return the steward's label of a column; None if the card has none."""
        return find_column(self.facts, column).label

    def labels(self, column: str) -> dict[str, str]:
        """Return the labels of a column's entries, keyed by the entry as the card writes it; empty if the card has none."""
        return dict(find_column(self.facts, column).labels)

    def labelled(self, column: str, *, reasons: bool = False) -> npt.NDArray[np.object_]:
        """Return a column with labels in place of its entries, a text for each record, as pandas and pyarrow take it; None for no
        value, or with `reasons` the reason."""
        return label_column(self.facts, self.data, column, reasons=reasons)

    def share_of(self, column: str, value: object, *, level: float = 0.95) -> Interval:
        """Return the share of all records of the confidential table with one of the listed values of a synthetic column; raises
        `NoHonestAnswer` for other columns."""
        check_name(column)
        values = self.facts.columns[column].values if column in self.facts.synthetic else ()
        if not values:
            raise NoHonestAnswer(ANALYST("decline.no_list"), where=column)
        if str(value) not in values:
            raise InvalidArgument("no record can have this value.", where=column, remedy=f"Values: {', '.join(values)}.")
        number = values.index(str(value))
        return self.counts[column].share(number, number, level)

    def pair(self, column: str, other: str) -> Pair:
        """Return the noisy counts of two columns together, by groups of both; raises `NoHonestAnswer` if there are none."""
        for name in (column, other):
            check_name(name)
        if (column, other) not in self.pairs:
            raise NoHonestAnswer(ANALYST("decline.no_pair"), where=f"{column}, {other}")
        return self.pairs[column, other]

    def rerun(
        self, *, times: int = USUAL_TIMES, seed: int | None = None, progress: Callable[[str], None] = lambda _: None
    ) -> Rerun:
        """Run the method again on synthetic rows, so many `times`, as if they were the confidential table. The result has means,
        also by group, with intervals for how far the release may have moved them; raises `NoHonestAnswer` for other releases.
        Noise is fresh each time; a `seed` gives the same answers again. Each run takes about as long as making the rows did."""
        return rerun(self.facts, self.data, self.counts, self.pairs, times=times, seed=seed, progress=progress)

    def table(self, name: str) -> Table:
        """Return a table next to the rows, which answers counts, shares, sums and means by group."""
        return find_table(self.tables, self.facts, name)

    def explain(self) -> tuple[str, ...]:
        """Return what the kit offers for this release, a sentence each."""
        return tuple(explain_kit(self.facts))

    def _exact_pair(self, column: str, weights: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return two columns without noise as numbers."""
        check_name(weights)
        for name in (column, weights):
            if name not in self.data:
                raise InvalidArgument("the data have no such column.", where=name)
            if not self.facts.is_exact(name):
                raise NoHonestAnswer(ANALYST("decline.weights"), where=name, remedy=ANALYST("advice.ask"))
        written = self.data[weights]
        is_text = written.dtype.kind == "U"  # a weight that is kept may be one, like 1.5
        try:
            numbers = np.array([cell or "nan" for cell in written.tolist()] if is_text else written, dtype=np.float64)
        except ValueError:
            raise InvalidArgument("a cell of this column is not a number.", where=weights) from None
        return read_numbers(self.data, column), read_numbers({weights: numbers}, weights)

    def _numbers(self, name: str) -> npt.NDArray[np.float64]:
        if name not in self.data:
            raise InvalidArgument("the data have no such column.", where=name)
        column, values = self.facts.columns[name], self.data[name]
        numbers = values if column.clock is None else count_moments(values, column.clock, name)
        return as_numbers(numbers, name=name).astype(np.float64)

    def _as_moments(self, column: str, interval: Interval) -> Interval | Moments:
        """Return the interval, converted to dates or times if the column has them."""
        clock = self.facts.columns[column].clock
        return interval if clock is None else tell_moments(interval, clock)


def read_numbers(data: Arrays, name: str) -> npt.NDArray[np.float64]:
    """Return a column without noise as finite numbers, yes and no as 1 and 0; raises if it has other entries."""
    values = np.asarray(data[name])
    if values.dtype.kind not in "biuf":
        raise InvalidArgument("this column is not one of numbers.", where=name)
    numbers = values.astype(np.float64)
    if np.isinf(numbers).any():
        raise InvalidArgument("some of its numbers are infinite.", where=name, remedy="Give each row a number.")
    if np.isnan(numbers).any():
        why = (
            "records without a value are not like the others"
            if f"{name}_missing" in data
            else "blank cells protect small groups and are not missing at random"
        )
        raise NoHonestAnswer(f"{why}: leaving their rows out would change what is estimated.", where=name)
    return numbers


def count_moments(values: object, clock: Clock, name: str) -> npt.NDArray[np.float64]:
    """Return dates or times as numbers of a column's grid, NaN for a missing one; anything else is refused."""
    try:
        given: npt.NDArray[Any] = np.asarray(values)
        if given.dtype.kind not in "MUO":
            raise ValueError("numbers are no dates")
        return clock.count(given if given.dtype.kind == "M" else given.astype("datetime64[s]"))
    except (ValueError, TypeError, OverflowError):
        raise InvalidArgument(
            "this is a column of dates or times, and something else stands there.", where=name, remedy="Like 2020-01-31."
        ) from None


def read_release(folder: str | Path, *, data: Mapping[str, npt.ArrayLike] | None = None) -> Release:
    """Return the package in `folder`, which may also name its privacy card: the card, and the rows of data.csv, or of the several
    files of a large table. A retracted package is refused.

    For a package with only Parquet, pass the columns as `data`: a mapping from names to arrays (a pandas or Polars table is one).
    Numbers become floats with NaN for blank cells; everything else stays text.
    """
    given = cast(object, folder)
    if not isinstance(given, str | os.PathLike):
        raise InvalidType("a package is named by its folder.", remedy="Name the folder of a published package.")
    home = Path(folder)
    home = home.parent if home.name == CARD and not home.is_dir() else home
    card = home / CARD
    _refuse_retracted(home)
    try:
        facts = read_facts(json.loads(card.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        raise WrongUsage("there is no privacy card.", where=str(card), remedy="Name the folder of a published package.") from None
    except OSError:
        raise WrongUsage("the privacy card cannot be read.", where=str(card)) from None
    except ValueError as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("this is not JSON.", where=str(card)) from None
    (cells, pairs), tables = read_cells(home, facts), read_tables(home, facts)
    counts = cells or read_counts(home, facts)
    if data is None:
        rows = _read_rows(_find_rows(home), facts)
        return Release(facts, rows, counts=counts, tables=tables, pairs=pairs)
    columns = read_columns(data, "data")
    missing = [name for name in facts.columns if name not in columns]
    if missing:
        raise InvalidArgument(f"the data lack {', '.join(missing)}.", where="data")
    if len({len(columns[name]) for name in facts.columns}) > 1:
        raise InvalidArgument("the columns are not all of one length.", where="data", remedy="Pass all rows of each.")
    return Release(facts, {name: columns[name] for name in facts.columns}, counts=counts, tables=tables, pairs=pairs)


def _refuse_retracted(home: Path) -> None:
    """Refuse a package that was retracted: its files say so, and its data are gone, or should be."""
    signed, notice = home / f"{RETRACTED}.json", home / f"{RETRACTED}.md"
    try:
        if not signed.exists() and not notice.exists():
            return
        statement = json.loads(signed.read_text(encoding="utf-8"))["statement"]
        date = re.match(r"\d{4}-\d\d-\d\d", statement["at"])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        date = None
    when = f" on {date[0]}" if date else ""
    raise WrongUsage(
        f"this release was retracted{when}.", where=str(home), remedy=f"See {notice.name}. Do not use copies of its data."
    )


def _as_array(values: object, name: str) -> npt.NDArray[Any]:
    """Return `values` as one column."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidType("the column is a masked array.", where=name, remedy="Fill its masked entries first.")
    try:
        array: npt.NDArray[Any] = np.asarray(values)
    except (TypeError, ValueError):  # rows of several lengths
        array = np.array(None)
    if array.ndim != 1:
        raise InvalidArgument("the column must have one value for each row.", where=name)
    return array


def read_columns(table: object, where: str) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a mapping, or of a table that names its columns as pandas and Polars do."""
    names: Any = list(cast(Any, table)) if isinstance(table, Mapping) else getattr(table, "columns", None)
    if isinstance(table, type) or not isinstance(names, Iterable):
        raise InvalidType(
            "this is no table: a mapping from names to columns.", where=where, remedy='Like {"age": [...], "income": [...]}.'
        )
    given, names = cast(Any, table), list(cast(Any, names))
    for name in names:
        check_name(name)
    return {name: _as_array(given[name], name) for name in names}


def _find_rows(home: Path) -> list[Path]:
    """Return the CSV files that have the rows, in their order."""
    parts = sorted(home.glob(PARTS))
    wanted = [f"data.part-{number:04}.csv" for number in range(1, len(parts) + 1)]
    if {part.name for part in parts} != set(wanted) or (parts and (home / DATA).exists()):
        raise InvalidArgument(
            "the files with the rows do not go together: some are missing, or others lie beside them.",
            where=str(home),
            remedy="Fetch the package again, into an empty folder; `verify` says which files it has.",
        )
    return [home / name for name in wanted] or [home / DATA]


def _read_rows(files: Sequence[Path], facts: Facts) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of these files, concatenated; refused if the number of rows is not the card's."""
    parts = [_read_csv(file, facts) for file in files]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in facts.columns}
    count = len(next(iter(rows.values()), ()))
    if len(files) > 1 and count != facts.rows_out:
        raise InvalidArgument(
            f"there are {count:,} rows, and the card says {facts.rows_out:,}.",
            where=str(files[0].parent),
            remedy="Fetch the package again: `verify` says which file is not whole.",
        )
    return rows


def _read_csv(file: Path, facts: Facts) -> dict[str, npt.NDArray[Any]]:
    try:
        with file.open(newline="", encoding="utf-8") as text:
            header, *rows = csv.reader(text)
    except FileNotFoundError:
        raise WrongUsage(
            "the package has no data.csv.",
            where=str(file),
            remedy="Read the Parquet file yourself and pass its columns as data=.",
        ) from None
    except ValueError:
        raise InvalidArgument("this is not a CSV file with a header.", where=str(file)) from None
    if header != list(facts.columns) or any(len(row) != len(header) for row in rows):
        raise InvalidArgument("the columns are not those of the card.", where=str(file), remedy="Take both from one package.")
    read: dict[str, npt.NDArray[Any]] = {}
    for number, (name, column) in enumerate(facts.columns.items()):
        try:
            read[name] = _read_cells([row[number] for row in rows], column)
        except ValueError:
            what = "number" if column.clock is None else "date"
            raise InvalidArgument(f"a cell of this column is not a {what}.", where=name) from None
    return read


def _read_cells(cells: list[str], column: ColumnFacts) -> npt.NDArray[Any]:
    if column.type == "string":
        return np.array(cells, dtype=np.str_)
    if column.clock is not None:
        return np.array([cell or "NaT" for cell in cells], dtype=f"datetime64[{'D' if column.type == DATE else 's'}]")
    return np.array([cast(Any, cell) or "nan" for cell in cells], dtype=np.float64)
