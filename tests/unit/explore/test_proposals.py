"""What `init` proposes of the labels of a source file: comments, never a role, and nothing from a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.apps.cli import main
from release_pipeline.explore.draft import propose
from release_pipeline.policy.kinds import KeepColumn
from release_pipeline.policy.values.text import read_yaml
from release_pipeline.store.survey_files import SurveyColumn

CANARY = "zyxCANARYzyx"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """A file."""
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_init_and_mask_refuse_a_workbook_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the command line, where a steward meets it first."""
    book = write(tmp_path, "people.xlsx", b"PK")
    assert main(["init", "people", "--from", str(book)]) == 1
    assert "Save the sheet as CSV" in capsys.readouterr().err


def test_what_is_proposed_can_be_taken_as_it_stands() -> None:
    """The lists are YAML: codes as the file has them, letters of Stata among them, and labels whatever they say."""
    entries = (("1", "yes"), ("02", " "), ("no", ": #"), (".a", 'a "b"'), ("-8", "refused"), ("-50", "r" * 70))
    column = SurveyColumn("x", "What x is, briefly", entries, (("-99", "-8"),))
    *pasted, last = propose(column)
    assert last == "no answer, says the file: -99 to -8"
    text = f"{{role: confidential, do: keep, why: needed, {', '.join(pasted)}}}"
    read = KeepColumn.model_validate(read_yaml(text).value)
    assert read.label == "What x is, briefly"
    assert read.values == (1, "02", "no")
    assert read.labels == {"1": "yes", "no": ": #"}
    assert read.codes == {".a": 'a "b"', "-8": "refused", "-50": f"{'r' * 57}..."}


@given(st.text(), st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=5), st.booleans())
def test_whatever_labels_say_stays_in_its_comment(label: str, labels: list[Any], is_text: bool) -> None:
    """One line each, whatever breaks lines in YAML, no control, and a policy that is the same without them."""
    lines = list(propose(SurveyColumn("x", label, tuple(labels), tuple((code, code) for code, _ in labels[::2]), is_text)))
    assert all(line.isprintable() for line in lines)
    text = "".join(f"  # {line}\n" for line in lines) + "x: 1\n"
    assert yaml.safe_load(text) == {"x": 1}


def test_long_lists_are_counted_and_not_listed() -> None:
    """Hundreds of labelled values are places, or people."""
    column = SurveyColumn("x", "", tuple((str(i), f"{CANARY} {i}") for i in range(2000)))
    assert list(propose(column)) == ["2,000 values have a label, which are too many to list here"]


def test_labels_that_say_that_there_is_no_answer_are_codes() -> None:
    """In Stata nothing else says it: copied as values they would be answers. A sentence that has such a word is none."""
    entries = (("1", "yes"), ("3", "no opinion"), ("4", "they refused to let us see their rooms"))
    missing = (("97", "Refused"), ("98", "DK"), ("99", "no answer"), ("-1", "Not applicable"))
    [values, _, codes] = propose(SurveyColumn("x", "", (*entries, *missing)))
    assert values == "values: [1, 3, 4]"
    assert codes == "codes: {97: Refused, 98: DK, 99: no answer, -1: Not applicable}"
