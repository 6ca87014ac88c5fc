"""The registry: one text for one content, a chain of hashes, and nothing that was written can be changed unseen."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.errors import StoreError
from release_pipeline.formats.versions import FormatNewer
from release_pipeline.store import registry
from release_pipeline.store.database import open_database, transaction
from release_pipeline.store.registry import BEGIN, FORMAT, Event, RegistryChanged, ReleaseId, canonical_json, open_registry
from tests.unit.store.anchors import Kept, kept_at_the_beginning

Row: TypeAlias = tuple[int, str, str, str]  # number, body, hash, seal
FIRST = ReleaseId("people", "1")
SECRET_WORD = "never-in-a-message"  # noqa: S105


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a registry is to be."""
    return tmp_path / "registry.duckdb"


_written: dict[tuple[int, bool], tuple[bytes, tuple[int, str] | None]] = {}


def write_events(path: Path, kept: Kept, count: int = 5, *, apart: bool = False) -> None:
    """Add so many events with what events have, together or each in an opening of its own. Where nothing is yet, what was written
    first is copied: most tests begin so, and DuckDB takes long to make a file."""
    fresh, how = not path.exists() and kept == Kept(), (count, apart)
    if fresh and how in _written:
        content, kept.head = _written[how]
        path.write_bytes(content)
        path.chmod(0o600)
        return
    for group in [[i] for i in range(count)] if apart else [range(count)]:
        with open_registry(path, anchor=kept) as registry:
            for i in group:
                release = None if i % 3 == 0 else ReleaseId("people", str(i), 1 + i)
                registry.add(f"kind{i}", release, word=SECRET_WORD, amount=10**20 + i, parts=[None, True, {"é": "ß\u2028"}])
    if fresh:
        _written[how] = path.read_bytes(), kept.head


def read_events(path: Path, kept: Kept, *, read_only: bool = True) -> tuple[Event, ...]:
    """What an opening finds."""
    with open_registry(path, anchor=kept, read_only=read_only) as registry:
        return registry.events


