"""The kinds of columns, by what `do` says: a file for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias, TypeVar

from pydantic import Field

from release_pipeline.policy.kinds.base import ColumnKind, MissingCategory, Role
from release_pipeline.policy.kinds.drop import DropColumn
from release_pipeline.policy.kinds.generalise import GeneraliseColumn
from release_pipeline.policy.kinds.keep import KeepColumn
from release_pipeline.policy.kinds.noise import Fill, NoiseColumn
from release_pipeline.policy.readings import NumberReading

__all__ = [
    "KINDS",
    "AnyColumn",
    "Column",
    "ColumnKind",
    "DropColumn",
    "Fill",
    "GeneraliseColumn",
    "KeepColumn",
    "MissingCategory",
    "NoiseColumn",
    "ReleasedColumn",
    "Role",
    "find_clamping",
    "pick",
]

AnyColumn: TypeAlias = DropColumn | KeepColumn | NoiseColumn | GeneraliseColumn
Column: TypeAlias = Annotated[AnyColumn, Field(discriminator="do")]
ReleasedColumn: TypeAlias = KeepColumn | NoiseColumn | GeneraliseColumn
KINDS: dict[str, type[ColumnKind]] = {
    "drop": DropColumn,
    "keep": KeepColumn,
    "noise": NoiseColumn,
    "generalise": GeneraliseColumn,
}
Kind = TypeVar("Kind", bound=ColumnKind)


def pick(columns: Mapping[str, AnyColumn], kind: type[Kind]) -> dict[str, Kind]:
    """The columns of one kind, in the order of the file."""
    return {name: column for name, column in columns.items() if isinstance(column, kind)}


def find_clamping(columns: Mapping[str, AnyColumn]) -> list[str]:
    """The released columns whose numbers are moved into a declared domain where they lie outside of it."""
    readings = {name: column.reading for name, column in columns.items()}
    return [name for name, how in readings.items() if isinstance(how, NumberReading) and how.outside == "clamp"]
