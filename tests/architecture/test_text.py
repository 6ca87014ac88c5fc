"""What may not stand in the tree: SQL outside sql/, floating-point randomness, index hosts."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from release_pipeline.store import sql

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "release_pipeline").rglob("*.py"))
STATEMENTS = sorted((ROOT / "sql").rglob("*.sql"))
SQL_TEXT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|WITH)\s")
VERBS = {"use", "drop", "delete", "count", "create", "read", "insert", "select", "update", "find", "list", "compare"}
VERBS |= {"move", "spend", "attach", "detach", "copy", "checkpoint"}


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_no_sql_text_in_python(file: Path) -> None:
    """SQL lives in sql/ alone, one statement per file."""
    tree = ast.parse(file.read_text())
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            assert not SQL_TEXT.match(node.value), f"{file}:{node.lineno}: SQL text lives in sql/"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_randomness_has_one_door(file: Path) -> None:
    """Nobody but privacy/noise draws random numbers; `secrets` makes secrets and file names."""
    text = file.read_text()
    for forbidden in ("np.random", "numpy.random", "default_rng", "import random", "from random", "random.laplace"):
        assert forbidden not in text, f"{file}: {forbidden}"


@pytest.mark.parametrize("file", STATEMENTS, ids=lambda file: file.stem)
def test_every_statement_is_one_named_by_a_verb_and_used(file: Path) -> None:
    """One statement per file, a verb first, and somebody loads it."""
    text = re.sub(r"--.*", "", file.read_text())
    assert text.count(";") == 1
    assert text.rstrip().endswith(";")
    assert file.stem.partition("_")[0] in VERBS
    name = f"{file.parent.name}/{file.stem}"
    users = "".join(source.read_text() for source in SOURCES)
    assert name in users or file.stem.removeprefix("create_") in users, f"{name} is not used"


def test_statements_refuse_wrong_placeholders_and_quote_names() -> None:
    """A missing or unknown placeholder is an error; a name cannot end its quotes."""
    with pytest.raises(ValueError, match="placeholders"):
        sql.statement("stages/read_numbers", column="a")
    with pytest.raises(ValueError, match="placeholders"):
        sql.statement("facts/count_records", column="a")
    assert sql.quote_identifier('a"; DROP TABLE b; --') == '"a""; DROP TABLE b; --"'


def test_no_index_host_in_the_tree() -> None:
    """The lock file and everything else name no package index and no option that would."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    names = [name for name in listed if not name.startswith("tests/")] or ["requirements.lock", "Makefile", "pyproject.toml"]
    there = [name for name in names if (ROOT / name).is_file()]  # what is deleted, but not yet from the index, is not in the tree
    assert {"pyproject.toml", "Makefile", "requirements.lock"} <= set(there)
    for name in there:
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found = re.search(r"--(extra-)?index-url|--trusted-host|--find-links|/simple/|files\.pythonhosted|pypi\.org", text)
        assert found is None, f"{name}: {found and found[0]}"
