"""What may not stand in the tree: SQL outside sql/, floating-point randomness, package indexes, machines of one workplace."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from release_pipeline.store import database as sql

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "release_pipeline").rglob("*.py"))
STATEMENTS = sorted((ROOT / "sql").rglob("*.sql"))
SQL_WORD = re.compile(r"(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|WITH)")
SQL_TEXT = re.compile(rf"\s*{SQL_WORD.pattern}\s")
VERBS = {"use", "drop", "delete", "count", "create", "read", "insert", "select", "update", "find", "list", "compare"}
VERBS |= {"move", "spend", "attach", "detach", "copy", "checkpoint", "sum", "begin"}


def find_sql(file: Path) -> list[str]:
    """The lines on which a text of SQL begins; docstrings are none."""
    tree = ast.parse(file.read_text())
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [f"{file}:{node.lineno}" for node in texts if id(node) not in docstrings and SQL_TEXT.match(node.value)]


def test_no_sql_text_in_python() -> None:
    """SQL lives in sql/ alone."""
    assert [line for file in SOURCES if SQL_WORD.search(file.read_text()) for line in find_sql(file)] == []


def test_randomness_has_one_door() -> None:
    """Only privacy/noise draws random numbers. Numbers that no claim rests on come from unclaimed.py."""
    draws = re.compile(r"np\.random|numpy\.random|default_rng|(?:import|from) random|random\.laplace")
    assert [file for file in SOURCES if file.name != "unclaimed.py" and draws.search(file.read_text())] == []


def test_every_statement_is_one_named_by_a_verb_and_used() -> None:
    """One statement per file, a verb first, and somebody loads it."""
    users = "".join(source.read_text() for source in SOURCES)
    for file in STATEMENTS:
        text = re.sub(r"--.*", "", file.read_text())
        assert text.count(";") == 1, file
        assert text.rstrip().endswith(";"), file
        assert file.stem.partition("_")[0] in VERBS, file
        assert f"{file.parent.name}/{file.stem}" in users or file.stem.removeprefix("create_") in users, f"{file} is not used"


def test_statements_refuse_wrong_placeholders_and_quote_names() -> None:
    """A missing or unknown placeholder is an error; a name cannot end its quotes."""
    with pytest.raises(ValueError, match="placeholders"):
        sql.statement("stages/read_numbers", column="a")
    with pytest.raises(ValueError, match="placeholders"):
        sql.statement("facts/count_records", column="a")
    assert sql.quote_identifier('a"; DROP TABLE b; --') == '"a""; DROP TABLE b; --"'


OPTIONS = {  # of pip, uv and their configuration: whatever names an index, or vouches for a host
    "an option that names an index": r"--(?:extra-index|index|default-index|find-links|trusted-host)(?:-url)?\b",
    "a setting that names an index": r"(?i)(?<!-)\b(?:\w+_|extra-)?(?:index[-_]url|find[-_]links|trusted[-_]host)\s*[=:]",
    "an index of uv": r"(?m)^\s*\[\[?(?:tool\.)?(?:uv\.)?(?:index|pip)\]\]?|\bUV_(?:DEFAULT_)?INDEX\b",
}
SHAPES = {  # of addresses that belong to one workplace
    "an address of a package index": r"://[^\s\"'<>]+/simple(?![\w-])",
    "a password in an address": r"://[^\s/@:\"'<>{}]+:[^\s/@\"'<>{}]+@(?!127\.0\.0\.1\b|localhost\b)",
    "the number of a machine": r"://(?:[^\s/@]*@)?(?!127\.|0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}(?![\d.])",
    "a name that only one network knows": r"(?<!\bs3)(?<!\bgs)(?<!\bmemory)://(?:[^\s/@]*@)?(?!localhost\b)(?:[\w-]+(?=:\d|/)|[\w.-]+\.(?:internal|intranet|local|lan|corp|home)\b)",
}
LOCKED = {"an address or an option in a lock file": r"(?m)://|@\s*file:|^\s*-[a-z]|^\s*--(?!hash=)"}


def find_places(name: str, text: str) -> list[str]:
    """What a file says of where packages come from, or of a machine that only one workplace has."""
    kinds = {**OPTIONS, **SHAPES, **(LOCKED if name.endswith(".lock") else {})}
    return [f"{name}: {kind}: {found[0]}" for kind, pattern in kinds.items() for found in [re.search(pattern, text)] if found]


@pytest.mark.slow
def test_the_tree_names_no_index_and_no_machine() -> None:
    """No option that names a package index, no address of one, no password in an address, no machine of one workplace."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    names = listed or ["requirements.lock", "Makefile", "pyproject.toml"]
    there = [name for name in names if (ROOT / name).is_file()]  # what is deleted, but not yet from the index, is not in the tree
    assert {"pyproject.toml", "Makefile", "requirements.lock"} <= set(there)
    mine = str(Path(__file__).relative_to(ROOT))  # it has one planted of each
    texts = {name: (ROOT / name).read_text(encoding="utf-8", errors="replace") for name in there if name != mine}
    assert [place for name, text in texts.items() for place in find_places(name, text)] == []


PLANTED = [
    ("requirements.lock", "--index-url https://index.example.org/simple"),
    ("Makefile", "pip install --extra-index-url=https://example.org"),
    ("Makefile", "pip install --find-links wheels"),
    ("Makefile", "pip install --trusted-host example.org"),
    ("Makefile", "uv sync --default-index https://example.org"),
    ("pip.conf", "[global]\nindex-url = https://example.org"),
    ("pip.conf", "extra-index-url=https://example.org"),
    ("docs/a.md", "PIP_INDEX_URL=https://example.org pip install"),
    ("docs/a.md", "UV_INDEX=https://example.org uv sync"),
    ("pyproject.toml", '[[tool.uv.index]]\nname = "mine"'),
    ("docs/a.md", "see https://packages.example.org/root/simple/ for it"),
    ("tests/a.py", "https://ana:secret@example.org/a"),
    ("docs/a.md", "http://10.1.2.3:8080/"),
    ("docs/a.md", "http://192.0.2.7"),
    ("docs/a.md", "https://buildhost:3000/"),
    ("docs/a.md", "https://git.example.internal/a"),
    ("docs/a.md", "ssh://git@forge.corp/a"),
    ("requirements.lock", "numpy @ https://example.org/numpy.whl"),
    ("requirements.lock", "numpy @ file:wheels/numpy.whl"),
    ("requirements.lock", "-e ."),
    ("requirements.lock", "--pre"),
]

HARMLESS = [
    ("README.md", "open http://127.0.0.1:3000 or http://localhost:3000/"),
    ("docs/a.md", "s3://bucket/people.csv is in a store, and gs://bucket/b.csv in another"),
    ("Makefile", "uv pip compile --no-emit-index-url --generate-hashes"),
    ("a.py", 'f"http://127.0.0.1:{port}/server_info"'),
    ("a.py", "postgresql://postgres:word@127.0.0.1:5432/a"),
    ("a.md", "https://json-schema.org/draft and 1.2.3.4 of it"),
    ("requirements.lock", "numpy==2.1.0 \\\n    --hash=sha256:00"),
]


def test_a_planted_index_or_machine_is_found() -> None:
    """The search finds each planted line between harmless ones, and no harmless line."""
    assert [case for case in PLANTED if not find_places(case[0], f"harmless\n{case[1]}\nharmless")] == []
    assert [case for case in HARMLESS if find_places(*case)] == []
