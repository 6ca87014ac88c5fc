"""Where arrays lie changes no byte of a release, and nothing of them is left on the disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from release_pipeline.cli import main
from release_pipeline.errors import OutOfSpace, ReleasePipelineError
from release_pipeline.flow import cluster, forecast, secret_files
from release_pipeline.privacy import arrays
from release_pipeline.privacy.arrays import IN_MEMORY
from release_pipeline.privacy.whole_table import pool
from release_pipeline.privacy.whole_table import rows as making
from release_pipeline.stages import audit, audit_synthetic, column_table
from release_pipeline.stages.strategies import CLASS
from release_pipeline.store import scratch, shared, vault
from release_pipeline.store.scratch import OnDisk
from tests.integration.processes import child, hear
from tests.integration.sites import PARTS, Row, TinySite, make_rows, make_site
from tests.integration.test_k_epsilon import columns as classes_columns
from tests.integration.test_k_epsilon import records as make_records
from tests.integration.test_k_epsilon import site_of as classes_site
from tests.integration.test_protocol_crash import BOUNDARIES, FINISHED, SECRET, attempt, look_at, run
from tests.integration.test_whole_table import PARTS as WHOLE
from tests.integration.test_whole_table import make_people
from tests.workers import Inline

KEY = bytes(range(32))
PLACES = {"memory": "in memory", "duckdb": "on disk", "spark": "on a cluster"}
FEW = 8  # rows from which a table is large here, and entries of a piece
PROTECTS = {
    "laplace": "{method: laplace, epsilon: 4}",
    "dp-um": "{method: dp-um, epsilon: 4, k: 5}",
    "dp-um by rho": "{method: dp-um, epsilon: 4, k: 5, definition: zcdp, delta: 1e-6}",
    "idp-ls": "{method: idp-ls, epsilon: 2, k: 5}",
    "idp-cbls": "{method: idp-cbls, epsilon: 2, k: 5}",
    "idp-cbls, isotonic": "{method: idp-cbls, epsilon: 2, k: 3, consistency: isotonic}",
    "dp-cdf": "{method: dp-cdf, epsilon: 4}",
    "dp-cdf, groups": "{method: dp-cdf, epsilon: 4, k: 4}",
}
COLUMNS = {
    "plain": PARTS["columns"],
    "atoms": PARTS["columns"].replace("outside: fail, why", "atoms: [0, 500], outside: fail, why"),
    "wide": PARTS["columns"].replace("domain: [0, 100], grid: 0.5", "domain: [0, 4000000000000], grid: 0.001"),
}
MOST = ("idp-cbls", "dp-cdf")  # methods that are tried with all of them; the others with the last


@contextmanager
def small_pieces() -> Iterator[None]:
    """Tables of a few rows are large, and arrays of more entries than that lie on disk."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (vault, forecast):
            patch.setattr(module, "LARGE", FEW)
        patch.setattr(vault, "_LEAST_PIECE", FEW)
        patch.setattr(vault, "_PIECES", 1 << 40)
        patch.setattr(shared, "TASK", FEW)
        patch.setattr(shared, "BY_VALUE", 7 * FEW)
        patch.setattr(arrays, "PIECE", 5)
        patch.setattr(cluster, "SparkWorkers", Inline)
        patch.setattr(column_table, "PART", 7)
        patch.setattr(secret_files.secrets, "token_bytes", lambda count: bytes(range(count)))
        yield


