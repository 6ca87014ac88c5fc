"""The flow of a release without Dagster and Great Expectations: what it stores, charges, serves again, and refuses."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import stat
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from release_pipeline.audit.gates import Gate
from release_pipeline.errors import Blocked, DataRefused, GateFailed, OverCap, ReleasePipelineError
from release_pipeline.formats.passed_stages import Audited
from release_pipeline.masking.centroids import CentroidStrategy
from release_pipeline.pipeline.audit import audit
from release_pipeline.pipeline.candidate import freeze_candidate
from release_pipeline.pipeline.checkpoints import write_checkpoint
from release_pipeline.pipeline.context import StageContext, record_failed_run
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.mask import mask
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.release import STAGES, run_release
from release_pipeline.pipeline.suppress import suppress
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.vault import open_workspace
from tests.integration.sites import SPOILED, Row, TinySite, make_rows, make_site, spoil

RELEASED = ["town", "sex", "income", "rent"]
RECORD = "release_pipeline_record"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site whose release 1 is a candidate; for tests that only look."""
    before = os.umask(0o022)
    try:
        tiny = make_site(tmp_path_factory.mktemp("finished") / "site")
        run_release(tiny.flow())
    finally:
        os.umask(before)
    return tiny


def until(stage: str, flow: StageContext) -> None:
    """Run the stages up to and with this one."""
    for name, run_stage in STAGES.items():
        run_stage(flow)
        if name == stage:
            return


def other_rows() -> list[Row]:
    """A source of the same size and shape with other people in other places."""
    return make_rows(seed=1)


def secret_of(tiny: TinySite) -> Path:
    """Where the secret of release 1 is while it is needed."""
    return tiny.site.vault / "secrets" / "people~1~r1"


# the candidate


def test_candidate_folder_is_private_and_hashed_as_a_whole(finished: TinySite) -> None:
    """Exactly the data, the evidence and the sums, for the owner alone; the hash is over the sums, and they over the rest."""
    folder = finished.folder()
    assert {file.name for file in folder.iterdir()} == {"data.parquet", "data.csv", "evidence.json", "report.html", "SHA256SUMS"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    others = [file for file in folder.iterdir() if file.name != "SHA256SUMS"]
    assert sums == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in others}
    known = finished.status()
    assert (known.state, known.candidate_hash) == ("candidate", hashlib.sha256((folder / "SHA256SUMS").read_bytes()).hexdigest())
    assert finished.flow().candidate_is_whole()


