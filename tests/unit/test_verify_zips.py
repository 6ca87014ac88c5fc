"""One zip, one content: whichever way a program reads it, from its directory or from its start, it finds what was verified."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from release_pipeline.verifier.command import verify_path
from tests.unit.test_verify import OFFICER, failures, put, usual

FORGED = b"clinic,visits\nFORGED,666\n"


def write(
    target: io.RawIOBase | io.BytesIO, *, method: int = zipfile.ZIP_DEFLATED, large: bool = False, folder: str = "r1/"
) -> None:
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in usual().package.items():
            info = zipfile.ZipInfo(f"{folder}{name}")
            info.compress_type = method
            with archive.open(info, "w", force_zip64=large) as packed:
                packed.write(content)


def packed(method: int = zipfile.ZIP_DEFLATED, *, large: bool = False) -> bytes:
    target = io.BytesIO()
    write(target, method=method, large=large)
    return target.getvalue()


class Pipe(io.RawIOBase):
    """What cannot go back: sizes are written after each file."""

    def __init__(self) -> None:
        self.content = b""

    def writable(self) -> bool:
        return True

    def write(self, content: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.content += bytes(content)
        return len(content)


def streamed(method: int = zipfile.ZIP_DEFLATED) -> bytes:
    pipe = Pipe()
    write(pipe, method=method)
    return pipe.content


def with_folders(folder: Path) -> bytes:
    put(usual().package, folder / "x" / "r1")
    return Path(shutil.make_archive(str(folder / "made"), "zip", folder / "x")).read_bytes()


def judge(content: bytes, folder: Path) -> list[str]:
    file = folder / "p.zip"
    file.write_bytes(content)
    return failures(verify_path(file, OFFICER))


def test_zips_that_programs_write(tmp_path: Path) -> None:
    """Stored, deflated, in the form for large files, streamed, with folders, with a comment: all are one content."""
    for content in (packed(), packed(zipfile.ZIP_STORED), packed(large=True), streamed(), with_folders(tmp_path)):
        assert judge(content, tmp_path) == []
    commented = packed()
    assert judge(commented[:-2] + struct.pack("<H", 5) + b"hello", tmp_path) == []


def split(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Files, directory, end."""
    end = content.rindex(b"PK\5\6")
    start = struct.unpack("<L", content[end + 16 : end + 20])[0]
    return content[:start], content[start:end], content[end:]


def joined(files: bytes, directory: bytes, end: bytes) -> bytes:
    """With the end that fits."""
    return files + directory + end[:12] + struct.pack("<2L", len(directory), len(files)) + end[20:]


def local() -> bytes:
    """A forged file, as it stands before a directory."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("r1/data.csv", FORGED)
    return split(target.getvalue())[0]


def forged_last() -> bytes:
    files, directory, end = split(packed())
    return joined(files + local(), directory, end)


def another_name_inside() -> bytes:
    return packed().replace(b"r1/data.csv", b"r1/DATA.csv", 1)


def in_the_packed_bytes() -> bytes:
    """Behind the end of what unpacks as the first file lies another, which is of it by its size alone."""
    name, content = b"r1/data.csv", usual().package["data.csv"]
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(content) + packer.flush() + local()
    told = struct.pack("<5H3L", 20, 0, 8, 0, 33, zlib.crc32(content), len(body), len(content))
    whole = packed().replace(b"r1/data.csv", b"r1/dummy.xx")
    files, directory, end = split(whole)
    first = b"PK\3\4" + told + struct.pack("<2H", len(name), 0) + name + body
    named = b"PK\1\2" + struct.pack("<H", 20) + told + struct.pack("<5H2L", len(name), 0, 0, 0, 0, 0, len(files)) + name
    counted = struct.pack("<2H", *[len(usual().package) + 1] * 2)
    whole = joined(files + first, directory + named, end)
    return whole[:-14] + counted + whole[-10:]


def unicode_path(place: str) -> Callable[[], bytes]:
    def make() -> bytes:
        name, new = b"r1/data.csv", b"r1/RETRACTED-data.csv"
        extra = struct.pack("<2HBL", 0x7075, 5 + len(new), 1, zlib.crc32(name)) + new
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for known, content in usual().package.items():
                info = zipfile.ZipInfo(f"r1/{known}")
                info.extra = extra if known == "data.csv" and place == "both" else b""
                archive.writestr(info, content)
                if known == "data.csv" and place == "directory":
                    info.extra = extra
        return target.getvalue()

    return make


def with_folder(name: str, content: bytes = b"") -> Callable[[], bytes]:
    def make() -> bytes:
        target = io.BytesIO(packed())
        with zipfile.ZipFile(target, "a") as archive:
            archive.writestr(zipfile.ZipInfo(name), content)
        return target.getvalue()

    return make


def with_an_end_in_its_comment() -> bytes:
    content = packed()
    return content[:-2] + struct.pack("<H", 25) + b"PK\5\6" + bytes(21)


ATTACKS: dict[str, tuple[Callable[[], bytes], str]] = {
    "forged first": (lambda: local() + packed(), "before its first file"),
    "forged last": (forged_last, "something stands after it"),
    "another name inside": (another_name_inside, "tells otherwise"),
    "in the packed bytes": (in_the_packed_bytes, "data.csv: it cannot be read"),
    "a unicode path": (unicode_path("both"), "tells otherwise"),
    "a unicode path in the directory": (unicode_path("directory"), "tells otherwise"),
    "a folder outside": (with_folder("../../evil/"), "../../evil/: is not a plain name"),
    "a folder with tags": (with_folder("r1/<b>x</b>/"), "is not a plain name"),
    "a folder named as a file": (with_folder("r1/Data.csv/"), "is more than a folder"),
    "two ends": (with_an_end_in_its_comment, "before its first file"),
    "stored and streamed": (lambda: streamed(zipfile.ZIP_STORED), "tells otherwise"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_zips_that_other_programs_read_otherwise(attack: str, tmp_path: Path) -> None:
    """Each with the right files in its directory."""
    make, words = ATTACKS[attack]
    assert any(words in each for each in judge(make(), tmp_path))
