"""What people ask for most often starts fast: which heavy packages its commands may not import. Counted by name, not timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from release_pipeline.pipeline.release import run_release
from tests.integration.sites import make_site

HEAVY = {
    "adbc_driver_manager",
    "dagster",
    "great_expectations",
    "jinja2",
    "pandas",
    "pyarrow",
    "scipy",
    "sklearn",
    "sqlalchemy",
    "ssl",
}
COMMANDS = {
    "check": ["check", "{home}/policies/people.yaml"],
    "check, as JSON": ["check", "{home}/policies/people.yaml", "--json"],
    "status": ["status", "--home", "{home}"],
    "status, as JSON": ["status", "--home", "{home}", "--json"],
    "ledger": ["ledger", "--home", "{home}"],
    "ledger, with exposure": ["ledger", "--home", "{home}", "--exposure"],
}
PROGRAM = """
import contextlib, io, json, sys
from release_pipeline.apps.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
LAUNCH = "import json, sys, release_pipeline.apps.dagster.launch; print(json.dumps(list(sys.modules)))"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a candidate, so that there is something to tell."""
    tiny = make_site(tmp_path_factory.mktemp("light") / "site")
    run_release(tiny.flow())
    return tiny.home


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_only_tells_imports_nothing_heavy(home: Path, command: str) -> None:
    arguments = [word.format(home=home) for word in COMMANDS[command]]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    code, imported = json.loads(done.stdout)
    assert code == 0
    assert HEAVY & set(imported) == set()
    assert {"numpy", "duckdb", "pydantic"} <= set(imported)  # what it cannot do without is seen


@pytest.mark.slow
def test_the_module_that_runs_releases_neither_builds_definitions_nor_loads_what_its_stages_do() -> None:
    done = subprocess.run([sys.executable, "-c", LAUNCH], capture_output=True, text=True, check=True)
    imported = set(json.loads(done.stdout))
    assert "release_pipeline.apps.dagster.definitions" not in imported  # it would build those of the whole site, by its import
    assert {"great_expectations", "httpx", "pandas", "scipy", "sklearn"} & imported == set()
    assert "dagster" in imported
