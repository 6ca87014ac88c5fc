"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from release_pipeline.errors import ReleasePipelineError, WrongUsage, read_room
from release_pipeline.policy import Policy
from release_pipeline.store.folders import sync

PRIVATE, PUBLIC = 0o600, 0o644
_PARTIAL = ".partial-"


def check_output(path: Path, *, endings: tuple[str, ...], overwrite: bool, hint: bool = True) -> None:
    """Refuse, before any work, an output that could not be written or that would destroy something."""
    if path.suffix.lower() not in endings:
        raise WrongUsage(f"the output must end in {' or '.join(endings)}.", where=str(path))
    try:
        if not path.parent.is_dir():
            raise WrongUsage("its folder does not exist.", where=str(path), remedy="Make the folder first.")
        if path.is_dir():
            raise WrongUsage("this is a directory.", where=str(path), remedy="Name a file.")
        if path.exists() and not overwrite:
            raise WrongUsage(
                "the file exists already.",
                where=str(path),
                remedy="Choose another name, or add --overwrite." if hint else "Choose another name.",
            )
        if not os.access(path.parent, os.W_OK):
            raise WrongUsage("its folder cannot be written to.", where=str(path))
    except OSError as error:
        raise WrongUsage(f"the path cannot be used: {error.strerror}.", where=str(path), remedy="Name another.") from None


def is_same_file(one: Path, other: Path) -> bool:
    """Whether both are there and the same file, whatever their names."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def write_together(table: tuple[Path, pa.Table], evidence: tuple[Path, Mapping[str, Any]] | None) -> None:
    """A table as CSV or Parquet, told by the ending of its path, and evidence as JSON: both or neither, for the owner alone."""
    with ExitStack() as both:
        if evidence is not None:
            partial = both.enter_context(_appearing(evidence[0]))
            partial.write_text(json.dumps(evidence[1], indent=2, allow_nan=True) + "\n", encoding="utf-8")
        write_table(both.enter_context(_appearing(table[0])), table[1], format=table[0].suffix.lower().removeprefix("."))


def write_private_json(path: Path, content: Mapping[str, Any]) -> None:
    """`content` as JSON for the owner alone."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_text(path: Path, text: str, *, mode: int = PRIVATE) -> None:
    """`text` as a file."""
    write_bytes(path, text.encode(), mode=mode)


def write_bytes(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """`content` as a file, for the owner alone unless another mode is named."""
    with _appearing(path) as partial:
        partial.write_bytes(content)
        partial.chmod(mode)


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


def clear_partials(folder: Path) -> None:
    """What attempts that were killed have left of files, in a folder where nobody else writes meanwhile."""
    for left in folder.glob(f"{_PARTIAL}*"):
        left.unlink()


@contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """A private file beside `path` that takes its place when the block ends well, and is gone when it does not."""
    partial = path.with_name(f"{_PARTIAL}{secrets.token_hex(8)}")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        yield partial
        sync(partial)
        partial.replace(path)
    except OSError as error:
        room = read_room(OSError(error.errno, error.strerror), str(path))
        raise room or ReleasePipelineError(f"the file cannot be written: {error.strerror}.", where=str(path)) from None
    finally:
        partial.unlink(missing_ok=True)
