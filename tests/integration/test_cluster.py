"""A cluster's folder, and what is told of it: without Spark, by workers that are this process."""

from __future__ import annotations

import errno
import os
import pickle
import re
import stat
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest

from release_pipeline.cli import main
from release_pipeline.errors import OutOfSpace, ReleasePipelineError, StoreError
from release_pipeline.flow import cluster, forecast, secret_files
from release_pipeline.flow.cluster import find_cluster
from release_pipeline.flow.retention import prune
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.check import check_policy
from release_pipeline.privacy.noise import noise_stream, streams
from release_pipeline.privacy.noise.streams import NoiseError
from release_pipeline.store import shared, spark, tasks, vault
from release_pipeline.store.shared import OnCluster
from release_pipeline.store.spark import check_cluster
from tests.integration.sites import GX_WARNINGS, TinySite, failures, make_site, materializations, run_job
from tests.workers import Inline, Twice

FEW, ANA = 8, "ana:geheim"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinySite:
    """A site whose tables are long enough for its cluster."""
    for module in (vault, forecast):
        monkeypatch.setattr(module, "LARGE", FEW)
    monkeypatch.setattr(shared, "TASK", FEW)
    monkeypatch.setattr(shared, "BY_VALUE", 50)
    monkeypatch.setattr(cluster, "SparkWorkers", Inline)
    tiny = make_site(tmp_path / "site", gates="{min_rows: 20, differencing_below: 0}")
    (tmp_path / "shared").mkdir(mode=0o700)
    say(tiny, f"{{url: 'sc://spark.example.org', storage: {tmp_path / 'shared'}}}")
    return tiny


def say(tiny: TinySite, spark: str) -> None:
    """In site.yaml."""
    (tiny.home / "site.yaml").write_text(f"engine: spark\n{f'spark: {spark}' if spark else ''}\n")


@dataclass(slots=True)
class Watching(Inline):
    """Workers that keep every file of the folder that there is when they are asked."""

    seen: dict[str, bytes]
    modes: set[int]

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """As before, and afterwards."""
        self.look(job.parent)
        found = Inline.run(self, job, digest, count)
        self.look(job.parent)
        return found

    def look(self, folder: Path) -> None:
        """At every file."""
        for path in folder.iterdir():
            self.seen[path.name] = self.seen.get(path.name, b"") + path.read_bytes()
            self.modes.add(stat.S_IMODE(path.stat().st_mode) | stat.S_IMODE(folder.stat().st_mode))