def rows_of(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """The rows of the events."""
    return connection.execute("SELECT number, body, hash, seal FROM events ORDER BY number, rowid").fetchall()


def put_rows(connection: duckdb.DuckDBPyConnection, rows: list[Row], heads: list[tuple[int, str]]) -> None:
    """Replace everything that the file has."""
    with transaction(connection):
        connection.execute("DELETE FROM events")
        connection.execute("DELETE FROM head")
        for row in rows:
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
        for head in heads:
            connection.execute("INSERT INTO head VALUES (?, ?)", head)


def digest_of(body: str) -> str:
    """SHA-256 of a body, computed here."""
    return hashlib.sha256(body.encode()).hexdigest()


def sealed(number: int, body: str, digest: str | None = None) -> Row:
    """A row as somebody would make it who has the vault's key, every hash and seal right."""
    digest = digest_of(body) if digest is None else digest
    return number, body, digest, Kept().seal(digest)


def chain(bodies: list[dict[str, Any]]) -> list[Row]:
    """A chain of these contents, likewise."""
    rows: list[Row] = []
    for number, payload in enumerate(bodies, start=1):
        previous = rows[-1][2] if rows else BEGIN
        rows.append(sealed(number, canonical_json({**payload, "number": number, "previous": previous})))
    return rows


# canonical JSON


def shuffled(content: Any) -> Any:
    """The same content with every mapping filled in the opposite order."""
    if isinstance(content, dict):
        return {name: shuffled(part) for name, part in reversed(content.items())}
    return [shuffled(part) for part in content] if isinstance(content, list) else content


def test_canonical_text_is_this_one() -> None:
    """Keys in order of their characters at every depth; tuples are lists; numbers of any size are exact."""
    content = {"b": (1, None), "a": {"é": 10**30, "Z": True}, "": "ü\n"}
    assert canonical_json(content) == r'{"":"ü\n","a":{"Z":true,"é":1000000000000000000000000000000},"b":[1,null]}'.replace(
        "é", r"\u00e9"
    ).replace("ü", r"\u00fc")


def test_an_event_with_a_float_is_not_written(path: Path) -> None:
    """Nothing of it is in the registry, nor of what was added with it."""
    kept = Kept()

    def add_both() -> None:
        with open_registry(path, anchor=kept) as registry:
            registry.add("first")
            registry.add("second", epsilon=0.1)

    with pytest.raises(TypeError):
        add_both()
    assert read_events(path, kept) == ()
    assert kept.head == (0, BEGIN)


# releases


def test_release_names() -> None:
    """policy/partition/rN; its next revision; and a room that tells names from each other that differ in case alone."""
    assert str(ReleaseId("people", "2020.1")) == "people/2020.1/r1"
    assert ReleaseId("people", "a").next == ReleaseId("people", "a", 2)
    rooms = {release.workspace.lower() for release in (ReleaseId("p", "a"), ReleaseId("p", "A"), ReleaseId("p", "a", 2))}
    assert len(rooms) == 3
    assert ReleaseId("p", "a").workspace.startswith("p/a/r1 ")


# the chain


def test_every_event_names_the_one_before_and_is_hashed_whole(path: Path) -> None:
    """The hash is SHA-256 of the body and the seal is of the hash; the body is canonical and has number, hash before it, kind,
    time, release and content."""
    kept = Kept()
    write_events(path, kept, apart=True)
    with duckdb.connect(str(path)) as connection:
        rows = rows_of(connection)
        assert connection.execute("SELECT number, hash FROM head").fetchall() == [(5, rows[-1][2])]
    previous = BEGIN
    for place, (number, body, digest, seal) in enumerate(rows, start=1):
        payload = json.loads(body)
        assert body == canonical_json(payload)
        assert payload.keys() == {"number", "previous", "kind", "noted", "release", "content"}
        assert (number, payload["number"], payload["previous"]) == (place, place, previous)
        assert digest == digest_of(body)
        assert seal == kept.seal(digest)
        previous = digest
    assert kept.head == (5, previous)


# what somebody else changed

KINDS_OF_EDITS = (
    "body",
    "shorter body",
    "body and its hash",
    "body, hash and seal",
    "hash",
    "hash and seal",
    "seal",
    "number",
    "delete",
    "duplicate",
    "swap",
    "forge",
    "forge next",
    "head",
    "two heads",
)


@st.composite
def edits(draw: st.DrawFn, rows: list[Row]) -> tuple[list[Row], list[tuple[int, str]]]:
    """The rows and the head after one edit, which is another than none. Even with the vault's key one cannot make it unseen."""
    changed, heads = list(rows), [(len(rows), rows[-1][2])]
    place = draw(st.integers(0, len(rows) - 1))
    number, body, digest, seal = rows[place]
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")

    def spoiled(text: str) -> str:
        at = draw(st.integers(0, len(text) - 1))
        other = draw(st.sampled_from("0123456789abcdefABCDEF").filter(lambda letter: letter != text[at]))
        return text[:at] + other + text[at + 1 :]

    match draw(st.sampled_from(KINDS_OF_EDITS)):
        case "body":
            at = draw(st.integers(0, len(body) - 1))
            other = draw(letters.filter(lambda letter: letter != body[at]))
            changed[place] = (number, body[:at] + other + body[at + 1 :], digest, seal)
        case "shorter body":
            at = draw(st.integers(0, len(body) - 1))
            changed[place] = (number, body[:at] + body[at + 1 :], digest, seal)
        case "body and its hash":
            other = canonical_json({**json.loads(body), "content": {"word": draw(st.text(max_size=3))}})
            changed[place] = (number, other, digest_of(other), seal)
        case "body, hash and seal":
            changed[place] = sealed(number, canonical_json({**json.loads(body), "content": {"word": draw(st.text(max_size=3))}}))
        case "hash":
            changed[place] = (number, body, spoiled(digest), seal)
        case "hash and seal":
            changed[place] = sealed(number, body, spoiled(digest))
        case "seal":
            changed[place] = (number, body, digest, draw(st.sampled_from([spoiled(seal), "", digest, rows[place - 1][3], "ü"])))
        case "number":
            other = draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-1, len(rows) + 1))
            changed[place] = (other if other != number else number + 1, body, digest, seal)
        case "delete":
            del changed[place]
        case "duplicate":
            changed.insert(draw(st.integers(0, len(rows))), rows[place])
        case "swap":
            other = draw(st.integers(0, len(rows) - 1).filter(lambda index: index != place))
            changed[place], changed[other] = (rows[place][0], *rows[other][1:]), (rows[other][0], *rows[place][1:])
        case "forge":
            previous = rows[place - 1][2] if place else BEGIN
            changed.insert(place, sealed(number, canonical_json({**json.loads(body), "kind": "forged", "previous": previous})))
        case "forge next":
            bodies = [json.loads(row[1]) for row in rows]
            changed.append(chain([*bodies, {**bodies[0], "kind": "forged"}])[-1])
        case "head":
            heads = draw(st.sampled_from([[], [(len(rows) - 1, rows[-2][2])], [(len(rows), rows[-2][2])], [(0, BEGIN)]]))
        case _:
            heads = [heads[0], draw(st.sampled_from([heads[0], (len(rows) - 1, rows[-2][2])]))]
    return changed, heads


