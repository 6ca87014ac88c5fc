"""Looking for planted values in whatever left the confidential side, plain or in one of the usual disguises.

Plant canaries that occur nowhere by chance (eight bytes or more), make the software write everything that it can, and hand all
bytes that a stranger could get to `find_canaries`. It finds nothing that is encrypted or hashed, no part of a canary, and
nothing in compressed forms that are not named there (a DuckDB file's, for instance).
"""

from __future__ import annotations

import base64
import html
import io
import re
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

LEAST = 8  # bytes: a shorter canary is found by chance, in Base85 above all
DEEPEST = 4  # an archive within an archive, and so on
LARGEST = 256 * 2**20  # bytes unpacked from one stream: more is an error, for what was not searched may hold anything
_FOURS = 2**22  # numbers for four bytes in a row
_PACKED = (b"\x1f\x8b\x08", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"PK\x03\x04", b"PAR1")


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A canary, the blob that it is in, and in which forms: the outermost first, like "gzip > base64"."""

    blob: str
    canary: bytes
    form: str


def find_canaries(blobs: Mapping[str, bytes], canaries: Iterable[str | bytes]) -> list[Found]:
    """Every canary in every blob, once for each form that it is there in.

    Forms: plain (UTF-8 and UTF-16), hex, Base64 and Base85 (both alphabets of each), each of them backwards too; in texts that
    are URL-encoded, escaped as in HTML or JSON, or broken into lines; and all of that in gzip and zlib streams, zip members and
    Parquet columns, which may be in hex or Base64 themselves. Plain and hex are looked for without regard to case; Base64 and
    Base85 by their whole groups, of which there must be two, so up to six bytes at the ends of a canary are not compared.
    """
    disguises = [(canary, form, needle) for canary in _as_bytes(canaries) for form, needle in _disguises(canary)]
    exact = _Needles([one for one in disguises if one[1].startswith("base")])
    folded = _Needles([(canary, form, needle.lower()) for canary, form, needle in disguises if not form.startswith("base")])
    found: set[Found] = set()
    for name, blob in blobs.items():
        for path, layer in _layers(blob, DEEPEST):
            for canary, form in (*exact.find_in(layer), *folded.find_in(layer.lower())):
                found.add(Found(name, canary, " > ".join([*path, form])))
    return sorted(found)


class _Needles:
    """Canaries in disguise, to be found in many texts. Only those are looked for whose first four bytes and last four bytes are
    somewhere in the text: there are tens of thousands, and nearly all are not."""

    def __init__(self, needles: Sequence[tuple[bytes, str, bytes]]) -> None:
        self._needles = needles
        self._ends = [_number_fours(b"".join(part)) for part in ([n[:4] for _, _, n in needles], [n[-4:] for _, _, n in needles])]
        if any(len(needle) < 4 for _, _, needle in needles):
            raise ValueError("a disguise is too short to be found")

    def find_in(self, text: bytes) -> Iterator[tuple[bytes, str]]:
        """Each canary that is there, and its form."""
        there = np.zeros(_FOURS, dtype=np.bool_)
        there[_number_fours(text)] = True
        for place in np.flatnonzero(there[self._ends[0][::4]] & there[self._ends[1][::4]]).tolist():
            canary, form, needle = self._needles[place]
            if needle in text:
                yield canary, form


def _number_fours(text: bytes) -> npt.NDArray[np.uint32]:
    """A number below `_FOURS` for each four bytes in a row: the same for the same ones, and seldom for others."""
    one = np.frombuffer(text, dtype=np.uint8).astype(np.uint32)
    fours = one[:-3] | one[1:-2] << np.uint32(8) | one[2:-1] << np.uint32(16) | one[3:] << np.uint32(24)
    return fours * np.uint32(2_654_435_761) >> np.uint32(10)


def read_blobs(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path from there, and the paths themselves as one more blob."""
    files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    return files | {"names of files": "\n".join(files).encode("utf-8", "surrogateescape")}


def _as_bytes(canaries: Iterable[str | bytes]) -> list[bytes]:
    listed = [canary.encode() if isinstance(canary, str) else canary for canary in canaries]
    if not listed or any(len(canary) < LEAST for canary in listed):
        raise ValueError(f"there must be canaries, each of at least {LEAST} bytes")
    return listed


def _disguises(canary: bytes) -> Iterator[tuple[str, bytes]]:
    for form, needle in _encodings(canary):
        yield form, needle
        yield f"{form} reversed", needle[::-1]