def test_candidate_has_only_released_columns_in_policy_order(finished: TinySite) -> None:
    """Both formats hold the same table of the released columns and nothing else."""
    table = pq.read_table(finished.folder() / "data.parquet")
    with (finished.folder() / "data.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert table.column_names == header == RELEASED
    assert [[town, int(sex), float(income), float(rent)] for town, sex, income, rent in rows] == [
        list(row.values()) for row in table.to_pylist()
    ]


def test_evidence_records_the_claim_and_names_the_policy(finished: TinySite) -> None:
    """Epsilon with what it is of, k, anonymity_k, definition, scope, bounds, series, policy hash, rows in and out."""
    facts = json.loads((finished.folder() / "evidence.json").read_text())["facts"]
    assert facts.pop("policy_hash") == finished.flow().policy.canonical_hash()
    assert facts.pop("column_bound").startswith("at most")
    assert facts == {
        "release": "people/1/r1",
        "claim": "epsilon 2 in all (1 for each of 2 columns), iDP, for the list of values of each masked "
        "column; whole table: not bounded",
        "definition": "idp",
        "scope": "column",
        "method": "idp-cbls",
        "epsilon": 2.0,
        "k": 5,
        "anonymity_k": 10,
        "table_bound": "not bounded",
        "series_epsilon": 2.0,
        "population_spent": "2 of 10 (epsilon, iDP, column)",
        "rows_in": 60,
        "rows_out": 60,
        "cells_blanked": 0,
    }


def test_vault_has_no_person_and_no_dropped_column_after_validation(finished: TinySite) -> None:
    """`raw` is gone; no table has a dropped column's name or one of its cells; the record number stays inside the vault. Of the
    persons there are keyed hashes, alone and in an order of their own, that nobody without the vault's key can make."""
    tables = finished.tables()
    assert tables.keys() == {"notes", "records", "membership", "statistics", "masked", "people"}
    people = tables.pop("people")
    hashes = people.column("person").to_pylist()
    assert (people.column_names, len(set(hashes)), hashes) == (["person", "everywhere"], 60, sorted(hashes))
    assert not set(hashes) & set(everywhere := people.column("everywhere").to_pylist())
    assert len(set(everywhere)) == 60
    for row in make_rows():
        guesses = [row["person"].encode(), *(make(row["person"].encode()).digest() for make in (hashlib.sha256, hashlib.md5))]
        assert not any(guess.startswith(one) or one in guess for guess in guesses for one in (*hashes, *everywhere))
    forbidden = {"person", "remark", "name", "year"}
    planted = {row[column] for row in make_rows() for column in ("person", "remark", "name")}
    for name, table in tables.items():
        assert not forbidden & set(table.column_names), name
        for column in table.column_names:
            texts = {str(cell) for cell in table.column(column).to_pylist()}
            assert not planted & texts, (name, column)
            assert name != "notes" or not any(cell in text for cell in planted for text in texts)
    assert {name for name, table in tables.items() if RECORD in table.column_names} == {"records", "masked"}


def test_rows_leave_shuffled_and_keep_their_kept_columns(finished: TinySite) -> None:
    """`masked` is a permutation of the records; towns and sexes stay together and as many; the order is another one."""
    tables = finished.tables()
    numbers = tables["masked"].column(RECORD).to_numpy()
    assert sorted(numbers) == list(range(60))
    assert int((numbers == np.arange(60)).sum()) < 20
    source = [(row["town"], int(row["sex"])) for row in make_rows() if row["year"] == "1"]
    kept = list(zip(*(tables["masked"].column(name).to_pylist() for name in ("town", "sex")), strict=True))
    assert kept == [source[number] for number in numbers]
    released = pq.read_table(finished.folder() / "data.parquet")
    assert Counter(zip(*(released.column(name).to_pylist() for name in ("town", "sex")), strict=True)) == Counter(source)


def test_every_file_and_folder_of_the_vault_is_private(finished: TinySite) -> None:
    """Under the usual umask: vault, registry, key and candidates are for the owner alone, folders included."""
    below = list(finished.site.vault.rglob("*"))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (finished.site.vault, finished.site.registry, *below)}
    modes = {path: mode for path, mode in modes.items() if path.name != ".gitignore"}  # says nothing
    assert {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


# stages by themselves


def test_masking_alone_refuses_records_that_are_not_those_of_the_clusters(tiny: TinySite) -> None:
    """Ingested and validated anew from other data, the clusters of the old data do not fit, and nothing is masked."""
    until("microaggregated", tiny.flow())
    tiny.write_rows(other_rows())
    until("validated", tiny.flow())
    with pytest.raises(ReleasePipelineError):
        mask(tiny.flow())
    assert "masked" not in tiny.tables()


def test_audit_alone_refuses_records_that_are_not_those_of_the_release(tiny: TinySite) -> None:
    """A candidate is never frozen anew with figures against other data than were masked."""
    digest = run_release(tiny.flow()).facts["candidate_hash"]
    tiny.write_rows(other_rows())
    until("validated", tiny.flow())
    with pytest.raises(ReleasePipelineError):
        audit(tiny.flow())
    with pytest.raises(ReleasePipelineError):
        freeze_candidate(tiny.flow())
    assert hashlib.sha256((tiny.folder() / "SHA256SUMS").read_bytes()).hexdigest() == digest


# the secret


def test_secret_is_a_private_file_until_the_draw(tiny: TinySite) -> None:
    """There after the charge, 0600; gone after masking, when the registry has noted the draw."""
    flow = tiny.flow()
    until("microaggregated", flow)
    assert stat.S_IMODE(secret_of(tiny).stat().st_mode) == 0o600
    assert stat.S_IMODE(secret_of(tiny).parent.stat().st_mode) == 0o700
    assert tiny.status().state == "reserved"
    secret = secret_of(tiny).read_bytes()
    mask(flow)
    assert list(secret_of(tiny).parent.iterdir()) == []
    assert tiny.status().state == "drawn"
    stored = [file.read_bytes() for file in tiny.home.rglob("*") if file.is_file()]
    assert not any(secret in content or secret.hex().encode() in content for content in stored)


# caps and sums

IDP, DP = "definition: idp, scope: column", "definition: dp, scope: column"
CBLS = "{method: idp-cbls, epsilon: 2, k: 5}"
CENTROID = "{method: idp-cbls, epsilon: 2, k: 5, scope: centroid}"


@pytest.mark.parametrize(
    ("cap", "protect", "columns", "admitted", "left", "wanted"),
    [
        (f"epsilon: 4, {IDP}", CBLS, None, 2, "", ""),
        (f"epsilon: 3.999999999, {IDP}", CBLS, None, 1, "1.999999999 left of 3.999999999", "2"),
        ("epsilon: 23.9, definition: idp, scope: column", CENTROID, None, 0, "23.9 left of 23.9", "24"),
    ],
)
def test_cap_admits_exactly_what_fits(
    tmp_path: Path, cap: str, protect: str, columns: str | None, admitted: int, left: str, wanted: str
) -> None:
    """As many releases as the cap's definition and scope allow; the next one is refused uncharged, before any secret."""
    tiny = make_site(tmp_path / "site", cap=cap, protect=protect, **({"columns": columns} if columns else {}))
    for release in ("1", "2")[:admitted]:
        until("microaggregated", tiny.flow(release))
    secrets = [file.name for file in (tiny.site.vault / "secrets").glob("*")]
    for release in ("1", "2")[admitted:][:1]:
        with pytest.raises(OverCap) as refused:
            run_release(tiny.flow(release))
        said = f"the ledger refuses: folk has {left} ("
        assert refused.value.what.startswith(said)
        assert re.search(rf"this release would take (at least )?{wanted}\.$", refused.value.what)
        assert "populations.yaml" in refused.value.remedy
        assert not tiny.folder(release).exists()
        assert tiny.status(release).reason.startswith(said)
    assert len(tiny.charges()) == admitted
    assert [file.name for file in (tiny.site.vault / "secrets").glob("*")] == secrets


def test_series_counts_the_releases_of_its_own_policy(tiny: TinySite) -> None:
    """The series' epsilon grows release by release; the population's also with another policy."""
    tiny.write_policy(policy="more", protect="{method: dp-um, epsilon: 1, k: 5}")
    assert run_release(tiny.flow("1", "more")).facts["series_epsilon"] == 1.0
    assert run_release(tiny.flow("1")).facts["series_epsilon"] == 2.0
    facts = run_release(tiny.flow("2")).facts
    assert (facts["series_epsilon"], facts["population_spent"]) == (4.0, "5 of 10 (epsilon, iDP, column)")


# what blocks


@pytest.mark.parametrize("way", SPOILED)
def test_spoiled_source_blocks_with_its_reason(tiny: TinySite, way: str) -> None:
    """No candidate and no charge; the reason, by column name and count, in the exception and in the registry."""
    spoil(tiny, way)
    with pytest.raises(DataRefused) as refused:
        run_release(tiny.flow())
    assert any(SPOILED[way].reason in finding for finding in refused.value.findings)
    assert not tiny.folder().exists()
    assert tiny.charges() == []
    assert tiny.status().state == "blocked", "the registry does not know that the release is blocked"
    assert SPOILED[way].reason in tiny.status().reason


def test_refused_data_leave_no_records_behind(tiny: TinySite) -> None:
    """After a failed validation there is no table of released columns, and no later stage runs."""
    spoil(tiny, "undeclared category")
    with pytest.raises(DataRefused):
        run_release(tiny.flow())
    assert "records" not in tiny.tables()
    for stage in (
        partial(microaggregate, tiny.flow()),
        partial(mask, tiny.flow()),
        partial(suppress, tiny.flow()),
        partial(audit, tiny.flow()),
        partial(freeze_candidate, tiny.flow()),
    ):
        with pytest.raises(Blocked, match=r"has not been passed\. Run the release from its start"):
            stage()


def test_gate_on_expected_error_blocks(tmp_path: Path) -> None:
    """A limit that cannot be met, the last of two: blocked with the gate's name, uncharged, and there is nothing to freeze."""
    tiny = make_site(tmp_path / "site", gates="{min_rows: 20, expected_error: {income: 100, rent: 0.000001}}")
    with pytest.raises(Blocked, match="expected error of rent") as blocked:
        run_release(tiny.flow())
    assert "income" not in str(blocked.value)
    assert (tiny.status().state, "expected error of rent" in tiny.status().reason) == ("blocked", True)
    with pytest.raises(ReleasePipelineError):
        freeze_candidate(tiny.flow())
    assert not tiny.folder().exists()
    assert tiny.charges() == []


def rare_rows(rare: int, *, lonely: bool = False) -> list[Row]:
    """60 records in groups of 10, the first `rare` of them in groups of a town of their own; one cell suffices or not."""
    rows = make_rows(releases=["1"])
    for i in range(rare):
        rows[i] |= {"town": "west", "sex": "2" if lonely else rows[i]["sex"]}
    return rows


RARE_COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town: {role: quasi, do: keep, values: [north, south, east, west], why: needed}
  sex: {role: quasi, do: keep, values: [0, 1, 2], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent: {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""


def test_too_much_suppression_costs_nothing(tmp_path: Path) -> None:
    """Who is in a small group of kept columns depends on no noise: above the share nothing is charged, with parts too."""
    suppress = "{quasi_groups_below: 5, at_most: 5%}"
    rows = rare_rows(4, lonely=True)
    protect = "{method: dp-um, epsilon: 2, k: 5, partitions: 2}"
    tiny = make_site(tmp_path / "site", rows=rows, columns=RARE_COLUMNS, suppress=suppress, protect=protect)
    with pytest.raises(GateFailed, match=r"the suppression of small groups is over the limit 0.05") as refused:
        run_release(tiny.flow())
    assert "nothing is charged" in str(refused.value)
    assert not tiny.charges()
    assert not tiny.folder().exists()


def test_too_much_suppression_that_follows_from_the_noise_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where groups have masked columns in them, it is known after the draw: blocked with both percentages, and no table to go on
    from."""
    monkeypatch.setattr(CentroidStrategy, "forecast_suppression", lambda *_: {})
    suppress = "{quasi_groups_below: 5, at_most: 5%}"
    tiny = make_site(tmp_path / "site", rows=rare_rows(4, lonely=True), columns=RARE_COLUMNS, suppress=suppress)
    with pytest.raises(Blocked, match=r"would have to be suppressed, and at most 5% may be"):
        run_release(tiny.flow())
    assert (tiny.status().state, "would have to be suppressed" in tiny.status().reason) == ("blocked", True)
    assert "suppressed" not in tiny.tables()
    assert not tiny.folder().exists()


def test_freezing_reads_the_gates_once_more(tiny: TinySite) -> None:
    """A gate that the audit noted as not passed stops the candidate, whatever was judged before the charge."""
    until("audited", tiny.flow())
    flow = tiny.flow()
    with open_workspace(tiny.site.vault, flow.policy.population, flow.id.workspace) as workspace:
        note = workspace.checkpoint("audited") or {}
        failed = [Gate("expected error of income", 0.5, 0.2).to_json()]
        payload = {name: note[name] for name in ("internal", "budget", "criteria")}
        write_checkpoint(flow, workspace, Audited, note["version"], [], gates=failed, **payload)  # sealed
    with pytest.raises(Blocked, match=r"over the limit 0\.2"):
        freeze_candidate(flow)
    assert not tiny.folder().exists()


def test_a_run_that_broke_off_before_the_release_was_opened_is_no_obstacle(tmp_path: Path) -> None:
    """What died at its start is noted of a release that nothing happened to; the next run opens it."""
    tiny = make_site(tmp_path / "site")
    record_failed_run(tiny.site, ReleaseId("people", "1"), "killed", run="one")
    ingest(tiny.flow("1"))
    assert tiny.states()[:2] == ["failed", "opened"]
