"""Files of Stata and SPSS: what was written is read again, by us and by others, and the same table gives the same bytes."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from release_pipeline.errors import SourceError
from release_pipeline.policy.file.published import FileColumn, SurveyFormat
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
