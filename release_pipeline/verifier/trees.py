"""Files of a folder or a zip; neither is trusted."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from release_pipeline.verifier.documents import HEX, Fault, WrongUsage, read_json

SUMS, SUMS_SIG, CARD = "SHA256SUMS", "SHA256SUMS.sig", "privacy-card.json"
KEYS, KEYS_SIG, EVENTS = "trusted-keys.json", "trusted-keys.sig", "events.jsonl"
DOSSIER, POPULATIONS, OFFICERS = "dossier.json", "populations.json", "officers.json"
PACKAGE = "package/"  # of a dossier
MOST_FILES, MOST_FOLDERS_DEEP, MOST_BYTES, MOST_TO_PARSE = 10_000, 8, 64 * 2**30, 64 * 2**20
MOST_UNPACKED, MOST_RATIO, MOST_SIGNATURES = 2**30, 200, 20_000
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, LookupError, struct.error, zlib.error, zipfile.BadZipFile)


def _is_plain(name: str) -> bool:
    return all(_PART.fullmatch(part) for part in name.split("/")) and name.count("/") < MOST_FOLDERS_DEEP


class Tree:
    """Files by name, and faults of names. `place` is the end of the path of the folder that they are in."""

    def __init__(self, open_file: Callable[[str], IO[bytes]], place: str, prefix: str = "") -> None:
        self.sizes: dict[str, int] = {}
        self.faults: list[str] = []
        self.place, self.prefix = place, prefix
        self._open, self._digests, self._seen = open_file, dict[str, str](), set[str]()

    def add(self, name: str, size: int, fault: str = "") -> None:
        """Add a file, or a fault if a package has none of its name or kind."""
        if len(self.sizes) + len(self.faults) >= MOST_FILES:
            raise Fault(f"there are more than {MOST_FILES} files")
        twice = name.lower() in self._seen and "stands there twice (capitals do not count)"
        if fault or twice or not _is_plain(name):
            self.faults.append(f"{self.prefix}{name}: {fault or twice or 'is not a plain name'}")
        else:
            self.sizes[name] = size
        self._seen.add(name.lower())

    def under(self, folder: str) -> Tree:
        """Return the files of one folder of it."""
        start = len(folder) + 1
        part = Tree(lambda name: self._open(f"{folder}/{name}"), "", f"{self.prefix}{folder}/")
        part.sizes = {name[start:]: size for name, size in self.sizes.items() if name.startswith(f"{folder}/")}
        part._digests = {name[start:]: digest for name, digest in self._digests.items() if name.startswith(f"{folder}/")}
        return part

    def remember(self, name: str, digest: str) -> None:
        """Remember the hash of a file that is not read again."""
        self._digests[name] = digest

    def digest(self, name: str) -> str:
        """Return the SHA-256 of the file."""
        if name not in self._digests:
            whole = hashlib.sha256()
            for chunk in self._chunks(name):
                whole.update(chunk)
            self._digests[name] = whole.hexdigest()
        return self._digests[name]

    def read(self, name: str) -> bytes:
        """Return the content of a file that is to be parsed."""
        if self.sizes.get(name, 0) > MOST_TO_PARSE:
            raise Fault("it is too large to be what its name says")
        return b"".join(self._chunks(name))

    def json(self, name: str) -> Any:
        """Return the value of a JSON file."""
        return read_json(self.read(name))

    def _chunks(self, name: str) -> Iterator[bytes]:
        if name not in self.sizes:
            raise Fault("it is missing")
        left = self.sizes[name]
        try:
            with self._open(name) as file:
                while chunk := file.read(2**20):
                    left -= len(chunk)
                    if left < 0:
                        raise ValueError
                    yield chunk
        except _UNREADABLE:
            raise Fault("it cannot be read, or changed meanwhile") from None
        if left:
            raise Fault("it is shorter than it should be")


@contextmanager
def open_tree(path: Path) -> Generator[Tree]:
    """Yield the files at `path`; raises `WrongUsage` if that is neither a folder nor a zip file that can be read."""
    try:
        whole = path.resolve(strict=True)
        mode = whole.stat().st_mode
    except (OSError, RuntimeError, ValueError):
        raise WrongUsage(f"{path}: there is no such folder or file, or it may not be read.") from None
    if stat.S_ISDIR(mode):
        yield _scan_folder(whole)
        return
    try:
        file = _Careful(open_plain(whole))
    except OSError:
        raise WrongUsage(f"{path}: this is neither a folder nor a file that may be read.") from None
    with file:
        try:
            archive = zipfile.ZipFile(file)
        except _UNREADABLE:
            raise WrongUsage(f"{path}: this is neither a folder nor a zip file that can be read.") from None
        with archive:
            yield _scan_zip(archive, file, whole.stat().st_size)


def open_plain(path: Path) -> io.FileIO:
    """Open a regular file, never the target of a link, and without waiting for a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = io.FileIO(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError
    return file


class _Careful(io.BufferedReader):
    """A reader that never gives more than a few MiB at once, whatever length a zip's directory claims."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, 2**22) if size is not None and size >= 0 else 2**22)


def _scan_folder(root: Path) -> Tree:
    tree, folders = Tree(lambda name: io.BufferedReader(open_plain(root / name)), "/".join(root.parts[-3:])), [""]
    while folders:
        folder = folders.pop()
        try:
            for entry in (root / folder).iterdir():
                name, status = f"{folder}{entry.name}", entry.lstat()
                if stat.S_ISDIR(status.st_mode) and _is_plain(name) and len(folders) < MOST_FILES:
                    folders.append(f"{name}/")
                else:
                    tree.add(
                        name, status.st_size, "" if stat.S_ISREG(status.st_mode) else "is not a plain file (a link, perhaps)"
                    )
        except OSError:
            tree.add(folder, 0, "cannot be read")
    if sum(tree.sizes.values()) > MOST_BYTES:
        raise Fault("it is larger than any package")
    return tree


def _scan_zip(archive: zipfile.ZipFile, file: io.BufferedReader, size: int) -> Tree:
    folders = [entry for entry in archive.infolist() if entry.filename.endswith("/") and entry.file_size == 0]
    entries = [entry for entry in archive.infolist() if not (entry.filename.endswith("/") and entry.file_size == 0)]
    folder = min((entry.filename.rpartition("/")[0] for entry in entries), key=len, default="")  # around everything, if one is
    if not (_is_plain(folder) and all(entry.filename.startswith(f"{folder}/") for entry in entries)):
        folder = ""
    start = len(folder) + 1 if folder else 0
    infos: dict[str, zipfile.ZipInfo] = {}
    tree = Tree(lambda name: io.BufferedReader(_Packed(file, infos[name])), "/".join(folder.split("/")[-3:]))
    for entry in entries:
        name, kind = entry.filename[start:], stat.S_IFMT(entry.external_attr >> 16)
        unusual = kind not in (0, stat.S_IFREG) or entry.flag_bits & 1 or entry.compress_type not in (0, zipfile.ZIP_DEFLATED)
        cut = entry.orig_filename != entry.filename
        tree.add(name, entry.file_size, "is a link, or encrypted, or packed in an unusual way" if unusual or cut else "")
        infos.setdefault(name, entry)
    if sum(entry.file_size for entry in entries) > min(MOST_BYTES, max(MOST_UNPACKED, MOST_RATIO * size)):
        raise Fault("unpacked it would be larger than any package: perhaps it is made to fill a disk")
    tree.faults += _judge_folders(folders, {entry.filename.lower() for entry in entries})
    if not tree.faults:  # else it is refused anyway, by words that name a file
        _check_layout(file, archive)
    return tree


def _judge_folders(folders: Sequence[zipfile.ZipInfo], files: Collection[str]) -> list[str]:
    """Return what is wrong with entries of a zip that are folders, which some programs make."""
    if len(folders) > MOST_FILES:
        raise Fault(f"there are more than {MOST_FILES} folders")
    faults = list[str]()
    for entry in folders:
        name, kind = entry.orig_filename[:-1], stat.S_IFMT(entry.external_attr >> 16)
        if entry.orig_filename != entry.filename or not _is_plain(name):
            faults.append(f"{name}/: is not a plain name")
        elif kind not in (0, stat.S_IFDIR) or entry.compress_size > len(_EMPTY) or name.lower() in files:
            faults.append(f"{name}/: is more than a folder")
    return faults


class _Packed(io.RawIOBase):
    """A file of a zip, unpacked. All of its packed bytes belong to it: otherwise another program could find another file behind
    its end."""

    def __init__(self, file: io.BufferedReader, entry: zipfile.ZipInfo) -> None:
        super().__init__()
        file.seek(entry.header_offset + 26)
        self._file, self._entry = file, entry
        self._at = entry.header_offset + 30 + sum(struct.unpack("<2H", file.read(4)))
        self._left, self._crc = entry.compress_size, 0
        self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS) if entry.compress_type else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        content = self._take(len(buffer)) if self._unpacker is None else self._unpack(self._unpacker, len(buffer))
        self._crc = zlib.crc32(content, self._crc)
        if not content and (self._left or (self._unpacker and self._unpacker.unused_data) or self._crc != self._entry.CRC):
            raise zipfile.BadZipFile
        buffer[: len(content)] = content
        return len(content)

    def _unpack(self, unpacker: Any, most: int) -> bytes:
        while not unpacker.eof:
            packed: bytes = unpacker.unconsumed_tail or self._take(2**16)
            content: bytes = unpacker.decompress(packed, most)
            if content:
                return content
            if not packed and not unpacker.eof:
                raise zipfile.BadZipFile
        return b""

    def _take(self, most: int) -> bytes:
        self._file.seek(self._at)
        packed = self._file.read(min(most, self._left))
        self._at, self._left = self._at + len(packed), self._left - len(packed)
        return packed


_LARGE, _UNICODE_PATH = 0xFFFFFFFF, 0x7075
_EMPTY = b"\x03\0"  # nothing, deflated
_CRYPTIC, _DEFERRED, _NAMED, _MASKED = 0x41, 0x8, 0x800, 0x2000  # flags: encrypted, sizes after it, UTF-8, headers hidden
_OTHERWISE = "other programs may find other files in this zip than its directory names: pack the folder anew"


def _check_layout(file: io.BufferedReader, archive: zipfile.ZipFile) -> None:
    """Check that the files follow each other from the first byte up to the directory, each as that describes it, and that the
    directory reaches up to the end. Programs that read a zip from its start see the directory last, and must find the same."""
    entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    ends = [*(entry.header_offset for entry in entries[1:]), archive.start_dir]
    if (entries[0].header_offset if entries else archive.start_dir) != 0:
        raise Fault(f"something stands before its first file: {_OTHERWISE}")
    try:
        for entry, end in zip(entries, ends):  # noqa: B905  Python 3.9 has no strict
            if not _is_as_told(file, entry, end):
                raise Fault(f"{entry.filename}: the directory tells otherwise of it, or something stands after it: {_OTHERWISE}")
        if not _ends_the_file(file, archive):
            raise Fault(f"its directory does not reach from its last file to its end: {_OTHERWISE}")
    except (ValueError, LookupError, struct.error, OSError):
        raise Fault(f"its entries are cut off: {_OTHERWISE}") from None


def _is_as_told(file: io.BufferedReader, entry: zipfile.ZipInfo, end: int) -> bool:
    """Return whether an entry's own header agrees with the directory, with only that name, and ends at `end`."""
    file.seek(entry.header_offset)
    signature, _, flags, method, _, _, *stated, of_name, of_extra = struct.unpack("<4s5H3L2H", file.read(30))
    name, mine, theirs = file.read(of_name), _read_extras(file.read(of_extra)), _read_extras(entry.extra)
    if _LARGE in stated[1:]:
        stated[2], stated[1] = struct.unpack("<2Q", mine[1][:16])
    deferred, wanted = flags & _DEFERRED, [entry.CRC, entry.compress_size, entry.file_size]
    right = all(one == other or (deferred and not one) for one, other in zip(stated, wanted))  # noqa: B905  Python 3.9 has no strict
    alike = not (flags ^ entry.flag_bits) & (_CRYPTIC | _DEFERRED | _MASKED) and method == entry.compress_type
    coding = "utf-8" if entry.flag_bits & _NAMED else "cp437"
    file.seek(packed_to := entry.header_offset + 30 + of_name + of_extra + entry.compress_size)
    after = file.read(end - packed_to) if 0 <= end - packed_to <= 24 else b"something else"
    return (
        (signature, name) == (b"PK\3\4", entry.orig_filename.encode(coding))
        and _UNICODE_PATH not in {*mine, *theirs}
        and right
        and alike
        and after in (_list_deferred(wanted) if deferred else (b"",))
        and not (deferred and method == zipfile.ZIP_STORED and entry.file_size)  # its end could not be found
    )


def _list_deferred(wanted: Sequence[int]) -> list[bytes]:
    """Return the forms in which CRC and sizes can follow a file."""
    forms = [struct.pack("<L2Q", *wanted)]
    if max(wanted) <= _LARGE:
        forms.append(struct.pack("<3L", *wanted))
    return [mark + form for form in forms for mark in (b"", b"PK\7\10")]


def _read_extras(extra: bytes) -> dict[int, bytes]:
    """Return the extra fields of an entry by their kinds, each once."""
    extras: dict[int, bytes] = {}
    while len(extra) >= 4:
        kind, length = struct.unpack("<2H", extra[:4])
        if 4 + length > len(extra) or kind in extras:
            raise ValueError
        extras[kind], extra = extra[4 : 4 + length], extra[4 + length :]
    return extras


def _ends_the_file(file: io.BufferedReader, archive: zipfile.ZipFile) -> bool:
    """Return whether the directory has the entries that were read, and after it comes the end record of a zip, once."""
    at, count = archive.start_dir, len(archive.infolist())
    for _ in range(count):
        file.seek(at + 28)
        at += 46 + sum(struct.unpack("<3H", file.read(6)))
    stated = [count, at - archive.start_dir, archive.start_dir]
    file.seek(at)
    last = file.read(2**17)
    if last.startswith(b"PK\6\6"):  # of a large one
        large = struct.pack("<2L4Q", 0, 0, count, *stated), struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
        if (last[4:12], last[16:56], last[56:76]) != (struct.pack("<Q", 44), *large):
            return False
        last = last[76:]
    signature, disk, disk_of_it, *numbers, of_comment = struct.unpack("<4s4H2LH", last[:22])
    known = [{count, 0xFFFF}, {count, 0xFFFF}, {stated[1], _LARGE}, {stated[2], _LARGE}]
    right = all(number in wanted for number, wanted in zip(numbers, known))  # noqa: B905  Python 3.9 has no strict
    whole = len(last) == 22 + of_comment and b"PK" not in last[22:]
    return right and whole and (signature, disk, disk_of_it) == (b"PK\5\6", 0, 0)


def read_sums(tree: Tree) -> dict[str, str]:
    """Return the hashes in SHA256SUMS by name."""
    try:
        lines = tree.read(SUMS).decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise Fault("it is not a list of hashes and names") from None
    hashes: dict[str, str] = {}
    for number, line in enumerate(lines[:-1], start=1):
        digest, _, name = line.partition("  ")
        if not HEX.fullmatch(digest) or not _is_plain(name) or name in hashes or name == SUMS:
            raise Fault(f"line {number} is not a hash and a plain name that stands there once")
        hashes[name] = digest
    if lines[-1] or not hashes or len(hashes) > MOST_FILES or len({name.lower() for name in hashes}) < len(hashes):
        raise Fault("it is cut off, empty or too long, or two names are the same but for capitals")
    return hashes
