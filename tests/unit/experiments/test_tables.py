"""Reference tables are known by what is in them, in whatever way they are written, and nothing else is taken for them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from experiments.papers.tables import (
    COLUMNS,
    REFERENCES,
    VARIABLE,
    Reference,
    draw_normal,
    find_data,
    hash_content,
    make_up,
    read_hierarchy,
    read_source,
    read_table,
)
from release_pipeline.errors import SourceError, WrongUsage

ROWS = [["7", "0.270"], ["6.5", "1e-1"]]
SMALL = Reference("small.csv", ("fixed_acidity", "pH"), 2, hash_content(ROWS), "the shop, small.csv")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose file `small.csv` is a reference table."""
    monkeypatch.setitem(REFERENCES, "small", SMALL)
    read_table.cache_clear()
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "fixed_acidity,pH\n7,0.27\n6.5,0.1\n",
        '"fixed acidity";"pH"\r\n7.0;0.27\r\n6.50;.1\r\n',
        "7, 0.27\n6.5, 0.1\n\n",
        "fixed-acidity,pH\n7,2.7e-1\n6.5,0.100",
    ],
)
def test_a_table_may_be_written_in_many_ways(text: str, small: Path) -> None:
    (small / "small.csv").write_text(text, newline="")
    table = read_table(small, "small")
    assert [float(cell) for cell in table["pH"]] == [0.27, 0.1]
    assert [float(cell) for cell in table["fixed_acidity"]] == [7, 6.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fixed_acidity,pH\n7,0.27\n", "it has 1 of 2 rows"),
        ("fixed_acidity,pH\n7,0.27,1\n6.5,0.1\n", "it has 2 of 2 rows"),
        ("", "it has 0 of 2 rows"),
        ("fixed_acidity,pH\n6.5,0.1\n7,0.27\n", "it has 2 of 2 rows, or a cell"),
        ("fixed_acidity,pH\n7,0.27\n6.5,0.11\n", "it has 2 of 2 rows, or a cell"),
        ("pH,fixed_acidity\n7,0.27\n6.5,0.1\n", "it has 3 of 2 rows"),
    ],
)
def test_what_is_not_the_table_is_refused(text: str, words: str, small: Path) -> None:
    """Too few rows, torn ones, another order, one digit: never a cell in the message, and where to get the right one."""
    (small / "small.csv").write_text(text)
    with pytest.raises(SourceError) as refused:
        read_table(small, "small")
    assert words in str(refused.value)
    assert "the shop" in str(refused.value)
    assert "0.11" not in str(refused.value)


def test_what_cannot_be_read_is_refused(small: Path) -> None:
    (small / "small.csv").write_bytes(b"\xff\xfe\x00 no text")
    with pytest.raises(SourceError, match="it has 0 of 2 rows"):
        read_table(small, "small")


def test_rows_of_a_hierarchy_may_come_in_any_order() -> None:
    assert hash_content(ROWS, ordered=False) == hash_content(ROWS[::-1], ordered=False)
    assert hash_content(ROWS) != hash_content(ROWS[::-1])


def test_all_that_is_missing_is_said_at_once(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for named, where in ((None, "data"), (small, str(small))):
        with pytest.raises(WrongUsage) as refused:
            find_data(named, ["small", "census"])
        assert refused.value.where == where
        assert refused.value.exit_code == 2
        assert "2 of the 2 files" in str(refused.value)
        assert [line.partition(":")[0] for line in refused.value.details] == ["small.csv", "census.csv"]
    (small / "small.csv").write_text("7,0.27\n6.5,0.1\n")
    assert find_data(small, ["small"]) == small
    monkeypatch.setenv(VARIABLE, str(small))
    assert find_data(None, ["small"]) == small
    monkeypatch.delenv(VARIABLE)
    assert find_data(None, []) == Path()


def test_the_reference_data_are_what_the_figures_are_of(reference_data: Path) -> None:
    """All of them; and as UCI and the ARX project write them, with semicolons and without headers."""
    assert find_data(reference_data, REFERENCES) == reference_data
    census = read_source(reference_data, "census")
    assert census.values.shape == (1080, 9)
    assert census.grids[0].width == 3 * census.values[:, 0].max()  # 1.5 max in steps of a half
    assert read_source(reference_data, "wine").values.shape == (4898, 12)
    assert [float(read_source(reference_data, "census", ("FICA",), alpha).grids[0].hi) for alpha in ("1", "3")] == [
        census.values[:, COLUMNS["census"].index("FICA")].max() * factor for factor in (1, 3)
    ]


def test_published_ways_of_writing_are_taken(reference_data: Path, tmp_path: Path) -> None:
    (tmp_path / "adult_hierarchies").mkdir()
    for name, separator, headed in (("wine", ";", True), ("adult", ", ", False), ("race", ";", False)):
        reference = REFERENCES[name]
        with (reference_data / reference.file).open(newline="") as lines:
            header, *rows = csv.reader(lines)
        head = [[f'"{column.replace("_", " ")}"' for column in header]] if headed else []
        (tmp_path / reference.file).write_text(
            "\r\n".join(separator.join(row) for row in [*head, *rows]) + "\r\n\r\n", newline=""
        )
        assert read_table(tmp_path, name) == read_table(reference_data, name)
    assert read_hierarchy(tmp_path, "race").encode(["White"]) == read_hierarchy(reference_data, "race").encode(["White"])


def test_the_made_up_table_is_the_same_in_every_run() -> None:
    table = make_up(1000)
    assert table.values[0].tolist() == [11653, 10088, 14429, 3053]
    assert table.values.min() >= 0
    assert np.array_equal(table.values, np.rint(table.values))
    correlation = np.corrcoef(np.log(table.values.T + 1))
    assert correlation[0, 1] == pytest.approx(0.8 * 0.7, abs=0.1)
    drawn = draw_normal(20_000, "test")
    assert abs(drawn.mean()) < 0.03
    assert drawn.std() == pytest.approx(1, abs=0.02)
