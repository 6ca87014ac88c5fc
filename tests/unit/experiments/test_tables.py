"""Reference tables are known by what is in them, in whatever way they are written, and nothing else is taken for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.papers.tables import (
    COLUMNS,
    REFERENCES,
    Reference,
    find_data,
    hash_content,
    read_source,
    read_table,
)
from release_pipeline.errors import SourceError

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
