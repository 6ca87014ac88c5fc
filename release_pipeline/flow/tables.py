"""Tables as files, in the two formats that are released."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from release_pipeline.flow.files import appearing
from release_pipeline.policy import Policy


def write_together(table: tuple[Path, pa.Table], evidence: tuple[Path, Mapping[str, Any]] | None) -> None:
    """A table as CSV or Parquet, told by the ending of its path, and evidence as JSON: both or neither, for the owner alone."""
    with ExitStack() as both:
        if evidence is not None:
            partial = both.enter_context(appearing(evidence[0]))
            partial.write_text(json.dumps(evidence[1], indent=2, allow_nan=True) + "\n", encoding="utf-8")
        write_table(both.enter_context(appearing(table[0])), table[1], format=table[0].suffix.lower().removeprefix("."))


def read_table(path: Path, *, format: str, policy: Policy) -> pa.Table:
    """A table of ours, in one of the two formats: every noise column as a number, in CSV every other as text."""
    if format == "parquet":
        return pyarrow.parquet.read_table(path)
    texts = dict.fromkeys(policy.released_columns, pa.string())
    kinds = texts | dict.fromkeys(policy.noise_columns, pa.float64())
    options = pyarrow.csv.ConvertOptions(
        column_types=kinds, strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False
    )
    return pyarrow.csv.read_csv(path, convert_options=options)


def write_table(path: Path, table: pa.Table, *, format: str) -> None:
    """`table` in one of the two formats that are released; the same table gives the same bytes."""
    if format == "parquet":
        pyarrow.parquet.write_table(table, path, compression="zstd", store_schema=False)
    else:
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(quoting_style="needed"))
