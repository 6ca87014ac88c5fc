"""What requirements.lock pins, and which of it a distribution of ours needs: for the image's own lock, its bill of materials and
the list of licences. It asks the packages that are installed from the lock, and no network."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import groupby
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
PROJECTS = {
    "release-pipeline-analyst": ROOT / "packages" / "analyst",
    "release-pipeline": ROOT,
}
IMAGE_EXTRAS = ("objects", "postgres", "surveys")  # sources, and Dagster's records in Postgres: what the image has
_PIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\]+?))? \\")
_LONGEST_NAME = 40  # of a licence: what is longer is its text
_HASH = re.compile(r" {4}--hash=sha256:([0-9a-f]{64})(?: \\)?")


@dataclass(frozen=True, slots=True)
class Pin:
    """A version of a package that the lock allows. `lines`: as it stands there, hashes included."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    lines: tuple[str, ...]


def read_lock(file: Path = LOCK) -> list[Pin]:
    """The pins of a lock file, in its order. A package may have several, for different versions of Python."""
    lines = file.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if not line.startswith(" ")]
    pins: list[Pin] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found = _PIN.fullmatch(lines[start])
        hashes = [_HASH.fullmatch(line) for line in lines[start + 1 : end]]
        if found is None or not hashes or None in hashes:
            raise SystemExit(f"{file}:{start + 1}: this is no version with hashes. Make the lock anew: make lock")
        sums = tuple(one[1] for one in hashes if one is not None)
        pins.append(Pin(found["name"], found["version"], found["marker"] or "", sums, tuple(lines[start:end])))
    return pins


def find_needed(project: str, extras: Iterable[str] = (), *, pins: Iterable[Pin]) -> set[str]:
    """The names of all packages that a distribution of ours needs with these extras. What only some machines need is among them
    where the lock has it; its marker stays with it."""
    return close(_own_requirements(project, frozenset(extras)), pins=pins)


def close(requirements: Iterable[Requirement], *, pins: Iterable[Pin]) -> set[str]:
    """The names of these packages and of all that they need in turn, as far as the lock has them."""
    locked = {pin.name for pin in pins}
    waiting, seen = [*requirements], dict[str, set[str]]()
    while waiting:
        wanted = waiting.pop()
        name = str(canonicalize_name(wanted.name))
        if name in PROJECTS:
            waiting += _own_requirements(name, frozenset(wanted.extras))
        elif name in locked:  # else it is for a machine or a Python that the lock does not serve
            new = {"", *wanted.extras} - seen.setdefault(name, set())
            seen[name] |= new
            waiting += [one for extra in new for one in _requirements(name, extra)]
    return set(seen)


def list_packages(pins: Iterable[Pin]) -> Iterator[tuple[str, list[Pin]]]:
    """Each package of the lock once, with its versions."""
    for name, group in groupby(pins, key=lambda pin: pin.name):
        yield name, list(group)


def read_licence(name: str) -> tuple[str, bool]:
    """The licence that an installed package names in its metadata, and whether that is an SPDX expression: older metadata have
    words, or classes of licences."""
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        return "", False
    if "License-Expression" in metadata:
        return metadata["License-Expression"], True
    said = metadata["License"].strip() if "License" in metadata else ""
    if said and "\n" not in said and len(said) <= _LONGEST_NAME:
        return said, False
    classes = [text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier", []) if text.startswith("License :: ")]
    return " or ".join(classes), False


def list_own_requirements(project: str, extras: Iterable[str] = ()) -> list[str]:
    """The packages that a distribution of ours asks for itself, with these extras."""
    return sorted({str(canonicalize_name(one.name)) for one in _own_requirements(project, frozenset(extras))})


def list_requirements(name: str) -> list[str]:
    """The packages that an installed package asks for without any extra."""
    return sorted({str(canonicalize_name(one.name)) for one in _requirements(name, "")})


def read_version() -> str:
    """Ours."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def _own_requirements(project: str, extras: frozenset[str]) -> list[Requirement]:
    """As its pyproject.toml says: an editable install may be of another day."""
    said = tomllib.loads((PROJECTS[project] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = said.get("optional-dependencies", {})
    texts = [*said["dependencies"], *(text for extra in sorted(extras) for text in optional[extra])]
    return [Requirement(text) for text in texts]


@cache
def _requirements(name: str, extra: str) -> list[Requirement]:
    """What an installed package asks for, or one of its extras does."""
    try:
        texts = distribution(name).requires or []
    except PackageNotFoundError:
        return []  # of another platform; such packages need nothing here
    wanted = [Requirement(text) for text in texts]
    return [one for one in wanted if _asked_by(one, extra)]


def _asked_by(requirement: Requirement, extra: str) -> bool:
    """Whether an extra asks for it, or (by an empty name) the package itself."""
    if requirement.marker is None:
        return extra == ""
    named = re.search(r"\bextra\b", str(requirement.marker)) is not None
    if not named:
        return extra == ""
    return extra != "" and requirement.marker.evaluate({"extra": extra})
