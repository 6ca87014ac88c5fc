"""Values without noise can be guessed from a release of the demo's data, and what docs/measured.md says of that is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import exact_values
from experiments.exact_values import describe, measure

pytestmark = pytest.mark.statistical

MEASURED = Path(__file__).resolve().parents[2] / "docs" / "measured.md"


def test_the_page_of_measurements_has_the_figures_of_the_command() -> None:
    """Whole, as it prints them."""
    assert describe([measure(consistency) for consistency in ("none", "isotonic")]) in MEASURED.read_text(encoding="utf-8")


def test_values_that_many_rows_share_have_no_noise() -> None:
    """Where the order is not restored: four fifths of those in 2k rows, nearly all of those in 4k, and the rows count their
    records. Where it is, runs are pooled noise as well, and a value that everybody expects is told even so."""
    none, isotonic = (measure(consistency, secrets=3) for consistency in ("none", "isotonic"))
    assert none.moved == 0 < isotonic.moved < 0.5
    assert none.exact == isotonic.exact > 0.3
    assert min(none.on_grid, isotonic.on_grid) > 0.8

    def share(guess: exact_values.Guess) -> float:
        return guess.right / guess.guessed

    assert 0.75 < share(none.guesses["inside"]) < share(none.guesses["4k rows"])
    assert share(none.guesses["4k rows"]) > 0.9
    assert none.guesses["4k rows"].counted / none.guesses["4k rows"].values > 0.95
    assert share(isotonic.guesses["inside"]) < 0.3
    assert share(isotonic.guesses["0"]) > 0.85
