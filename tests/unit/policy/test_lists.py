"""Lists of entries from files: part of the policy as if they were written out."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, load_policy, parse_policy
from release_pipeline.policy.loading.load import list_files

TEXT = """
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-um, epsilon: 1, k: 5}
columns:
  town: {role: quasi, do: keep, values: VALUES, why: the register}
  pay:  {role: confidential, do: noise, domain: [0, 100], grid: 0.01, outside: clamp, why: known}
gates: {min_rows: 100}
"""


def load(folder: Path, values: str, content: str = "town\nAsh\nElm\n", text: str = TEXT) -> Policy:
    """The policy in a folder with a list."""
    (folder / "policies" / "lists").mkdir(parents=True, exist_ok=True)
    (folder / "policies" / "lists" / "towns.csv").write_text(content, encoding="utf-8")
    file = folder / "policies" / "people.yaml"
    file.write_text(text.replace("VALUES", values))
    return load_policy(file)


@pytest.mark.parametrize(
    "content", ["town\nAsh\nElm\n", "town\r\nAsh\r\nElm", "\ufefftown\n Ash \n\nElm\n", 'code;town\n1;Ash\n2;"Elm"\n']
)
def test_a_list_is_what_is_written_out(tmp_path: Path, content: str) -> None:
    """The same hash, and another one when the file changes: then it needs another approval."""
    made = load(tmp_path, "{file: lists/towns.csv, column: town}", content)
    assert made.kept_columns["town"].values == ("Ash", "Elm")
    assert made == parse_policy(TEXT.replace("VALUES", "[Ash, Elm]"), name="people")
    other = load(tmp_path, "{file: lists/towns.csv, column: town}", content.replace("Elm", "Oak"))
    assert other.canonical_hash() != made.canonical_hash()
    assert list_files(TEXT.replace("VALUES", "{file: lists/towns.csv}")) == ["lists/towns.csv"]


@pytest.mark.parametrize(
    ("values", "content", "words"),
    [
        ("{file: lists/towns.csv}", "code,town\n1,Ash\n", "the file has 2 columns, and none is named"),
        ("{file: lists/towns.csv, column: city}", "code,town\n1,Ash\n", "the file has no column 'city'"),
        ("{file: lists/towns.csv}", "town\n", "the file lists nothing"),
        ("{file: lists/towns.csv, column: town}", "code,town\n1,Ash\n2,\n", "entry 2 of the file is empty"),
        ("{file: lists/towns.csv}", "town\nAsh\nElm\nAsh\n", "the file lists an entry twice: number 3"),
        ("{file: lists/others.csv}", "town\nAsh\n", "there is no such file"),
        ("{file: ../towns.csv}", "town\nAsh\n", "this path leads out of the folder"),
        ("{file: /etc/towns.csv}", "town\nAsh\n", "this path leads out of the folder"),
        ("{file: /etc/passwd}", "town\nAsh\n", "this is no name of a list"),
        ("{file: 7}", "town\nAsh\n", "file must name a file"),
        ("{path: lists/towns.csv}", "town\nAsh\n", "values must be a list"),
    ],
)
def test_what_is_no_list_is_told(tmp_path: Path, values: str, content: str, words: str) -> None:
    """With its line in the policy."""
    with pytest.raises(PolicyInvalid) as refused:
        load(tmp_path, values, content)
    [problem] = refused.value.problems
    assert words in str(problem)
    assert "people.yaml:10:" in str(problem)
