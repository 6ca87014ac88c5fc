"""The Dagster job of a release: what it records, what blocks it, and that no cell of the data is anywhere outside the vault."""

from __future__ import annotations

import dataclasses
import random
import shutil
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.metadata import ALLOWED, build_metadata
from release_pipeline.apps.dagster.names import SiteResource
from release_pipeline.apps.dagster.releases import build_release_assets
from release_pipeline.ledger.facts import PublicFacts
from release_pipeline.pipeline import candidate as candidate_stage
from release_pipeline.pipeline import validate as validate_stage
from release_pipeline.pipeline.context import StageResult
from release_pipeline.rows.checks import FAMILIES, Check
from tests.integration.sites import (
    GX_WARNINGS,
    QUIET,
    ROOT,
    SPOILED,
    STAGES,
    Row,
    TinySite,
    failures,
    make_rows,
    make_site,
    materializations,
    run_job,
    spoil,
)
from tests.integration.test_whole_table import CAP as TABLE_CAP
from tests.integration.test_whole_table import PARTS as WHOLE
from tests.integration.test_whole_table import make_people
from tests.leaks import find_canaries

pytestmark = GX_WARNINGS

RELEASED = ["town", "sex", "income", "rent"]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's records, in memory."""
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TinySite, dg.ExecuteInProcessResult]]:
    """A site with a finished run of release 1; for tests that only look."""
    tiny = make_site(tmp_path_factory.mktemp("good") / "site", gates="{min_rows: 20, expected_error: {income: 100}}")
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield tiny, run_job(tiny, instance=ephemeral)


