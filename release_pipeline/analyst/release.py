"""A release as an analyst holds it: the facts of its card and its columns as arrays; and one made of data of her own."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.facts import ColumnFacts, Facts, NoHonestAnswer, check_name, read_facts
from release_pipeline.analyst.laws import Law, declared, decline_simulation, explain_kit, law_of
from release_pipeline.analyst.means import Interval, estimate_mean, state_mean
from release_pipeline.analyst.slopes import estimate_correlation, estimate_slopes, is_exact, read_numbers
from release_pipeline.analyst.ties import MOST, find_unmoved, holds_released_values
from release_pipeline.errors import InvalidArgument, InvalidType, WrongUsage
from release_pipeline.privacy.grid import IntArray, as_numbers
from release_pipeline.privacy.methods import add_noise, mask_column
from release_pipeline.privacy.noise import SECRET_BYTES, noise_stream, shuffled_positions
from release_pipeline.privacy.vectors import MdavSpec, compute_vectors, quantise_columns
from release_pipeline.sentences import ANALYST

CARD, DATA = "privacy-card.json", "data.csv"
MAKE_UP = "Make up a table that could be like the confidential one: spread_ties makes its columns from released ones."
RETRACTED = "RETRACTED"  # the name of the files that a retraction leaves in a package
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Release:
    """The card's facts and the released columns. `exact`: columns that the analyst added herself, without noise."""

    facts: Facts
    data: Arrays
    exact: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Release of {self.facts.rows_out:,} records by {self.facts.method}: {', '.join(self.data)}>"

    def noise_of(self, column: str) -> Law:
        """What public facts tell of the noise of a column."""
        return law_of(self.facts, column)

    def mean(self, column: str, *, level: float = 0.95) -> Interval:
        """The mean of a column in the confidential table, over all its records; or `NoHonestAnswer`. Of a column without noise
        it is the plain mean, exactly."""
        check_name(column)
        if column in self.data and is_exact(self.facts, column, self.exact):
            return state_mean(self.facts, column, read_numbers(self.data, column, self.exact), level)
        self.facts.masked_column(column)
        return estimate_mean(self.facts, column, self._numbers(column), level)

    def slope(self, y: str, on: Sequence[str], *, level: float = 0.95) -> dict[str, Interval]:
        """The slopes of the least-squares line of `y` on the columns `on` in the confidential table; or `NoHonestAnswer`."""
        given = cast(object, on)
        names = [on] if isinstance(on, str) else list(on) if isinstance(given, Sequence | np.ndarray) else None
        if names is None:
            raise InvalidType("name the explanatory columns in a list.", where="on", remedy='Like ["age", "income"].')
        for name in (y, *names):
            check_name(name)
        return estimate_slopes(self.facts, self.data, y, names, self.exact, level)

    def correlation(self, x: str, y: str, *, level: float = 0.95) -> Interval:
        """The correlation of two columns in the confidential table; or `NoHonestAnswer`."""
        return estimate_correlation(self.facts, self.data, x, y, self.exact, level)

    def with_exact(self, name: str, values: npt.ArrayLike) -> Release:
        """This release with one more column, computed from columns that were released as they are, row by row: it has no
        noise. Whole numbers, and yes and no (as 1 and 0), become floats."""
        check_name(name)
        added = _as_array(values, name)
        if added.dtype.kind not in "biuf":
            raise InvalidType(
                "the column must have numbers, or yes and no.",
                where=name,
                remedy='Make a column of 0 and 1 for each category, like release.data["town"] == "A".',
            )
        if added.shape != (self.facts.rows_out,):
            raise InvalidArgument("the column must have one value for each row.", where=name)
        if name in self.data:
            raise InvalidArgument("the release has a column of this name.", where=name)
        added = read_numbers({name: added}, name, [name])
        return dataclasses.replace(self, data={**self.data, name: added}, exact=(*self.exact, name))

    def explain(self) -> tuple[str, ...]:
        """What the kit offers for this release, a sentence each."""
        return tuple(explain_kit(self.facts))

    def _numbers(self, name: str) -> npt.NDArray[np.float64]:
        if name not in self.data:
            raise InvalidArgument("the data have no such column.", where=name)
        return as_numbers(self.data[name], name=name).astype(np.float64)


