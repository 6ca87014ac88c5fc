"""The kinds of columns, by what `do` says: a file for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar, cast

from pydantic import Discriminator, Tag

from release_pipeline.policy.kinds.base import ColumnKind, MissingCategory
from release_pipeline.policy.kinds.generalise import GeneraliseColumn
from release_pipeline.policy.kinds.listed import KeepColumn, ListedColumn, SynthesiseColumn
from release_pipeline.policy.kinds.noise import Fill, NoiseColumn
from release_pipeline.policy.kinds.unmasked import CountedColumn, DropColumn

__all__ = [
    "KINDS",
    "AnyColumn",
    "Column",
    "CountedColumn",
    "DropColumn",
    "Fill",
    "GeneraliseColumn",
    "KeepColumn",
    "ListedColumn",
    "MissingCategory",
    "NoiseColumn",
    "ReleasedColumn",
    "SynthesiseColumn",
    "find_clamping",
    "find_kind",
    "pick",
    "pick_counted",
    "pick_kept",
]

AnyColumn: TypeAlias = DropColumn | CountedColumn | KeepColumn | NoiseColumn | GeneraliseColumn | SynthesiseColumn
ReleasedColumn: TypeAlias = KeepColumn | NoiseColumn | GeneraliseColumn | SynthesiseColumn
KINDS: dict[str, type[ColumnKind]] = {
    "drop": DropColumn,  # of those that tables count by see `find_kind`
    "keep": KeepColumn,
    "swap": KeepColumn,
    "noise": NoiseColumn,
    "generalise": GeneraliseColumn,
    "synthesise": NoiseColumn,  # of numbers; of listed values see `find_kind`
}
_LISTED = {"synthesise": "synthesise values", "drop": "drop values"}  # kinds that list values


def _name_kind(column: Any) -> str | None:
    """What `do` says; of what is synthesised or dropped also whether it is listed."""
    if isinstance(column, ColumnKind):
        do = str(getattr(column, "do", None))
        return _LISTED[do] if isinstance(column, SynthesiseColumn | CountedColumn) else do
    if not isinstance(column, dict):
        return "drop"  # which says that it is no mapping
    options = cast(dict[str, Any], column)
    if "do" not in options:
        return None
    do = str(options["do"])
    return _LISTED.get(do, do) if "values" in options else do


def find_kind(column: Mapping[str, Any]) -> type[ColumnKind] | None:
    """The kind that a column of a file is meant to be."""
    name = _name_kind(dict(column))
    listed: dict[str, type[ColumnKind]] = {_LISTED["synthesise"]: SynthesiseColumn, _LISTED["drop"]: CountedColumn}
    return listed.get(name or "") or KINDS.get(name or "")


Column: TypeAlias = Annotated[
    Annotated[DropColumn, Tag("drop")]
    | Annotated[KeepColumn, Tag("keep")]
    | Annotated[KeepColumn, Tag("swap")]
    | Annotated[NoiseColumn, Tag("noise")]
    | Annotated[NoiseColumn, Tag("synthesise")]
    | Annotated[GeneraliseColumn, Tag("generalise")]
    | Annotated[SynthesiseColumn, Tag(_LISTED["synthesise"])]
    | Annotated[CountedColumn, Tag(_LISTED["drop"])],
    Discriminator(_name_kind),
]
Kind = TypeVar("Kind", bound=ColumnKind)


def pick(columns: Mapping[str, AnyColumn], kind: type[Kind]) -> dict[str, Kind]:
    """The columns of one kind, in the order of the file."""
    return {name: column for name, column in columns.items() if isinstance(column, kind)}


def pick_kept(columns: Mapping[str, AnyColumn]) -> dict[str, ReleasedColumn]:
    """The columns that are released with their records and without noise, in the order of the file."""
    return {name: column for name, column in columns.items() if column.is_kept and not isinstance(column, DropColumn)}


def pick_counted(columns: Mapping[str, AnyColumn]) -> dict[str, KeepColumn | CountedColumn]:
    """The columns that tables may count by: those that are kept, and those that are in no row."""
    return {**pick(columns, KeepColumn), **pick(columns, CountedColumn)}


def find_clamping(columns: Mapping[str, AnyColumn]) -> list[str]:
    """The released columns whose numbers are moved into a declared domain where they lie outside of it."""
    return [name for name, column in columns.items() if column.outside_domain == "clamp"]