def checks(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """The evaluated checks by name."""
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


def materialize(tiny: TinySite, stages: Sequence[str], instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """Some stages of release 1 alone, as somebody selects them in the UI."""
    policy = tiny.site.policy("people")
    return dg.materialize(
        build_release_assets(policy)[0],
        selection=dg.AssetSelection.assets(*[dg.AssetKey(["people", stage]) for stage in stages]),
        partition_key="1",
        instance=instance,
        resources={"site": SiteResource(home=str(tiny.home))},
        raise_on_error=False,
        run_config=QUIET,
    )


def test_good_run_materializes_every_stage_and_evaluates_every_check(good: tuple[TinySite, dg.ExecuteInProcessResult]) -> None:
    """Seven assets; eight families of checks on what was validated, its warnings, gates, and the frozen folder: all passed."""
    tiny, result = good
    assert result.success
    assert tuple(materializations(result)) == STAGES
    found = checks(result)
    assert found.keys() == {*FAMILIES, "warnings", "gates", "frozen"}
    assert len(FAMILIES) == 8
    assert all(evaluation.passed for evaluation in found.values())
    assert {found[family].asset_key.path[-1] for family in FAMILIES} == {"validated"}
    assert all("counts" in found[family].metadata for family in FAMILIES)
    assert tiny.folder().is_dir()


def test_candidate_metadata_plots_epsilon_and_k(good: tuple[TinySite, dg.ExecuteInProcessResult]) -> None:
    """Epsilon and the series' epsilon are floats, k and the counts integers, all of them plain numbers that Dagster plots."""
    metadata = materializations(good[1])["candidate"].metadata
    assert isinstance(metadata["epsilon"], dg.FloatMetadataValue)
    assert isinstance(metadata["series_epsilon"], dg.FloatMetadataValue)
    for name in ("k", "anonymity_k", "rows_in", "rows_out", "cells_blanked"):
        assert isinstance(metadata[name], dg.IntMetadataValue), name
    assert {name: metadata[name].value for name in ("epsilon", "series_epsilon", "k", "anonymity_k", "definition", "scope")} == {
        "epsilon": 2.0,
        "series_epsilon": 2.0,
        "k": 5,
        "anonymity_k": 10,
        "definition": "idp",
        "scope": "column",
    }
    assert metadata["candidate_hash"].value == good[0].status().candidate_hash
    assert metadata["policy_hash"].value == good[0].site.policy("people").canonical_hash()
    assert {"table_bound", "column_bound", "claim", "population_spent"} <= metadata.keys()


def test_what_a_claim_lacks_is_left_out(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """A synthetic table has no k: every stage says its epsilon all the same, and the candidate what was done to each column."""
    tiny = make_site(tmp_path / "site", rows=make_people(), **{"cap": TABLE_CAP, **WHOLE})
    result = run_job(tiny, instance=instance)
    assert result.success, failures(result)
    found = materializations(result)
    descriptions = {c.name: c.description for c in found["candidate"].metadata["dagster/column_schema"].value.columns}
    assert all("synthetic: made of noisy counts of all columns" in descriptions[name] for name in ("town", "income"))
    wanted = found["candidate"].metadata["epsilon"].value
    for stage in ("microaggregated", "masked", "suppressed", "audited", "candidate"):
        assert found[stage].metadata["epsilon"].value == wanted, stage
        assert "k" not in found[stage].metadata, stage


def test_every_public_fact_is_on_the_list() -> None:
    """Or a release that has one would fail at its candidate, after the charge."""
    assert {field.name for field in dataclasses.fields(PublicFacts)} <= ALLOWED.keys()


@pytest.mark.parametrize("stage", STAGES)
def test_columns_and_their_lineage_are_declared(good: tuple[TinySite, dg.ExecuteInProcessResult], stage: str) -> None:
    """From source to candidate each asset says which released columns it has, and which column each comes from."""
    metadata = materializations(good[1])[stage].metadata
    schema = metadata["dagster/column_schema"].value
    lineage = metadata["dagster/column_lineage"].value
    names = [column.name for column in schema.columns]
    assert set(RELEASED) <= set(names)
    assert stage == "ingested" or sorted(names) == sorted(RELEASED)
    for name in RELEASED:
        [dep] = lineage.deps_by_column[name]
        assert dep.column_name == name
        assert dep.asset_key.path[-1] in (*STAGES[: STAGES.index(stage)], "people", "source")
    words = {column.name: column.description for column in schema.columns}
    assert stage == "ingested" or "idp-cbls" in words["income"]


def versions(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """The data version of each stage."""
    return {stage: (one.tags or {})["dagster/data_version"] for stage, one in materializations(result).items()}


def test_data_versions_follow_the_content(tiny: TinySite, instance: dg.DagsterInstance) -> None:
    """The same data give the same versions at another time; one other cell gives others, and they are no plain hash."""
    first = versions(run_job(tiny, instance=instance))
    assert versions(run_job(tiny, instance=instance)) == first
    assert len(set(first.values())) == len(STAGES)
    rows = make_rows()
    rows[7]["town"] = "north" if rows[7]["town"] != "north" else "south"
    tiny.write_rows(rows)
    changed = run_job(tiny, instance=instance)
    assert not changed.success
    assert versions(changed).keys() == {"ingested", "validated"}
    assert all(version != first[stage] for stage, version in versions(changed).items())
    assert set(versions(run_job(tiny, "2", instance=instance)).values()).isdisjoint(first.values())


@pytest.mark.parametrize(
    "facts",
    [{"mean_income": 3.0}, {"epsilon": 2}, {"rows": 5.0}, {"rows": True}, {"rows": None}, {"claim": 3}, {"k": "5"}],
    ids=str,
)
def test_unknown_and_mistyped_facts_never_become_metadata(facts: dict[str, Any]) -> None:
    """The builder raises, and names the fact and its type without the value."""
    with pytest.raises(ValueError, match=f"{next(iter(facts))}.*may not stand"):
        build_metadata(StageResult("candidate", "v", facts), show_internal=True)


@pytest.mark.parametrize("said", [None, "internal_metrics_in_ui: true\n"])
def test_internal_metrics_show_only_where_the_site_says_so(
    tiny: TinySite, instance: dg.DagsterInstance, said: str | None
) -> None:
    """Figures against the original stand in the UI if site.yaml has internal_metrics_in_ui: true, and not otherwise."""
    if said is not None:
        (tiny.home / "site.yaml").write_text(said)
    result = run_job(tiny, instance=instance)
    names = {name for one in materializations(result).values() for name in one.metadata if name.startswith("internal/")}
    allowed = said is not None and "true" in said
    assert bool(names) == allowed
    assert not allowed or {"internal/error/income", "internal/record_linkage/value", "internal/sse_paper"} <= names
    assert all(
        isinstance(value, dg.FloatMetadataValue)
        for one in materializations(result).values()
        for name, value in one.metadata.items()
        if name in names
    )


@pytest.mark.parametrize("way", ["missing column", "undeclared category"])
def test_spoiled_source_fails_the_run_with_its_reason(tiny: TinySite, instance: dg.DagsterInstance, way: str) -> None:
    """No candidate; a failed run; the reason in failure, check and registry. Candidate alone: refused."""
    spoil(tiny, way)
    result = run_job(tiny, instance=instance)
    assert not result.success
    assert not tiny.folder().exists()
    assert tiny.charges() == []
    reason, family = SPOILED[way].reason, SPOILED[way].check
    [failure] = failures(result)
    assert reason in failure
    found = checks(result)
    assert found.keys() == FAMILIES.keys()
    failed = {name for name, evaluation in found.items() if not evaluation.passed}
    assert failed == ({"schema", *(failed & {"types", "missing", "categories"})} if way == "missing column" else {family})
    assert reason in str(found[family].metadata["found"].value)
    counts = [record.data for record in found[family].metadata["counts"].records]  # type: ignore[union-attr]
    assert any(record["up_to"] for record in counts)
    assert all(record["up_to"] % 10 == 0 for record in counts)
    assert all(record.keys() == {"column", "fact", "up_to"} for record in counts)
    assert found[family].blocking
    alone = materialize(tiny, ["audited", "candidate"], instance)
    assert not alone.success
    assert not tiny.folder().exists()
    assert "has not been passed" in failures(alone)[0]
    assert tiny.status().state == "blocked", "the registry does not know that the release is blocked"
    assert reason in tiny.status().reason


def test_candidate_alone_cannot_be_selected_without_its_audit(good: tuple[TinySite, dg.ExecuteInProcessResult]) -> None:
    """Audit and candidate are one step."""
    tiny, _ = good
    with dg.DagsterInstance.ephemeral() as ephemeral, pytest.raises(dg.DagsterInvalidDefinitionError, match="resolve asset job"):
        materialize(tiny, ["candidate"], ephemeral)


def test_changed_candidate_fails_its_check(tiny: TinySite, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the frozen folder looks at the files, not at what was meant to be written."""
    freeze = candidate_stage.freeze

    def freeze_and_touch(folder: Path, *arguments: Any) -> str:
        digest = freeze(folder, *arguments)
        with (folder / "data.csv").open("a") as file:
            file.write("x")
        return digest

    monkeypatch.setattr(candidate_stage, "freeze", freeze_and_touch)
    assert not checks(run_job(tiny, instance=instance))["frozen"].passed


def test_a_run_of_no_release_is_refused(tiny: TinySite, instance: dg.DagsterInstance) -> None:
    """As a script may launch it: in words."""
    job = build_defs(tiny.home).resolve_job_def("release_people")
    result = job.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET)
    assert failures(result) == ["the run says no release. Launch it for one of the job's partitions."]


MARK = "kanarienvogel"  # no word of the project
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 99999999], grid: 0.01, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 99999999], grid: 0.01, outside: clamp, why: known}"""
NUMBERS = ("73194628", "61858273")  # the first digits of every income and rent: those that are in order, and those that are not
SPECIAL = {
    "town": f"{MARK}town",
    "sex": f"{MARK}sex",
    "year": f"{MARK}year",
    "income": f"{NUMBERS[0]}{NUMBERS[1]}.5",
}


def canary_rows() -> list[Row]:
    """Recognisable cells in every column; in the numeric ones digits that nothing else has, in the kept ones undeclared ones
    where the failure allows it."""
    numbers = random.Random(2)  # noqa: S311
    return [
        {
            **row,
            "person": f"{MARK}person{row['person']}",
            "income": f"{NUMBERS[0]}.{numbers.randrange(100):02}",
            "rent": f"{NUMBERS[1]}.{numbers.randrange(100):02}",
            "name": f"{MARK}name{row['name']}",
            "remark": f"{MARK}remark{row['remark']}",
        }
        for row in make_rows()
    ]


def canary_site(home: Path, way: str) -> TinySite:
    """A site whose source is full of canaries, and spoiled that way with a canary."""
    tiny = make_site(home, columns=COLUMNS, gates="{min_rows: 20, clamped_at_most: 10%}")
    if way in CANARY_WAYS:
        rows = canary_rows()
        rows[0] |= CANARY_WAYS[way]
        tiny.write_rows(rows)
    elif way in BROKEN_LINES:
        tiny.write_rows(canary_rows())
        with (tiny.home / "people.csv").open("ab") as file:
            file.write(BROKEN_LINES[way])
    elif way == "no header":
        tiny.write_rows(canary_rows())
        lines = (tiny.home / "people.csv").read_text().splitlines(keepends=True)
        (tiny.home / "people.csv").write_text("".join(lines[1:]))
    else:
        tiny.write_rows([{**row, **SPECIAL} if i % 2 else row for i, row in enumerate(canary_rows())])
    return tiny


CANARY_WAYS: dict[str, Row] = {
    "nothing": {},
    "undeclared category": {"town": SPECIAL["town"]},
    "undeclared release": {"year": SPECIAL["year"]},
    "out of domain": {"income": SPECIAL["income"]},
    "clamped": {"rent": SPECIAL["income"]},
    "not a number": {"income": f"{MARK}income"},
}
BROKEN_LINES = {  # DuckDB's errors quote some of them
    "broken quote": f'{MARK}person,1,"{MARK}town" {MARK},1,{NUMBERS[0]}\n'.encode(),
    "no text": f"{MARK}person,1,{MARK}town".encode() + b"\xff\xfe\n",
}
WAYS = [*CANARY_WAYS, *BROKEN_LINES, "no header", "everything"]


@cache
def canaries() -> list[bytes]:
    """What no file outside the vault may hold: the marks and the numbers, these as doubles too."""
    cells = {row[column] for row in canary_rows() for column in ("income", "rent")}
    return [*(text.encode() for text in (MARK, *NUMBERS)), *(struct.pack("<d", float(cell)) for cell in cells)]


def cells_of(file: Path) -> Iterator[bytes]:
    """Every cell of an SQLite file: its pages may cut what belongs together."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608
                yield from (cell if isinstance(cell, bytes) else str(cell).encode() for cell in row if cell is not None)


def leaks(contents: Sequence[bytes]) -> list[bytes]:
    """The canaries that are in any of the contents."""
    return sorted({found.canary for found in find_canaries({"everything": b"\0\0".join(set(contents))}, canaries())})


def public_contents(tiny: TinySite) -> list[bytes]:
    """Everything that a site has outside the vault's database: the registry, files, what a candidate says of itself.

    The masked data of a candidate are not looked at: they may well hold such numbers.
    """
    source = tiny.home / "people.csv"
    files = [file for file in tiny.home.rglob("*") if file.is_file() and tiny.site.vault not in file.parents and file != source]
    files += [file for file in tiny.folder().glob("*") if not file.name.startswith("data.")]
    registry = [repr(rows).encode() for rows in (tiny.charges(), tiny.events())]
    return [*(file.read_bytes() for file in files), *registry]


def sqlite_cells(file: Path) -> list[bytes]:
    """The cells of a file if it is SQLite's."""
    with file.open("rb") as content:
        is_sqlite = content.read(15) == b"SQLite format 3"
    return list(cells_of(file)) if is_sqlite else []


def dagster_home(folder: Path) -> Path:
    """A folder for Dagster's records, kept as the repository's dagster.yaml says."""
    folder.mkdir()
    shutil.copyfile(ROOT / "dagster.yaml", folder / "dagster.yaml")
    return folder


def run_on_disk(tiny: TinySite, home: Path) -> dg.ExecuteInProcessResult:
    """The job with Dagster's records in that folder, and its usual console."""
    with dg.DagsterInstance.from_config(str(home)) as on_disk:
        job = build_defs(tiny.home).resolve_job_def("release_people")
        return job.execute_in_process(partition_key="1", instance=on_disk, raise_on_error=False)


def dagster_contents(home: Path) -> list[bytes]:
    """Every file of Dagster's records, and every cell of its databases."""
    files = [file for file in home.rglob("*") if file.is_file()]
    return [*(file.read_bytes() for file in files), *(cell for file in files for cell in sqlite_cells(file))]


GOES_THROUGH = {"nothing", "clamped", "undeclared release"}


def test_no_cell_leaves_through_the_dagster_job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Canaries in every column, everything made to fail: none in console, DAGSTER_HOME, registry, checks, metadata, evidence."""
    home = dagster_home(tmp_path / "dagster")
    found: dict[str, object] = {}
    for way in WAYS:
        tiny = canary_site(tmp_path / way, way)
        result = run_on_disk(tiny, home)
        assert result.success == tiny.folder().exists() == (way in GOES_THROUGH), (way, failures(result))
        assert not any("Internal error" in failure for failure in failures(result)), way
        console = capfd.readouterr()
        words = [console.out, console.err, *(repr(event) for event in result.all_events)]
        found[way] = leaks([*public_contents(tiny), *(text.encode() for text in words)])
    contents = dagster_contents(home)
    assert len(contents) > 400
    assert (leaks(contents), {way: what for way, what in found.items() if what}) == ([], {})


def test_search_finds_a_cell_that_leaks_on_purpose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check's message that quotes a cell is found in Dagster's files, in the registry and in the failure."""
    tiny = canary_site(tmp_path / "site", "undeclared category")
    check_facts = validate_stage.check_facts

    def leaking(facts: Any, policy: Any) -> list[Check]:
        quoted = f"a cell: {SPECIAL['town']}"
        return [Check(c.family, c.column, c.fact, c.count, quoted if c.count else c.message) for c in check_facts(facts, policy)]

    monkeypatch.setattr(validate_stage, "check_facts", leaking)
    home = dagster_home(tmp_path / "dagster")
    result = run_on_disk(tiny, home)
    assert leaks([failures(result)[0].encode()]) == [MARK.encode()]
    assert leaks(public_contents(tiny)) == [MARK.encode()]
    assert leaks(dagster_contents(home)) == [MARK.encode()]
    assert leaks([tiny.status().reason.encode()]) == [MARK.encode()]
    assert MARK.encode() in leaks([tiny.site.registry.read_bytes()])
