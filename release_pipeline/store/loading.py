"""How records of any source get into the table `raw`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import duckdb

from release_pipeline.store.raw import entry_macro
from release_pipeline.store.sql import Qualified, Subquery, statement

Columns: TypeAlias = Mapping[str, str]  # the name wanted -> the name in the source
ReleaseFilter: TypeAlias = tuple[str, str]  # the column of the source, and the text that it must have


class OfServer:
    """What is the same of every source that a server has: nothing but reading it shows whether it was changed."""

    __slots__ = ()

    @property
    def stamp(self) -> str:
        """See `SourceDoor`."""
        return ""

    @property
    def written(self) -> float | None:
        """See `SourceDoor`."""
        return None


def list_columns(columns: Columns, release: ReleaseFilter | None) -> list[str]:
    """The columns of the source that are read, the one that tells releases apart among them."""
    return list(dict.fromkeys([*columns.values(), *([release[0]] if release is not None else [])]))


def select_columns(table: Qualified | Subquery, columns: Columns, release: ReleaseFilter | None) -> str:
    """The statement that reads them from a database."""
    return statement("stages/select_source", columns=list_columns(columns, release), table=table)


def create_raw(
    relation: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None, *, in_any_order: bool = False
) -> None:
    """The table `raw` from some columns of a relation; the release column is compared as a text entry, as it is counted. Records
    that come `in_any_order` are put in one: equal ones are the same whichever comes first."""
    chosen = choose_columns(relation, columns, release)
    if in_any_order:
        chosen = chosen.sort(*(duckdb.ColumnExpression(name) for name in columns))
    chosen.create("raw")


def append_raw(relation: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None) -> None:
    """More records of the same kind, after those that `raw` has."""
    choose_columns(relation, columns, release).insert_into("raw")


def choose_columns(relation: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None) -> duckdb.DuckDBPyRelation:
    """Some columns of a relation, of the records of one release."""
    if release is not None:
        kind = str(dict(zip(relation.columns, relation.types, strict=True))[release[0]])
        entry = duckdb.FunctionExpression(entry_macro(kind), duckdb.ColumnExpression(release[0]))
        relation = relation.filter(entry == duckdb.ConstantExpression(release[1]))
    return relation.select(*(duckdb.ColumnExpression(there).alias(here) for here, there in columns.items()))