def run_with(home: Path, engine: str, rows: list[Row] | None = None, **parts: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of the candidate, and every table that the stages left."""
    return run_tiny(make_site(home, rows=rows, cap="releases: 10", **parts), engine)


def run_tiny(tiny: TinySite, engine: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The same, of a site that is made."""
    (storage := tiny.home / "shared").mkdir(mode=0o700)
    (tiny.home / "site.yaml").write_text(f"engine: {engine}\nspark: {{url: 'sc://spark.example.org', storage: {storage}}}\n")
    tiny.fix_key(KEY)
    with small_pieces():
        assert tiny.flow().run().stage == "candidate"
        assert tiny.flow().microaggregate().facts["arrays"] == PLACES[engine]
    assert list(storage.iterdir()) == []
    files = {path.name: path.read_bytes() for path in tiny.folder().iterdir()}
    return files, {name: table.to_pylist() for name, table in tiny.tables().items()}


def compare(tmp_path: Path, **options: Any) -> dict[str, bytes]:
    """All engines, and nothing that differs; gives the files."""
    here, *others = (run_with(tmp_path / engine, engine, **options) for engine in PLACES)
    for there in others:
        check_equal(here, there)
    return here[0]


def check_equal(here: tuple[dict[str, bytes], dict[str, Any]], there: tuple[dict[str, bytes], dict[str, Any]]) -> None:
    """Files and tables, byte by byte; but for what notes say of when the file was delivered, which their seals cover."""
    assert here[0].keys() == there[0].keys()
    for name, content in here[0].items():
        assert content == there[0][name], name
    assert here[1].keys() == there[1].keys()
    for name, rows in here[1].items():
        told = [re.sub(r"(delivered|seal)\W+\w+", r"\1", repr(each)) for each in (rows, there[1][name])]
        assert told[0] == told[1], name


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How large the arrays were that went to disk."""
    made: list[int] = []
    real = scratch.reserve_bytes

    def reserve(file: int, count: int) -> None:
        made.append(count)
        real(file, count)

    monkeypatch.setattr(scratch, "reserve_bytes", reserve)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "columns"),
    [(method, columns) for method in PROTECTS for columns in COLUMNS if method in MOST or columns == "wide"],
)
def test_the_same_candidate_and_the_same_tables(tmp_path: Path, method: str, columns: str, on_disk: list[int]) -> None:
    """Byte by byte, evidence included: with ties, atoms, and grids whose words do not hold a value and its place."""
    rows = make_rows(61)
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row["rent"] = "0"
    files = compare(tmp_path, rows=rows, protect=PROTECTS[method], columns=COLUMNS[columns])
    assert "evidence.json" in files
    assert len(on_disk) > 20


@pytest.mark.slow
def test_a_table_that_is_made_anew(tmp_path: Path, on_disk: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come in several blocks, and a sample of both tables that is attacked; some values are missing."""
    monkeypatch.setitem(globals(), "FEW", 96)
    monkeypatch.setattr(making, "BLOCK", 100)
    monkeypatch.setattr(pool, "LEAST_POOL", 900)
    monkeypatch.setattr(audit_synthetic, "ATTACKED_SAMPLE", 300)
    parts = {**WHOLE, "audit": "{predict: {sex: {equals: 1}}}"}
    files = compare(tmp_path, rows=make_people(), **parts)
    assert {"evidence.json", "data.counts.csv", "data.pairs.csv"} <= files.keys()
    assert len(on_disk) > 20


def compare_classes(tmp_path: Path, rows: list[Row], **parts: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All engines, of a policy that makes classes."""
    made = {engine: classes_site(tmp_path / engine, rows, **parts) for engine in PLACES}
    here, *others = (run_tiny(tiny, engine) for engine, tiny in made.items())
    for there in others:
        check_equal(here, there)
    return here


@pytest.mark.slow
@pytest.mark.parametrize("suppress", ["confidence: 60%, at_most: 99%", "at_most: 20%"])
def test_classes_of_every_form_of_hierarchy(tmp_path: Path, suppress: str, on_disk: list[int]) -> None:
    """Intervals, prefixes, dates and lists; classes that are too small, and records that stand out in theirs."""
    protect = "{method: k-epsilon, grouping: ola, k: 4, epsilon: 2}"
    rule = f"{{grouping_at_most: 20%, {suppress}}}"
    files, tables = compare_classes(tmp_path, make_records(), protect=protect, suppress=rule)
    assert "evidence.json" in files
    assert any(row[CLASS] == -1 for row in tables["membership_column_00000"])
    left = [len(tables[f"{stage}_column_00000"]) for stage in ("masked", "suppressed")]
    assert left[0] > left[1] or "confidence" not in suppress
    assert len(on_disk) > 20


@pytest.mark.slow
def test_classes_of_ages_with_codes_and_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And linkage among some of the released records, where very many were released."""
    monkeypatch.setattr(audit, "ATTACKED_SAMPLE", 50)
    rows = make_records()
    for number, row in enumerate(rows):
        row["age"] = "" if number % 11 == 0 else "999" if number % 13 == 0 else row["age"]
    age = "{intervals: [5, 10, 50], domain: [0, 99], grid: 1, outside: fail}, codes: {999: refused}, missing: keep"
    files, _ = compare_classes(tmp_path, rows, columns=classes_columns(age=age))
    assert b'"attacked_sample"' in files["evidence.json"]


LABELS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east, "far ä"], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], missing: {category: 0}, why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, missing: {fill: 0}, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["idp-cbls", "dp-cdf"])
@pytest.mark.parametrize("below", [3, 9])
def test_small_groups_missing_and_clamped_ones(tmp_path: Path, method: str, below: int) -> None:
    """Cells are blanked, records dropped, numbers filled and clamped."""
    rows = make_rows(70)
    for number, row in enumerate(rows):
        row["town"] = "far ä" if number % 70 < 2 else row["town"]
        row["income"] = "" if number % 11 == 0 else "2000" if number % 13 == 0 else row["income"]
        row["sex"] = "" if number % 17 == 0 else row["sex"]
        row["rent"] = "7" if number % 9 else "8"  # nearly all alike
    suppress = f"{{quasi_groups_below: {below}, at_most: 90%}}"
    gates = "{min_rows: 20, clamped_at_most: 20%}"
    compare(tmp_path, rows=rows, protect=PROTECTS[method], columns=LABELS, suppress=suppress, gates=gates)


