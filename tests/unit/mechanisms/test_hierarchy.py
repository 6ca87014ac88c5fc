"""Declared hierarchies: what is refused, and that encoding covers every entry or says how many it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy, find_ambiguous_label

LETTERS = [("a", "vowel", "*"), ("b", "consonant", "*"), ("e", "vowel", "*")]
CANARY = "canary-7319"


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ({}, InvalidArgument, "has no values"),
        ([("a", "*"), ("b",)], InvalidArgument, "'b' has 1 levels, and others 2"),
        ([("a", "*"), ("a", "*")], InvalidArgument, "'a' stands in the hierarchy twice"),
        ([("a", ""), ("b", "*")], InvalidArgument, "'a' has an empty entry"),
        (["a*", "b*"], InvalidType, "a text where a sequence of labels should be"),
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


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NA, pd.NaT])
def test_uncovered_entries_are_counted_and_not_shown(missing: object) -> None:
    """Three records with two different values, in texts and in objects, and a missing one, even where a value is spelt like it;
    no cell in what is raised, nor in what led to it."""
    spelt = Hierarchy.of([(text, "*") for text in ("a", "None", "nan", "NaN", "NaT", "<NA>", "NA", "-1")])
    columns = [
        ["a", CANARY, CANARY, CANARY + "'"],
        np.array(["a", CANARY, CANARY, CANARY + "'"]),
        pd.Series(["a", CANARY, CANARY, CANARY + "'"]),
        [CANARY, "a", 7319, 7319],
        ["None", missing, CANARY, CANARY],
    ]
    for column in columns:
        with pytest.raises(InvalidArgument, match="3 records have 2 different values") as caught:
            spelt.encode(column)
        for error in (caught.value, caught.value.__cause__, caught.value.__context__):
            assert "7319" not in repr(error)
            assert "7319" not in str(error)
    assert spelt.encode(["None", "nan", "NaN", "NaT", "<NA>", "NA", "-1"]).tolist() == [1, 2, 3, 4, 5, 6, 7]


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
