"""Tables beside the rows, from the policy to the analyst: charged, drawn once with the rows, published, verified, taken away."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest

from release_pipeline.mechanisms.noise import streams
from release_pipeline.pipeline.mask import mask
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE, appoint, copy_site, review
from tests.integration.sites import HEADER, TOWNS, TinySite, make_rows, make_site

pytestmark = pytest.mark.slow
TABLES = """
  people: {by: [town, sex], epsilon: 0.5}
  wages:  {by: town, sum: income, epsilon: 0.25}
  rents:  {by: [sex, {column: town, groups: {coast: [north, south], inland: [east]}}], sum: rent, epsilon: 1}"""
FILES = ["data.table-people.csv", "data.table-rents.csv", "data.table-wages.csv"]
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> Path:
    """A site whose release is charged and clustered, and not drawn."""
    tiny = make_site(tmp_path_factory.mktemp("tables") / "site", tables=TABLES)
    appoint(tiny, keys)
    tiny.charge()
    return tiny.home


@pytest.fixture(scope="module")
def released(clustered: Path, tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> Path:
    """The same, published."""
    tiny = copy_site(clustered, tmp_path_factory.mktemp("released") / "site")
    run_release(tiny.flow())
    review(tiny, keys, "ben", "cleo")
    publish(tiny.site, RELEASE, key=keys["robot"])
    return tiny.home


def read(folder: Path, name: str) -> Rows:
    """A table of a package or candidate."""
    return list(csv.DictReader(io.StringIO((folder / f"data.table-{name}.csv").read_text())))


def package(home: Path) -> Path:
    """The only one."""
    return TinySite(home).site.package(str(RELEASE))


def test_cells_are_all_combinations_and_values_add_up(released: Path) -> None:
    """Counts to the number of records, groups to their values; none below 0; noisy numbers lie on the grid."""
    people, wages, rents = (read(package(released), name) for name in ("people", "wages", "rents"))
    assert [(row["town"], row["sex"]) for row in people] == [(town, sex) for town in TOWNS for sex in "01"]
    assert sum(int(row["value"]) for row in people) == 60
    assert [row["town"] for row in wages] == list(TOWNS)
    assert all(Decimal(row["value"]) >= 0 for row in (*people, *wages, *rents))
    assert all(Decimal(row["noisy"]) * 2 == int(Decimal(row["noisy"]) * 2) for row in rents)
    assert [(row["sex"], row["town"], row["level"], row["within"]) for row in rents[:6]] == [
        *(("0", "coast", "1", ""), ("0", "inland", "1", ""), ("1", "coast", "1", ""), ("1", "inland", "1", "")),
        *(("0", "north", "0", "coast"), ("0", "south", "0", "coast")),
    ]
    for row in rents[:4]:
        parts = [part for part in rents[4:] if part["within"] == row["town"] and part["sex"] == row["sex"]]
        assert sum(Decimal(part["value"]) for part in parts) == Decimal(row["value"])


def test_no_text_of_the_source_that_is_not_declared_is_in_a_table(released: Path) -> None:
    """Names, persons and remarks stand in the source alone."""
    records = make_rows()
    undeclared = {row[name] for row in records for name in ("person", "name", "remark")}
    assert set(HEADER) > {"person", "name", "remark"}
    for file in FILES:
        text = (package(released) / file).read_text()
        assert not [cell for cell in undeclared if cell in text]


CAP = "epsilon: 20, definition: idp, scope: column"
HOSTILE = ["tables", "part", "parts", "shuffle", "counts"]  # columns that are called as what draws noise


@pytest.mark.parametrize(
    "protect",
    ["{method: dp-cdf, epsilon: 9, k: 5}", "{method: laplace, epsilon: 5}"],
)
def test_no_two_draws_share_a_stream_whatever_names_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protect: str
) -> None:
    """A table `counts` and a masked column `tables` had the same noise once: their difference was what the records are."""
    seen: list[tuple[object, ...]] = []
    derive = streams.derive_key

    def note(secret: bytes, *context: streams.Context) -> bytes:
        seen.append((secret, *context))
        return derive(secret, *context)

    rows = [{**row, **dict.fromkeys(HOSTILE, row["income"])} for row in make_rows(releases=["1"])]
    declared = "{role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known}"
    columns = """
  person: {role: identifier, do: drop}
  town: {role: quasi, do: keep, values: [north, south, east], why: needed}""" + "".join(
        f"\n  {name}: {declared}" for name in HOSTILE
    )
    tables = "".join(
        f"\n  {name}: {{by: town, epsilon: 0.34}}" for name in ("counts", "noise", "ties", "shuffle", "cells", "part")
    )
    drop = "[name, remark, sex, income, rent]"
    tiny = make_site(tmp_path / "site", columns=columns, tables=tables, protect=protect, drop=drop, cap=CAP)
    tiny.write_rows(rows, header=[*HEADER, *HOSTILE])
    flow = tiny.charge()
    seen.clear()
    monkeypatch.setattr(streams, "derive_key", note)
    mask(flow)
    contexts = [entry for entry in seen if str(flow.id) in entry]
    assert len(contexts) > len(HOSTILE) + 6
    assert len(set(contexts)) == len(contexts)
