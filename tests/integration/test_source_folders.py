"""A folder with Parquet files as a source: all of them in the order of their names, and none that others left there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release_pipeline.errors import SourceError
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.sources import find_source_like, list_origins
from release_pipeline.policy.file.sections import Source
from release_pipeline.store import files as secret_files
from release_pipeline.store.site import Site
from release_pipeline.store.source import FileSource, SourceReader, find_source, open_raw
from tests.integration.sites import make_rows, make_site


def write(folder: Path, name: str, numbers: list[int], kind: pa.DataType | None = None) -> Path:
    """A file with one column of numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(numbers, kind or pa.int64())}), folder / name)
    return folder / name


def find(folder: Path) -> SourceReader:
    """The door to it."""
    return find_source(Source(path="people"), folder=folder, values={}, expected=frozenset())


def read(folder: Path) -> list[float]:
    """The numbers, in their order."""
    with open_raw(find(folder), {"id": "id"}) as table:
        return table.numbers("id").tolist()


def test_the_files_of_a_folder_are_one_table(tmp_path: Path) -> None:
    """By their names; no file in a folder of it, none that `_` or `.` begins, and no column from a path."""
    people = tmp_path / "people"
    for name, numbers in (("b.parquet", [3]), ("a[1].parquet", [1, 2]), ("_tmp.parquet", [9]), (".c.parquet", [9])):
        write(people, name, numbers)
    write(people / "year=2026", "d.parquet", [9])
    (people / "_SUCCESS").write_text("")
    (people / "notes.txt").write_text("")
    assert read(tmp_path) == [1, 2, 3]
    source = find(tmp_path)
    assert isinstance(source, FileSource)
    assert source.header == ("id",)
    assert source.name == str(people)
    assert [file.name for file in source.files] == ["a[1].parquet", "b.parquet"]


def test_the_stamp_is_of_all_files(tmp_path: Path) -> None:
    """Another file, a changed one or one less is another stamp; and the folder is as old as what changed last."""
    people = tmp_path / "people"
    first = write(people, "a.parquet", [1])
    stamps = [find(tmp_path).stamp]
    second = write(people, "b.parquet", [1])
    stamps.append(find(tmp_path).stamp)
    os.utime(second, ns=(1, 1))
    stamps.append(find(tmp_path).stamp)
    first.unlink()
    stamps.append(find(tmp_path).stamp)
    assert len(set(stamps)) == 4
    assert stamps[-1] == find(tmp_path).stamp
    written = find(tmp_path).written
    time.sleep(0.02)  # more than a tick of the clock that files are stamped by
    os.utime(second, (4e9, 4e9))
    later = find(tmp_path).written
    assert written is not None
    assert later is not None
    assert later > written


def test_a_folder_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    """Without files, with an empty or damaged one, or with files of other columns or types; each is named."""
    people = tmp_path / "people"
    people.mkdir()
    with pytest.raises(SourceError, match=r"people: this is a folder with no \*.parquet directly in it. Name a file"):
        find(tmp_path)
    write(people, "a.parquet", [1])
    (people / "b.parquet").write_bytes(b"")
    with pytest.raises(SourceError, match=r"b.parquet: the file is empty"):
        find(tmp_path)
    (people / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match=r"b.parquet: the file is no readable Parquet"):
        find(tmp_path)
    write(people, "b.parquet", [1], pa.int32())
    with pytest.raises(SourceError, match=r"b.parquet: it has other columns, or other types of them, than a.parquet"):
        find(tmp_path)


def test_a_release_is_the_same_however_many_files_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte, for one key and secret."""
    monkeypatch.setattr(secret_files.secrets, "token_bytes", lambda count: bytes(range(count)))
    rows, made = pa.Table.from_pylist(make_rows()), list[bytes]()
    for size in (120, 50):
        tiny = make_site(tmp_path / f"site of {size}", source="{path: people, release_column: year}")
        tiny.fix_key(bytes(range(32)))
        (tiny.home / "people").mkdir()
        for first in range(0, 120, size):
            pq.write_table(rows.slice(first, size), tiny.home / "people" / f"from-{first:03}.parquet")
        assert run_release(tiny.flow()).stage == "candidate"
        made.append(next(tiny.folder().glob("*.parquet")).read_bytes())
    assert made[0] == made[1]


def test_every_file_of_a_folder_is_known_as_confidential(tmp_path: Path) -> None:
    """To whoever would choose parameters by it, as the source of a policy; or a copy of it."""
    site: Site = make_site(tmp_path / "site", source="{path: people}").site
    first, second = (write(site.home / "people", f"{name}.parquet", [1, 2]) for name in "ab")
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(second.read_bytes())
    assert find_source_like(site, first, strict=True) == "it is the source people"
    assert find_source_like(site, copy, strict=True) == "it has the content of the source people"
    assert len(list_origins(site, Source(path="people"))) == 4
