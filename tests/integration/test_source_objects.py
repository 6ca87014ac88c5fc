"""Sources in object stores: a server that speaks enough of S3 on this machine, and fsspec's memory for what a store may do. What
is fetched has no name on any disk, whatever ends the process."""

from __future__ import annotations

import hashlib
import http.server
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from release_pipeline.errors import SourceError
from release_pipeline.policy.file.sections import Source
from release_pipeline.store import files as anonymous
from release_pipeline.store import remote as objects
from release_pipeline.store.source import SourceDoor, find_source, open_raw
from tests.leaks import find_canaries

ID, PASSWORD = "AKIAzyxEXAMPLE", "s3cretword-of-the-store"
CANARY = "zyxCANARYzyx"
TABLE = f"id,town\n1,{CANARY}\n2,south\n".encode()


@dataclass
class Store:
    """An object store: what it has, who may ask, and what it was asked."""

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    asked: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    denied: bool = False
    port: int = 0


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store on this machine, of which s3fs knows by the environment."""
    pytest.importorskip("s3fs")
    found = Store({"/bucket/people.csv": TABLE})

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, wanted = self.path.partition("?")[0], self.headers.get("Range")
            found.asked.append((self.command, path, self.headers.get("Authorization", "")))
            content = found.objects.get(path, b"")
            if found.denied or path not in found.objects:
                self.send_response(403 if found.denied else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            first, _, last = (wanted or "bytes=0-").removeprefix("bytes=").partition("-")
            part = content[int(first) : int(last) + 1 if last else None]
            self.send_response(206 if wanted else 200)
            if wanted:
                self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(part)))
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("Last-Modified", "Mon, 23 Nov 2026 11:00:00 GMT")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(part)

        do_HEAD = do_GET  # noqa: N815  as the library calls it

        def log_message(self, format: str, *args: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_port
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{found.port}",
        "AWS_ACCESS_KEY_ID": ID,
        "AWS_SECRET_ACCESS_KEY": PASSWORD,
        "AWS_DEFAULT_REGION": "nowhere-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    yield found
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryFileSystem:
    """fsspec's memory as a store of its own."""
    monkeypatch.setitem(objects.STORES, "memory", "fsspec")
    return MemoryFileSystem()


def find(path: str, *, vault: Path | None = None, **values: str) -> SourceDoor:
    """The door to an object."""
    return find_source(Source(path=path), folder=Path("/nowhere"), values=values, expected=frozenset(), vault=vault)


# S3


@pytest.mark.slow
def test_a_table_is_read_from_s3_with_credentials_of_the_environment(store: Store, tmp_path: Path) -> None:
    """Signed by the key that the environment has; the record of it and the stamp are of the object, which may be replaced."""
    door = find("s3://bucket/people.csv", vault=tmp_path / "vault")
    assert (door.name, door.header) == ("s3://bucket/people.csv", ("id", "town"))
    with open_raw(door, {"town": "town"}) as table:
        assert table.categories("town").to_pylist() == [CANARY, "south"]
    assert all(f"Credential={ID}/" in signed and PASSWORD not in signed for _, _, signed in store.asked)
    store.objects["/bucket/people.csv"] = TABLE + b"3,east\n"
    later = find("s3://bucket/people.csv", vault=tmp_path / "vault")
    assert later.stamp != door.stamp
    with pytest.raises(SourceError, match="was replaced while it was read"), open_raw(door, {"town": "town"}):
        pass
    assert sorted(path.name for path in (tmp_path / "vault").iterdir()) == [".gitignore"]


@pytest.mark.slow
def test_what_s3_refuses_is_one_sentence_without_credentials(store: Store) -> None:
    """The address as the policy has it, and what to look at."""
    store.denied = True
    address = "s3://bucket/people.csv"
    with pytest.raises(SourceError) as refused:
        find("${WHERE}", WHERE=address)
    assert str(refused.value).startswith("${WHERE}: ")
    assert "redentials" in refused.value.remedy
    words = f"{refused.value} {refused.value.__cause__!r} {refused.value.__suppress_context__}"
    assert not find_canaries({"words": words.encode()}, [ID, PASSWORD, CANARY, address])


# any store


@pytest.mark.parametrize(
    "address",
    [
        "s3://{user}@bucket/people.csv".format(user="ana:s3cretword"),
        "s3://bucket/people.csv?X-Amz-Signature=s3cretword",
        "simplecache::s3://bucket/people.csv",
    ],
)
def test_an_address_has_no_secret(address: str) -> None:
    """Neither in the policy nor in what the environment puts there."""
    with pytest.raises(ValueError, match="no user, password, options or further addresses") as refused:
        Source(path=address)
    assert "further addresses" in str(refused.value)
    with pytest.raises(SourceError, match=r"^\$\{WHERE\}: an address of an object store") as found:
        find("${WHERE}", WHERE=address)
    assert "s3cretword" not in str(found.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"\xff\xfe\x00", "not UTF-8"),
        ("a.parquet", TABLE, "no readable Parquet"),
        ("a.dta", TABLE, "no readable Stata file"),
    ],
)
def test_a_bad_object_is_told_by_its_address(
    memory: MemoryFileSystem, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    """As a file would be, under the address that the policy has."""
    memory.pipe(f"/bad/{name}", content)
    with pytest.raises(SourceError, match=words) as refused:
        find(f"memory://bad/{name}", vault=tmp_path)
    assert str(refused.value).startswith(f"memory://bad/{name}: ")
    assert CANARY not in str(refused.value)


# where it lies


def test_what_is_fetched_has_no_name_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    """While it is open: nothing in the folder, and nobody else may read it; what a process left that died at once is removed."""
    left = tmp_path / ".incoming.0000"
    left.touch()
    with anonymous.open_anonymous(tmp_path) as file:
        file.write(TABLE)
        file.flush()
        assert anonymous.path_of(file).read_bytes() == TABLE
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        assert os.fstat(file.fileno()).st_nlink == 0
        assert os.fstat(file.fileno()).st_dev == tmp_path.stat().st_dev
        assert [path.name for path in tmp_path.iterdir()] == [".gitignore"]