@pytest.mark.slow
def test_any_single_edit_is_found_on_opening(path: Path) -> None:
    """A character, a hash, a seal, a number, a row or the head changed, removed, repeated, exchanged or put in: refused, by the
    file alone, in words that name the file and quote nothing of the events."""
    write_events(path, Kept())
    with open_database(path) as held:  # the same database, so that every opening is quick
        rows = rows_of(held)

        @settings(max_examples=100)
        @given(edits(rows))
        def check(edit: tuple[list[Row], list[tuple[int, str]]]) -> None:
            put_rows(held, *edit)
            with pytest.raises(RegistryChanged, match=r"registry\.duckdb.*Restore the registry") as refused:
                read_events(path, kept_at_the_beginning(), read_only=False)
            assert SECRET_WORD not in str(refused.value)
            assert refused.value.__cause__ is None

        check()
        put_rows(held, rows, [(len(rows), rows[-1][2])])
        assert len(read_events(path, kept_at_the_beginning(), read_only=False)) == len(rows)


BODIES = ["", "null", "[]", "1", '"text"', "{}", "[" * 100_000, "\x00", '{"number":1}', '{"number":1,"number":1}']


@pytest.mark.parametrize("body", BODIES)
def test_a_body_of_any_kind_is_refused_in_words(path: Path, body: str) -> None:
    """Also with its right hash and seal: no body makes opening fail otherwise than in words."""
    write_events(path, Kept(), 1)
    with duckdb.connect(str(path)) as connection:
        put_rows(connection, [sealed(1, body)], [(1, digest_of(body))])
    with pytest.raises(StoreError, match=r"registry\.duckdb"):
        read_events(path, kept_at_the_beginning())


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], None], *, key: bytes | None = None) -> None:
    """Change the contents, and make the chain and its head anew, so that the file by itself is faultless; with the vault's key
    for the seals, or another."""
    with duckdb.connect(str(path)) as connection:
        bodies = [json.loads(row[1]) for row in rows_of(connection)]
        change(bodies)
        rows = chain(bodies)
        if key is not None:
            rows = [(number, body, digest, Kept(key=key).seal(digest)) for number, body, digest, _ in rows]
        put_rows(connection, rows, [(len(rows), rows[-1][2] if rows else BEGIN)])


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_chain_that_was_written_anew_is_found(path: Path, place: int) -> None:
    """Wherever the change is: without the vault's key by the first seal, and with it by the head that is kept elsewhere, because
    the last hash is another. Who has both could not be found out."""
    kept = Kept()
    write_events(path, kept)
    rewrite(path, lambda bodies: bodies[place]["content"].update(word="another"), key=b"another")
    with pytest.raises(RegistryChanged, match=r"event 1 .*its seal"):
        read_events(path, kept_at_the_beginning())
    rewrite(path, lambda bodies: None)
    assert len(read_events(path, kept_at_the_beginning())) == 5
    with pytest.raises(RegistryChanged, match=r"event 5 .*rewritten"):
        read_events(path, kept)


