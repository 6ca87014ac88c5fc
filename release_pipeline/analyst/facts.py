"""The facts that a privacy card declares about a release, as far as an analysis needs them. Every field is public: nothing here
comes from confidential data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType, ReleasePipelineError
from release_pipeline.mechanisms.accounting.budget import Epsilon
from release_pipeline.mechanisms.accounting.scales import ScaleRule
from release_pipeline.mechanisms.basis.dates import DATE, MOMENT, Clock, read_span
from release_pipeline.mechanisms.basis.grid import Grid
from release_pipeline.mechanisms.catalogue import METHODS, MethodSpec, find_claim, find_method
from release_pipeline.mechanisms.clusters.rank import cut_ranks
from release_pipeline.mechanisms.tables import OF_SOME, CellNoise
from release_pipeline.sentences import ANALYST

FORMAT = "privacy-card/1"
INSIDE, ANYWHERE, ON = "inside", "anywhere", "on"
SYNTHESISE = "synthesise"  # of a column whose entries are synthetic
MISSING = "missing"  # how a column is masked that has the reasons why cells of another one are empty


class NoHonestAnswer(ReleasePipelineError):
    """The kit declines: public facts bound no honest answer. The message says why, and what to do instead."""


@dataclass(frozen=True)
class ColumnFacts:
    """One released column. `grid` and `epsilon` (of one record) are None for a column without a domain or without noise. `atoms`:
    values that consistency did not move, as the card writes them. `clock`: for dates and times, which the grid counts in whole
    units from the first of the domain. `label` and `labels`: the steward's names for the column and its entries."""

    name: str
    done: str
    type: str
    grid: Grid | None = None
    epsilon: Epsilon | None = None
    atoms: tuple[str, ...] = ()
    rho: Epsilon | None = None
    clock: Clock | None = None
    label: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    values: tuple[str, ...] = ()

    def number_text(self, value: str) -> str:
        """Return a value of the card as the text of a number of its grid."""
        return value if self.clock is None else str(self.clock.find(value))


@dataclass(frozen=True)
class LevelFacts:
    """A level of a table next to the rows: its number, its cells, and the noise distribution of each cell."""

    number: int
    cells: int
    noise: CellNoise


@dataclass(frozen=True)
class WeightFacts:
    """The weights of a table: their column, which need not be released, and the least and the largest possible weight."""

    column: str
    least: Fraction
    largest: Fraction


@dataclass(frozen=True)
class TableFacts:
    """A table next to the rows. `sum`: the column that is added up in it, None where records are counted; `deep`: the column that
    has several levels; `levels`: the coarsest first; `step`: a step of its noise; `weight`: the weight of each record, if it is
    not 1; `having`: the column in which counted records must have a value; `lacking`: records without a value add nothing to the
    sum."""

    name: str
    file: str
    by: tuple[str, ...]
    sum: str | None
    step: Fraction
    levels: tuple[LevelFacts, ...]
    deep: str | None = None
    weight: WeightFacts | None = None
    having: str | None = None
    lacking: bool = False

    @property
    def is_deep(self) -> bool:
        """Return whether the table has several levels."""
        return len(self.levels) > 1

    @property
    def has_public_total(self) -> bool:
        """Return whether every record is counted in one cell of each level, so that the number of records is public."""
        return self.sum is None and self.weight is None and self.having is None and not self.lacking


@dataclass(frozen=True)
class Facts:
    """One release: its method and options, how many records went in and came out, and its columns. `on_grid`: every masked value
    is a point of its column's grid; where values were moved into their domain, they were rounded to it too. `delta`: the delta of
    its epsilon, under zcdp. `tables`: the tables next to the rows. `total`: the loss of the whole release for one record, epsilon
    or, with a delta, rho; None if the card does not say. `is_swapped`: values were swapped."""

    method: str
    scope: str
    k: int | None
    consistency: str
    clamped: bool
    rows_in: int
    rows_out: int
    in_parts: bool
    columns: Mapping[str, ColumnFacts]
    on_grid: bool = False
    delta: str | None = None
    tables: tuple[TableFacts, ...] = ()
    total: Epsilon | None = None
    is_swapped: bool = False

    @property
    def by_rho(self) -> bool:
        """Return whether the noise is the discrete Gaussian, so that epsilon comes with a delta."""
        return self.delta is not None

    @property
    def spec(self) -> MethodSpec:
        """Return the catalogue's entry for the method; raises if it has none."""
        return find_method(self.method)

    @property
    def rule(self) -> ScaleRule:
        """Return the rule for the noise scales of a method that works column by column."""
        rule = find_claim(self.method, self.scope).rule
        if rule is None:
            raise NoHonestAnswer(ANALYST("decline.no_rule", method=self.method))
        return rule

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the sizes of the clusters of a column, which follow from the number of records and k only."""
        return cut_ranks(self.rows_in, self.k or 1)[1]

    @property
    def draws(self) -> int:
        """Return how many independent numbers the noise of one column consists of."""
        return max(self.rows_in // (self.k or 1), 1)

    @property
    def masked(self) -> tuple[str, ...]:
        """Return the columns that the method masked."""
        return tuple(
            name for name, column in self.columns.items() if column.done in ("noise", "centroid", SYNTHESISE) and column.grid
        )

    @property
    def counts_whole_table(self) -> bool:
        """Return whether rows are synthetic, made from noisy counts of all columns and pairs."""
        return self.method in METHODS and self.spec.family == "whole-table"

    @property
    def synthetic(self) -> tuple[str, ...]:
        """Return the columns whose entries are synthetic, whether numbers or listed values."""
        return tuple(name for name, column in self.columns.items() if column.done == SYNTHESISE)

    def is_exact(self, name: str) -> bool:
        """Return whether a column has no noise: its values were kept, or only swapped."""
        return name in self.columns and self.columns[name].done in ("keep", "swap")

    def masked_column(self, name: str) -> ColumnFacts:
        """Return the facts of a masked column; any other name is refused."""
        column = find_column(self, name)
        if name not in self.masked:
            raise InvalidArgument(
                "this column was not masked by the method: it has no noise to account for.",
                where=name,
                remedy=f"Columns with masked values: {', '.join(self.masked)}.",
            )
        return column


def check_name(name: object) -> None:
    """Refuse anything but one text as the name of a column."""
    if not isinstance(name, str):
        raise InvalidType(
            f"a column is named by a text, not by a {type(name).__name__}.", remedy="Ask for one column after the other."
        )


def read_facts(card: Mapping[str, Any]) -> Facts:
    """Return the facts of `privacy-card.json`. A card written by hand may leave out what its release does not have."""
    given = cast(object, card)  # JSON may hold anything
    if not isinstance(given, Mapping) or card.get("format") != FORMAT:
        raise InvalidArgument("this is not a privacy card that the kit can read.", remedy=f"It reads the format {FORMAT}.")
    try:
        method, k, persons = card["method"], card["k"]["value"], int(card["claim"]["records_per_person"])
        return Facts(
            method=str(method["name"]),
            scope=str(card["claim"]["scope"]["name"]),
            k=None if k is None else int(k),
            consistency=str(method["consistency"]),
            clamped=method.get("values", INSIDE) != ANYWHERE,
            rows_in=int(card["rows"]["in"]),
            rows_out=int(card["rows"]["out"]),
            in_parts=bool(card["parts"]),
            columns={str(column["name"]): _read_column(column, persons) for column in card["columns"]},
            on_grid=method.get("grid") == ON,
            delta=_read_text(card["claim"].get("epsilon", {}).get("delta")),
            tables=tuple(map(_read_table, card.get("tables", ()))),
            total=_read_total(card["claim"].get("epsilon", {}), persons),
            is_swapped=card.get("swap") is not None,
        )
    except InvalidArgument:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError):
        raise InvalidArgument("the privacy card lacks facts that every card has.", remedy="Take it from the package.") from None


def _read_total(epsilon: Mapping[str, Any], persons: int) -> Epsilon | None:
    """Return the total for one record; the card's total is for a person with all of their records."""
    by_rho = epsilon.get("delta") is not None
    amount = epsilon.get("rho" if by_rho else "total")
    return None if amount is None else Epsilon(Epsilon.of(amount).nano // (persons**2 if by_rho else persons))


def _read_table(table: Mapping[str, Any]) -> TableFacts:
    name, file = str(table["name"]), str(table["file"])
    if file != f"data.table-{name}.csv" or "/" in file or not table["levels"]:
        raise ValueError("a table of another name")
    levels = tuple(
        LevelFacts(int(level["level"]), int(level["cells"]), CellNoise.read(str(level["noise"]).removesuffix(OF_SOME)))
        for level in table["levels"]
    )
    weight = table.get("weight")
    return TableFacts(
        name=name,
        file=file,
        by=tuple(map(str, table["by"])),
        sum=_read_text(table["sum"]),
        step=Fraction(str(table["step"])),
        levels=levels,
        deep=_read_text(table["deep"]),
        weight=None
        if weight is None
        else WeightFacts(str(weight["column"]), Fraction(str(weight["least"])), Fraction(str(weight["largest"]))),
        having=_read_text(table.get("having")),
        lacking=table.get("lacking") is not None,
    )


def _read_text(value: Any) -> str | None:
    return None if value is None else str(value)


def _read_column(column: Mapping[str, Any], persons: int) -> ColumnFacts:
    """Return the facts of a column. The card's epsilon is for a person with all of their records; noise is drawn for one
    record."""
    domain, step = column["domain"], column["grid"]
    epsilon = None if column["epsilon"] is None else Epsilon(Epsilon.of(column["epsilon"]).nano // persons)
    rho = None if column.get("rho") is None else Epsilon(Epsilon.of(column["rho"]).nano // persons**2)
    clock, span = None, read_span(step)
    if column["type"] in (DATE, MOMENT) and span is not None:
        clock = Clock.read(str(domain[0]), span[1])
        domain, step = (0, clock.find(str(domain[1]))), span[0]
    grid = None if domain is None or step is None else Grid.declare((domain[0], domain[1]), step)
    atoms = tuple(str(atom) for atom in column.get("atoms", ()))
    if grid is not None:
        grid.units_of([atom if clock is None else clock.find(atom) for atom in atoms])  # a card changed by hand is refused here
    return ColumnFacts(
        name=str(column["name"]),
        done=str(column["done"]),
        type=str(column["type"]),
        grid=grid,
        epsilon=epsilon,
        atoms=atoms,
        rho=rho,
        values=tuple(map(str, column.get("values", ()))) if column["done"] == SYNTHESISE else (),
        clock=clock,
        label=_read_text(column.get("label")),
        labels=tuple((str(entry["value"]), str(entry["label"])) for entry in column.get("labels", ())),
    )


# A column of a release with the card's labels in place of its entries.


def find_column(facts: Facts, name: str) -> ColumnFacts:
    """Return the card's entry for a column; raises for an unknown name."""
    check_name(name)
    if name not in facts.columns:
        raise InvalidArgument("the release has no such column.", where=name, remedy=f"It has {', '.join(facts.columns)}.")
    return facts.columns[name]


def label_column(facts: Facts, data: Mapping[str, npt.NDArray[Any]], name: str, *, reasons: bool) -> npt.NDArray[np.object_]:
    """Return the labels of a column's entries, a text for each record: the entry itself if it has no label; None if there is no
    value, or with `reasons` the reason."""
    labels = dict(find_column(facts, name).labels)
    if not labels:
        raise InvalidArgument(
            "the card says of no value of this column what it means.", where=name, remedy=f"Take it as it is: data['{name}']."
        )
    entries = [entry_of(cell) for cell in data[name].tolist()]
    missing = [""] * len(entries)
    if reasons and f"{name}_missing" in data:
        missing = [entry_of(cell) for cell in data[f"{name}_missing"].tolist()]
    labelled = [labels.get(entry, entry) if entry else reason or None for entry, reason in zip(entries, missing, strict=True)]
    return np.array(labelled, dtype=np.object_)


def entry_of(cell: Any) -> str:
    """Return a cell as the card writes entries; an empty text if it has no value."""
    if cell is None or cell != cell or str(cell) == "<NA>":
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
