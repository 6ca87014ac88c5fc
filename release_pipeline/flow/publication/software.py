"""Which software made something: commit, versions, and the lock file that it was installed from."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import distributions
from pathlib import Path

UNKNOWN = "unknown"
_PACKAGE = Path(__file__).resolve().parents[2]


def find_commit() -> str:
    """The commit of the checkout that this runs from, with a + when files in it were changed; unknown in an installed package."""
    if not (_PACKAGE.parent / ".git").exists():
        return UNKNOWN
    try:
        commit, changed = (
            subprocess.run(["git", "-C", str(_PACKAGE.parent), *words], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603, S607
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return commit + "+" * bool(changed)


def list_versions() -> dict[str, str]:
    """Python and every installed distribution, by name."""
    found = {known.name.lower(): known.version for known in distributions() if known.name}
    return {"python": platform.python_version(), "system": platform.platform(), **dict(sorted(found.items()))}


def read_lock() -> str:
    """The lock file, of the installed package or of the checkout."""
    for file in (_PACKAGE / "requirements.lock", _PACKAGE.parent / "requirements.lock"):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return UNKNOWN + "\n"
