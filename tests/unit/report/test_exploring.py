"""Settings that were tried, as a table: the same cells in lines and on the page, where texts stay texts."""

from __future__ import annotations

import dataclasses
import html
import re

import pytest

from release_pipeline.policy.documents import to_json
from release_pipeline.report.exploring import (
    describe_exploration,
    render_exploration,
    tabulate,
)
from tests.unit.report.explorations import DOCUMENTS, make_document, read

ODD = "</script><script>alert('1')</script><!-- \" onload=\"x & {{ 7 }}"


def text_of(page: str) -> str:
    """What a reader sees."""
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.S)).split())


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
    assert tabulate(read("targets")).rows[3][-1] == "18 of 20"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lines_and_page_have_the_same_cells(name: str) -> None:
    """Every cell of the table, every warning and every refusal; no script, and nothing from elsewhere."""
    document = read(name)
    page, lines = render_exploration(document), "\n".join(describe_exploration(document, every=True))
    seen = text_of(page)
    table = tabulate(document)
    for cell in (cell for row in table.rows for cell in (*table.head, *row)):
        assert cell in lines
        assert cell in seen
    for words in (*document["warnings"], *(one["why"] for one in document["refused"])):
        assert words in lines
        assert words in seen
    assert ("made-up table" in seen) == (name == "shape")
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=|url\(", page)
    assert render_exploration(document) == page


def test_texts_stay_texts() -> None:
    """Whatever a policy calls its columns, and a file its name."""
    document = make_document((ODD, "b"), on_words=ODD, warnings=(ODD,))
    page = render_exploration(to_json(dataclasses.replace(document, policy=ODD)))
    assert "<script" not in page
    assert 'onload="x' not in page
    assert text_of(page).count("alert('1')") >= 5
