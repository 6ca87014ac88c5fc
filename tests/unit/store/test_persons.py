"""How persons are told apart: one person is one, however an identifier is spelled."""

from __future__ import annotations

import unicodedata
from typing import Any

import duckdb
import pytest

from release_pipeline.store.people import as_rows, count_persons, sort_people
from release_pipeline.store.raw import RawTable, create_macros, learn_forms


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
            hashes = list(table.persons("person", b"k"))
            persons = [person for batch in hashes for person in batch.to_pylist()]
            counts = count_persons(sort_people(map(as_rows, hashes), len(rows)), records=len(rows), allowed=1)
            assert counts == {"missing": 1, "persons": 4, "too_often": 1}
            found.append(persons)
    assert len(set(found[0])) == 4
    assert found[0] == found[1] == found[2]