def read_release(folder: str | Path, *, data: Mapping[str, npt.ArrayLike] | None = None) -> Release:
    """The package in `folder` (or whose privacy card that is): its card, and its data.csv. A retracted one is refused.

    For a package with Parquet alone pass the columns yourself, as `data`: a mapping from names to arrays (a pandas or Polars
    table is one). Numbers become floats with NaN for blank cells; all else stays text.
    """
    given = cast(object, folder)
    if not isinstance(given, str | os.PathLike):
        raise InvalidType("a package is named by its folder.", remedy="Name the folder of a published package.")
    home = Path(folder)
    home = home.parent if home.name == CARD and not home.is_dir() else home
    card = home / CARD
    _check_standing(home)
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
    if data is None:
        return Release(facts, _read_csv(home / DATA, facts))
    columns = _read_columns(data, "data")
    missing = [name for name in facts.columns if name not in columns]
    if missing:
        raise InvalidArgument(f"the data lack {', '.join(missing)}.", where="data")
    if len({len(columns[name]) for name in facts.columns}) > 1:
        raise InvalidArgument("the columns are not all of one length.", where="data", remedy="Pass all rows of each.")
    return Release(facts, {name: columns[name] for name in facts.columns})


def _check_standing(home: Path) -> None:
    """Whether the package was retracted: its files say so, and its data are gone, or should be."""
    signed, words = home / f"{RETRACTED}.json", home / f"{RETRACTED}.md"
    try:
        if not signed.exists() and not words.exists():
            return
        statement = json.loads(signed.read_text(encoding="utf-8"))["statement"]
        date = re.match(r"\d{4}-\d\d-\d\d", statement["at"])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        date = None
    when = f" on {date[0]}" if date else ""
    raise WrongUsage(
        f"this release was retracted{when}.", where=str(home), remedy=f"See {words.name}. Do not use copies of its data."
    )


def _as_array(values: object, name: str) -> npt.NDArray[Any]:
    """`values` as one column."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidType("the column is a masked array.", where=name, remedy="Fill its masked entries first.")
    try:
        array: npt.NDArray[Any] = np.asarray(values)
    except (TypeError, ValueError):  # rows of several lengths
        array = np.array(None)
    if array.ndim != 1:
        raise InvalidArgument("the column must have one value for each row.", where=name)
    return array


def _read_columns(table: object, where: str) -> dict[str, npt.NDArray[Any]]:
    """The columns of a mapping, or of a table that names its columns as pandas and Polars do."""
    names: Any = list(cast(Any, table)) if isinstance(table, Mapping) else getattr(table, "columns", None)
    if isinstance(table, type) or not isinstance(names, Iterable):
        raise InvalidType(
            "this is no table: a mapping from names to columns.", where=where, remedy='Like {"age": [...], "income": [...]}.'
        )
    given, names = cast(Any, table), list(cast(Any, names))
    for name in names:
        check_name(name)
    return {name: _as_array(given[name], name) for name in names}


def simulate(
    table: Mapping[str, npt.ArrayLike], like: Release | Facts | Mapping[str, Any], *, secret: bytes | None = None
) -> Release:
    """Your own made-up `table`, released as the facts of `like` say (a release, or a card as read from JSON).

    Each masked column gets the card's method with its domain, grid, epsilon, k, scope, order, atoms, clamping and rounding, and
    the rows leave shuffled; other columns of the table go along as they are, and small groups of them are not suppressed. A fresh
    secret each time; with a `secret` of 32 bytes the same table gives the same release. Never pass confidential data: no budget
    is kept.

    A released table is refused (`ties`): it would come back as it was, or nearly, and seem certain. `spread_ties` makes one up
    from it.
    """
    given = cast(object, like)
    if not isinstance(given, Release | Facts | Mapping):
        raise InvalidType(
            "this is no release and no card.", where="like", remedy="Pass what read_release gives, or the card as read from JSON."
        )
    facts = like.facts if isinstance(like, Release) else like if isinstance(like, Facts) else read_facts(like)
    why = decline_simulation(facts)
    if why:
        raise NoHonestAnswer(f"this release cannot be made again: {why}", remedy=ANALYST("advice.ask"))
    columns = _read_columns(table, "table")
    absent = [name for name in facts.masked if name not in columns]
    if absent or len({len(values) for values in columns.values()}) != 1:
        raise InvalidArgument("the table needs every masked column, all of one length.", where=", ".join(absent))
    secret = secrets.token_bytes(SECRET_BYTES) if secret is None else secret
    rows = len(next(iter(columns.values())))
    if isinstance(like, Release):
        _refuse_released(columns, like)
    masked = _mask(facts, columns, secret)
    order = shuffled_positions(rows, noise_stream(secret, "simulated release", "shuffle"))
    known = {name: facts.columns.get(name) or _kept(name, values) for name, values in columns.items()}
    made = dataclasses.replace(facts, rows_in=rows, rows_out=rows, columns=known)
    return Release(made, {name: masked.get(name, values)[order] for name, values in columns.items()})


def _refuse_released(columns: Arrays, like: Release) -> None:
    """Refuse a table that holds the release's own values, where records share values by clusters."""
    for name in like.facts.masked if like.facts.k is not None else ():
        grid = like.facts.columns[name].grid
        if grid is None:
            continue
        mine, theirs = grid.quantise(as_numbers(columns[name], name=name)), grid.quantise(like._numbers(name))  # pyright: ignore[reportPrivateUsage]
        if holds_released_values(mine, theirs):
            raise NoHonestAnswer(
                "most of its different values are those of the release, whose clusters of equal records get too little noise, or "
                "none: it would seem certain.",
                where=name,
                remedy=f"{MAKE_UP} Where a table of your own has these values for a reason, pass release.facts, not the release.",
            )


