"""Files and folders of a site: private, whole or not there, with lists of sums, and texts that people give.

Folders: private ones, one process at a time in one, and writes that are on the disk for good.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from release_pipeline.errors import ReleasePipelineError, WrongUsage, read_out_of_space
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.plain_files import PARTIAL, replacing


def make_private_folder(folder: Path) -> None:
    """Make `folder` and its missing parents, only for the owner."""
    make_folder(folder, mode=0o700)


def make_folder(folder: Path, *, mode: int) -> None:
    """Make `folder` and its missing parents, with that mode, under any umask."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=mode, exist_ok=True)
        path.chmod(mode)


def make_vault(vault: Path) -> None:
    """Make the folder of the confidential side: only for its owner, and never to be committed to a repository."""
    vault.mkdir(mode=0o700, parents=True, exist_ok=True)
    if vault.stat().st_mode & 0o077:
        vault.chmod(0o700)
    ignore = vault / ".gitignore"
    if not ignore.exists():
        ignore.touch(mode=0o600)
        ignore.write_text("*\n", encoding="utf-8")


@contextmanager
def locked(folder: Path, *, waiting: Callable[[], None] | None = None) -> Generator[None]:
    """Hold the lock of a folder, which is made if missing, so that no other thread or process has it during the block. The
    system unlocks what died.

    `waiting` is called once if another has the lock.
    """
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def locked_if_free(folder: Path) -> Generator[bool]:
    """Yield whether the lock of a folder was free, without waiting for it. Where it was, no other thread or process has it during
    the block."""
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Write a file's content, or a folder's list of files, to the disk for good."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Files that appear whole or not at all.


PRIVATE, PUBLIC = 0o600, 0o644


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


def own_folder(folder: Path) -> None:
    """Make a folder in which only its owner can change anything, under any umask."""
    make_private_folder(folder)
    if folder.stat().st_mode & 0o022:
        folder.chmod(0o700)


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether both exist and are the same file, under any names."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def write_private_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` as JSON, only for the owner."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_text(path: Path, text: str, *, mode: int | None = PRIVATE) -> None:
    """Write `text` as a file."""
    write_bytes(path, text.encode(), mode=mode)


def write_bytes(path: Path, content: bytes, *, mode: int | None = PRIVATE) -> None:
    """Write `content` as a file, only for the owner unless another mode is given; None keeps the mode of an existing file."""
    with appearing(path) as file:
        file.write(content)
        os.fchmod(file.fileno(), _read_mode(path) if mode is None else mode)


def _read_mode(path: Path) -> int:
    """Return the rights of the regular file at `path`, without those to run it, or for everyone to write it."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(opened).st_mode
    finally:
        os.close(opened)
    if not stat.S_ISREG(mode):
        raise WrongUsage("this is no regular file.", where=str(path), remedy="Put the file itself here.")
    return mode & 0o664


def clear_partials(folder: Path) -> None:
    """Remove the partial files of killed attempts, in a folder where no other process writes meanwhile."""
    for left in folder.glob(f"{PARTIAL}*"):
        left.unlink()


@contextmanager
def appearing(path: Path) -> Generator[IO[bytes]]:
    """Yield a private file, open for writing, that replaces `path` when the block ends well, and is removed when it does not."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        full = read_out_of_space(OSError(error.errno, error.strerror), str(path))
        raise full or ReleasePipelineError(f"the file cannot be written: {error.strerror}.", where=str(path)) from None


# A folder with a list of sums: SHA256SUMS names every other file with its hash, and its own hash is
# that of the folder.


SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> str:
    """Write the list of a folder's files with their hashes, as `sha256sum -c` reads it, and return the hash of the list."""
    text = list_sums({file.name: hash_of_file(file) for file in folder.iterdir()})
    (folder / SUMS).write_text(text, encoding="utf-8")
    return hash_of(folder)


