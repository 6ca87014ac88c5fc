"""Imports point one way: from each folder to those of the layers before it, and so between the folders of a folder."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "release_pipeline"

LAYERS = (  # a folder imports folders of earlier lines alone; errors, sentences and the version belong to everybody
    {"errors", "__init__"},
    {"sentences", "plain_files", "verifier"},
    {"signer"},  # joined with parts of the verifier it runs alone, on a reviewer's machine
    {"mechanisms"},
    {"analyst"},
    {"policy"},
    {"rows"},
    {"audit"},
    {"masking"},
    {"claims"},
    {"formats"},
    {"pages"},
    {"store"},
    {"ledger"},
    {"trust"},
    {"targets"},
    {"report"},
    {"pipeline"},
    {"explore"},
    {"review"},
    {"publish"},
    {"operate"},
    {"apps"},
    {"__main__"},
)
RANKS = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}
ALONE: dict[str, set[str]] = {  # what imports less than it might: it runs alone, or is shipped alone
    "verifier": set(),
    "signer": {"verifier"},
    "errors": set(),
    "sentences": set(),
    "plain_files": {"errors"},
    "mechanisms": {"errors", "sentences", "__init__"},
    "analyst": {"errors", "sentences", "__init__", "mechanisms"},
}
OUTSIDE: dict[str, set[str]] = {  # third-party modules each folder may import
    "mechanisms": {"numpy", "scipy", "cryptography"},
    "analyst": {"numpy", "scipy"},
    "policy": {"numpy", "pydantic", "pydantic_core", "yaml"},
    "rows": {"numpy", "pyarrow", "great_expectations", "pandas"},
    "audit": {"numpy", "pyarrow", "sklearn", "scipy"},
    "masking": {"numpy", "pyarrow"},
    "claims": {"numpy", "pyarrow"},
    "formats": {"pyarrow", "pydantic"},
    "pages": {"jinja2"},
    "store": {
        *(
            "numpy",
            "pyarrow",
            "duckdb",
            "adbc_driver_postgresql",
            "adbc_driver_manager",
            "psycopg2",
            "cryptography",
            "pyreadstat",
            "deltalake",
            "pandas",
        ),
        *("pydantic", "pydantic_core"),  # settings are types
    },
    "ledger": {"pydantic"},
    "trust": {"cryptography"},
    "targets": {"fsspec", "pydantic"},
    "pipeline": {"numpy", "pyarrow", "pydantic"},
    "explore": {"numpy", "pyarrow"},
    "publish": {"jinja2"},
    "operate": {"httpx", "pydantic"},
    "apps": {
        *("dagster", "dagster_graphql", "dagster_shared", "dagster_webserver", "sqlalchemy", "graphql"),
        *("click", "rich", "httpx", "jinja2", "pydantic", "starlette", "uvicorn"),
    },
}
ONLY_IN: dict[str, tuple[str, ...]] = {
    "dagster": ("apps/dagster/",),
    "dagster_webserver": ("apps/dagster/webserver",),
    "starlette": ("apps/dagster/", "apps/desk/web/", "apps/desk/backend/server"),
    "uvicorn": ("apps/door", "apps/desk/backend/server"),
    "click": ("apps/cli/",),
    "rich": ("apps/cli/",),
    "httpx": ("apps/desk/web/frame", "operate/alerts/sending"),
    "great_expectations": ("rows/validate",),
    "duckdb": ("store/",),
    "pyreadstat": (
        "store/survey_reader",  # a program of its own: a damaged file may end it
        "store/survey_writer",  # what it reads was written by it
    ),
    "deltalake": ("store/delta",),
    "fsspec": ("targets/files",),
    "sklearn": ("audit/models",),
    "cryptography": ("mechanisms/noise/streams", "store/people", "trust/"),
}
APPS = {
    "door": set[str](),
    "dagster": {"door"},
    "desk": {"door"},
    "cli": {"door", "dagster", "desk"},
}  # what each may import of the others


def _imports(file: Path) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(file.read_text(), filename=str(file))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative imports hide where a thing lives"
            found += [(node.lineno, node.module or "")]
    return found


def _list_modules(file: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The modules of this package that a file imports, as the parts of their names."""
    for node in ast.walk(ast.parse(file.read_text(), filename=str(file))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "release_pipeline":
            for alias in node.names:
                parts = (*(node.module or "").split(".")[1:], alias.name)
                is_module = PACKAGE.joinpath(*parts).is_dir() or PACKAGE.joinpath(*parts).with_suffix(".py").is_file()
                yield node.lineno, parts if is_module else parts[:-1] or ("__init__",)
        elif isinstance(node, ast.Import):
            yield from (
                (node.lineno, tuple(alias.name.split(".")[1:]) or ("__init__",))
                for alias in node.names
                if alias.name.partition(".")[0] == "release_pipeline"
            )


def _wrong_imports(file: Path) -> Iterator[str]:
    relative = file.relative_to(PACKAGE)
    folder = relative.with_suffix("").parts[0]
    for line, parts in _list_modules(file):
        target = parts[0]
        if target != folder and (RANKS[target] >= RANKS[folder] or target not in ALONE.get(folder, RANKS)):
            yield f"{relative}:{line}: {folder} may not import {target}"
        if folder == target == "apps" and parts[1] != (app := relative.with_suffix("").parts[1]) and parts[1] not in APPS[app]:
            yield f"{relative}:{line}: {app} may import {sorted(APPS[app])}, not {parts[1]}"
    for line, module in _imports(file):
        top = module.partition(".")[0]
        if top != "release_pipeline" and top not in sys.stdlib_module_names:
            if top not in OUTSIDE.get(folder, ()):
                yield f"{relative}:{line}: {folder} may use {sorted(OUTSIDE.get(folder, ()))}, not {top}"
            if not str(relative).startswith(ONLY_IN.get(top, ("",))):
                yield f"{relative}:{line}: {top} is imported in {ONLY_IN[top]} alone"


def test_imports_point_one_way() -> None:
    """Each file imports only what its folder may; the message names the file, the line and the rule."""
    assert [wrong for file in sorted(PACKAGE.rglob("*.py")) for wrong in _wrong_imports(file)] == []


def test_no_two_subfolders_import_each_other() -> None:
    """At every depth: two folders beside each other, and a folder's own files beside its folders, depend one way."""
    edges: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}
    for file in PACKAGE.rglob("*.py"):
        here = file.relative_to(PACKAGE).parts[:-1]
        for line, parts in _list_modules(file):
            there = parts if PACKAGE.joinpath(*parts).is_dir() else parts[:-1]
            depth = next(
                (n for n, (one, other) in enumerate(zip(here, there, strict=False)) if one != other), min(len(here), len(there))
            )
            if here and here != there and not (file.name == "__init__.py" and there[: len(here)] == here):
                edges[here[: depth + 1], there[: depth + 1]] = f"{file.relative_to(PACKAGE)}:{line}"
    assert [
        (place, edges[there, here]) for (here, there), place in edges.items() if here < there and (there, here) in edges
    ] == []


def test_importing_the_core_loads_nothing_else() -> None:
    """After `import release_pipeline.mechanisms` no data engine, model library or orchestrator is in sys.modules."""
    program = (
        "import sys, release_pipeline.mechanisms\n"
        "heavy = {'pandas', 'dagster', 'duckdb', 'pydantic', 'pyarrow', 'yaml', 'great_expectations', 'scipy.optimize'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_starts_light() -> None:
    """`--help` needs neither NumPy nor a database."""
    program = (
        "import sys, contextlib, io\nfrom release_pipeline.apps.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    main(['--help'])\n"
        "print(sorted({'numpy', 'duckdb', 'pydantic', 'dagster'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
