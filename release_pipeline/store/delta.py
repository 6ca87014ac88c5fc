"""A version of a Delta Lake table: which files its log names, and the values of its partition columns, which no file has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import duckdb

from release_pipeline.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

LOG = "_delta_log"
_MISREAD = "%[]\\"  # in a folder's name: deltalake would take another folder, or end the program
# Features that change no record in the files: times without a zone are Parquet's own, checkpoints are of the log, and whether the
# next two are used is looked up. Widened types, variants and any later feature are refused.
_READ = {"timestampNtz", "v2Checkpoint", "deletionVectors", "columnMapping"}
_KINDS = {"string": "VARCHAR", "long": "BIGINT", "integer": "INTEGER", "short": "SMALLINT", "byte": "TINYINT", "date": "DATE"}
MOST_PARTITIONS = 500  # DuckDB takes up to 1,000 parts of a union
OTHERWISE = "Name it as a table of Spark (spark: NAME), or write its records to a folder of their own."
_GONE = (
    "A candidate that was made stands, and needs no further run. Else restore the files; or run the release again, with --revise "
    "if it was charged, which charges it again."
)


@dataclass(frozen=True, slots=True)
class DeltaVersion:
    """A version of the table with this identity. `partitions`: DuckDB's types of the columns that are not in the files; `values`:
    theirs in each file."""

    table: str
    number: int
    header: tuple[str, ...]
    files: tuple[Path, ...]
    partitions: Mapping[str, str]
    values: Mapping[Path, tuple[Any, ...]]

    def scan(self, read: Callable[[Sequence[Path]], duckdb.DuckDBPyRelation]) -> duckdb.DuckDBPyRelation:
        """Return the records in the order of the files, with the values that the log has."""
        parts: list[duckdb.DuckDBPyRelation] = []
        for values, files in groupby(self.files, key=lambda file: self.values[file]):
            constants = {
                name: duckdb.ConstantExpression(value).cast(duckdb.sqltype(kind)).alias(name)
                for (name, kind), value in zip(self.partitions.items(), values, strict=True)
            }
            columns = [constants.get(name, duckdb.ColumnExpression(name)) for name in self.header]
            parts.append(read(list(files)).select(*columns))
        return reduce(duckdb.DuckDBPyRelation.union, parts)

    def find_other(self, schema: pa.Schema, first: pa.Schema) -> str:
        """Return a column that a file does not have as the table and the first file have it; empty if there is none. A file that
        was written before a column was added lacks it."""
        from release_pipeline.store.spark_tasks import plain_type  # PyArrow is large: only where it is used

        kinds, firsts = (dict(zip(file.names, map(plain_type, file.types), strict=True)) for file in (schema, first))
        names = ({*self.header} - self.partitions.keys()) | kinds.keys()
        return next((name for name in sorted(names) if name not in kinds or kinds[name] != firsts.get(name)), "")


def read_delta(folder: Path, number: int | None) -> DeltaVersion:
    """Return the current version of a table, or an earlier one; refused where the records are not those of its files."""
    where, place = str(folder), folder.resolve()
    repair = "Repair the table, or write its records to a folder of their own." if number is None else _GONE
    if any(sign in str(place) for sign in _MISREAD):
        raise SourceError(f"the path of a Delta table may not have {' '.join(_MISREAD)}.", where=where, remedy="Rename it.")
    try:
        from deltalake import DeltaTable  # a large library: only where it is used
    except ImportError:
        what = "a Delta table needs deltalake."
        raise SourceError(what, where=where, remedy="pip install 'release-pipeline[delta]'") from None
    try:
        table = DeltaTable(place.as_uri(), version=number)
        if used := _list_used(table):
            what = f"the records of the Delta table are not simply those of its files, because of {', '.join(used)}."
            raise SourceError(what, where=where, remedy=f"Rewrite the table without them. {OTHERWISE}")
        metadata, version = table.metadata(), table.version()
        kinds = {field.name: str(getattr(field.type, "type", "")) for field in table.schema().fields}
        partitions = {name: _KINDS.get(kinds[name], "") for name in metadata.partition_columns}
        values = {folder.joinpath(*file.parts[len(place.parts) :]): row for file, row in _read_values(table, [*partitions])}
    except (SourceError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as caught:  # a panic of Rust is no Exception
        caught.args = ()  # they may quote the log, which has cells
        what = "the Delta table" if number is None else f"version {number} of the Delta table, which the release began with,"
        raise SourceError(f"{what} cannot be read by deltalake.", where=where, remedy=repair) from None
    if not all(file.is_file() and file.resolve().is_relative_to(place) for file in values):
        what = f"a file of version {version} of the Delta table is not in its folder: it was vacuumed, or is elsewhere."
        raise SourceError(what, where=where, remedy=repair)
    if others := [name for name, kind in partitions.items() if not kind]:
        what = f"partitions are read by texts, whole numbers and days, and not by '{others[0]}'."
        raise SourceError(what, where=where, remedy=OTHERWISE)
    if (count := len({*values.values()})) > MOST_PARTITIONS:
        what = f"it has {count:,} partitions, and at most {MOST_PARTITIONS} are read."
        raise SourceError(what, where=where, remedy=f"Partition it by less. {OTHERWISE}")
    if not values:
        raise SourceError("the Delta table has no records.", where=where, remedy="Deliver them.")
    files = tuple(sorted(values, key=lambda file: (repr(values[file]), file)))  # those with the same values together
    return DeltaVersion(str(metadata.id), version, tuple(kinds), files, partitions, values)


def _list_used(table: DeltaTable) -> list[str]:
    """Return the features for which files have other records, or other names, than the table."""
    used = sorted({*(table.protocol().reader_features or ())} - _READ)
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        used.append("columnMapping")
    return [*used, "deletionVectors"] if not used and any(batch.num_rows for batch in table.deletion_vectors()) else used


def _read_values(table: DeltaTable, names: Sequence[str]) -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Yield each file of a version with the values of these columns that the log has for it."""
    import pyarrow as pa  # a large library: only where it is used

    actions = pa.table(table.get_add_actions()).select(["path", "partition"] if names else ["path"])
    for uri, action in zip(table.file_uris(), actions.to_pylist(), strict=True):
        if unquote(Path(uri).name) != unquote(Path(action["path"]).name):
            raise ValueError("files and values have different orders")
        yield Path(uri), tuple(action["partition"][name] for name in names)
