"""The worked example for analysts is what its cells give today, and a notebook that other programs read."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_notebook", DOCS / "make_notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_is_what_its_cells_give(maker: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Run anew from the first cell to the last, in the words and figures of the file."""
    assert maker.main(["--check"]) == 0, "run docs/make_notebook.py"
    assert "up to date" in capsys.readouterr().out
