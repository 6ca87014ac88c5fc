"""Tables as files, in the formats that are released."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from release_pipeline.audit.package import label_table, type_of_moments
from release_pipeline.policy import Policy
from release_pipeline.policy.file.published import SURVEY_FORMATS, list_columns, name_data
from release_pipeline.rows.columns import AnyTable, ColumnTable, Parts
from release_pipeline.store.files import appearing
from release_pipeline.store.survey_writer import read_survey, try_survey, write_survey

_compute: Any = pyarrow.compute  # its functions are made at run time


def write_together(table: tuple[Path, pa.Table], evidence: tuple[Path, Mapping[str, Any]] | None) -> None:
    """Write a table as CSV or Parquet, by the ending of its path, and evidence as JSON: both or neither, only for the owner."""
    with ExitStack() as both:
        if evidence is not None:
            file = both.enter_context(appearing(evidence[0]))
            file.write(f"{json.dumps(evidence[1], indent=2, allow_nan=True)}\n".encode())
        write = _write_parquet if table[0].suffix.lower() == ".parquet" else _write_csv
        write(both.enter_context(appearing(table[0])), iter([table[1]]))


def read_table(path: Path, *, format: str, policy: Policy) -> AnyTable:
    """A table of ours, in one of its formats: columns with a grid as numbers or dates, in CSV others as text. Of a
    large file no column is in memory before it is asked for."""
    if format in SURVEY_FORMATS:
        return read_survey(path, list_columns(policy.columns, policy.suppress, format), format)
    if format == "parquet":
        opened = _open_parquet(path)
        return opened if opened.num_rows * len(opened.column_names) * _CELL > HELD else pyarrow.parquet.read_table(path)
    if path.stat().st_size > HELD_TEXT:
        return _open_csv(path, policy)
    return pyarrow.csv.read_csv(path, convert_options=_convert_csv(policy))


def open_table(path: Path, *, format: str, policy: Policy) -> ColumnTable:
    """Return a table in CSV or Parquet of any size, column by column and part by part."""
    return _open_parquet(path) if format == "parquet" else _open_csv(path, policy)


def _convert_csv(policy: Policy, **options: Any) -> Any:
    kinds: dict[str, Any] = dict.fromkeys(policy.published_columns, pa.string())
    for name, column in policy.released_columns.items():
        if column.released_as not in ("text", "whole number"):
            kinds[name] = pa.float64() if column.clock is None else type_of_moments(column.clock)
    return pyarrow.csv.ConvertOptions(
        column_types=kinds, strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False, **options
    )


def _open_parquet(path: Path) -> ColumnTable:
    known = pyarrow.parquet.read_metadata(path)
    schema = known.schema.to_arrow_schema()

    def read(name: str) -> Iterator[Any]:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from (batch.column(0) for batch in file.iter_batches(SLICE, columns=[name]))

    return ColumnTable(tuple(schema.names), known.num_rows, lambda name: Parts(schema.field(name).type, partial(read, name)))


def _open_csv(path: Path, policy: Policy) -> ColumnTable:
    def read(name: str) -> Iterator[Any]:
        with pyarrow.csv.open_csv(path, convert_options=_convert_csv(policy, include_columns=[name])) as batches:
            yield from (batch.column(0) for batch in batches)

    with pyarrow.csv.open_csv(path, convert_options=_convert_csv(policy)) as whole:
        schema = whole.schema
    rows = sum(map(len, read(schema.names[0])))
    return ColumnTable(tuple(schema.names), rows, lambda name: Parts(schema.field(name).type, partial(read, name)))


def try_formats(policy: Policy) -> None:
    """Refuse a policy whose table could not be written in one of its formats, before anything is read or charged."""
    for form in SURVEY_FORMATS:
        if form in policy.publish.formats:
            try_survey(list_columns(policy.columns, policy.suppress, form), form)


Slices: TypeAlias = Callable[[], Iterator[pa.Table]]  # a table, so many rows at a time: from the start at every call
HELD = 1 << 28  # bytes of a table up to which it is read whole
HELD_TEXT = 1 << 31  # of CSV, which has to be read to its end for every column
_CELL = 8  # bytes, about
SLICE = 1 << 20  # rows of a slice, and of a group of rows in Parquet


def write_table(path: Path, table: pa.Table | Slices, *, format: str, policy: Policy | None = None) -> None:
    """Write `table` in one of the formats that are released, with the labels of its `policy` where the format has a place for
    them; the same table gives the same bytes, whole or in slices of `SLICE` rows."""
    slices = iter([table]) if isinstance(table, pa.Table) else table()
    if format in SURVEY_FORMATS:
        if policy is None:
            raise ValueError("what a file of Stata or SPSS says of its columns is the policy's")
        whole = pa.concat_tables(list(slices))
        write_survey(path, whole, list_columns(policy.columns, policy.suppress, format), format)
    elif format == "parquet":
        _write_parquet(path, slices if policy is None else map(partial(label_table, policy=policy), slices))
    else:
        _write_csv(path, slices)


def _write_parquet(file: Path | IO[bytes], slices: Iterator[pa.Table]) -> None:
    first = next(slices)
    is_labelled = first.schema.metadata is not None  # only then it is stored, so that other files stay the same
    with pyarrow.parquet.ParquetWriter(file, first.schema, compression="zstd", store_schema=is_labelled) as writer:
        writer.write_table(first, row_group_size=SLICE)
        del first  # while others are made
        for part in slices:
            writer.write_table(part, row_group_size=SLICE)
            del part


def _write_csv(file: Path | IO[bytes], slices: Iterator[pa.Table]) -> None:
    slices = map(_spell_moments, slices)
    first = next(slices)
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    with pyarrow.csv.CSVWriter(file, first.schema, write_options=options) as writer:
        writer.write_table(first)
        del first
        for part in slices:
            writer.write_table(part)
            del part


def _spell_moments(table: pa.Table) -> pa.Table:
    """Return the table with its times as ISO 8601 writes them, which Arrow's CSV does not."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            texts = _compute.strftime(table.column(place).cast(pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%S")
            table = table.set_column(place, field.name, texts)
    return table


