"""The rows of a release as files of one folder: `data.csv`, or, of a table too large for one file, `data.part-0001.csv` and so
on. Names of either kind begin with `data.`, by which `verify.py` on a reader's machine knows them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa

from release_pipeline.flow.tables import SLICE, Slices, open_table, read_table, write_table
from release_pipeline.policy import Policy
from release_pipeline.policy.published import SURVEY_FORMATS, name_data
from release_pipeline.stages.column_table import AnyTable, ColumnTable, Parts

PART = 1 << 24  # rows of a file: whole slices


def write_data(folder: Path, table: pa.Table | Slices, form: str, policy: Policy | None = None) -> None:
    """A table in one format, in as many files as it takes; of Stata and SPSS in one. The same table gives the same files, whole
    or in slices; each file is a table of its own, header included."""
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
    """The slices of a table; of an empty one the one that it is."""
    return (table.slice(first, SLICE) for first in range(0, max(table.num_rows, 1), SLICE))


def _take_part(waiting: list[pa.Table], others: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The slices of the file that begins with the one that waits: the next file begins where this one stopped. None is held
    while the next one is made."""
    rows = 0
    while rows < PART and (one := waiting.pop() if waiting else next(others, None)) is not None:
        rows += one.num_rows
        yield one
        del one


def list_data(folder: Path, form: str) -> list[Path]:
    """The files that have the rows in this format, in their order; the one that there should be, if there is none."""
    parts = folder.glob(f"data.part-*.{form}")
    return sorted(parts, key=lambda part: (len(part.name), part.name)) or [folder / name for name in name_data(form)]


def read_data(folder: Path, form: str, policy: Policy) -> AnyTable:
    """The table that these files have. Of several no column is in memory before it is asked for. One that has other columns
    than the first stands for all of them: whoever looks at columns sees that."""
    files = list_data(folder, form)
    if len(files) == 1:
        return read_table(files[0], format=form, policy=policy)
    opened = [open_table(file, format=form, policy=policy) for file in files]
    for one in opened[1:]:
        if one.column_names != opened[0].column_names:
            return one

    def join(name: str) -> Parts:
        made = [one.make(name) for one in opened]
        return Parts(made[0].type, lambda: (part for of_file in made for part in of_file.make()))

    return ColumnTable(opened[0].column_names, sum(one.num_rows for one in opened), join)
