"""A Delta Lake table as a source: the records of one version and no others; or a refusal that says why."""

from __future__ import annotations

import base64
import datetime as dt
import json
import shutil
import string
import struct
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from release_pipeline.apps.dagster.metadata import build_metadata
from release_pipeline.errors import SourceError
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import STAGES
from release_pipeline.pipeline.sources import find_source_like, list_origins
from release_pipeline.policy.file.sections import Source
from release_pipeline.store.delta import MOST_PARTITIONS
from release_pipeline.store.files import Probe
from release_pipeline.store.source import FileSource, find_source, open_raw
from tests.integration.sites import TinySite, make_site
from tests.integration.test_in_place import go, make, read_people, same_noise
from tests.integration.test_whole_table import SECRET
from tests.leaks import find_canaries

__all__ = ["same_noise"]  # a fixture
DELTA = "{path: folk, release_column: year}"


def write(folder: Path, table: dict[str, Any], **options: Any) -> Path:
    """Write one version of the table `people` in a folder."""
    write_deltalake(folder / "people", pa.table(table), **options)
    return folder / "people"


def find(folder: Path, version: int | None = None) -> FileSource:
    """Return the reader of the table."""
    source = find_source(Source(path="people"), folder=folder, values={}, expected=frozenset(), version=version)
    assert isinstance(source, FileSource)
    return source


def read(folder: Path, version: int | None = None) -> list[float]:
    """Return the numbers of the column `id`, in their order."""
    with open_raw(find(folder, version), {"id": "id"}) as table:
        return table.numbers("id").tolist()


def refuse(folder: Path, message: str, version: int | None = None) -> None:
    """Prove that the table is refused, in words without a cell."""
    with pytest.raises(SourceError, match=message) as caught:
        find(folder, version)
    assert not find_canaries({"message": str(caught.value).encode()}, ["canary4711"])


def test_deleted_records_are_not_read(tmp_path: Path) -> None:
    """They are still in files of the folder; and an earlier version can be read as long as these are there."""
    table = write(tmp_path, {"id": [1, 2, 3], "name": ["a", "b", "c"]})
    write(tmp_path, {"id": [4, 5], "name": ["d", "e"]}, mode="append")
    stamps = [find(tmp_path).stamp]
    DeltaTable(table).delete("id = 2")
    stamps += [find(tmp_path).stamp, find(tmp_path, 1).stamp]
    assert sum(pq.read_metadata(file).num_rows for file in table.glob("*.parquet")) == 7
    assert sorted(read(tmp_path)) == [1, 3, 4, 5]
    assert sorted(read(tmp_path, 1)) == [1, 2, 3, 4, 5]
    assert find(tmp_path).header == ("id", "name")
    (tmp_path / "link").symlink_to(tmp_path)
    assert sorted(read(tmp_path / "link" / "link" / ".." / tmp_path.name)) == [1, 3, 4, 5]
    assert stamps[0] == stamps[2] != stamps[1]
    DeltaTable(table).alter.set_table_properties({"delta.appendOnly": "false"})  # the same files, another version
    assert find(tmp_path).files == find(tmp_path, 2).files
    assert find(tmp_path).stamp != stamps[1]
    DeltaTable(table).delete()
    refuse(tmp_path, "the Delta table has no records")


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [None, ["year", "town"]])
def test_a_release_stays_with_the_version_that_it_began_with(
    tmp_path: Path, partitions: list[str] | None, same_noise: None
) -> None:
    """Between every two stages the table gets other records. The release is that of one file."""
    people = read_people().sort_values(["year", "town"], kind="stable")
    plain, tiny = make(tmp_path / "plain"), make(tmp_path / "delta", source=DELTA)
    people.to_parquet(plain.home / "people.parquet", index=False)
    records = pa.Table.from_pandas(people, preserve_index=False)
    write_deltalake(tiny.home / "folk", records, partition_by=partitions)
    for stage in range(1, 5):
        go_on(tiny, stage)
        write_deltalake(tiny.home / "folk", records.slice(stage, 900), mode="overwrite")
    tables, expected = go_on(tiny, 5, last=7), go(plain)
    assert not {"records", "raw"} & set(tables)
    for name in ("column_cells", "pair_cells", "masked"):
        assert tables[name] == expected[name], name


def go_on(tiny: TinySite, first: int, *, last: int | None = None) -> dict[str, Any]:
    """Run the stages from one to another, each opened anew; returns the tables of the vault."""
    for stage in list(STAGES.values())[first - 1 : last or first]:
        stage(open_release(tiny.site, "people", "1", probe=Probe(new_secret=lambda: SECRET)))
    with tiny.flow().open_workspace() as workspace:
        return {name: workspace.read(name).to_pydict() for name in workspace.tables()}


