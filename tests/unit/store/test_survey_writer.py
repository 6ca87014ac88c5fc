"""Files of Stata and SPSS: what was written is read again, by us and by others, and the same table gives the same bytes."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from release_pipeline.errors import SourceError
from release_pipeline.policy.published import FileColumn, SurveyFormat
from release_pipeline.store import survey_writer
from release_pipeline.store.survey_writer import read_survey, write_survey

CANARY = "zyxCANARYzyx"
FORMS: tuple[SurveyFormat, ...] = ("dta", "sav")
LEAP = dt.datetime(2020, 2, 29, 23, 59, 59)
TABLE = pa.table(
    {
        "sex": pa.array([1, 2, None, None, 1], pa.int64()),
        "sex_missing": [None, None, "refused", "suppressed", None],
        "income": [0.1 + 0.2, None, None, 1e15, -0.5],
        "income_missing": [None, "refused", "left", None, None],
        "x" * 32: pa.array([2**40, 2**53, None, -1, 0], pa.int64()),
        "small": pa.array([1, 2_147_483_620, None, -2_147_483_647, 0], pa.int64()),
        "town": ["Ørsted", None, "long" * 500, "n\nl", "a"],
        "town_missing": [None, "not asked", None, None, None],
        "day": pa.array([dt.date(2020, 2, 29), None, dt.date(1955, 1, 1), None, dt.date(1960, 1, 1)], pa.date32()),
        "day_missing": [None, "still there", None, "refused", None],
        "since": pa.array([LEAP, None, dt.datetime(1899, 12, 31), None, None], pa.timestamp("ms")),
        "nothing": pa.array([None] * 5, pa.float64()),
        "blank": pa.array([None] * 5, pa.string()),
    }
)


def columns_of(form: SurveyFormat) -> tuple[FileColumn, ...]:
    """What a policy would say of them."""
    a, b, c = ("a", "b", "z") if form == "dta" else ("-8", "-9", "-10")
    more = {"c": "d", "e": "f"} if form == "dta" else {"c": "-11", "e": "-12"}
    labels = {} if form == "dta" else {"a": "Alder", "long" * 500: "Long"}
    return (
        FileColumn(
            "sex", "whole number", "Sex, of the persön", {"1": "male", "2": "female"}, {"refused": a, "suppressed": c}, 0, True
        ),
        FileColumn("income", "number", "Income", {}, {"refused": a, "left": b, **more}, 3),
        FileColumn("x" * 32, "whole number"),
        FileColumn("small", "whole number", "", {"-2147483647": "least", "2147483620": "most"}, {}, 0, True),
        FileColumn("town", "text", "Town", labels),
        FileColumn("town_missing", "text"),
        FileColumn("day", "date", "Left on", {}, {"refused": a, "still there": b}),
        FileColumn("since", "moment", "Came in"),
        FileColumn("nothing", "number"),
        FileColumn("blank", "text"),
    )


@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_is_read(tmp_path: Path, form: SurveyFormat) -> None:
    """Every cell bit by bit, with its type and its reason."""
    file = tmp_path / f"data.{form}"
    write_survey(file, TABLE, columns_of(form), form)
    assert read_survey(file, columns_of(form), form).equals(TABLE)


def test_others_see_labels_and_reasons(tmp_path: Path) -> None:
    """pandas (its own reader of Stata) and pyreadstat: labels, tagged and user-missing cells; no cell is a code."""
    for form in FORMS:
        write_survey(tmp_path / f"data.{form}", TABLE, columns_of(form), form)
    stata = tmp_path / "data.dta"
    with pd.io.stata.StataReader(stata) as reader:
        assert reader.variable_labels()["sex"] == "Sex, of the persön"
        assert reader.data_label == ""
        assert reader.time_stamp == "01 Jan 1970 00:00"
    assert stata.read_bytes()[28:31] == b"118"  # smaller editions of Stata refuse 119
    cells = pd.read_stata(stata, convert_missing=True, convert_categoricals=False, columns=["income", "sex"])
    assert [str(cell) for cell in cells["income"]] == [str(0.1 + 0.2), ".a", ".b", "1000000000000000.0", "-0.5"]
    assert [str(cell) for cell in cells["sex"]][2:4] == [".a", ".z"]
    assert pd.read_stata(stata, convert_categoricals=False)["income"].isna().sum() == 2
    known = pyreadstat.read_dta(stata, user_missing=True)[1]
    assert known.variable_value_labels["sex"] == {1: "male", 2: "female", "a": "refused", "z": "suppressed"}
    spss, known = pyreadstat.read_sav(tmp_path / "data.sav")
    assert spss["income"].isna().sum() == spss["sex"].isna().sum() == 2
    assert known.variable_value_labels["income"] == {-8.0: "refused", -9.0: "left", -11.0: "c", -12.0: "e"}
    assert known.variable_value_labels["town"] == {"a": "Alder", "long" * 500: "Long"}
    assert known.original_variable_types["income"].endswith(".3")
    spss, known = pyreadstat.read_sav(tmp_path / "data.sav", user_missing=True)
    assert known.missing_ranges["income"] == [{"lo": -12.0, "hi": -8.0}]
    assert known.missing_ranges["sex"] == [{"lo": -10.0, "hi": -10.0}, {"lo": -8.0, "hi": -8.0}]
    assert known.creation_time == dt.datetime(1970, 1, 1)
    assert spss["sex"].tolist() == [1, 2, -8, -10, 1]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_table_gives_the_same_bytes_at_any_time(
    tmp_path: Path, form: SurveyFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library notes when it wrote, and that is set: all that differs between two files without it is the moment."""
    file = tmp_path / f"data.{form}"
    write_survey(file, TABLE, columns_of(form), form)
    first = file.read_bytes()
    monkeypatch.setattr(survey_writer, "_set_moment", lambda *_: None)
    write_survey(file, TABLE, columns_of(form), form)
    raw = file.read_bytes()
    differ = [place for place, (one, other) in enumerate(zip(first, raw, strict=True)) if one != other]
    assert differ  # the test has power
    assert differ[-1] - differ[0] < 20
    monkeypatch.undo()
    moment = b"22 Jul 2031 13:59" if form == "dta" else b"22 Jul 3113:59:08"
    start = raw.index(b"\x11", raw.index(b"<timestamp>")) + 1 if form == "dta" else 92
    file.write_bytes(raw[:start] + moment + raw[start + len(moment) :])
    survey_writer._set_moment(file, form)  # pyright: ignore[reportPrivateUsage]
    assert file.read_bytes() == first


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, form: SurveyFormat) -> None:
    """Another label, label of a value, reason or column; or no such file. No cell and no label of it is told."""
    file = tmp_path / f"data.{form}"
    columns = columns_of(form)
    changes: list[tuple[int, dict[str, Any], str]] = [
        (0, {"label": CANARY}, "sex has another label"),
        (0, {"labels": {"1": "male", "2": CANARY}}, "sex has other value labels"),
        (1, {"reasons": {**columns[1].reasons, CANARY: "g" if form == "dta" else "-13"}}, "income has other"),
        (2, {"name": "other"}, "it has other columns"),
    ]
    for place, change, words in changes:
        others = list(columns)
        others[place] = FileColumn(**{**{name: getattr(columns[place], name) for name in FileColumn.__slots__}, **change})
        table = TABLE.rename_columns(
            [change.get("name", name) if name == columns[place].name else name for name in TABLE.column_names]
        )
        write_survey(file, table, others, form)
        with pytest.raises(SourceError, match=words) as refused:
            read_survey(file, columns, form)
        assert CANARY not in str(refused.value)
    file.write_bytes(CANARY.encode())
    with pytest.raises(SourceError, match="it cannot be read") as refused:
        read_survey(file, columns, form)
    assert CANARY not in f"{refused.value} {refused.value.__cause__!r}"
