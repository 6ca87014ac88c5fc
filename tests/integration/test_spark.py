"""A Spark server has long arrays worked on: the same bytes as in memory, whoever is killed, and nothing of the data in Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from release_pipeline.flow import forecast, secret_files
from release_pipeline.store import shared, spark, vault
from release_pipeline.store.shared import OnCluster
from release_pipeline.store.spark import SparkWorkers
from tests.integration.sites import PARTS, Row, TinySite, make_rows, make_site
from tests.integration.spark_server import Server, start_spark

pytestmark = pytest.mark.slow
KEY = bytes(range(32))
FEW = 40  # rows of a task, so that there is more than one
CANARY, NUMBER = "zyzzyva-of-the-north", 918.2736
PROTECT = "{method: idp-cbls, epsilon: 2, k: 3, consistency: isotonic}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all."""
    with start_spark(tmp_path_factory.mktemp("spark")) as server:
        yield server


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few rows are long enough for a cluster; and a server that is gone is not waited for."""
    for module in (vault, forecast):
        monkeypatch.setattr(module, "LARGE", FEW)
    monkeypatch.setattr(shared, "TASK", FEW)
    monkeypatch.setattr(shared, "BY_VALUE", 100)
    monkeypatch.setattr(spark, "_RETRIES", 3)
    monkeypatch.setattr(spark, "_WAIT", 3)
    monkeypatch.setattr(secret_files.secrets, "token_bytes", lambda count: bytes(range(count)))


@pytest.fixture
def arrays(server: Server, tmp_path: Path) -> OnCluster:
    """Those of the server."""
    return OnCluster(tmp_path, FEW, SparkWorkers(server.url, "here"))


def rows() -> list[Row]:
    """Some, with a canary of each kind."""
    made = make_rows(90)
    for row in made[:3]:
        row["town"], row["income"] = CANARY, str(NUMBER)
    return made


def make(home: Path, said: str) -> TinySite:
    """A site with them, and what site.yaml says."""
    columns = PARTS["columns"].replace("south, east]", f"south, east, {CANARY}]").replace("grid: 1,", "grid: 0.0001,")
    columns = re.sub(r"rent:.*", "rent: {role: confidential, do: drop}", columns)
    tiny = make_site(home, rows=rows(), cap="releases: 10", protect=PROTECT, columns=columns)
    (tiny.home / "site.yaml").write_text(said)
    tiny.fix_key(KEY)
    return tiny


def by_spark(server: Server, storage: Path) -> str:
    """site.yaml."""
    storage.mkdir(mode=0o700, exist_ok=True)
    return f"engine: spark\nspark: {{url: '{server.url}', storage: {storage}}}\n"


Look: TypeAlias = tuple[dict[str, bytes], dict[str, str], int]


def compare(one: Look, other: Look) -> None:
    """Nothing differs; what does is named."""
    assert [name for name in one[0] if one[0][name] != other[0].get(name)] == []
    assert [name for name in one[1] if one[1][name] != other[1].get(name)] == []
    assert one == other


def look_at(tiny: TinySite) -> Look:
    """The candidate's files, every stored table, and how many charges there are."""
    files = {path.name: path.read_bytes() for path in tiny.folder().iterdir()}
    tables = {name: table.to_pylist() for name, table in sorted(tiny.tables().items())}
    tables["notes"].sort(key=repr)  # of stages that were done again they are the last ones
    return files, {name: repr(rows) for name, rows in tables.items()}, len(tiny.charges())


def test_the_same_candidate_and_nothing_of_it_with_spark(server: Server, tmp_path: Path) -> None:
    """Byte by byte; and no name or number of the data is in what Spark wrote, nor anything left in the shared folder."""
    here = make(tmp_path / "here", "engine: memory\n")
    assert here.flow().run().stage == "candidate"
    there = make(tmp_path / "there", by_spark(server, tmp_path / "shared"))
    flow = there.flow()
    for stage in (flow.ingest, flow.validate):
        stage()
    for stage in (flow.microaggregate, flow.mask, flow.suppress, flow.audit):
        facts = stage().facts
        assert facts["cluster_passes"] > 3, stage
        assert facts["cluster_tasks"] >= facts["cluster_passes"]
        assert facts["cluster_cpu_seconds"] >= 0
    flow.freeze()
    compare(look_at(there), look_at(here))
    assert list((tmp_path / "shared").iterdir()) == []
    written = [path for path in server.folder.rglob("*") if path.is_file()]
    assert any(path.name == "server.log" for path in written)
    for path in written:
        content = path.read_bytes()
        assert CANARY.encode() not in content, path
        assert str(NUMBER).encode() not in content
        assert np.float64(NUMBER).tobytes() not in content
