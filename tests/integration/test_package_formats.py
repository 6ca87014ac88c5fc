"""What other people's programs make of a package: frictionless, sha256sum, DuckDB, pandas, pyarrow and JSON Schema."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from release_pipeline.publish.papers import PUBLIC_PAPERS
from release_pipeline.publish.standards import STANDARDS
from tests.integration.publishing import Keys, make_trusted_site, publish_release
from tests.integration.sites import Row, make_rows

Records: TypeAlias = list[tuple[object, ...]]
QUOTED = 'say "no", thanks'
ODD_COLUMNS = """
  person: {role: identifier, do: drop}
  town:   {role: quasi, do: keep, values: ["01", "02", "NA", 'say "no", thanks'], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1, 2], why: needed}
  income: {role: confidential, do: noise, domain: [-1000, 1000], grid: 0.1, outside: fail, missing: {fill: 0}, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 0.5], grid: 0.001, outside: clamp, why: known}
  remark: {role: confidential, do: keep, values: ["yes", "no", "not asked"], missing: {category: not asked}, why: needed}"""
SITES: dict[str, dict[str, str]] = {
    "tiny": {"suppress": "{quasi_groups_below: 5, at_most: 60%}"},
    "odd": {"columns": ODD_COLUMNS, "suppress": "{quasi_groups_below: 5, at_most: 60%}"},
    "told": {
        "columns": ODD_COLUMNS.replace("why: known}", "why: known, unit: crowns, question: 'How much?'}", 1),
        "suppress": "{quasi_groups_below: 5, at_most: 60%}",
        "about": "{title: People of three towns, description: Made up., licence: CC0-1.0, publisher: {name: Town}, contact: "
        "{email: desk@town.example}, contributors: [{name: Ana, role: creator}], keywords: [people], "
        "coverage: {places: [North], first: 2020, last: 2021}}",
    },
}
TYPES: dict[str, list[tuple[str, str]]] = {
    "tiny": [("town", "string"), ("sex", "integer"), ("income", "number"), ("rent", "number")],
    "odd": [("town", "string"), ("sex", "integer"), ("income", "number"), ("rent", "number"), ("remark", "string")],
}
TYPES["told"] = TYPES["odd"]


def odd_rows() -> list[Row]:
    """Towns whose names look like numbers, like nothing or need quotes; small groups that lose a town, and others a sex; remarks
    that are missing."""
    rare = [("NA", "1")] * 3 + [(QUOTED, "1")] * 3 + [("02", "0")] * 3 + [("02", "2")] * 3
    groups = [("NA", "0")] * 6 + [("01", "0")] * 22 + [("01", "1")] * 14 + [(QUOTED, "0")] * 6 + rare
    remarks = ("yes", "no", "")
    return [
        row | {"town": town, "sex": sex, "income": f"{i * 7 - 200}.{i % 10}", "rent": f"0.{i:03}", "remark": remarks[i % 3]}
        for i, (row, (town, sex)) in enumerate(zip(make_rows(releases=("1",)), groups, strict=True))
    ]


@pytest.fixture(scope="module")
def packages(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A published package of each site."""
    folder = tmp_path_factory.mktemp("packages")
    rows = {"tiny": make_rows(), "odd": odd_rows(), "told": odd_rows()}
    sites = {name: make_trusted_site(folder / name, keys, rows=rows[name], **parts) for name, parts in SITES.items()}
    return {name: publish_release(tiny, keys) for name, tiny in sites.items()}


@pytest.fixture(params=SITES)
def name(request: pytest.FixtureRequest) -> str:
    """Which site."""
    return request.param


@pytest.fixture
def package(packages: dict[str, Path], name: str, tmp_path: Path) -> Path:
    """A copy of its package."""
    return shutil.copytree(packages[name], tmp_path / "package")


def describe(package: Path) -> dict[str, Any]:
    """datapackage.json."""
    return json.loads((package / "datapackage.json").read_text())