def test_an_event_appended_without_the_key_is_found(path: Path) -> None:
    """Whatever seal it bears, also that of an event before it; the events before it are as they were, and the head is right."""
    kept = Kept()
    write_events(path, kept)
    with duckdb.connect(str(path)) as connection:
        rows = rows_of(connection)
        number, body, digest, _ = chain([json.loads(row[1]) for row in [*rows, rows[1]]])[-1]
        for seal in (rows[-1][3], digest, "", "ü", Kept(key=b"another").seal(digest)):
            put_rows(connection, [*rows, (number, body, digest, seal)], [(6, digest)])
            connection.execute("CHECKPOINT")
            with pytest.raises(RegistryChanged, match=r"event 6 .*its seal"):
                read_held(connection, path, kept)


def read_held(connection: duckdb.DuckDBPyConnection, path: Path, kept: Kept) -> tuple[Event, ...]:
    """What an opening finds in a copy of the file, for this process has it open."""
    copy = path.with_name("copy.duckdb")
    shutil.copyfile(path, copy)
    return read_events(copy, kept)


@pytest.mark.parametrize("payload", [0, 2, 4, "3", None])
def test_an_event_that_calls_itself_by_another_number_is_found(path: Path, payload: Any) -> None:
    """Also in a chain whose hashes and seals are all right: place, row and body agree on the number of an event."""
    write_events(path, Kept())
    with duckdb.connect(str(path)) as connection:
        bodies = [json.loads(row[1]) for row in rows_of(connection)]
        rows = chain(bodies)
        for place in range(2, len(rows)):
            number = payload if place == 2 else place + 1
            body = canonical_json({**bodies[place], "number": number, "previous": rows[place - 1][2]})
            rows[place] = sealed(place + 1, body)
        put_rows(connection, rows, [(len(rows), rows[-1][2])])
    with pytest.raises(RegistryChanged, match="event 3 was changed"):
        read_events(path, kept_at_the_beginning())


@pytest.mark.parametrize("left", [4, 1, 0])
def test_an_older_registry_put_back_is_found_by_the_kept_head(path: Path, left: int) -> None:
    """The last events cut off with the head in the file moved back, down to an empty registry: how many are missing is told."""
    kept = Kept()
    write_events(path, kept)
    rewrite(path, lambda bodies: bodies.__delitem__(slice(left, None)))
    assert len(read_events(path, kept_at_the_beginning())) == left
    for read_only in (True, False):
        with pytest.raises(RegistryChanged, match=f"knows of 5 events, and here are {left}"):
            read_events(path, kept, read_only=read_only)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_removed_registry_is_found_by_the_kept_head(path: Path, read_only: bool) -> None:
    """It is not taken for a new one."""
    kept = Kept()
    write_events(path, kept)
    path.unlink()
    for _ in range(2):
        with pytest.raises(RegistryChanged, match="knows of 5 events, and here are 0"):
            read_events(path, kept, read_only=read_only)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("gone", [True, False], ids=["registry gone", "registry there"])
def test_a_removed_head_is_found_by_what_there_is(path: Path, gone: bool, read_only: bool) -> None:
    """By the events, or by the records of a vault whose registry was taken away too: neither is taken for a new site."""
    write_events(path, Kept())
    if gone:
        path.unlink()
    for _ in range(2):
        with pytest.raises(RegistryChanged, match=r"does not say which event was the last"):
            read_events(path, Kept(records=gone), read_only=read_only)


def test_a_kept_head_that_is_behind_is_no_fault_and_catches_up(path: Path) -> None:
    """Whoever was stopped between the commit and the head left an older one; the next event moves it on."""
    kept = Kept()
    write_events(path, kept, 2)
    behind = kept.head
    write_events(path, kept, 1)
    kept.head = behind
    assert len(read_events(path, kept)) == 3
    write_events(path, kept, 1)
    assert kept.head == (4, read_events(path, kept)[-1].hash)


