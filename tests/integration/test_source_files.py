"""Files of Stata, SPSS and SAS: codes arrive as codes, the records are those of the CSV, and what is damaged is
one sentence without a cell."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.store import survey_files, survey_reader
from release_pipeline.store.source import find_file, open_raw
from release_pipeline.store.survey_files import SurveyFile, describe_survey
from tests.leaks import find_canaries

CANARY = "zyxCANARYzyx"


def read_entries(path: Path, *columns: str) -> dict[str, list[str | None]]:
    """The entries of some columns, as they come into `raw`."""
    found = find_file(path, expected=frozenset())
    with open_raw(found, {name: name for name in columns}) as table:
        assert {table.kinds[name] for name in columns} == {"text"}
        return {name: table.categories(name).to_pylist() for name in columns}


# what stands there


@pytest.mark.slow
def test_codes_stay_codes_and_letters_of_stata_stay_letters(tmp_path: Path) -> None:
    """Codes below zero are numbers, labels are nowhere, `.` is nothing and `.a` is itself; four bytes are written as Stata shows
    them."""
    frame = pd.DataFrame(
        {
            "code": [-8.0, -9.0, 1.0, np.nan, 2.5],
            "tagged": pd.Series([1, "a", 3, "z", 5], dtype=object),
            "short": np.array([0.1, 0.2, -3.5, 1e-5, 7], dtype=np.float32),
            "town": ["north", "", "öst", " x ", "-8"],
        }
    )
    labels: dict[str, Any] = {"code": {-8.0: "refused", -9.0: "not asked"}, "tagged": {1: "yes", "a": "refused"}}
    pyreadstat.write_dta(frame, tmp_path / "a.dta", variable_value_labels=labels, missing_user_values={"tagged": ["a", "z"]})
    assert read_entries(tmp_path / "a.dta", *frame.columns) == {
        "code": ["-8", "-9", "1", None, "2.5"],
        "tagged": ["1", ".a", "3", ".z", "5"],
        "short": read_entries(tmp_path / "a.dta", "short")["short"],
        "town": ["north", None, "öst", "x", "-8"],
    }
    assert read_entries(tmp_path / "a.dta", "short")["short"][-1] == "7"
    with open_raw(find_file(tmp_path / "a.dta", expected=frozenset()), {"tagged": "tagged", "code": "code"}) as table:
        counts = table.count_numbers("tagged", low=0, high=10, step=1, fill=None)
        assert (counts["missing"], counts["not_a_number"]) == (0, 2)  # no blank, and no number either: the policy names it
        counts = table.count_numbers("code", low=0, high=10, step=1, fill=None)
        assert (counts["missing"], counts["not_a_number"], counts["below"]) == (1, 0, 2)


@pytest.mark.slow
def test_spss_codes_in_missing_ranges_stay_numbers(tmp_path: Path) -> None:
    """What SPSS calls missing is a number that a policy can name; only what has no value at all is blank."""
    frame = pd.DataFrame({"income": [-8.0, -50.0, 7.0, np.nan], "town": ["north", "99", "south", ""]})
    file = tmp_path / "a.sav"
    ranges: dict[str, Any] = {"income": [{"lo": -99, "hi": -9}, -8], "town": ["99"]}
    pyreadstat.write_sav(frame, file, missing_ranges=ranges)
    assert read_entries(file, "income", "town") == {"income": ["-8", "-50", "7", None], "town": ["north", "99", "south", None]}
    income, town = describe_survey(file, ".sav", where="x").columns
    assert set(income.missing) == {("-99", "-9"), ("-8", "-8")}
    assert town.missing == (("99", "99"),)


@pytest.mark.slow
def test_letters_of_sas_stay_letters(tmp_path: Path) -> None:
    """A transport file has .A as a point's neighbour: `read_xport` alone would make it blank."""
    file = tmp_path / "a.xpt"
    pyreadstat.write_xport(pd.DataFrame({"x": [1.0, np.nan, -2.5, np.nan]}), file, file_format_version=5)
    content = bytearray(file.read_bytes())
    first = content.index(b"OBS     HEADER") - 20 + 80
    assert content[first + 8 : first + 9] == b"."
    content[first + 8 : first + 9] = b"A"
    file.write_bytes(content)
    assert read_entries(file, "x") == {"x": ["1", ".A", "-2.5", None]}


