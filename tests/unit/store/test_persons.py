"""How persons are told apart: one person is one, however an identifier is spelled."""

from __future__ import annotations

import unicodedata
from typing import Any

import duckdb
import pytest

from release_pipeline.store.people import list_pads
from release_pipeline.store.raw import RawTable, _list_compatible_forms, create_macros, learn_forms


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    """A database with the rules."""
    made = duckdb.connect()
    create_macros(made)
    learn_forms(made)
    return made


def person_of(connection: duckdb.DuckDBPyConnection, *entries: str) -> list[str]:
    """What is hashed of each."""
    return [row[0] for row in connection.execute("SELECT person_of(e) FROM (SELECT unnest($1) AS e)", [list(entries)]).fetchall()]


@pytest.mark.parametrize(
    "unseen", ["\u00a0", "\u200b", "\u200d", "\ufeff", "\u3000", "\u00ad", "\u2003", "\u2060", "\u2028", "\x00", "\x85"]
)
def test_what_is_not_seen_makes_nobody_else(connection: duckdb.DuckDBPyConnection, unseen: str) -> None:
    """The attack: the same people a second time, each with a no-break space."""
    assert person_of(connection, f"p{unseen}1", f"{unseen}p1", f"p1{unseen}") == ["p1"] * 3


def test_the_forms_are_learnt_where_they_are_needed_and_missed_nowhere() -> None:
    """They take a while, so a table of plain identifiers does without; without them nobody beyond ASCII is told apart wrongly."""
    found: list[int] = []
    for odd in ("p1", "p\uff11"):
        with duckdb.connect() as made:
            made.execute("CREATE TABLE raw AS SELECT unnest($1) AS person", [["p1", "p2", odd]])
            found.append(RawTable(made, "people.csv").count_persons("person", allowed=1)["too_often"])
            assert (made.execute("SELECT getvariable('compatible_forms') IS NULL").fetchall() == [(True,)]) == odd.isascii()
    assert found == [1, 1]
    with duckdb.connect() as made:
        create_macros(made)
        with pytest.raises(duckdb.InvalidInputException, match="are not known here"):
            person_of(made, "p\uff11")


@pytest.mark.parametrize(
    ("odd", "plain"),
    [
        ("\uff301", "p1"),
        ("p\uff11", "p1"),
        ("\uff10\uff10\uff17.\uff10", "7"),
        ("\U0001d5fd1", "p1"),
        ("\ufb01x", "fix"),
        ("p\ufe0f1", "p1"),
        ("p\u31641", "p1"),
        ("p\u034f1", "p1"),
        ("e\u200b\u0301", "\u00e9"),
        ("\u212b", "\u00e5"),
    ],
)
def test_compatible_forms_are_one(connection: duckdb.DuckDBPyConnection, odd: str, plain: str) -> None:
    """Full-width and mathematical letters, ligatures, selectors, fillers; what is composed after something unseen went."""
    assert person_of(connection, odd) == [plain]


@pytest.mark.slow
def test_it_is_nfkc(connection: duckdb.DuckDBPyConnection) -> None:
    """Against Python, for every letter of the two planes that have compatible forms."""
    letters = [chr(code) for code in range(0x80, 0x20000) if unicodedata.category(chr(code))[0] in "LN"]
    letters = [
        letter
        for letter in letters
        if unicodedata.normalize("NFKC", letter).isalnum() and letter not in "\u115f\u1160\u3164\uffa0"
    ]
    [[whole]] = connection.execute(
        "SELECT lower($1)", ["|".join(unicodedata.normalize("NFKC", one) for one in letters)]
    ).fetchall()
    assert "|".join(person_of(connection, *(f"x{letter}" for letter in letters))) == "|".join(
        f"x{one}" for one in whole.split("|")
    )


def test_letters_that_are_looked_up_are_those_with_another_form(connection: duckdb.DuckDBPyConnection) -> None:
    """And no other of all letters beyond ASCII: of names without them nothing is looked up, which takes long."""
    letters = "SELECT chr(range::INTEGER) AS letter FROM range(128, 131072) WHERE range NOT BETWEEN 55296 AND 57343"
    text = f"SELECT letter FROM ({letters}) WHERE regexp_matches(letter, getvariable('compatible_letters'))"  # noqa: S608
    found = {letter for [letter] in connection.execute(text).fetchall()}
    assert found == set(_list_compatible_forms())
    assert not found & set("äöüßéñøłÞğчжи中文字한국어عربיתहि")


def test_a_plain_identifier_is_what_it_was(connection: duckdb.DuckDBPyConnection) -> None:
    """Hashes that a site keeps are compared with these for ever."""
    before = {
        "P 1": "p1",
        "0012.0": "12",
        "+007": "7",
        "a-b_c/d.e": "a-b_c/d.e",
        "00": "0",
        "12.50": "12.50",
        "\t9\n": "9",
        "\u00dcnal": "\u00fcnal",
    }
    assert person_of(connection, *before) == list(before.values())
    every = "".join(chr(code) for code in range(33, 127))
    assert person_of(connection, every) == [every.lower()]


@pytest.mark.parametrize("column", ["person", "number"])
def test_persons_are_counted_alike_in_parts(column: str) -> None:
    """However little memory there is: the same counts."""
    found: list[Any] = []
    with duckdb.connect() as made:
        made.execute("CREATE TABLE raw AS SELECT 'Ä ' || range % 60 AS person, range % 47 AS number FROM range(200)")
        made.execute("INSERT INTO raw VALUES (NULL, NULL), ('ä1', 1), ('0007', 7)")
        for memory in (None, 1 << 40, 1000, 200):
            table = RawTable(made, "people.csv", memory=memory)
            numbers = table.count_numbers("number", low=0, high=40, step=2, fill=None)
            found.append((table.count_persons(column, allowed=3), numbers, len(table._parts())))
    assert [parts for *_, parts in found][2:] == [4, 19]
    assert all(one[:2] == found[0][:2] for one in found)
    assert found[0][0]["persons"] > 40


LARGEST = {
    "TINYINT": 127,
    "USMALLINT": 65_535,
    "INTEGER": 11,
    "UBIGINT": 2**64 - 1,
    "HUGEINT": 2**127 - 1,
    "DOUBLE": 11,
    "DECIMAL(20, 1)": 11,
}


@pytest.mark.parametrize(("kind", "largest"), LARGEST.items())
def test_a_number_is_the_person_of_its_text(kind: str, largest: int) -> None:
    """Of which whole ones are not read as texts that somebody may have written otherwise: the same persons and counts."""
    found: list[Any] = []
    numbers = [None, 7, 7, 10, 100, largest]
    texts = [None if number is None else str(number) for number in numbers]
    others = [None if number is None else f" +0{number}" for number in numbers]
    for written, rows in ((kind, numbers), ("VARCHAR", texts), ("VARCHAR", others)):
        with duckdb.connect() as made:
            made.execute(f"CREATE TABLE raw (person {written})")
            made.executemany("INSERT INTO raw VALUES (?)", [(row,) for row in rows])
            table = RawTable(made, "people.csv")
            persons = [person for batch in table.persons("person", list_pads(b"k", b"e")) for person in batch.to_pylist()]
            found.append([persons, table.count_persons("person", allowed=1)])
    assert len(set(found[0][0])) == 4
    assert found[0] == found[1] == found[2]
