"""The kinds of columns, by what `do` says: a file for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast

from pydantic import Discriminator, Tag

from release_pipeline.policy.kinds.base import ColumnKind, MissingCategory
from release_pipeline.policy.kinds.generalise import GeneraliseColumn
from release_pipeline.policy.kinds.listed import KeepColumn, ListedColumn, SynthesiseColumn
from release_pipeline.policy.kinds.noise import Fill, NoiseColumn
from release_pipeline.policy.kinds.unmasked import CountedColumn, DropColumn

__all__ = [
    "KINDS",
    "AnyColumn",
    "ByKind",
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


class ByKind:
    """What has `columns`: those of each kind, in the order of the file."""

    __slots__ = ()
    if TYPE_CHECKING:  # a model would take it for a field
        columns: dict[str, AnyColumn]

    @property
    def noise_columns(self) -> dict[str, NoiseColumn]:
        """The columns that are masked."""
        return pick(self.columns, NoiseColumn)

    @property
    def kept_columns(self) -> dict[str, ReleasedColumn]:
        """The columns that are released as they are."""
        return {name: c for name, c in self.columns.items() if c.is_kept and not isinstance(c, DropColumn)}

    @property
    def counted_columns(self) -> dict[str, KeepColumn | CountedColumn]:
        """The columns that tables may count by: those that are kept, and those that are in no row."""
        return {**pick(self.columns, KeepColumn), **pick(self.columns, CountedColumn)}

    @property
    def listed_columns(self) -> dict[str, ListedColumn]:
        """The columns whose published entries are declared values: kept ones, and synthetic ones."""
        return pick(self.columns, ListedColumn)

    @property
    def generalised_columns(self) -> dict[str, GeneraliseColumn]:
        """The columns that are released coarser."""
        return pick(self.columns, GeneraliseColumn)


def find_clamping(columns: Mapping[str, AnyColumn]) -> list[str]:
    """The released columns whose numbers are moved into a declared domain where they lie outside of it."""
    return [name for name, column in columns.items() if column.outside_domain == "clamp"]
