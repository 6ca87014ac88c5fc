"""One set of formatters: a figure is written in the same way wherever it stands."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import release_pipeline
from release_pipeline.analyst import law_of
from release_pipeline.policy.families.base import ColumnPlan
from release_pipeline.privacy.figures import format_number, show_figure
from tests.unit.analyst.cards import make_facts, noise

PACKAGE = Path(release_pipeline.__file__).parent


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


def test_every_user_writes_a_thousand_alike() -> None:
    """The plan of a column, and the law that the kit tells: sqrt(2) 706.9 is 999.7."""
    assert ColumnPlan("income", None, 999.7, None, True).noise_words == "at most 1,000"
    law = law_of(make_facts("laplace", noise("income", 7069, epsilon="10")), "income")
    assert 999.5 <= law.standard_deviation < 1000
    assert "(standard deviation 1,000 in the column's unit)" in law.words


@pytest.mark.slow
def test_there_is_one_of_each() -> None:
    """No other module has a formatter of the same name."""
    tree = ast.parse((PACKAGE / "privacy/figures.py").read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    for file in PACKAGE.rglob("*.py"):
        if file.name == "figures.py":
            continue
        defined = {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}
        assert not names & defined, file
