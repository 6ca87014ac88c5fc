"""The one way through: privacy <- policy <- {stages <- claims, store, report} <- flow <- {dagster_app, desk} ..."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "release_pipeline"

INSIDE = {  # what of the package each folder may import; errors, sentences and the version belong to everybody
    "privacy": {"privacy"},
    "policy": {"policy", "privacy", "plain_files"},
    "stages": {"stages", "policy", "privacy"},
    "store": {"store", "policy", "privacy"},
    "report": {"report", "policy", "privacy"},
    "claims": {"claims", "stages", "policy", "privacy"},
    "flow": {"flow", "claims", "stages", "store", "report", "policy", "privacy", "plain_files", "verify", "sign", "analyst"},
    "door": {"door", "policy"},
    "dagster_app": {"dagster_app", "door", "flow", "policy", "privacy"},
    "desk": {"desk", "door", "flow", "report", "policy", "privacy"},
    "cli": {"cli", "flow", "policy", "dagster_app", "desk", "sign", "verify"},
    "verify.py": set[str](),  # it runs alone, in a dossier
    "sign.py": {"verify"},  # the two run alone as one file, on a reviewer's machine
    "analyst": {"analyst", "privacy"},
    "errors.py": set[str](),
    "plain_files.py": set[str](),
    "sentences": set[str](),
    "__init__.py": set[str](),
    "__main__.py": {"cli"},
}
OUTSIDE = {  # third-party modules each folder may import
    "privacy": {"numpy", "scipy", "numba", "cryptography"},
    "policy": {"numpy", "pydantic", "pydantic_core", "yaml"},
    "stages": {"numpy", "pyarrow", "sklearn", "scipy", "great_expectations", "pandas"},
    "store": {
        *(
            "numpy",
            "pyarrow",
            "duckdb",
            "adbc_driver_postgresql",
            "adbc_driver_manager",
            "psycopg2",
            "pyreadstat",
            "fsspec",
            "pandas",
        ),
        "cryptography",  # AES of the hashes of persons
        "httpx",  # servers that packages go to, and web hooks
    },
    "report": {"numpy", "pyarrow", "jinja2"},
    "claims": {"numpy", "pyarrow"},
    "flow": {"numpy", "pyarrow", "cryptography", "yaml", "pydantic", "pydantic_core"},  # settings are types
    "dagster_app": {
        *("dagster", "dagster_graphql", "dagster_shared", "dagster_webserver", "sqlalchemy"),
        *("graphql", "jinja2", "starlette", "uvicorn"),  # the door: what dagster-webserver is made of
    },
    "door": {"uvicorn"},
    "desk": {"httpx", "jinja2", "pydantic", "starlette", "uvicorn"},
    "cli": {"click", "rich"},
    "verify.py": set[str](),
    "sign.py": set[str](),
    "analyst": {"numpy", "scipy"},
    "errors.py": set[str](),
    "plain_files.py": set[str](),
    "sentences": set[str](),
    "__init__.py": set[str](),
    "__main__.py": set[str](),
}
ONLY_IN = {
    "dagster": "dagster_app/",
    "dagster_webserver": "dagster_app/door/webserver",
    "starlette": ("dagster_app/door/", "desk/web/", "desk/backend/server"),
    "uvicorn": ("dagster_app/door/", "desk/backend/server", "door/serving"),
    "httpx": ("desk/web/client", "store/web"),
    "great_expectations": "stages/validate",
    "duckdb": "store/",
    "pyreadstat": (
        "store/survey_reader",  # a program of its own: a damaged file may end it
        "store/survey_writer",  # what it reads was written by it
    ),
    "fsspec": ("store/objects", "store/targets/files"),
    "sklearn": "stages/measures/",
    "cryptography": ("privacy/noise/streams", "flow/trust/", "store/people"),
}


def _imports(file: Path) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(file.read_text(), filename=str(file))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative imports hide where a thing lives"
            found += [(node.lineno, node.module or "")]
    return found


def _wrong_imports(file: Path) -> Iterator[str]:
    relative = file.relative_to(PACKAGE)
    room = relative.parts[0]
    allowed = INSIDE[room] | {"errors", "sentences", "__init__"}
    for line, module in _imports(file):
        top, *rest = module.split(".")
        if top == "release_pipeline":
            target = rest[0] if rest else "__init__"
            if target not in allowed:
                yield f"{relative}:{line}: {room} may import {sorted(allowed)}, not {target}"
        elif top not in sys.stdlib_module_names:
            if top not in OUTSIDE[room]:
                yield f"{relative}:{line}: {room} may use {sorted(OUTSIDE[room])}, not {top}"
            if not str(relative).startswith(ONLY_IN.get(top, "")):
                yield f"{relative}:{line}: {top} is imported in {ONLY_IN[top]} alone"


def test_imports_point_to_the_left() -> None:
    """Each file imports only what its folder may; the message names the file, the line and the rule."""
    assert [wrong for file in sorted(PACKAGE.rglob("*.py")) for wrong in _wrong_imports(file)] == []


def test_importing_the_core_loads_nothing_else() -> None:
    """After `import release_pipeline.privacy` no data engine, model library or orchestrator is in sys.modules."""
    program = (
        "import sys, release_pipeline.privacy\n"
        "heavy = {'pandas', 'dagster', 'duckdb', 'pydantic', 'pyarrow', 'yaml', 'great_expectations', 'scipy.optimize'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_starts_light() -> None:
    """`--help` needs neither NumPy nor a database."""
    program = (
        "import sys, contextlib, io\nfrom release_pipeline.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    main(['--help'])\n"
        "print(sorted({'numpy', 'duckdb', 'pydantic', 'dagster'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