# The rows of a release as files of one folder: `data.csv`, or, of a table too large for one file, `data.part-0001.csv` and so on.
# Names of either kind begin with `data.`, by which `verify.py` on a reader's machine recognizes them.


PART = 1 << 24  # rows of a file: whole slices


def write_data(folder: Path, table: pa.Table | Slices, form: str, policy: Policy | None = None) -> None:
    """Write a table in one format, in as many files as it takes; for Stata and SPSS in one. The same table gives the same files,
    whole or in slices; each file is a separate table, header included."""
    whole, *_ = name_data(form)
    if form in SURVEY_FORMATS:
        write_table(folder / whole, table, format=form, policy=policy)
        return
    slices, count = _slice(table) if isinstance(table, pa.Table) else table(), 0
    while waiting := list(islice(slices, 1)):
        count += 1
        file = folder / name_data(form, count + 1)[count - 1]
        write_table(file, partial(_take_part, waiting, slices), format=form, policy=policy)
    written = list_data(folder, form)
    if len(written) == 1:
        written[0].rename(folder / whole)


def _slice(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the slices of a table; an empty one is its own slice."""
    return (table.slice(first, SLICE) for first in range(0, max(table.num_rows, 1), SLICE))


def _take_part(waiting: list[pa.Table], others: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the slices of the file that begins with the waiting one: the next file begins where this one stopped. No slice is
    held while the next one is made."""
    rows = 0
    while rows < PART and (one := waiting.pop() if waiting else next(others, None)) is not None:
        rows += one.num_rows
        yield one
        del one


def list_data(folder: Path, form: str) -> list[Path]:
    """Return the files that have the rows in this format, in their order; the expected one, if there is none."""
    parts = folder.glob(f"data.part-*.{form}")
    return sorted(parts, key=lambda part: (len(part.name), part.name)) or [folder / name for name in name_data(form)]


def read_data(folder: Path, form: str, policy: Policy) -> AnyTable:
    """Return the table in these files. Columns of several files are read only when they are asked for. If one file has other
    columns than the first, its table is returned, so that checks of columns notice it."""
    files = list_data(folder, form)
    if len(files) == 1:
        return read_table(files[0], format=form, policy=policy)
    opened = [open_table(file, format=form, policy=policy) for file in files]
    for table in opened[1:]:
        if table.column_names != opened[0].column_names:
            return table

    def join(name: str) -> Parts:
        made = [table.make(name) for table in opened]
        return Parts(made[0].type, lambda: (part for of_file in made for part in of_file.make()))

    return ColumnTable(opened[0].column_names, sum(table.num_rows for table in opened), join)
