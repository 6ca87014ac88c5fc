"""A large table is stored column by column, and leaves in slices: the same release comes of it, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.flow import data_files, release, tables
from release_pipeline.flow.data_files import list_data, read_data
from release_pipeline.flow.opening import open_release
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.publication.withdrawal import retract
from release_pipeline.flow.secret_files import Probe
from release_pipeline.flow.tables import write_table
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.published import name_data
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.stages.column_table import load_table
from release_pipeline.stages.package import check_released
from release_pipeline.store import vault
from tests.integration.people import RELEASE, review
from tests.integration.publishing import failures_of, make_trusted_site
from tests.integration.sites import Row, TinySite, make_rows, make_site

SECRET = bytes(range(SECRET_BYTES))
POLICIES: dict[str, dict[str, str]] = {
    "clusters": {"suppress": "{quasi_groups_below: 9, at_most: 100%}"},
}


def make(home: Path, parts: dict[str, str]) -> TinySite:
    """A site whose towns differ in size, so that some cells are blanked."""
    rows: list[Row] = make_rows(90)
    for number, row in enumerate(rows):
        if number % 17 == 0:
            row["town"] = "east"
    tiny = make_site(home, rows=rows, **{"gates": "{min_rows: 30, differencing_below: 0}", **parts})
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    return tiny


def run(tiny: TinySite) -> dict[str, Any]:
    """The files of the candidate, but what is drawn or sealed with a key that each site has for itself."""
    open_release(tiny.site, "people", "1", probe=Probe(new_secret=lambda: SECRET)).run()
    found: dict[str, Any] = {
        file.name: file.read_bytes() for file in tiny.folder().iterdir() if file.suffix in (".csv", ".parquet")
    }
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    audit = {
        name: evidence["audit"][name] for name in ("error", "ks", "wasserstein", "spread", "covariances", "share_suppressed")
    }
    return {**found, "audit": audit, "loss": evidence["columns"]}


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_release_comes_of_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table that the strategies make of records is stored by columns, and the rest as it ever was."""
    whole = run(make(tmp_path / "whole", POLICIES[name]))
    tiny = make(tmp_path / "columns", POLICIES[name])
    with monkeypatch.context() as patched:
        patched.setattr(vault, "LARGE", 1)
        patched.setattr("release_pipeline.stages.measures.columns.HELD", 0)
        by_column = run(tiny)
    for part in whole["loss"].values():  # what is expected is simulated with the site's own key
        for figure in [figure for figure in part if figure.startswith(("error", "ks", "atom", "at_atoms", "served"))]:
            del part[figure]
    for column, part in whole["loss"].items():
        assert {figure: by_column["loss"][column][figure] for figure in part} == part
    assert {**by_column, "loss": None} == {**whole, "loss": None}
    stored = set(tiny.tables())
    of_records = {"records", "masked", "suppressed"} | ({"membership"} if name != "noise on single values" else set())
    of_records |= {"statistics"} if name in ("clusters", "vectors", "random parts") else set()
    assert {table.partition("_column_")[0] for table in stored if "_column_" in table} >= of_records
    assert not stored & of_records


@pytest.mark.parametrize("form", ["parquet"])
def test_what_a_large_file_has_beyond_its_policy_is_found(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cell of many: outside the domain, an entry that nobody declared, a number that is none."""
    tiny = make(tmp_path / "site", {})
    policy, size = tiny.site.policy("people"), 400
    good = {
        name: pa.array([float(column.domain[0])] * size)
        if isinstance(column, NoiseColumn)
        else pa.array([str(next(iter(column.values)))] * size)
        for name, column in policy.released_columns.items()
    }
    wrong = {
        "Column income has values outside its domain.": ("income", 1e9),
        "Column rent has values outside its domain.": ("rent", None),
        "Column town has values that are not declared.": ("town", "elsewhere"),
    }
    monkeypatch.setattr(tables, "HELD", 0)
    monkeypatch.setattr(tables, "HELD_TEXT", 0)
    for words, (name, cell) in wrong.items():
        cells = good[name].to_pylist()
        file = tmp_path / f"data.{form}"
        write_table(file, pa.table({**good, name: pa.array([*cells[:-1], cell], good[name].type)}), format=form, policy=policy)
        found = tables.read_table(file, format=form, policy=policy)
        assert words in list(check_released(found, policy, rows=size))


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of four rows, in slices of two."""
    monkeypatch.setattr(data_files, "PART", 4)
    for module in (data_files, release, tables):
        monkeypatch.setattr(module, "SLICE", 2)


@pytest.mark.usefixtures("small_files")
def test_a_release_in_several_files_is_published_verified_and_withdrawn(tmp_path: Path, keys: dict[str, PrivateKey]) -> None:
    """Everything that reads rows reads all of them: the checks before publishing, the descriptor, a stranger, the analyst's kit;
    and a retraction takes them all away."""
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(90))
    tiny.flow().run()
    policy = tiny.site.policy("people")
    for form in policy.publish.formats:
        read = load_table(read_data(tiny.folder(), form, policy))
        assert read.num_rows == 90
        assert list(check_released(read_data(tiny.folder(), form, policy), policy, rows=90)) == []
    review(tiny, keys, "ben", "cleo")
    package = publish(tiny.site, RELEASE, key=keys["robot"])
    assert not failures_of(verify(package))
    described = json.loads((package / "datapackage.json").read_text())["resources"]
    paths = [resource["path"] for resource in described]
    assert paths == [name for form in policy.publish.formats for name in name_data(form, 23)]
    assert len({resource["name"] for resource in described}) == len(paths)
    card = (package / "privacy-card.html").read_text()
    assert "<code>data.part-0001.csv</code> to <code>data.part-0023.csv</code>" in card
    known = read_release(package)
    read = [pyarrow.csv.read_csv(file).column("income").to_pylist() for file in list_data(package, "csv")]
    assert known.data["income"].tolist() == [cell for part in read for cell in part]
    cut = list_data(package, "csv")[7]
    kept = cut.read_bytes()
    cut.write_bytes(kept.replace(b"1", b"2"))
    assert any(cut.name in words for words in failures_of(verify(package)))
    cut.write_bytes(kept)
    retract(tiny.site, RELEASE, key=keys["olga"], why="a mistake")
    assert not list(package.glob("data.*"))
