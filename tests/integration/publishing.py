"""Small sites with people and keys, whose releases get as far as the public."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.verifier.findings import Finding
from tests.integration.people import appoint, review
from tests.integration.sites import Row, TinySite, make_site

Keys: TypeAlias = Mapping[str, PrivateKey]
Files: TypeAlias = dict[str, bytes]


def make_trusted_site(home: Path, keys: Keys, *, rows: list[Row] | None = None, cap: str = "", **parts: str) -> TinySite:
    """A site with a list of trusted keys and an approved policy and populations."""
    tiny = make_site(home, rows=rows, cap=cap or "epsilon: 10, definition: idp, scope: column", **parts)
    appoint(tiny, dict(keys))
    return tiny


def publish_release(tiny: TinySite, keys: Keys, release: str = "1", *, revision: int = 1) -> Path:
    """Run it at its last revision, have it reviewed twice, publish it, and give the folder of the package."""
    run_release(tiny.flow(release))
    name = ReleaseId("people", release, revision)
    review(tiny, dict(keys), "ben", "cleo", release=name)
    return publish(tiny.site, name, key=keys["robot"])


def read_zip(file: Path) -> Files:
    """The files in a zip by name."""
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read_folder(folder: Path) -> Files:
    """The files of a folder by name."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def write_folder(files: Mapping[str, bytes], folder: Path) -> Path:
    """These files in a new folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """The list of sums of some files, as anybody can make one."""
    lines = (f"{sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()) if name != "SHA256SUMS")
    return "".join(lines).encode()


def with_new_sums(files: Mapping[str, bytes]) -> Files:
    """The same files, with a list of sums of them as they are now."""
    return {**files, "SHA256SUMS": sums_of(files)}


def failures_of(findings: Iterable[Finding]) -> list[str]:
    """What was found wrong."""
    return [finding.words for finding in findings if finding.level == "FAIL"]


def words_of(findings: Iterable[Finding], level: str) -> list[str]:
    """What was found of that level."""
    return [finding.words for finding in findings if finding.level == level]


FLIPS: dict[str, Callable[[int], int]] = {
    "the first": lambda _: 0,
    "a middle": lambda size: size // 2,
    "the last": lambda size: size - 1,
}


def flip(content: bytes, where: str = "a middle") -> bytes:
    """One byte of it changed by one bit."""
    place = FLIPS[where](len(content))
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