@pytest.mark.slow
def test_zeros_with_a_sign(tmp_path: Path) -> None:
    """There is one zero: of two that are sorted as equal the order would depend on the pieces, and be seen in the evidence."""
    rows = make_rows(400)
    for number, row in enumerate(rows):
        row["rent"] = ("-0", "0", "-0.0", row["rent"])[number % 4]
    compare(tmp_path, rows=rows)


def test_what_looks_at_whole_records_stays_in_memory(tiny: TinySite) -> None:
    """And is counted; so are the different rows of quasi-identifiers, wherever arrays lie."""
    few = tiny.site.policy("people")
    assert forecast.goes_to_disk(few)
    more = [f"\n  q{number}: {{role: quasi, do: keep, values: {list(range(20))}, why: needed}}" for number in range(6)]
    tiny.write_policy(protect="{method: laplace, epsilon: 2}")
    assert forecast.goes_to_disk(tiny.site.policy("people")), "each record by itself"
    tiny.write_policy(columns=PARTS["columns"] + "".join(more))
    many = tiny.site.policy("people")
    needed = [forecast.forecast_memory(policy, 10**6, allowed=1 << 34, engine="duckdb").needed for policy in (few, many)]
    assert needed[1] - needed[0] > 200 * 10**6
    for part, said in (
        ("tables", "{by-town: {by: [town], epsilon: 1}}"),
        ("publish", "{formats: [csv, dta]}"),
        ("audit", "{groups: [town]}"),
    ):
        tiny.write_policy(**{part: said})
        assert not forecast.goes_to_disk(tiny.site.policy("people")), part


def test_duckdb_has_what_the_forecast_counts(tiny: TinySite) -> None:
    """Half where site.yaml says `duckdb`, else a quarter; and what it says counts the program where it is the machine's."""
    tiny.flow().check_may_begin()
    for engine, share in (("duckdb", 1024), ("auto", 512), ("memory", 512)):
        (tiny.home / "site.yaml").write_text(f"memory: 2 GiB\nengine: {engine}\n")
        with tiny.flow()._workspace() as workspace:
            [(limit,)] = workspace._connection.execute("SELECT current_setting('memory_limit')").fetchall()
        assert limit in (f"{share}.0 MiB", f"{share // 1024}.0 GiB")
    policy = tiny.flow().policy
    said, had = (
        forecast.forecast_memory(policy, 10**7, allowed=1 << 31, engine="duckdb", is_said=is_said) for is_said in (True, False)
    )
    assert (said.beside, had.beside) == (forecast.PROGRAM, 0)
    assert had.needed - said.needed == forecast.PROGRAM