def _encodings(canary: bytes) -> Iterator[tuple[str, bytes]]:
    spellings = [canary, canary[::-1]]  # encoded after it was turned round
    try:
        text = canary.decode()
    except UnicodeDecodeError:
        text = None
    yield "plain", canary
    if text is not None:
        for wide in (text.encode("utf-16-le"), text.encode("utf-16-be")):
            yield "plain utf-16", wide
            spellings += [wide, wide[::-1]]
    for spelling in spellings:
        yield "hex", spelling.hex().encode()
        for needle in _aligned(spelling, 3, base64.b64encode):
            yield "base64", needle
            yield "base64", needle.replace(b"+", b"-").replace(b"/", b"_")
        for needle in (*_aligned(spelling, 4, base64.b85encode), *_aligned(spelling, 4, base64.a85encode)):
            yield "base85", needle


def _aligned(spelling: bytes, group: int, encode: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The middle of an encoded text that holds `spelling` anywhere: whole groups, which the surroundings do not change. One group
    alone is found by chance: five characters of Base85 are part of one random identifier in 10,000."""
    for before in range(group):
        whole = spelling[before : before + (len(spelling) - before) // group * group]
        if len(whole) > group:
            yield encode(whole)


def _layers(blob: bytes, depth: int) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """The blob and whatever can be unpacked from it, each with the way there."""
    yield (), blob
    if depth:
        for form, inner in _unpack(blob):
            for path, layer in _layers(inner, depth - 1):
                yield (form, *path), layer


def _unpack(blob: bytes) -> Iterator[tuple[str, bytes]]:
    for start in re.finditer(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]", blob):
        inner = _inflate(memoryview(blob)[start.start() :])
        if inner:
            yield ("gzip" if start[0][0] == 0x1F else "zlib"), inner
    if b"PK\x03\x04" in blob:
        yield from _zip_members(blob)
    if blob.startswith(b"PAR1"):
        yield "parquet", _parquet_text(blob)
    yield from _unescape(blob)
    for run in re.finditer(rb"[0-9A-Fa-f]{32,}", blob):
        for text in (run[0], run[0][1:]):
            yield from _if_packed("hex", bytes.fromhex(text[: len(text) // 2 * 2].decode()))
    for run in re.finditer(rb"[A-Za-z0-9+/_-]{16,}", blob):
        text = run[0].replace(b"-", b"+").replace(b"_", b"/")
        text = text[:-1] if len(text) % 4 == 1 else text
        yield from _if_packed("base64", base64.b64decode(text + b"=" * (-len(text) % 4)))


def _if_packed(form: str, inner: bytes) -> Iterator[tuple[str, bytes]]:
    """An archive. What is none was looked for in its encoded form already."""
    if inner.startswith(_PACKED):
        yield form, inner


def _inflate(stream: memoryview) -> bytes:
    """What is in a gzip or zlib stream, as far as it goes: the end may be missing or spoiled."""
    decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    inner = bytearray()
    for place in range(0, len(stream), 2**14):
        try:
            inner += decoder.decompress(stream[place : place + 2**14])
        except zlib.error:
            break
        if len(inner) > LARGEST:
            raise ValueError("too much is packed in one stream to search it")
        if decoder.eof:
            break
    return bytes(inner)


def _zip_members(blob: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            for member in archive.infolist():
                if member.file_size > LARGEST:
                    raise ValueError("too much is packed in one member to search it")
                yield "zip", archive.read(member)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):  # no archive, broken, or encrypted
        return


def _parquet_text(blob: bytes) -> bytes:
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(blob))
    except (pa.ArrowException, OSError):
        return b""
    return "\n".join(str(value) for column in table.columns for value in column.to_pylist()).encode("utf-8", "replace")


def _unescape(blob: bytes) -> Iterator[tuple[str, bytes]]:
    readings = {
        "url": urllib.parse.unquote_to_bytes(blob.replace(b"+", b" ")),
        "html": html.unescape(blob.decode("latin-1")).encode("latin-1", "replace"),
        "escaped": re.sub(rb"\\(?:u00|x)([0-9A-Fa-f]{2})", lambda match: bytes.fromhex(match[1].decode()), blob),
        "lines joined": re.sub(rb"(?:\r?\n|\\n)[ \t]*", b"", blob),
    }
    yield from ((form, plain) for form, plain in readings.items() if plain != blob)
