"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from release_pipeline.errors import ReleasePipelineError, WrongUsage

PRIVATE = 0o600
PUBLIC = 0o644


def check_output(path: Path, *, endings: tuple[str, ...], overwrite: bool) -> None:
    """Refuse, before any work, an output that could not be written or that would destroy something."""
    if path.suffix.lower() not in endings:
        raise WrongUsage(f"the output must end in {' or '.join(endings)}.", where=str(path))
    if not path.parent.is_dir():
        raise WrongUsage("its folder does not exist.", where=str(path), remedy="Make the folder first.")
    if path.is_dir():
        raise WrongUsage("this is a directory.", where=str(path), remedy="Name a file.")
    if path.exists() and not overwrite:
        raise WrongUsage("the file exists already.", where=str(path), remedy="Choose another name, or add --overwrite.")
    if not os.access(path.parent, os.W_OK):
        raise WrongUsage("its folder cannot be written to.", where=str(path))


def write_table(path: Path, table: pa.Table) -> None:
    """`table` as CSV or Parquet, told by the ending of `path`."""
    with _appearing(path, PUBLIC) as partial:
        if path.suffix.lower() == ".parquet":
            pyarrow.parquet.write_table(table, partial, compression="zstd", store_schema=False)
        else:
            pyarrow.csv.write_csv(table, partial, pyarrow.csv.WriteOptions(quoting_style="needed"))


def write_private_json(path: Path, content: Mapping[str, Any]) -> None:
    """`content` as JSON that only the owner may read."""
    with _appearing(path, PRIVATE) as partial:
        partial.write_text(json.dumps(content, indent=2, allow_nan=True) + "\n", encoding="utf-8")


@contextmanager
def _appearing(path: Path, mode: int) -> Iterator[Path]:
    """A private file beside `path` that takes its place when the block ends well, and is gone when it does not."""
    partial = path.with_name(f".{path.name}.partial-{secrets.token_hex(4)}")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.chmod(mode)
        partial.replace(path)
    except OSError as error:
        raise ReleasePipelineError(f"the file cannot be written: {error.strerror}.", where=str(path)) from None
    finally:
        partial.unlink(missing_ok=True)