def test_no_secret_and_no_key_of_noise_is_in_the_folder(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that of the shuffle goes there, and numbers by which ties are broken; all of it is this account's alone, and gone
    afterwards."""
    watching = Watching({}, set())
    secret = bytes(range(100, 132))
    monkeypatch.setattr(cluster, "SparkWorkers", lambda url, where: watching)
    monkeypatch.setattr(secret_files.secrets, "token_bytes", lambda count: secret[:count])
    derived: dict[bytes, tuple[Any, ...]] = {}
    before = streams.derive_key

    def derive(key: bytes, *context: Any) -> bytes:
        made = before(key, *context)
        derived[made] = context
        return made

    monkeypatch.setattr(streams, "derive_key", derive)
    assert tiny.flow().run().stage == "candidate"
    content = b"\0".join(watching.seen.values())
    assert len(watching.seen) > 100
    assert secret not in content
    told = {context[-1] for key, context in derived.items() if key in content}
    assert told == {"shuffle"}
    assert {"noise", "simulated noise"} <= {context[-1] for context in derived.values()}
    assert watching.modes <= {0o700}
    assert list((tiny.home.parent / "shared").iterdir()) == []
    with pytest.raises(NoiseError):
        pickle.dumps(noise_stream(secret))


def test_what_is_left_by_who_was_killed_goes(tiny: TinySite) -> None:
    """With the next run of the population, or `prune`, whatever the engine is by then; another's stays."""
    folder = tiny.home.parent / "shared"
    found = find_cluster(tiny.site)
    assert found is not None
    mine, others = folder / f"{found.site}-folk", folder / "0123456789abcdef-folk"
    for engine, work in product(("spark", "auto"), (lambda: tiny.flow().ingest(), lambda: prune(tiny.site))):
        file = tiny.home / "site.yaml"
        file.write_text(re.sub("engine: .*", f"engine: {engine}", file.read_text()))
        for left in (mine, others):
            (left / "1f").mkdir(parents=True, exist_ok=True)
            (left / "1f" / "00000001.array").write_bytes(b"records")
        work()
        assert sorted(folder.iterdir()) == [others]
        assert (others / "1f" / "00000001.array").exists()


def test_a_task_of_a_killed_run_finds_nothing(tiny: TinySite, tmp_path: Path) -> None:
    """Folders of runs have names that none had before."""
    found, names = find_cluster(tiny.site), set[str]()
    assert found is not None
    for _ in range(2):
        with found.open(tmp_path / "folk.duckdb", tmp_path) as arrays:
            names.add(arrays.folder.name)
            assert len(arrays.empty(10, np.int64)) == 10
    assert len(names) == 2


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", "the engine is spark, and no cluster is named"),
        ("{url: 'sc://spark.example.org'}", "'storage' is missing"),
        ("{storage: /x}", "'url' is missing"),
        ("{url: 'sc://spark.example.org', storage: /x, cores: 3}", "'cores' is not known here"),
        ("{url: 'http://spark.example.org', storage: /x}", "this is no address of Spark Connect"),
        ("{url: 'sc://spark.example.org/;token=geheim', storage: /x}", "'token' may be a secret"),
        ("{url: 'sc://spark.example.org/;use_ssl=true;x-api-key=geheim', storage: /x}", "'x-api-key' may be a secret"),
        ("{url: 'sc://spark.example.org;token=geheim', storage: /x}", "'token' may be a secret"),
        (f"{{url: 'sc://{ANA}@spark.example.org', storage: /x}}", "a name or a password may not stand in it"),
        ("{url: 'sc://', storage: /x}", "this is no address of Spark Connect"),
        ("{url: 'sc://spark.example.org:banana', storage: /x}", "this is no address of Spark Connect"),
        ("{url: 'sc://spark.example.org:99999', storage: /x}", "this is no address of Spark Connect"),
        ("{url: 'sc://spark.example.org/;use_ssl', storage: /x}", "this is no address of Spark Connect"),
        ("{url: 'sc://spark.example.org/;use_ssl=true;geheim0123', storage: /x}", "a parameter may be a secret"),
        ("{url: 'sc://spark.example.org;geheim0123', storage: /x}", "a parameter may be a secret"),
        ("{url: 'sc://spark.example.org/;User_Id=ana', storage: /x}", "a parameter may be a secret"),
        ("{url: 'sc://[1.2.3.4]:15002', storage: /x}", "this is no address of Spark Connect"),
        ("{url: 'sc://[:::::]:1', storage: /x}", "this is no address of Spark Connect"),
        ('{url: "sc://spark.example.org", storage: "/a\\0b"}', "storage is no text"),
        ("{url: 7, storage: /x}", "url is no text"),
        ("nothing", "spark is not said as it should be"),
    ],
)
def test_what_site_yaml_may_not_say(tiny: TinySite, said: str, words: str) -> None:
    """In words, with the line, and never the token; to `check`, too, which makes no vault for it."""
    say(tiny, said)
    policy = tiny.home / "policies" / "people.yaml"
    looks = lambda: check_policy(policy, rows=None, home=None), lambda: find_cluster(Site(tiny.home, os.environ))
    for look in looks:
        with pytest.raises(ReleasePipelineError) as refused:
            look()
        assert words in refused.value.in_full
        assert "geheim" not in refused.value.in_full
        assert not tiny.site.vault.exists()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("{url: '${NOT_THERE}', storage: SHARED}", "Set the environment variable NOT_THERE"),
        ("{url: 'sc://${PATH}', storage: SHARED}", "spark names is not in the environment"),
        ("{url: 'sc://spark.example.org', storage: releases/here}", "a folder that is published"),
        ("{url: 'sc://spark.example.org', storage: /not/mounted}", "this is no folder"),
    ],
)
def test_what_is_wrong_here_may_be_right_elsewhere(
    tiny: TinySite, said: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the run will be: `check` says so in a line of the plan, and the run refuses."""
    say(tiny, said.replace("SHARED", str(tiny.home.parent / "shared")))
    assert main(["check", str(tiny.home / "policies" / "people.yaml"), "--rows", "1000000"]) == 0
    assert "a run from here is refused" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(ReleasePipelineError) as refused:
        tiny.flow().run()
    assert words in refused.value.in_full
    assert tiny.charges() == []


@pytest.mark.parametrize(
    "named", ["http://spark.example.org", "sc://spark.example.org/;token=gehe%0Aim", "sc://spark.example.org/;token"]
)
def test_what_the_environment_may_not_say(tiny: TinySite, named: str) -> None:
    """In words, and never what it is."""
    say(tiny, "{url: '${SPARK_REMOTE}', storage: /x}")
    with pytest.raises(ReleasePipelineError, match="what the url of spark names is no address") as refused:
        find_cluster(Site(tiny.home, {"SPARK_REMOTE": named}))
    assert "geh" not in refused.value.in_full


def test_few_records_need_no_cluster(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor its folder."""
    say(tiny, "{url: 'sc://spark.example.org', storage: /not/mounted}")
    monkeypatch.setattr(shared, "TASK", 1000)
    flow = tiny.flow()
    flow.ingest()
    flow.validate()
    assert flow.microaggregate().facts["arrays"] == "on disk"
    assert flow.run().stage == "candidate"


@pytest.mark.parametrize(
    "url",
    [
        "sc://spark.example.org",
        "sc://127.0.0.1:15002/",
        "sc://[::1]:15002",
        "sc://spark.example.org:${SPARK_PORT}",
        "sc://spark.example.org/;user_id=ana@example.org",
        "sc://spark.example.org:443/;use_ssl=true;user_id=ana",
        "sc://${SPARK_HOST}:15002",
        "${SPARK_REMOTE}",
    ],
)
def test_what_it_may_say(tiny: TinySite, url: str) -> None:
    """A token comes from the environment."""
    environment = {
        "SPARK_PORT": "15002",
        "SPARK_HOST": "spark.example.org",
        "SPARK_REMOTE": "sc://spark.example.org/;use_ssl=true;token=geheim",
    }
    say(tiny, f"{{url: '{url}', storage: {tiny.home.parent / 'shared'}}}")
    assert find_cluster(Site(tiny.home, environment)) is not None


@GX_WARNINGS
def test_dagster_shows_what_it_did(tiny: TinySite) -> None:
    """A run by its job, with the facts of every stage that used it."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = run_job(tiny, instance=instance)
        assert result.success, failures(result)
    for stage, made in materializations(result).items():
        facts = {name: value.value for name, value in made.metadata.items() if name.startswith("cluster_")}
        if stage not in ("microaggregated", "masked", "suppressed", "audited"):
            assert facts == {}
            continue
        assert set(facts) == {"cluster_passes", "cluster_tasks", "cluster_cpu_seconds"}, stage
        assert facts["cluster_tasks"] >= facts["cluster_passes"] > 3


def test_it_is_tried_before_the_checks(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which take hours of a large table: when records are in, and before any of them is looked at."""

    def refuse(*_: Any) -> Any:
        raise StoreError("nobody answers.")

    tiny.flow().ingest()
    monkeypatch.setattr(Inline, "run", refuse)
    monkeypatch.setattr("release_pipeline.flow.release.collect_facts", pytest.fail)
    with pytest.raises(StoreError, match="nobody answers"):
        tiny.flow().validate()


def test_no_other_engine_asks_for_one(tiny: TinySite) -> None:
    """Whatever else stands there."""
    (tiny.home / "site.yaml").write_text("engine: duckdb\nspark: {url: 'http://spark.example.org', storage: /x}\n")
    assert find_cluster(tiny.site) is None
    (tiny.home / "site.yaml").write_text("engine: duckdb\nspark: {url: 'sc://spark.example.org', storage: /x}\n")
    found = find_cluster(tiny.site)
    assert found is not None
    assert not found.is_used


@pytest.mark.parametrize("fault", ["missing", "a file", "open to others", "another account's"])
def test_a_folder_that_will_not_do(tiny: TinySite, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told before anything is charged, and nothing is written there."""
    folder = tiny.home.parent / "shared"
    if fault == "open to others":
        folder.chmod(0o777)
    elif fault == "another account's":
        monkeypatch.setattr(shared.os, "geteuid", lambda: folder.stat().st_uid + 1)
    else:
        folder.rmdir()
    if fault == "a file":
        folder.touch()
    with pytest.raises(StoreError) as refused:
        tiny.flow().run()
    assert str(folder) in refused.value.in_full
    assert "'storage' of 'spark' in site.yaml" in refused.value.remedy
    assert tiny.charges() == []
    assert not folder.is_dir() or list(folder.iterdir()) == []


def test_check_says_it(tiny: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """Where arrays will lie."""
    assert main(["check", str(tiny.home / "policies" / "people.yaml"), "--rows", "1000000"]) == 0
    assert "arrays on a cluster" in capsys.readouterr().out


class Others(Twice):
    """Workers with something about them that is not as it is here."""

    def __init__(self, **other: Any) -> None:
        self.other = other

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """With it."""
        with pytest.MonkeyPatch.context() as patch:
            if "software" in self.other:
                patch.setattr(tasks, "tell_software", lambda: self.other["software"])
            else:
                before = spark.look_at
                patch.setattr(spark, "look_at", lambda file: replace(before(file), **self.other))
            return Twice.run(self, job, digest, count)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"byte_order": "big"}, "another order of bytes"),
        ({"account": os.geteuid() + 1}, "another account"),
        ({"token": "another"}, "another folder in the place of the shared one"),
        ({"software": b"Python 3.9.1, NumPy 1.2, release-pipeline 00\n"}, "Python 3.9.1, NumPy 1.2, and here it is Python"),
        ({"software": tasks.tell_software()[:-9] + b"00000000\n"}, "its files are not those that are here"),
    ],
    ids=["order", "account", "folder", "versions", "files"],
)
def test_workers_that_will_not_do(tmp_path: Path, other: dict[str, Any], words: str) -> None:
    """In words."""
    with pytest.raises(StoreError) as refused:
        check_cluster(OnCluster(tmp_path, 1 << 14, Others(**other)))
    assert words in refused.value.in_full


@dataclass
class Elsewhere(Twice):
    """Workers on a machine where the shared folder is not, or another account's."""

    fault: str
    looked: int = 0

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """What they can tell."""
        if self.fault == "unseen":
            return Twice.run(self, job.parent / "elsewhere" / job.name, digest, count)

        def refuse(_: Path) -> bytes:
            self.looked += 1
            raise PermissionError(errno.EACCES, "Permission denied")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "read_bytes", refuse)
            return Twice.run(self, job, digest, count)


@pytest.mark.parametrize(("fault", "words"), [("unseen", "does not see the shared folder"), ("unread", "may not read")])
def test_workers_that_cannot_tell_by_the_folder(tmp_path: Path, fault: str, words: str) -> None:
    """Tell by what goes through Spark, which is asked once."""
    folder = tmp_path / "site" / "run"
    folder.mkdir(parents=True)
    workers = Elsewhere(fault)
    with pytest.raises(StoreError) as refused:
        check_cluster(OnCluster(folder, 1 << 14, workers))
    assert words in refused.value.what
    assert workers.looked == (0 if fault == "unseen" else 16)
    with pytest.raises(OSError):  # of a pass that is no trial: others may do it
        OnCluster(folder, 1 << 14, workers).work(int, 1)


class Careless(Twice):
    """Workers that leave out a task of every pass over more than three."""

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """But for one."""
        found = Twice.run(self, job, digest, count)
        if count > 3 and found[1].endswith(" "):
            arrays = sorted(job.parent.glob("*.array"))
            with arrays[-1].open("r+b") as file:
                file.seek(arrays[-1].stat().st_size // 2)
                file.write(bytes(1000))
        return found


def test_a_cluster_that_gives_other_numbers(tmp_path: Path) -> None:
    """Is not used."""
    check_cluster(OnCluster(tmp_path, 1 << 14, Twice()))
    with pytest.raises(StoreError, match=r"does not put made-up records in the order|a task failed"):
        check_cluster(OnCluster(tmp_path, 1 << 14, Careless()))


def test_a_file_of_tasks_that_was_changed(tmp_path: Path) -> None:
    """Is not done."""

    class Changing(Twice):
        def run(self, job: Path, digest: str, count: int) -> list[str]:
            job.write_bytes(job.read_bytes() + b"more")
            return Twice.run(self, job, digest, count)

    arrays = OnCluster(tmp_path, 4, Changing())
    with pytest.raises(OSError, match="not what it should be"):
        list(arrays.over(len, 100))  # type: ignore[arg-type]


def test_no_hash_tells_what_was_found(tmp_path: Path) -> None:
    """It goes by Spark: of the same finding it is another each time, so that nobody can try which one it is."""

    class Listening(Twice):
        def __init__(self) -> None:
            self.told: list[str] = []

        def run(self, job: Path, digest: str, count: int) -> list[str]:
            found = [digest, *Twice.run(self, job, digest, count)]
            self.told += [one.rpartition(" ")[2] for one in found]
            return found[1:]

    listening = Listening()
    arrays = OnCluster(tmp_path, 4, listening)
    for _ in range(2):
        assert list(arrays.over(span, 12, 4)) == [4, 4, 4]
    assert len(set(listening.told)) == len(listening.told) == 8


def span(part: slice) -> int:
    """How many entries."""
    return part.stop - part.start


@pytest.mark.parametrize("where", ["task", "result"])
def test_a_full_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """When a task writes, and when its finding is written."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    arrays = OnCluster(tmp_path, 4, Inline())
    if where == "task":
        monkeypatch.setattr(tasks.os, "pwrite", full)
    else:
        before = tasks.write_file
        monkeypatch.setattr(
            tasks, "write_file", lambda path, content: full() if path.suffix == ".found" else before(path, content)
        )
    with pytest.raises(OutOfSpace, match="the folder that is shared with the cluster is full") as refused:
        arrays.fill(count_up, 20, np.int64) if where == "task" else list(arrays.over(span, 12, 4))
    assert "'storage' of 'spark'" in refused.value.remedy


def count_up(part: slice) -> np.ndarray[Any, Any]:
    """The numbers of entries."""
    return np.arange(part.start, part.stop)


def test_what_tasks_wrote_is_not_changed_here(tmp_path: Path) -> None:
    """A task that is late may write its part again."""
    made = OnCluster(tmp_path, 4, Inline()).fill(count_up, 20, np.int64)
    with pytest.raises(ValueError, match="read-only"):
        made[0] = 7


def test_what_tasks_found_is_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no more than one of them is in memory; and who asks for no more leaves nothing behind."""
    read: list[str] = []
    real = OnCluster._read_result

    def count(self: OnCluster, told: str) -> Any:
        read.append(told)
        return real(self, told)

    monkeypatch.setattr(OnCluster, "_read_result", count)
    arrays = OnCluster(tmp_path, 8, Inline("", "here"))
    found = arrays.over(_tell, 64, 8)
    assert next(found) == (0, 8)
    assert len(read) == 1
    found.close()
    assert list(tmp_path.iterdir()) == []
    assert [first for first, _ in arrays.over(_tell, 64, 8)] == list(range(0, 64, 8))


def _tell(part: slice) -> tuple[int, int]:
    return part.start, part.stop