@pytest.mark.parametrize("stages", [3, 4])
def test_a_release_that_is_run_again_ends_with_its_version(tmp_path: Path, stages: int) -> None:
    """What was charged, or drawn, is of that version's records; a release that is not charged takes the current one."""
    tiny = make(tmp_path / "site", source=DELTA)
    records = pa.Table.from_pandas(read_people(), preserve_index=False)
    for version in range(2):
        write_deltalake(tiny.home / "folk", records, mode="overwrite")
        go(tiny, stages if version else 2)
    write_deltalake(tiny.home / "folk", records.slice(3, 1), mode="append")
    go(tiny)
    assert build_metadata(ingest(tiny.flow()), show_internal=False)["table_version"] == 1
    go(tiny)
    with tiny.flow().open_workspace() as workspace:
        assert (workspace.checkpoint("validated") or {})["table_version"] == 1
    assert len(tiny.charges()) == 1


@pytest.mark.slow
def test_a_version_whose_files_were_vacuumed_is_refused(tmp_path: Path) -> None:
    """At the stage that would read them, before anything is charged."""
    tiny = make(tmp_path / "site", source=DELTA)
    records = pa.Table.from_pandas(read_people(), preserve_index=False)
    write_deltalake(tiny.home / "folk", records)
    go(tiny, 2)
    write_deltalake(tiny.home / "folk", records, mode="overwrite")
    DeltaTable(tiny.home / "folk").vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(SourceError, match="file of version 0 of the Delta table is not in its folder: it was vacuumed"):
        go_on(tiny, 3)
    assert tiny.charges() == []


def test_files_that_are_not_in_the_folder_are_refused(tmp_path: Path) -> None:
    """They were vacuumed, or are elsewhere; so is a version that the log does not have."""
    write(tmp_path, {"id": [1]})
    table = write(tmp_path, {"id": [2]}, mode="overwrite")
    DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    refuse(tmp_path, "a file of version 0 of the Delta table is not in its folder: it was vacuumed", 0)
    refuse(tmp_path, "version 7 of the Delta table, which the release began with, cannot be read", 7)
    for number, path in enumerate(("s3://bucket/a.parquet", "file:///etc/a.parquet", "../a.parquet", "link.parquet")):
        folder = write_log(tmp_path / str(number), path=path)
        pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
        (folder / "link.parquet").symlink_to(tmp_path / "a.parquet")
        refuse(folder.parent, "is not in its folder")


