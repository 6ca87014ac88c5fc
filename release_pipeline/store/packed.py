"""CSV in gzip or in a ZIP archive: its start, for the header, and the whole of it in a file without a name."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Literal, TypeAlias, cast

from release_pipeline.errors import ReleasePipelineError, SourceError, read_out_of_space
from release_pipeline.store.anonymous import open_anonymous, path_of

Packing: TypeAlias = Literal["", "gz", "zip"]
PACKED_ENDINGS: dict[str, Packing] = {".gz": "gz", ".zip": "zip"}
TABLES = (".csv", ".tsv")
MOST_TIMES = 250  # what tables of people never reach; a bomb has a thousand
ALWAYS_ALLOWED = 256 << 20  # bytes: a small table of few different entries may be packed more tightly
MOST_BYTES = 64 << 30
_BLOCK = 1 << 20
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # with these a reader needs little memory, whatever the archive says
_AGAIN = "Pack it again, or deliver it as plain CSV."
_DAMAGED = (EOFError, zlib.error, zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, ValueError)


def read_start(file: BinaryIO, packing: Packing, where: str, *, most: int) -> bytes:
    """The first bytes of the table, at most so many."""
    with _errors(where), _open(file, packing, where) as table:
        start = bytearray()
        while len(start) < most and (block := table.read(min(_BLOCK, most - len(start)))):
            start += block
        return bytes(start)


@contextmanager
def unpacked(path: Path, packing: Packing, vault: Path | None, *, where: str) -> Generator[Path]:
    """The path of the whole table while it is read; refused if it is damaged, or much larger than anything honest."""
    if not packing:
        yield path
        return
    with open_anonymous(vault) as into:
        with _errors(where), path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            with _open(file, packing, where) as table:
                _copy(table, into, most=min(MOST_BYTES, max(ALWAYS_ALLOWED, MOST_TIMES * size)), where=where)
            into.flush()
        yield path_of(into)


def _copy(table: IO[bytes], into: BinaryIO, *, most: int, where: str) -> None:
    done = 0
    while block := table.read(_BLOCK):
        done += len(block)
        if done > most:
            raise SourceError(
                f"unpacked it is more than {most >> 20:,} MiB, the most for a file of its size ({MOST_TIMES} times as much, at "
                f"least {ALWAYS_ALLOWED >> 20} MiB and never more than {MOST_BYTES >> 30} GiB).",
                where=where,
                remedy="If it is an honest file, deliver it unpacked.",
            )
        into.write(block)


@contextmanager
def _open(file: BinaryIO, packing: Packing, where: str) -> Generator[IO[bytes]]:
    if not packing:
        yield file
    elif packing == "gz":
        with gzip.GzipFile(fileobj=file) as table:
            yield cast(IO[bytes], table)
    else:
        with zipfile.ZipFile(file) as archive, archive.open(_find_member(archive, where)) as member:
            yield member


def _find_member(archive: zipfile.ZipFile, where: str) -> zipfile.ZipInfo:
    """The only file of an archive, a CSV. The names of others may be data, and so is their number all that is told."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        raise SourceError(
            f"the archive holds {len(members)} files, and one CSV is read.",
            where=where,
            remedy="Pack the one that is meant alone.",
        )
    [member] = members
    if not member.filename.lower().endswith(TABLES):
        raise SourceError("the file in the archive is neither .csv nor .tsv.", where=where, remedy="Deliver it unpacked.")
    if member.flag_bits & 1:
        raise SourceError("the archive has a password.", where=where, remedy="Deliver it without one.")
    if member.compress_type not in _KINDS:
        raise SourceError("the archive is packed in another way than deflate.", where=where, remedy=_AGAIN)
    return member


@contextmanager
def _errors(where: str) -> Generator[None]:
    """What is wrong with an archive, in words of our own."""
    try:
        yield
    except ReleasePipelineError:
        raise
    except _DAMAGED:
        raise SourceError("the archive is damaged, or ends too early.", where=where, remedy=_AGAIN) from None
    except OSError as error:
        if (full := read_out_of_space(error, where)) is not None:
            raise full from None
        if isinstance(error, gzip.BadGzipFile):
            raise SourceError("the archive is damaged, or ends too early.", where=where, remedy=_AGAIN) from None
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=where) from None