# files that are no registry of ours


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_database_of_something_else_is_refused_in_words(path: Path, filled: bool, read_only: bool) -> None:
    """Its charges would be forgotten: neither read nor added to, nor changed, and said so; a second time too."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE charges (number BIGINT NOT NULL, population VARCHAR NOT NULL, idp_column BIGINT)")
        connection.execute("CREATE TABLE states (number BIGINT NOT NULL, policy VARCHAR NOT NULL, state VARCHAR NOT NULL)")
        if filled:
            connection.execute("INSERT INTO charges VALUES (1, 'folk', 2000000000)")
    for _ in range(2):
        with pytest.raises(RegistryChanged, match=r"registry\.duckdb.*not a registry"):
            read_events(path, Kept(), read_only=read_only)
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    assert tables == [("charges",), ("states",)]


@pytest.mark.parametrize("read_only", [True, False])
def test_what_a_later_version_wrote_to_is_refused(path: Path, read_only: bool) -> None:
    """With the versions; an older program neither reads it nor adds to it."""
    kept = Kept()
    with open_registry(path, anchor=kept) as opened:
        opened.add(FORMAT, version=2, tool="release-pipeline 9", site="a")
    registry._verified = registry._Verified(Path())  # it was another process
    with pytest.raises(FormatNewer, match="the registry of the site here has the format 2, and this version") as refused:
        read_events(path, kept, read_only=read_only)
    assert "Install the version that wrote it" in refused.value.remedy


# all or nothing


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt, StoreError])
@pytest.mark.parametrize("before", [0, 2])
def test_an_exception_in_the_block_takes_everything_back(path: Path, raised: type[BaseException], before: int) -> None:
    """Events and rows of budgets alike are as they were, what is kept elsewhere too, and the next one goes on from there."""
    kept = Kept()
    write_events(path, kept, before)
    with open_registry(path, anchor=kept) as registry:
        values = {"population": "folk", "unit": "releases", "spent": 1, "cap": 5}
        registry.connection.execute("INSERT INTO budgets VALUES ($population, $unit, $spent, $cap)", values)
    events, head = read_events(path, kept), kept.head

    def add_and_fail() -> None:
        with open_registry(path, anchor=kept) as registry:
            registry.add("reserved", FIRST)
            registry.add("secret", FIRST)
            registry.connection.execute("UPDATE budgets SET spent = 4")
            registry.connection.execute("INSERT INTO budgets VALUES ('others', 'releases', 1, 1)")
            raise raised("stopped")

    with pytest.raises(raised):
        add_and_fail()
    assert (read_events(path, kept), kept.head) == (events, head)
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("FROM budgets").fetchall() == [("folk", "releases", 1, 5)]
    write_events(path, kept, 1)
    assert [event.number for event in read_events(path, kept)] == list(range(1, before + 2))


def test_an_error_caught_inside_the_block_leaves_registry_and_kept_head_agreed(path: Path) -> None:
    """The database gives up the transaction when it refuses a row (a CHECK): the events of the block are not written, whoever
    caught the error, and the kept head does not know of them; else nobody could open the registry any more."""
    kept = Kept()
    write_events(path, kept, 1)
    events, head = read_events(path, kept), kept.head

    def add_and_catch() -> None:
        with open_registry(path, anchor=kept) as registry:
            registry.add("reserved", FIRST)
            with contextlib.suppress(duckdb.ConstraintException):
                registry.connection.execute("INSERT INTO budgets VALUES ('folk', 'releases', 2, 1)")

    with contextlib.suppress(StoreError):  # refusing to commit would be right too
        add_and_catch()
    assert kept.head == head
    assert read_events(path, kept) == events


# what this process has verified before


@pytest.mark.parametrize("number", [1, 3, 6])
@pytest.mark.parametrize(
    "change",
    [
        "body = replace(body, 'kind', 'sort')",
        "hash = translate(hash, '0123456789', '1234567890')",
        "seal = translate(seal, '0123456789', '1234567890')",
        "number = number + 1000",
    ],
)
def test_what_was_verified_and_then_changed_is_found_out(path: Path, number: int, change: str) -> None:
    kept = Kept()
    write_events(path, kept, 6)
    read_events(path, kept)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"UPDATE events SET {change} WHERE number = {number}")  # noqa: S608
    for _ in range(2):  # nor is it taken for verified afterwards
        with pytest.raises(RegistryChanged):
            read_events(path, kept)


def test_what_was_verified_under_another_key_is_not(path: Path) -> None:
    kept = Kept()
    write_events(path, kept)
    read_events(path, kept)
    with pytest.raises(RegistryChanged, match="its seal is not of the vault's key"):
        read_events(path, Kept(kept.head, key=b"another key"))