def list_sums(hashes: Mapping[str, str]) -> str:
    """Return the list of some files' hashes, by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))


def hash_of(folder: Path) -> str:
    """Return the hash of a candidate or package: of its list of sums, which cover every other file."""
    return hash_of_file(folder / SUMS)


def is_whole(folder: Path, digest: str | None, *, besides: Collection[str] = (), without: Collection[str] = ()) -> bool:
    """Return whether the folder has that hash, and exactly the files of its list, each with its hash; `besides`: further files
    that are not in it, `without`: listed files that are missing."""
    listed = {name: known for name, known in read_sums(folder, digest).items() if name not in without}
    if not listed:
        return False
    there = {file.name for file in folder.iterdir() if file.name not in (SUMS, *besides)}
    real = not folder.is_symlink() and not any(file.is_symlink() for file in folder.iterdir())
    return real and there == set(listed) and all(hash_of_file(folder / name) == known for name, known in listed.items())


def read_sums(folder: Path, digest: str | None) -> dict[str, str]:
    """Return the hashes by name in the folder's list; none when it is not the list of that hash."""
    try:
        content = (folder / SUMS).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if hashlib.sha256(content).hexdigest() != digest:
        return {}
    lines = content.decode(errors="replace").splitlines()
    return {name: known for known, _, name in (line.partition("  ") for line in lines)}


def hash_of_file(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as content:
        return hash_of_content(content)


def hash_of_content(content: IO[bytes]) -> str:
    """Return the SHA-256 of an open file from its current position, in hex; it stays open."""
    return hashlib.file_digest(content, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]  it is read and no more


# Secrets on the disk: only for their owner, whole or not there. Also the parts of the system that a test may replace.


def _nothing(_: str) -> None: ...


def _draw_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


@dataclass(frozen=True, slots=True)
class Probe:
    """Replacements of the system's own functions by a test: `reached` is called at every boundary that a release reaches, and
    `new_secret` gives a new secret. Neither the command line nor Dagster nor a policy can set them."""

    reached: Callable[[str], None] = _nothing
    new_secret: Callable[[], bytes] = _draw_secret


PLAIN = Probe()


def list_partials(file: Path) -> list[Path]:
    """Return the files that broken attempts to write a file left."""
    return [path for path in file.parent.iterdir() if path.name.startswith(f".{file.name}.")]


def keep_secret(file: Path, secret: bytes, probe: Probe) -> None:
    """Write a new secret to the disk before it is used, in place of any file there."""
    for left in list_partials(file):
        left.unlink(missing_ok=True)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
            new.write(secret)
            new.flush()
            os.fsync(new.fileno())
        probe.reached("the secret is written, not yet in its place")
        partial.replace(file)
        sync(file.parent)
    finally:
        partial.unlink(missing_ok=True)


def read_secret(file: Path) -> bytes:
    """Return the secret, or nothing where there is no file."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def remove_secret(file: Path) -> None:
    """Remove the secret, and the remains of broken attempts to write it."""
    if file.parent.is_dir():
        for left in (file, *list_partials(file)):
            left.unlink(missing_ok=True)
        sync(file.parent)


def check_value(secret: bytes, *, what: str) -> str:
    """Return the registry's check value of a secret: it distinguishes the secret from others, and reveals nothing of it. `what`:
    the subject of the secret."""
    return hashlib.sha256(f"release-pipeline: check value of {what}\n".encode() + secret).hexdigest()


def is_secret(secret: bytes, noted: str, *, what: str) -> bool:
    """Return whether this is the secret whose check value was recorded."""
    return len(secret) == SECRET_BYTES and hmac.compare_digest(check_value(secret, what=what), noted)


# Texts that people give, before they are signed or recorded.


LONGEST = 500
LONGEST_NAME = 64


def check_line(text: str, *, where: str = "--why", longest: int = LONGEST) -> str:
    """Return the text without spaces around it, if it is one line that can be printed."""
    if len(text) > longest or not (text or " ").isprintable():
        raise WrongUsage(
            f"a reason is one line of at most {longest} characters.", where=where, remedy="It stays in the registry."
        )
    return text.strip()


def check_name(by: str, *, remedy: str) -> str:
    """Return the name of a person without spaces around it, if it is one short line that can be printed."""
    if not (name := by.strip()) or len(name) > LONGEST_NAME or not name.isprintable():
        raise WrongUsage(f"a name is one line of 1 to {LONGEST_NAME} characters.", where="--by", remedy=remedy)
    return name