def check_with_frictionless(package: Path) -> list[str]:
    """The types of the errors that frictionless finds; none if it calls the package valid."""
    from frictionless import validate

    report = validate(str(package / "datapackage.json"))
    found = [kind for (kind,) in report.flatten(["type"])]
    assert report.valid == (found == [])
    return found


def replace_cell(package: Path, column: str, cell: str, *, hidden: bool) -> None:
    """Put a cell into the last record of data.csv; `hidden`: with length and hash of the file told as they are now."""
    file = package / "data.csv"
    place = [field["name"] for field in describe(package)["resources"][1]["schema"]["fields"]].index(column)
    *lines, last, _ = file.read_text().split("\n")
    cells = re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', last)  # at commas that no quotes enclose
    file.write_text("\n".join([*lines, ",".join([*cells[:place], cell, *cells[place + 1 :]]), ""]))
    if hidden:
        content = describe(package)
        content["resources"][1] |= {"bytes": file.stat().st_size, "hash": f"sha256:{sha256(file.read_bytes()).hexdigest()}"}
        (package / "datapackage.json").write_text(json.dumps(content))


def test_frictionless_calls_it_valid(package: Path, name: str) -> None:
    """As it is published; and every declared record of the CSV file was looked at."""
    from frictionless import validate

    assert check_with_frictionless(package) == []
    report = validate(str(package / "datapackage.json"))
    card = json.loads((package / "privacy-card.json").read_text())
    assert report.tasks[1].stats.get("rows") == card["rows"]["out"] == 60
    assert [(field["name"], field["type"]) for field in describe(package)["resources"][1]["schema"]["fields"]] == TYPES[name]


@pytest.mark.parametrize(
    ("column", "cell", "error"),
    [
        ("income", "1000.1", "constraint-error"),
        ("income", "-1000.1", "constraint-error"),
        ("income", "much", "type-error"),
        ("sex", "3", "constraint-error"),
        ("sex", "0.5", "type-error"),
        ("town", "1", "constraint-error"),
    ],
)
def test_frictionless_finds_a_cell_that_is_not_declared(package: Path, column: str, cell: str, error: str) -> None:
    """Outside the domain, of another type, or no declared category, though length and hash of the file are told right."""
    replace_cell(package, column, cell, hidden=True)
    assert check_with_frictionless(package) == [error]


def test_a_package_tells_what_it_is(packages: dict[str, Path]) -> None:
    """Title, terms and people, in the files that catalogues and archives read."""
    told, files = packages["told"], {file.name for file in packages["told"].iterdir()}
    assert {*STANDARDS, *PUBLIC_PAPERS} <= files
    assert describe(told)["$schema"].endswith("/2.0/datapackage.json")
    assert describe(told)["title"] == "People of three towns"
    card = json.loads((told / "privacy-card.json").read_text())
    assert card["about"]["licence"]["name"] == "CC0-1.0"
    assert card["about"]["citation"].startswith("Ana (")
    page = (told / "privacy-card.html").read_text()
    assert "<h1>People of three towns</h1>" in page
    assert "Question asked: How much?" in page
    assert "people.csv" not in "".join((told / name).read_text() for name in STANDARDS)  # of the source nothing


def check_with_sha256sum(package: Path) -> tuple[int, str]:
    """The exit code of `sha256sum -c SHA256SUMS`, and what it says."""
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=package, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_sha256sum_passes_on_it_and_finds_every_changed_file(packages: dict[str, Path], tmp_path: Path) -> None:
    """Each listed file in turn, changed by one byte; nothing but the signature is not listed."""
    package = shutil.copytree(packages["odd"], tmp_path / "package")
    code, words = check_with_sha256sum(package)
    listed = {line.rpartition(": ")[0] for line in words.splitlines()}
    assert code == 0
    assert {file.name for file in package.iterdir()} - listed == {"SHA256SUMS", "SHA256SUMS.sig"}
    for name in listed:
        before = (package / name).read_bytes()
        (package / name).write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        code, words = check_with_sha256sum(package)
        assert (code, [line for line in words.splitlines() if not line.endswith(": OK")]) == (1, [f"{name}: FAILED"])
        (package / name).write_bytes(before)


