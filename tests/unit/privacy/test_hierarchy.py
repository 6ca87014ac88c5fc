"""Declared hierarchies: what is refused, and that encoding covers every entry or says how many it does not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.hierarchy import Hierarchy, find_ambiguous_label

LETTERS = [("a", "vowel", "*"), ("b", "consonant", "*"), ("e", "vowel", "*")]
CANARY = "canary-7319"


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([], InvalidArgument, "has no values"),
        ({}, InvalidArgument, "has no values"),
        ([()], InvalidArgument, "has no values"),
        ([("a", "*"), ("b",)], InvalidArgument, "'b' has 1 levels, and others 2"),
        ([("a", "*"), ()], InvalidArgument, "has 0 levels, and others 2"),
        ([("a", "*"), ("b", "x", "*")], InvalidArgument, "'b' has 3 levels, and others 2"),
        ([("a", "*"), ("a", "*")], InvalidArgument, "'a' stands in the hierarchy twice"),
        ([(1, "*"), ("1", "*")], InvalidArgument, "'1' stands in the hierarchy twice"),
        ([("a", ""), ("b", "*")], InvalidArgument, "'a' has an empty entry"),
        ([("", "*")], InvalidArgument, "empty entry"),
        (["a*", "b*"], InvalidType, "a text where a sequence of labels should be"),
        ({"a": "vowel", "b": "consonant"}, InvalidType, "a text where a sequence of labels should be"),
        (pd.DataFrame({"level0": ["a"], "level1": ["*"]}), InvalidType, "a text where a sequence of labels should be"),
        (
            [("a", "x", "p", "*"), ("b", "x", "q", "*")],
            InvalidArgument,
            "values that share 'x' on level 1 have different labels on level 2",
        ),
        ([("a", "x", "y", "p"), ("b", "z", "y", "q")], InvalidArgument, "share 'y' on level 2 have different labels on level 3"),
    ],
)
def test_refusals(rows: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Hierarchy.of(rows)


def test_what_it_says_of_itself() -> None:
    letters = Hierarchy.of(LETTERS)
    assert (letters.levels, letters.values) == (3, ("a", "b", "e"))
    assert letters.labels == (("a", "b", "e"), ("vowel", "consonant"), ("*",))
    assert letters.codes.tolist() == [[0, 1, 2], [0, 1, 0], [0, 0, 0]]
    assert repr(letters) == "<Hierarchy of 3 values in 3 levels>"
    assert Hierarchy.of(letters) is letters
    assert Hierarchy.of(iter(LETTERS)).labels == letters.labels  # pyright: ignore[reportArgumentType]
    by_value = Hierarchy.of({value: labels for value, *labels in LETTERS})
    assert by_value.labels == letters.labels
    assert np.array_equal(by_value.codes, letters.codes)


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=12))
def test_what_is_accepted_is_monotone_and_what_is_refused_is_not(table: list[list[int]]) -> None:
    """On random labels: refused exactly if two values share a label on a level and not on all coarser ones."""
    rows = [(f"v{place}", *map(str, labels)) for place, labels in enumerate(table)]
    torn = any(
        one[level] == other[level] and one[level + 1] != other[level + 1]
        for one in table
        for other in table
        for level in range(2)
    )
    if torn:
        with pytest.raises(InvalidArgument, match="not monotone"):
            Hierarchy.of(rows)
        return
    hierarchy = Hierarchy.of(rows)
    for level, column in enumerate(zip(*rows, strict=True)):
        assert [hierarchy.labels[level][code] for code in hierarchy.codes[level]] == list(column)


def test_encoding_gives_numbers_of_values() -> None:
    letters = Hierarchy.of(LETTERS)
    entries = ["e", "a", "b", "e"]
    for column in (
        entries,
        tuple(entries),
        np.array(entries),
        np.array(entries, dtype=object),
        pd.Series(entries),
        iter(entries),
    ):
        numbers = letters.encode(column)
        assert numbers.dtype == np.int64
        assert numbers.tolist() == [2, 0, 1, 2]
    assert letters.encode([]).tolist() == []
    assert letters.encode(np.array([], dtype=np.int64)).tolist() == []


def test_whole_numbers_match_their_texts_and_nothing_else() -> None:
    digits = Hierarchy.of([(number, "*") for number in range(-1, 12)])
    assert digits.encode([10, -1, "3", np.int8(7)]).tolist() == [11, 0, 4, 8]
    assert digits.encode(np.array([10, -1, 10], dtype=np.int16)).tolist() == [11, 0, 11]
    for column in ([1.0], ["1.0"], [" 1"], ["01"], [True], np.array([1.0])):
        with pytest.raises(InvalidArgument, match="does not cover"):
            digits.encode(column)
    assert Hierarchy.of([("1.5", "*")]).encode(np.array([1.5, 1.5])).tolist() == [0, 0]


def test_uncovered_entries_are_counted_and_not_shown() -> None:
    """Three records with two different values, in texts, numbers, objects; no cell in what is raised, nor in what led to it."""
    letters = Hierarchy.of(LETTERS)
    columns = [
        ["a", CANARY, CANARY, CANARY + "'"],
        np.array(["a", CANARY, CANARY, CANARY + "'"]),
        pd.Series(["a", CANARY, CANARY, CANARY + "'"]),
        np.array([7319, 7319, 7320]),
        [7319, 7319, "7320", "a"],
    ]
    for column in columns:
        with pytest.raises(InvalidArgument, match="3 records have 2 different values") as caught:
            letters.encode(column)
        for error in (caught.value, caught.value.__cause__, caught.value.__context__):
            assert "7319" not in repr(error)
            assert "7319" not in str(error)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NA, pd.NaT])
def test_a_missing_entry_is_refused_even_where_a_value_is_spelt_like_it(missing: object) -> None:
    spelt = Hierarchy.of([(text, "*") for text in ("a", "None", "nan", "NaN", "NaT", "<NA>", "NA", "?", "*", "-1")])
    with pytest.raises(InvalidArgument, match="2 missing entries"):
        spelt.encode(["a", missing, missing])
    assert spelt.encode(["None", "nan", "NaN", "NaT", "<NA>", "NA", "?", "*", "-1", -1]).tolist() == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        9,
    ]


def test_missing_floats_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="3 missing entries"):
        Hierarchy.of([("nan", "*"), ("1.5", "*")]).encode(np.array([np.nan, 1.5, np.nan, np.nan]))


def test_texts_are_compared_to_the_last_character() -> None:
    """Arrays of fixed-width text lose a NUL at the end; entries that come as objects do not."""
    with pytest.raises(InvalidArgument, match="1 records"):
        Hierarchy.of([("a", "*")]).encode(["a", "a\0"])
    assert Hierarchy.of([("a", "*"), ("a\0", "*")]).encode(["a\0", "a"]).tolist() == [1, 0]


def test_a_column_has_one_dimension() -> None:
    with pytest.raises(InvalidArgument, match="one dimension, not 2"):
        Hierarchy.of(LETTERS).encode(np.array([["a"]]))


def test_some_of_the_values() -> None:
    """Only labels that still occur, and every value with the label that it had."""
    chance = random.Random(3)  # noqa: S311
    whole = Hierarchy.of([(f"v{i}", f"x{i // 2}", f"y{i // 4}", "*") for i in range(16)])
    for _ in range(50):
        values = chance.sample(range(16), chance.randint(1, 16))
        part = whole.of_values(np.array(values))
        for level in range(4):
            had = [whole.labels[level][whole.codes[level, value]] for value in values]
            assert [part.labels[level][code] for code in part.codes[level]] == had
            assert sorted(part.labels[level]) == sorted(set(had))


@pytest.mark.parametrize(
    ("rows", "label"),
    [
        (LETTERS, None),
        ([("a", "a", "*"), ("b", "b", "*")], None),
        ([("Other", "Other", "*"), ("Sales", "Other", "*")], "Other"),
        ([("1", "1-2", "*"), ("2", "1-2", "*"), ("1-2", "3", "*")], "1-2"),
        ([("*", "*"), ("a", "*")], "*"),
        ([("*", "*")], None),
    ],
)
def test_a_label_that_means_two_things(rows: Any, label: str | None) -> None:
    """Where records of several levels meet, a label must stand for the same values on all of them."""
    assert find_ambiguous_label(Hierarchy.of(rows)) == label