CODES = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: confidential, do: keep, values: [north, south, east], why: needed}
  sex:    {role: confidential, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, codes: {-1: no}, missing: keep, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""


@pytest.mark.slow
def test_reasons_to_have_no_value(tmp_path: Path) -> None:
    """Codes and cells that are missing are entries of their own."""
    rows = make_rows(70)
    for number, row in enumerate(rows):
        row["income"] = "" if number % 11 == 0 else "-1" if number % 13 == 0 else row["income"]
    compare(tmp_path, rows=rows, protect="{method: dp-cdf, epsilon: 4, k: 2}", columns=CODES)


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site of its own."""
    return make_site(tmp_path / "site", gates="{min_rows: 20, differencing_below: 0}")


def test_where_arrays_lie_is_said_and_asked_for(
    tiny: TinySite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`auto` is memory where that suffices; what does not fit is refused with the other way out."""
    policy = str(tiny.home / "policies" / "people.yaml")
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 2, k: 20}", gates="{min_rows: 40, differencing_below: 0}")

    def check(rows: int) -> str:
        assert main(["check", policy, "--rows", str(rows)]) == 0
        return next(line for line in capsys.readouterr().out.splitlines() if line.startswith("memory"))

    (tiny.home / "site.yaml").write_text("memory: 2 GiB\n")
    assert "on disk" not in check(1_000_000)
    assert check(20_000_000).endswith("for 20,000,000 rows, arrays on disk")
    (tiny.home / "site.yaml").write_text("memory: 2 GiB\nengine: memory\n")
    assert check(20_000_000).endswith("a run is refused before anything is charged")
    (tiny.home / "site.yaml").write_text("memory: 2 GiB\nengine: duckdb\n")
    assert check(1_000_000).endswith("for 1,000,000 rows, arrays on disk, beside 400 MiB for the program")
    monkeypatch.setattr(forecast, "PROGRAM", 3 << 30)
    (tiny.home / "site.yaml").write_text("memory: 2 GiB\nengine: memory\n")
    flow = tiny.flow()
    flow.ingest()
    flow.validate()
    with pytest.raises(OutOfSpace, match=r"Or say 'engine: duckdb' there"):
        flow.microaggregate()
    assert tiny.charges() == []
    (tiny.home / "site.yaml").write_text("memory: 2 GiB\nengine: duckdb\n")
    assert tiny.flow().run().stage == "candidate"


@pytest.mark.parametrize("said", ["disk", "true", "[duckdb]"])
def test_no_other_engine(tiny: TinySite, said: str) -> None:
    """In words."""
    (tiny.home / "site.yaml").write_text(f"engine: {said}\n")
    with pytest.raises(ReleasePipelineError) as refused:
        _ = tiny.site.engine
    assert "engine is not said as it should be. Allowed: auto, memory, duckdb, spark." in refused.value.in_full


def test_methods_of_whole_records_stay_in_memory(tiny: TinySite) -> None:
    """Whatever site.yaml says, and the forecast says so."""
    tiny.write_cap("releases: 10")
    tiny.write_policy(protect="{method: dp-mdav, epsilon: 2, k: 5, order: hilbert, scope: centroid}")
    (tiny.home / "site.yaml").write_text("engine: duckdb\n")
    flow = tiny.flow()
    with small_pieces(), flow._workspace() as workspace:
        assert workspace.arrays(1 << 40) is IN_MEMORY
    assert forecast.forecast_memory(flow.policy, 10**6, allowed=1 << 40, engine="duckdb").engine == "memory"


def attempt_in_pieces(home: Path, secret: bytes, stop: str | None, lines: Connection) -> None:
    """A release, killed by itself when it has passed `stop`."""
    with small_pieces():
        attempt(home, secret, stop, lines)


@pytest.mark.slow
def test_killed_with_one_engine_and_carried_on_with_another(tmp_path: Path) -> None:
    """At every boundary while there is a secret, each time one further and with another engine: candidate, tables and
    files of a release that nobody disturbed and that had its arrays in memory, and one charge."""
    undisturbed, tiny = (make_site(tmp_path / name) for name in ("undisturbed", "killed"))
    (undisturbed.home / "site.yaml").write_text("engine: memory\n")
    undisturbed.site.keyed_hash(b"made")
    assert run(attempt_in_pieces, undisturbed).lines[-1] == FINISHED
    (tiny.home / "site.yaml").touch()
    (shared_folder := tmp_path / "shared").mkdir(mode=0o700)
    tiny.site.keyed_hash(b"made")
    (tiny.site.vault / "key").write_bytes((undisturbed.site.vault / "key").read_bytes())
    for number, boundary in enumerate((*BOUNDARIES[:12], None)):
        engine = ("duckdb", "memory", "spark")[number % 3]
        (tiny.home / "site.yaml").write_text(
            f"engine: {engine}\nspark: {{url: 'sc://spark.example.org', storage: {shared_folder}}}\n"
        )
        again = run(attempt_in_pieces, tiny, SECRET, boundary)
        assert (again.killed, again.lines[-1]) == (boundary is not None, boundary or FINISHED)
    assert look_at(tiny) == look_at(undisturbed)
    assert list(shared_folder.iterdir()) == []


def hold(folder: Path, tells: Connection) -> None:
    """Arrays and columns on disk, in a process that will be killed."""
    disk = OnDisk(folder, 10)
    held = [disk.empty(1000, np.int64) for _ in range(3)]
    for array in held:
        array[:] = 1
    tells.send("held")
    tells.recv()


def test_a_killed_process_leaves_no_array(tmp_path: Path) -> None:
    """Their files have no names from the beginning."""
    with child(hold, tmp_path) as hears:
        assert hear(hears) == "held"
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []
