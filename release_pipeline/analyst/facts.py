"""What a privacy card declares of a release, as far as an analysis needs it. Every field is public: nothing here comes from
confidential data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType, ReleasePipelineError
from release_pipeline.privacy.budget import Epsilon
from release_pipeline.privacy.catalogue import MethodSpec, find_claim, find_method
from release_pipeline.privacy.clusters import cut_ranks
from release_pipeline.privacy.grid import Grid
from release_pipeline.privacy.scales import ScaleRule
from release_pipeline.sentences import ANALYST

FORMAT = "privacy-card/1"
INSIDE, ANYWHERE, ON = "inside", "anywhere", "on"


class NoHonestAnswer(ReleasePipelineError):
    """The kit declines: public facts bound no honest answer. What it says is why, and what to do instead."""


@dataclass(frozen=True)
class ColumnFacts:
    """One released column. `grid` and `epsilon` (of one record) are None where it has no domain or no noise. `atoms`: values that
    consistency did not move, as texts."""

    name: str
    done: str
    type: str
    grid: Grid | None = None
    epsilon: Epsilon | None = None
    atoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """One release: its method and options, how many records went in and came out, and its columns. `on_grid`: every masked value
    is a point of its column's grid; where values were moved into their domain, they were rounded to it too."""

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

    @property
    def spec(self) -> MethodSpec:
        """What the catalogue says of the method; one that it does not have is refused."""
        return find_method(self.method)

    @property
    def rule(self) -> ScaleRule:
        """How the noise scales of a method that works column by column are found."""
        rule = find_claim(self.method, self.scope).rule
        if rule is None:
            raise NoHonestAnswer(ANALYST("decline.no_rule", method=self.method))
        return rule

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The sizes of the clusters of a column: they follow from the number of records and k alone."""
        return cut_ranks(self.rows_in, self.k or 1)[1]

    @property
    def draws(self) -> int:
        """How many independent numbers the noise of one column is made of."""
        return max(self.rows_in // (self.k or 1), 1)

    @property
    def masked(self) -> tuple[str, ...]:
        """The columns that the method masked."""
        return tuple(name for name, column in self.columns.items() if column.done in ("noise", "centroid"))

    def masked_column(self, name: str) -> ColumnFacts:
        """The facts of a masked column; any other name is refused."""
        check_name(name)
        if name not in self.columns:
            raise InvalidArgument("the release has no such column.", where=name, remedy=f"It has {', '.join(self.columns)}.")
        if name not in self.masked:
            raise InvalidArgument(
                "this column was not masked by the method: it has no noise to account for.",
                where=name,
                remedy=f"Columns with masked values: {', '.join(self.masked)}.",
            )
        return self.columns[name]


def check_name(name: object) -> None:
    """A column is named by one text."""
    if not isinstance(name, str):
        raise InvalidType(
            f"a column is named by a text, not by a {type(name).__name__}.", remedy="Ask for one column after the other."
        )


def read_facts(card: Mapping[str, Any]) -> Facts:
    """The facts of `privacy-card.json`, read. Cards from before values could be left outside their domain say nothing of it: all
    of theirs lie inside. Those from before released values were rounded to the grid say nothing of that either, nor of atoms:
    theirs may lie between its points, and have none."""
    given = cast(object, card)  # what JSON holds may be anything
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
        )
    except InvalidArgument:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError):
        raise InvalidArgument("the privacy card lacks facts that every card has.", remedy="Take it from the package.") from None


def _read_column(column: Mapping[str, Any], persons: int) -> ColumnFacts:
    """The card's epsilon is for a person with all of their records; noise is drawn for one record."""
    domain, step = column["domain"], column["grid"]
    epsilon = None if column["epsilon"] is None else Epsilon(Epsilon.of(column["epsilon"]).nano // persons)
    grid = None if domain is None or step is None else Grid.declare((domain[0], domain[1]), step)
    atoms = tuple(str(atom) for atom in column.get("atoms", ()))
    if grid is not None:
        grid.units_of(atoms)  # a card that was changed by hand is refused here
    return ColumnFacts(
        name=str(column["name"]),
        done=str(column["done"]),
        type=str(column["type"]),
        grid=grid,
        epsilon=epsilon,
        atoms=atoms,
    )
