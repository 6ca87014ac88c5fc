"""A folder with a list of sums: SHA256SUMS names every other file with its hash, and its own hash is that of the folder."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> str:
    """List the files of a folder with their hashes, as `sha256sum -c` reads it, and give the hash of the list."""
    text = list_sums({file.name: hash_of_file(file) for file in folder.iterdir()})
    (folder / SUMS).write_text(text, encoding="utf-8")
    return hash_of(folder)


def list_sums(hashes: Mapping[str, str]) -> str:
    """The list of some files' hashes, by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))


def hash_of(folder: Path) -> str:
    """The hash of a candidate or package: of its list of sums, which cover every other file."""
    return hash_of_file(folder / SUMS)


def is_whole(folder: Path, digest: str | None, *, besides: Collection[str] = (), without: Collection[str] = ()) -> bool:
    """Whether the folder has that hash, and exactly the files of its list, each with its hash; `besides` some that are not in
    it, and `without` some that are."""
    listed = {name: known for name, known in read_sums(folder, digest).items() if name not in without}
    if not listed:
        return False
    there = {file.name for file in folder.iterdir() if file.name not in (SUMS, *besides)}
    real = not folder.is_symlink() and not any(file.is_symlink() for file in folder.iterdir())
    return real and there == set(listed) and all(hash_of_file(folder / name) == known for name, known in listed.items())


def read_sums(folder: Path, digest: str | None) -> dict[str, str]:
    """The hashes by name that the folder's list has; none when it is not the list of that hash."""
    try:
        content = (folder / SUMS).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if hashlib.sha256(content).hexdigest() != digest:
        return {}
    lines = content.decode(errors="replace").splitlines()
    return {name: known for known, _, name in (line.partition("  ") for line in lines)}


def hash_of_file(file: Path) -> str:
    """SHA-256 of a file, in hex."""
    with file.open("rb") as content:
        return hash_of_content(content)


def hash_of_content(content: IO[bytes]) -> str:
    """SHA-256 of an open file from where it stands, in hex; it stays open."""
    return hashlib.file_digest(content, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]  it is read and no more
