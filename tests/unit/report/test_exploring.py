"""Settings that were tried, as a table in lines."""

from __future__ import annotations

import pytest

from release_pipeline.explore.explore import describe_exploration, tabulate
from tests.unit.report.explorations import DOCUMENTS, read


def test_a_row_is_a_setting() -> None:
    """Known cells: what is claimed, errors with their range, who is linked, what is left, what no other beats."""
    table = tabulate(read("usual"))
    assert table.head[:5] == ("No.", "Setting", "Claims", "Error of income", "Error of mhi")
    own = table.rows[0]
    assert own[:4] == ("1", "idp-cbls, epsilon 2, k 25 (the policy's)", "iDP, column lists", "0.1 (0.05 to 0.2)")
    assert own[5:] == ("0.02 (up to 0.05)", "0.2% / 10% / 70%", "4 of 10; 4 of 5 fit")
    assert table.rows[2][7] == "refused: takes 16, 8 left"
    assert table.rows[6][6] == "nobody's rows"
    assert table.is_best == (False, False, False, True, True, True, True, True, True)
    assert tabulate(read("many columns")).head[3] == "Largest error"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lines_have_every_cell(name: str) -> None:
    """Every cell of the table, every warning and every refusal."""
    document = read(name)
    lines = "\n".join(describe_exploration(document, every=True))
    table = tabulate(document)
    for cell in (cell for row in table.rows for cell in (*table.head, *row)):
        assert cell in lines
    for words in (*document["warnings"], *(one["why"] for one in document["refused"])):
        assert words in lines
