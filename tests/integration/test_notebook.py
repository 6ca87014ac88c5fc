"""The worked example for analysts is what its cells give today, and a notebook that other programs read."""

from __future__ import annotations

import importlib.util
import json
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

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


def content() -> dict[str, Any]:
    return json.loads((DOCS / "analyst.ipynb").read_text(encoding="utf-8"))


def test_the_notebook_is_what_its_cells_give(maker: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Run anew from the first cell to the last, in the words and figures of the file."""
    assert maker.main(["--check"]) == 0, "run docs/make_notebook.py"
    assert "up to date" in capsys.readouterr().out


def test_it_has_the_form_of_nbformat_4_5() -> None:
    """Cells with an id of their own each, code cells numbered in the order in which they ran, outputs of the two known kinds."""
    notebook = content()
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"]) for cell in cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in cells:
        wanted = {"cell_type", "id", "metadata", "source"} | ({"execution_count", "outputs"} if cell in code else set())
        assert set(cell) == wanted
    for output in (output for cell in code for output in cell["outputs"]):
        if output["output_type"] == "stream":
            assert set(output) == {"name", "output_type", "text"}
        else:
            assert set(output) == {"data", "execution_count", "metadata", "output_type"}


def test_what_the_example_shows() -> None:
    """Corrected slopes beside uncorrected ones, bounds, refusals, and no path of the machine that made it."""
    text = json.dumps(content())
    assert all(said in text for said in ("least squares on released values", "worst-case bound", "no slope:", "no mean:"))
    assert str(Path.home()) not in text
    assert tempfile.gettempdir() not in text


def test_a_changed_output_is_found(maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One figure off, or no file at all."""
    monkeypatch.setattr(maker, "SOURCE", tmp_path / "cells.py")
    monkeypatch.setattr(maker, "NOTEBOOK", tmp_path / "made.ipynb")
    (tmp_path / "cells.py").write_text("# %% [markdown]\n# # Two\n\n# %%\nprint('a')\n1 + 1\n")
    assert maker.main(["--check"]) == 1
    assert maker.main([]) == 0
    assert maker.main(["--check"]) == 0
    cells = json.loads((tmp_path / "made.ipynb").read_text())["cells"]
    assert cells[0]["source"] == ["# Two"]
    assert [output.get("text") or output["data"]["text/plain"] for output in cells[1]["outputs"]] == [["a\n"], ["2"]]
    (tmp_path / "made.ipynb").write_text((tmp_path / "made.ipynb").read_text().replace('"2"', '"3"'))
    assert maker.main(["--check"]) == 1
