"""What is checked strictly, and that nothing hides from it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "release_pipeline"
NOT_STRICT = {"apps"}
STRICT_APPS = {"release_pipeline/apps/desk", "release_pipeline/apps/door.py"}


def test_all_but_the_command_line_and_dagster_are_checked_strictly() -> None:
    strict = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]["strict"])
    folders = {file.relative_to(PACKAGE).parts[0] for file in PACKAGE.rglob("*.py") if file.parent != PACKAGE}
    assert strict == {f"release_pipeline/{name}" for name in {*folders, "*.py"} - NOT_STRICT} | STRICT_APPS


def test_no_line_turns_the_checker_off() -> None:
    """A `pyright: ignore` names its rule; `type: ignore` silences all of them."""
    silenced = re.compile(r"#\s*type:\s*ignore|#\s*pyright:(?!\s*ignore\[)")
    assert [str(file) for file in PACKAGE.rglob("*.py") if silenced.search(file.read_text())] == []


def test_paths_of_the_page_for_contributors_exist() -> None:
    """In its table of what to write: else a newcomer looks for a file that has moved."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## How to add ...")[2].partition("\n## ")[0]
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|toml))`", table)
    homes = (ROOT, PACKAGE, PACKAGE / "sentences" / "en")
    assert len(paths) > 40
    assert [path for path in paths if not any((home / path).exists() for home in homes)] == []


def test_owners_of_code_are_named_for_paths_that_exist() -> None:
    """Else a folder that was renamed has no owner any more."""
    lines = [line.split()[0] for line in (ROOT / ".github" / "CODEOWNERS").read_text().splitlines() if line.startswith("/")]
    assert len(lines) > 5
    assert [path for path in lines if not (ROOT / path.lstrip("/")).exists()] == []