def read_with_pyarrow(package: Path, form: str, types: list[tuple[str, str]]) -> Records:
    """Parquet as it is; CSV with the declared types."""
    kinds = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64()}
    if form == "parquet":
        table = pyarrow.parquet.read_table(package / "data.parquet")
        assert [(field.name, field.type) for field in table.schema] == [(name, kinds[kind]) for name, kind in types]
    else:
        options = pyarrow.csv.ConvertOptions(
            column_types={name: kinds[kind] for name, kind in types},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        table = pyarrow.csv.read_csv(package / "data.csv", convert_options=options)
    return list(zip(*(table.column(name).to_pylist() for name, _ in types), strict=True))


def read_with_duckdb(package: Path, form: str, types: list[tuple[str, str]]) -> Records:
    """Parquet as it is; CSV with the declared types."""
    kinds = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE"}
    with duckdb.connect() as connection:
        if form == "parquet":
            read = connection.read_parquet(str(package / "data.parquet"))
        else:
            read = connection.read_csv(str(package / "data.csv"), header=True, dtype={name: kinds[kind] for name, kind in types})
        assert list(zip(read.columns, map(str, read.types), strict=True)) == [(name, kinds[kind]) for name, kind in types]
        return read.fetchall()


def read_with_pandas(package: Path, form: str, types: list[tuple[str, str]]) -> Records:
    """With its nullable types, so that a blank leaves whole numbers whole."""
    kinds = {"string": "string", "integer": "Int64", "number": "Float64"}
    if form == "parquet":
        table = pd.read_parquet(package / "data.parquet", dtype_backend="numpy_nullable")
    else:
        table = pd.read_csv(package / "data.csv", dtype=dict(types_of(types, kinds)), keep_default_na=False, na_values=[""])
    assert [(name, str(kind)) for name, kind in table.dtypes.items()] == types_of(types, kinds)
    return [tuple(None if cell is pd.NA else cell for cell in row) for row in table.itertuples(index=False, name=None)]


def types_of(types: list[tuple[str, str]], kinds: dict[str, str]) -> list[tuple[str, str]]:
    """The columns with their types as a reader calls them."""
    return [(name, kinds[kind]) for name, kind in types]


READERS: dict[str, Callable[[Path, str, list[tuple[str, str]]], Records]] = {
    "pyarrow": read_with_pyarrow,
    "duckdb": read_with_duckdb,
    "pandas": read_with_pandas,
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_sees_the_declared_types_and_equal_values(package: Path, name: str, reader: str) -> None:
    """In both formats: types, number of records, and each single value, bit by bit; blanks are blanks in both."""
    from_parquet, from_csv = (READERS[reader](package, form, TYPES[name]) for form in ("parquet", "csv"))
    assert from_parquet == from_csv == read_with_pyarrow(package, "parquet", TYPES[name])
    card = json.loads((package / "privacy-card.json").read_text())
    assert len(from_csv) == card["rows"]["out"]
    blanks = sum(cell is None for row in from_csv for cell in row)
    assert blanks == card["suppression"]["cells_blanked"] == {"tiny": 0, "odd": 12, "told": 12}[name]


def test_the_odd_site_is_odd(packages: dict[str, Path]) -> None:
    """So that the other tests have power: blanks in a text and in a whole number, and each awkward category."""
    records = read_with_pyarrow(packages["odd"], "csv", TYPES["odd"])
    towns, sexes, _, _, remarks = map(set, zip(*records, strict=True))
    assert towns == {"01", "02", "NA", QUOTED, None}
    assert sexes == {0, 1, None}
    assert remarks == {"yes", "no", "not asked"}