def write_log(
    folder: Path, *, features: tuple[str, ...] = (), mode: str = "none", vector: Any = None, path: str = "a.parquet"
) -> Path:
    """Write a table whose log has what deltalake does not write."""
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    marks = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"} if mode != "none" else {}
    field = {"name": "id", "type": "long", "nullable": True, "metadata": marks}
    metadata = {
        "id": "a",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": [],
        "configuration": {"delta.columnMapping.mode": mode},
    }
    add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    add |= {"stats": json.dumps({"numRecords": 3, "maxValues": {"id": "canary4711"}})}
    add |= {} if vector is None else {"deletionVector": vector}
    (folder / "people" / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2, 3]}), folder / "people" / "a.parquet")
    lines = ({"protocol": protocol}, {"metaData": metadata}, {"add": add})
    (folder / "people" / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    return folder / "people"


def make_vector(*rows: int) -> dict[str, Any]:
    """Return a deletion vector as it is in a log: a roaring bitmap, in the letters of Z85."""
    data = struct.pack("<IQIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    digits = string.digits + string.ascii_letters
    ours, theirs = digits[:10] + digits[36:] + digits[10:36] + "!#$%&()*+-;<=>?@^_`{|}~", digits + ".-:+=^!/*?&<>()[]{}@%$#"
    text = base64.b85encode(data + bytes(-len(data) % 4)).decode().translate(str.maketrans(ours, theirs))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}


def test_what_files_do_not_show_is_refused(tmp_path: Path) -> None:
    """Deletion vectors, other names of columns, unknown features. A feature that no file uses is none."""
    for number, features in enumerate((("timestampNtz",), ("v2Checkpoint",), ("deletionVectors", "columnMapping"))):
        write_log(tmp_path / str(number), features=features)
        assert read(tmp_path / str(number)) == [1, 2, 3]
    write_log(tmp_path / "vector", features=("deletionVectors",), vector=make_vector(1, 2))
    refuse(tmp_path / "vector", "are not simply those of its files, because of deletionVectors. Rewrite")
    write_log(tmp_path / "mapped", features=("columnMapping",), mode="name")
    refuse(tmp_path / "mapped", "because of columnMapping")
    write_log(tmp_path / "wider", features=("typeWidening",))
    refuse(tmp_path / "wider", "because of typeWidening")
    write_log(tmp_path / "new", features=("canary4711",))
    refuse(tmp_path / "new", "the Delta table cannot be read by deltalake")
    write(tmp_path, {"id": [1]})
    write(tmp_path, {"id": [2], "name": ["b"]}, mode="append", schema_mode="merge")
    refuse(tmp_path, "it has no column 'name', or of another type than the table. Compact the table")
    folder = tmp_path / "added"
    DeltaTable(write(folder, {"id": [1]})).alter.add_columns([Field("name", PrimitiveType("string"))])
    refuse(folder, "it has no column 'name', or of another type than the table. Compact the table")
    (tmp_path / "wider").rename(tmp_path / "a%20b")
    refuse(tmp_path / "a%20b", "the path of a Delta table may not have")


DAYS = (dt.date(2020, 1, 2), None, dt.date(1969, 12, 31))
TEXTS = (
    "a b/c=%25",
    "é",
    None,
    "007",
    "x'\"*?[1]",
    "__HIVE_DEFAULT_PARTITION__",
    "NULL",
    "a+b&c",
)  # "" is nothing, in this format


def test_partitions_are_read_as_if_the_files_had_them(tmp_path: Path) -> None:
    """Days, numbers, any text and nothing; whatever folder the table is in."""
    table = pa.table(
        {
            "day": [DAYS[number % 3] for number in range(48)],
            "id": list(range(48)),
            "town": [TEXTS[number % 8] for number in range(48)],
            "n": [None if number % 4 == 0 else number % 4 - 9 for number in range(48)],
        }
    )
    folder = tmp_path / "town=odd" / "à b~#?"
    for half in (table.slice(0, 24), table.slice(24)):
        write_deltalake(folder / "people", half, partition_by=["town", "day", "n"], mode="append")
    assert find(folder).header == ("day", "id", "town", "n")
    parts = {(row["day"], row["town"], row["n"]) for row in table.to_pylist()}
    assert len([*groupby(find(folder).files, key=lambda file: file.parent)]) == len(parts) < len(find(folder).files)
    records = find(folder).scan_parquet(duckdb.connect())
    assert (records.columns, records.types) == (table.column_names, ["DATE", "BIGINT", "VARCHAR", "BIGINT"])
    assert sorted(records.fetchall(), key=lambda row: row[1]) == [tuple(row.values()) for row in table.to_pylist()]
    assert sorted(read(folder)) == list(range(48))
    many = list(range(MOST_PARTITIONS + 1))
    for values, message in (
        ([1.5], "are read by texts, whole numbers and days, and not by 'p'"),
        (many, "it has 501 partitions"),
    ):
        write(tmp_path / message, {"id": [1] * len(values), "p": values}, partition_by=["p"])
        refuse(tmp_path / message, message)


def test_workers_that_would_not_see_partitions_are_refused(tmp_path: Path) -> None:
    """Spark's read the files only."""
    tiny = make(tmp_path / "delta", source=DELTA)
    write_deltalake(tiny.home / "folk", pa.Table.from_pandas(read_people(), preserve_index=False), partition_by=["town"])
    (tiny.home / "site.yaml").write_text("engine: spark\nspark: {url: 'sc://127.0.0.1:1'}\n")
    with pytest.raises(SourceError, match=r"lack the partition columns.*engine: duckdb"):
        tiny.flow().open_source()


def test_every_file_of_a_table_is_known_as_confidential(tmp_path: Path) -> None:
    """Of all partitions, and of versions before the current one."""
    site = make_site(tmp_path / "site", source="{path: people}").site
    table = write(site.home, {"id": [1, 2], "p": [1, 2]}, partition_by=["p"])
    DeltaTable(table).delete("p = 2")
    files = sorted(table.rglob("*.parquet"))
    files += (table / "_delta_log").glob("*.json")
    assert {find_source_like(site, file, strict=True) for file in files} == {"it is the source people"}
    assert len(list_origins(site, Source(path="people"), find(site.home).files)) == 1 + 2 * 1
    shutil.copytree(table, tmp_path / "copy")
    assert find_source_like(site, tmp_path / "copy", strict=True) == "it has the content of the source people"


def test_folders_of_tables_whose_log_is_not_read_are_refused(tmp_path: Path) -> None:
    """Of Iceberg, Hudi and DuckLake, also below the folder with the log; and a part of a Delta table."""
    for sign, kind in (
        ("metadata/00001-a.metadata.json", "Iceberg"),
        (".hoodie/hoodie.properties", "Hudi"),
        ("_delta_log/a", "Delta"),
        ("data/day=1/people/ducklake-1.parquet", "DuckLake"),
    ):
        people = tmp_path / kind / "data" / "day=1" / "people"
        people.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), people / "a.parquet")
        assert read(people.parent) == [1]
        (tmp_path / kind / sign).parent.mkdir(exist_ok=True)
        (tmp_path / kind / sign).touch()
        refuse(people.parent, f"is a table of {kind}, by its .*: deleted records may lie in it")


def test_a_file_of_a_table_is_refused_by_itself(tmp_path: Path) -> None:
    """It may have records that were deleted."""
    table = write(tmp_path, {"id": [1, 2]})
    DeltaTable(table).delete("id = 1")
    for file in table.glob("*.parquet"):
        with pytest.raises(SourceError, match="the folder people is a table of Delta"):
            find_source(Source(path=str(file)), folder=tmp_path, values={}, expected=frozenset())


def test_without_deltalake_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that lie in the folder are not read instead."""
    write(tmp_path, {"id": [1]})
    monkeypatch.setitem(sys.modules, "deltalake", None)
    refuse(tmp_path, r"a Delta table needs deltalake. pip install 'release-pipeline\[delta\]'")