@pytest.mark.slow
def test_days_and_moments_are_written_as_in_csv(tmp_path: Path) -> None:
    """Whatever way Stata shows a day; other counts of time stay numbers."""
    days = [dt.date(2020, 1, 31), dt.date(1899, 12, 1)]
    frame = pd.DataFrame(
        {"day": days, "at": [dt.datetime(2020, 1, 31, 12, 30, 1), dt.datetime(1960, 1, 1)], "month": [720.0, 721.0]}
    )
    pyreadstat.write_dta(frame, tmp_path / "a.dta", variable_format={"month": "%tm"})
    pyreadstat.write_dta(frame, tmp_path / "b.dta", variable_format={"day": "%tdNN/DD/CCYY", "month": "%tm"})
    pyreadstat.write_sav(frame, tmp_path / "a.sav")
    for file in ("a.dta", "b.dta", "a.sav"):
        found = read_entries(tmp_path / file, "day", "at", "month")
        assert found["day"] == ["2020-01-31", "1899-12-01"], file
        assert found["at"] == ["2020-01-31 12:30:01", "1960-01-01 00:00:00"]
        assert found["month"] == ["720", "721"]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """The parser renames one, and the policy would be about the other; a name that looks like such a one is a name."""
    pyreadstat.write_dta(pd.DataFrame({"aaaa": [1.0], "bbbb": [2.0], "cc_duplicated1": [3.0]}), tmp_path / "a.dta")
    assert find_file(tmp_path / "a.dta", expected=frozenset()).header == ("aaaa", "bbbb", "cc_duplicated1")
    content = (tmp_path / "a.dta").read_bytes()
    (tmp_path / "b.dta").write_bytes(content.replace(b"bbbb", b"aaaa"))
    with pytest.raises(SourceError, match="two columns of the Stata file have the same name"):
        find_file(tmp_path / "b.dta", expected=frozenset())


def test_a_file_that_has_fewer_records_than_it_says_is_refused() -> None:
    """Where the parser would end in silence."""

    def read(**options: Any) -> tuple[dict[str, list[float]], Any]:
        return {"x": list(range(options["row_offset"], 7))}, None

    for told, refused in ((7, False), (8, True), (None, False)):
        known = SimpleNamespace(number_rows=told, original_variable_types={"x": "F8.2"})
        with pytest.raises(survey_reader._Refused) if refused else contextlib.nullcontext():
            assert [len(chunk["x"]) for chunk in survey_reader._read_chunks(read, known, ["x"])] == [7]


# what is no such file


def make_survey(folder: Path, ending: str) -> bytes:
    """A file with a canary in its texts, its labels aside."""
    file = folder / f"good.{ending}"
    frame = pd.DataFrame({"id": [1.0, 2, 3, 4] * 10, "income": [-8.0, 2.5, None, 7] * 10, "town": [CANARY, "south"] * 20})
    if ending == "dta":
        pyreadstat.write_dta(frame, file)
    elif ending == "xpt":
        pyreadstat.write_xport(frame, file)
    else:
        pyreadstat.write_sav(frame, file, compress=ending == "zsav")
    return file.read_bytes()


def spoil_survey(content: bytes, way: str) -> bytes:
    """Some ways in which such a file is damaged."""
    spoiled = bytearray(content)
    if way == "cut":
        return content[: len(content) * 3 // 4 // 80 * 80 + 3]
    if way == "cut in the header":
        return content[:100]
    if way == "another kind":
        return f"id,town\n1,{CANARY}\n".encode()
    if way == "ones":
        return b"\xff" * len(content)
    draw = random.Random(way)  # noqa: S311
    for _ in range(20):
        spoiled[draw.randrange(min(len(spoiled), 400))] = draw.choice([0, 1, 127, 128, 255])
    return bytes(spoiled)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["cut", "another kind", "bytes 1"])
@pytest.mark.parametrize("ending", ["dta", "sav", "sas7bdat"])
def test_a_damaged_file_is_one_sentence_without_a_cell(
    tmp_path: Path, ending: str, way: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever the reader makes of it, its words and its end are never ours; what shows no damage may be read."""
    content = spoil_survey(make_survey(tmp_path, "dta" if ending == "sas7bdat" else ending), way)
    file = tmp_path / f"people.{ending}"
    file.write_bytes(content)
    words = ""
    try:
        read_entries(file, "id", "town")
        words, where = "", ""
    except ReleasePipelineError as error:
        words, where = f"{error} {error!r} {error.__cause__!r}", error.where
    assert where == str(file) if words else way.startswith("bytes")
    printed = capfd.readouterr()
    assert not find_canaries({"words": words.encode(), "out": printed.out.encode(), "err": printed.err.encode()}, [CANARY])


def test_the_reader_gets_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads what strangers send: the environment, where addresses and credentials are, is not its business."""
    (tmp_path / "telling.py").write_text("import os, sys\nsys.exit(10 if 's3cretword' in str(dict(os.environ)) else 0)\n")
    make_survey(tmp_path, "dta")
    monkeypatch.setattr(survey_files, "_PROGRAM", "telling")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cretword")
    assert describe_survey(tmp_path / "good.dta", ".dta", where="x") == SurveyFile("", ())
    monkeypatch.setenv("PYTHON_TOLD", "s3cretword")
    with pytest.raises(SourceError, match="need pyreadstat"):
        describe_survey(tmp_path / "good.dta", ".dta", where="x")


def test_a_reader_that_dies_takes_nothing_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are files that end the process that reads them: it is not ours."""
    (tmp_path / "dying.py").write_text(f"import os, sys\nos.write(1, b'{CANARY}')\nos.kill(os.getpid(), 11)\n")
    make_survey(tmp_path, "dta")
    monkeypatch.setattr(survey_files, "_PROGRAM", "dying")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SourceError, match="no readable Stata file") as refused:
        find_file(tmp_path / "good.dta", expected=frozenset())
    assert CANARY not in str(refused.value)
