"""What each distribution holds: every file in one, the analyst's usable alone, the product whole."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.sites import ROOT

PLACES = {"product": ROOT, "analyst": ROOT / "packages" / "analyst"}
MADE = {  # what the product's wheel has from elsewhere in the checkout: where it is there
    "sql": "sql",
    "policies": "policies",
    "apps/dagster/dagster.yaml": "dagster.yaml",
    "apps/dagster/workspace.yaml": "workspace.yaml",
}
BUILD = "import sys, hatchling.build as backend; print(getattr(backend, 'build_' + sys.argv[1])(sys.argv[2]))"
BLOCKED = (
    "dagster",
    "duckdb",
    "pydantic",
    "great_expectations",
    "sklearn",
    "pandas",
    "pyarrow",
    "yaml",
    "jinja2",
    "adbc_*",
)
ALONE = f"""
import fnmatch, importlib, importlib.abc, json, pkgutil, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if any(fnmatch.fnmatch(top, pattern) for pattern in {BLOCKED!r}):
            raise ModuleNotFoundError(f"No module named '{{top}}'", name=top)
        return None

sys.path = [sys.argv[1], *(place for place in sys.path if place != {str(ROOT)!r} and place)]
sys.meta_path.insert(0, Blocked())
import numpy as np
import release_pipeline.analyst as analyst, release_pipeline.mechanisms as privacy, release_pipeline.verifier as verifier
from release_pipeline.analyst.facts import ColumnFacts

modules = [name for _, name, _ in pkgutil.walk_packages([sys.argv[1] + "/release_pipeline"], "release_pipeline.")]
for name in modules:
    importlib.import_module(name)
column = ColumnFacts("income", "noise", "number", privacy.Grid.declare((0, 1000), 1), privacy.Epsilon.of("1"))
found = {{}}
for method, k in (("laplace", None), ("dp-um", 5), ("idp-cbls", 5)):
    facts = analyst.Facts(method=method, scope="column", k=k, consistency="none", clamped=False, rows_in=200, rows_out=200,
                          in_parts=False, columns={{"income": column}})
    values = privacy.mask_column(np.arange(200) * 5, domain=(0, 1000), grid=1, method=method, epsilon=1, k=k, clamp=False,
                                 consistency="none", secret=bytes(32)).values
    mean = analyst.Release(facts, {{"income": values}}).mean("income")
    found[method] = [mean.low, mean.high]
found["clusters"] = len(set(privacy.mdav(np.arange(20).reshape(10, 2), 5)))
print(json.dumps({{"file": analyst.__file__, "modules": modules, "found": found,
                  "loaded": sorted({{name.partition(".")[0] for name in sys.modules}})}}))
"""


def build(place: Path, kind: str, folder: Path) -> Path:
    """A wheel or an sdist of the project at this place."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILD, kind, str(folder)]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


def read_wheel(file: Path) -> dict[str, bytes]:
    """Its files, but for what it says of itself."""
    with zipfile.ZipFile(file) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of all three, made from this checkout."""
    folder = tmp_path_factory.mktemp("wheels")
    return {name: build(place, "wheel", folder) for name, place in PLACES.items()}


def metadata(name: str) -> dict[str, Any]:
    """What a distribution says of itself."""
    return tomllib.loads((PLACES[name] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def unpack(wheels: dict[str, Path], folder: Path, *names: str) -> Path:
    """These distributions as they would be installed, in a folder."""
    for name in names:
        with zipfile.ZipFile(wheels[name]) as wheel:
            wheel.extractall(folder)  # noqa: S202  made by this test
    return folder


def run_installed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line of what is unpacked there, and of nothing else."""
    program = (
        f"import sys; sys.path = [{str(folder)!r}, *(place for place in sys.path if place not in ('', {str(ROOT)!r}))]\n"
        "import release_pipeline; assert release_pipeline.__file__.startswith(sys.path[0])\n"
        "from release_pipeline.apps.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_file_is_in_one_distribution(wheels: dict[str, Path]) -> None:
    """All that the package has, as it is in the checkout, and nothing twice: two that own a file could not live together."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "release_pipeline"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    tracked = {name: (ROOT / name).read_bytes() for name in names if name and (ROOT / name).is_file()}
    held = {name: read_wheel(file) for name, file in wheels.items()}
    for here, there in MADE.items():
        for file in sorted((ROOT / there).rglob("*")) if (ROOT / there).is_dir() else [ROOT / there]:
            if file.is_file():
                name = f"release_pipeline/{here}{str(file).removeprefix(str(ROOT / there))}"
                assert held["product"].pop(name) == file.read_bytes()
    everything = [name for files in held.values() for name in files]
    assert sorted(everything) == sorted(tracked)
    assert {name: body for files in held.values() for name, body in files.items()} == tracked
    assert not any("experiments" in name for files in held.values() for name in files)


def test_sdists_make_the_same_wheels(tmp_path: Path, wheels: dict[str, Path]) -> None:
    """What is published as source is whole, though the packages have links to the checkout."""
    for name, place in PLACES.items():
        with tarfile.open(build(place, "sdist", tmp_path / "sdist")) as archive:
            archive.extractall(tmp_path / name, filter="data")
        [source] = (tmp_path / name).iterdir()
        assert read_wheel(build(source, "wheel", tmp_path / f"{name}-wheel")) == read_wheel(wheels[name])


def test_what_the_analysts_distribution_imports_is_in_it_or_declared(wheels: dict[str, Path]) -> None:
    """Line by line: its own modules, the standard library, and what it depends on."""
    files = read_wheel(wheels["analyst"])
    own = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files if name.endswith(".py")}
    declared = {re.split(r"[<>=]", text)[0] for text in metadata("analyst")["dependencies"]}
    assert declared == {"numpy", "scipy", "cryptography"}
    for name, body in files.items():
        for node in ast.walk(ast.parse(body)) if name.endswith(".py") else ():
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                top = module.partition(".")[0]
                where = f"{name}:{node.lineno}"
                assert module in own if top == "release_pipeline" else top in declared | sys.stdlib_module_names, (
                    f"{where}: {module}"
                )


def test_analyst_needs_nothing_of_the_product(tmp_path: Path, wheels: dict[str, Path]) -> None:
    """Every module is imported, columns are masked and means estimated, where the product's libraries are not."""
    folder = unpack(wheels, tmp_path / "alone", "analyst")
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALONE, str(folder)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["file"].startswith(str(folder))
    assert {
        "release_pipeline.analyst.laws",
        "release_pipeline.mechanisms.columns.methods",
        "release_pipeline.verifier.trees",
    } <= set(shown["modules"])
    assert not {"dagster", "duckdb", "pydantic", "great_expectations", "sklearn", "pandas"} & set(shown["loaded"])
    assert shown["found"].pop("clusters") == 2
    for low, high in shown["found"].values():
        assert low < 497.5 < high


def test_the_product_works_from_both_distributions(tmp_path: Path, wheels: dict[str, Path]) -> None:
    folder = unpack(wheels, tmp_path / "installed", *PLACES)
    checked = run_installed(folder, "check", str(folder / "release_pipeline" / "policies" / "rand-hie.yaml"), "--no-source")
    assert checked.returncode == 0, checked.stderr
    assert "epsilon 2 in all" in checked.stdout
