"""The planted faults of `planted.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("planted.toml")


@dataclass(frozen=True)
class Fault:
    """In `file`, below the package, `find` becomes `put`. `breaks`: what that does; `tests`: the files that should see it."""

    file: str
    find: str
    put: str
    breaks: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """What it is called in lists."""
        return f"{self.file}: {self.breaks}"

    def count_places(self, root: Path = ROOT) -> int:
        """How often its text stands in its file."""
        file = root / "release_pipeline" / self.file
        return file.read_text(encoding="utf-8").count(self.find) if file.is_file() else 0


def read_faults() -> tuple[Fault, ...]:
    """All of them, in the order of the file."""
    groups = tomllib.loads(FILE.read_text(encoding="utf-8"))["group"]
    return tuple(Fault(group["file"], **fault, tests=tuple(group["tests"])) for group in groups for fault in group["faults"])
