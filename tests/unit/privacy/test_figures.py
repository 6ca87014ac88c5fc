"""One set of formatters: a figure is written in the same way wherever it stands."""

from __future__ import annotations

import pytest

from release_pipeline.privacy.figures import format_number, show_figure


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (999.4, "999"),
        (999.5, "1,000"),
        (999.7, "1,000"),
        (-999.7, "-1,000"),
        (-999.4, "-999"),
        (0.12345, "0.123"),
        (1e6, "1,000,000"),
    ],
)
def test_a_figure_around_a_thousand(number: float, words: str) -> None:
    """Three digits below a thousand, and all of them from there on; never 1e+03."""
    assert show_figure(number) == words == format_number(number)