def _refuse_unmoved(where: str, units: IntArray, cluster: npt.NDArray[np.intp], scale: IntArray) -> None:
    """Refuse a table of which most would come back as it was, whatever the secret."""
    if find_unmoved(units, cluster, scale) > MOST:
        raise NoHonestAnswer(
            "most of its different values would come back exactly as they are, in clusters of equal records without noise: that "
            "is how a released table looks, and it would seem certain.",
            where=where,
            remedy=MAKE_UP,
        )


def _mask(facts: Facts, columns: Arrays, secret: bytes) -> dict[str, npt.NDArray[np.float64]]:
    if facts.spec.family == "mdav":
        grids = [grid for name in facts.masked if (grid := facts.columns[name].grid) is not None]
        units = quantise_columns([columns[name] for name in facts.masked], grids)
        made = compute_vectors(units, grids=grids, spec=MdavSpec(facts.k or 2), secret=secret, context=("simulated release",))
        _refuse_unmoved(", ".join(facts.masked), units, made[0].cluster, made[0].scale)
        return {
            name: add_noise(part, secret=secret, context=("simulated release", name))[part.cluster]
            for name, part in zip(facts.masked, made, strict=True)
        }
    masked: dict[str, npt.NDArray[np.float64]] = {}
    for name in facts.masked:
        grid, epsilon = declared(facts.columns[name])
        made = mask_column(
            columns[name],
            domain=(grid.lo, grid.hi),
            grid=grid.step,
            method=facts.method,
            epsilon=epsilon,
            k=facts.k,
            scope=facts.scope,
            consistency=facts.consistency,
            atoms=facts.columns[name].atoms,
            clamp=facts.clamped,
            on_grid=facts.on_grid,
            secret=secret,
            context=("simulated release", name),
        )
        if facts.k is not None:
            units = grid.quantise(as_numbers(columns[name], name=name))
            _refuse_unmoved(name, units[:, np.newaxis], made.cluster, made.scale)
        masked[name] = made.values
    return masked


def _kept(name: str, values: npt.NDArray[Any]) -> ColumnFacts:
    return ColumnFacts(name, "keep", "number" if values.dtype.kind in "iuf" else "string")


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
    for place, (name, column) in enumerate(facts.columns.items()):
        cells = [row[place] for row in rows]
        try:
            read[name] = (
                np.array(cells, dtype=np.str_)
                if column.type == "string"
                else np.array([cast(Any, cell) or "nan" for cell in cells], dtype=np.float64)
            )
        except ValueError:
            raise InvalidArgument("a cell of this column is not a number.", where=name) from None
    return read
