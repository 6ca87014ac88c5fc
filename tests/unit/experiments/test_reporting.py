"""The committed page of the papers: what each claim became, and the tables that its chapter calls essential."""

from __future__ import annotations

import pandas as pd

from experiments.papers.reporting import OURS, RUN, Chapter, Claim, write_summary


def test_the_committed_page_has_each_claim_with_its_spread_and_essential_tables_only() -> None:
    """Why a claim fails is said where it fails; of the docstring the first paragraph after its title is there."""
    runs = pd.MultiIndex.from_tuples([("1", 0), ("1", 1), ("10", 0), ("10", 1)], names=["epsilon", RUN])
    ratios = pd.Series([2.0, 4.0, 0.5, 0.5], index=runs)
    claims = [
        Claim("A is better.", OURS, ratios, note="B over A", why="Not at 10."),
        Claim("Both are there.", OURS, ratios, 0.1, note="B over A", why="Never said."),
    ]
    chapter = Chapter("AB: a comparison", claims, {"Kept": "| a |", "Left out": "| b |"}, ("Kept",))
    page = write_summary({"ab": ("Title.\n\nFirst.\n\nSecond.", chapter)})
    assert "## AB: a comparison\n\nFirst.\n\n| claim |" in page
    assert "| A is better. | this project | holds in part | 1 of 2 | B over A: 0.500 to 4.00, median 1.75. Not at 10. |" in page
    assert "| Both are there. | this project | holds | 2 of 2 | B over A: 0.500 to 4.00, median 1.75. |" in page
    assert "### Kept\n\n| a |" in page
    assert [part for part in ("Left out", "Second.", "Never said.") if part in page] == []
