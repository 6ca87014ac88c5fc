"""Build the wheels and source archives of the two distributions, the same bytes from the same commit, and look at them.

    python deploy/make_dist.py [-o FOLDER] [--list]

In a checkout it builds what is committed, and dates it by the commit; elsewhere, as in the image, the files as they are, dated by
SOURCE_DATE_EPOCH. It needs what deploy/build.lock has and no network.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("packages/analyst", ".")
BUILD = "import sys, hatchling.build as backend; print(getattr(backend, 'build_' + sys.argv[1])(sys.argv[2]))"
DATE, SUMS = "SOURCE_DATE_EPOCH", "SHA256SUMS"


def build_all(output: Path) -> list[Path]:
    """Four archives in the folder, and the list of their hashes. What is wrong with one is said, and ends it."""
    output.mkdir(parents=True, exist_ok=True)
    with _source() as (tree, date):
        made = [_build(tree / place, kind, output, date) for place in PLACES for kind in ("wheel", "sdist")]
    for file in made:
        check_archive(file)
    sums = "".join(f"{_digest(file)}  {file.name}\n" for file in sorted(made))
    (output / SUMS).write_text(sums, encoding="ascii")
    return made


@contextmanager
def _source() -> Iterator[tuple[Path, str]]:
    """The files to build from, and their date: those of the commit, for the folder may have files that git does not know."""
    if not (ROOT / ".git").exists():
        if not os.environ.get(DATE, "").isdigit():
            raise SystemExit(f"This is no checkout, so the date of the files must be given: {DATE}=SECONDS")
        yield ROOT, os.environ[DATE]
        return
    if changed := _git("status", "--porcelain").strip():
        raise SystemExit(f"Commit these first, for only what is committed is built:\n{changed}")
    date = os.environ.get(DATE) or _git("log", "-1", "--format=%ct").strip()
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "tree.tar"
        _git("archive", "--output", str(archive), "HEAD")
        with tarfile.open(archive) as opened:
            opened.extractall(Path(folder) / "tree", filter="data")
        yield Path(folder) / "tree", date


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603, S607


def _build(place: Path, kind: str, output: Path, date: str) -> Path:
    command = [sys.executable, "-c", BUILD, kind, str(output.resolve())]
    environment = {**os.environ, DATE: date}
    done = subprocess.run(command, cwd=place, check=True, capture_output=True, text=True, env=environment)  # noqa: S603
    return output / done.stdout.split()[-1]


def check_archive(file: Path) -> dict[str, Any]:
    """What it says of itself, judged by the rules for such metadata, as an index would; a licence and a page are in it."""
    names = list_files(file)
    [place] = [name for name in names if name.endswith((".dist-info/METADATA", "/PKG-INFO"))]
    said = Metadata.from_email(_read(file, place), validate=True)
    faults = [
        *([] if said.description and said.description_content_type == "text/markdown" else ["it has no page in Markdown"]),
        *([] if said.license_expression else ["it names no licence"]),
        *([] if any(name.endswith("/LICENSE") for name in names) else ["the text of its licence is not in it"]),
        *([] if f"-{said.version}" in file.name else ["its name has another version"]),
        *(f"{name} is no part of it" for name in names if "__pycache__" in name or name.endswith((".pyc", ".duckdb"))),
    ]
    if faults:
        raise SystemExit("\n".join(f"{file.name}: {fault}." for fault in faults))
    return {"name": said.name, "version": str(said.version), "files": len(names)}


def list_files(file: Path) -> list[str]:
    """The files of a wheel or a source archive."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return sorted(wheel.namelist())
    with tarfile.open(file) as archive:
        return sorted(member.name for member in archive if member.isfile())


def _read(file: Path, name: str) -> bytes:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return wheel.read(name)
    with tarfile.open(file) as archive:
        found = archive.extractfile(name)
        return b"" if found is None else found.read()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _show(file: Path, *, everything: bool) -> None:
    names = list_files(file)
    print(f"{file}  {file.stat().st_size:,} bytes  {len(names)} files  sha256 {_digest(file)}")
    if everything:
        print("".join(f"    {name}\n" for name in names), end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, look, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", metavar="FOLDER", help="where to (default: dist)")
    parser.add_argument("--list", action="store_true", help="name every file of each archive")
    options = parser.parse_args(arguments)
    for file in build_all(options.output):
        _show(file, everything=options.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
