"""Regenerates docs/analyst.ipynb by running the cells of docs/analyst_example.py.

    .venv/bin/python docs/make_notebook.py            # writes it
    .venv/bin/python docs/make_notebook.py --check    # says whether it is what the cells give today

A cell begins at `# %%`, one of text at `# %% [markdown]`, as several editors read it. What a cell prints and the value of its
last line become its outputs. Standard library only: it writes nbformat 4.5 itself.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE, NOTEBOOK = HERE / "analyst_example.py", HERE / "analyst.ipynb"


def read_cells(text: str) -> Iterator[tuple[str, str]]:
    """The kind of each cell, markdown or code, and its text."""
    for part in text.split("# %%")[1:]:
        head, _, body = part.partition("\n")
        body = body.strip("\n")
        if head.strip() == "[markdown]":
            yield "markdown", "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.splitlines())
        else:
            yield "code", body


def run_cell(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """The outputs of one cell, run among `names`."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)  # noqa: S102  our own cells
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": as_lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": as_lines(repr(value))}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def as_lines(text: str) -> list[str]:
    """A text as notebooks keep it: line by line, with the line ends."""
    return text.splitlines(keepends=True)


def build_notebook() -> str:
    """The notebook, every cell run anew from the first on."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    number = 0
    for place, (kind, body) in enumerate(read_cells(SOURCE.read_text(encoding="utf-8")), start=1):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": as_lines(body)}
        if kind == "code":
            number += 1
            cell |= {"execution_count": number, "outputs": run_cell(body, names, number)}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}}
    return json.dumps(notebook | {"nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(arguments: list[str]) -> int:
    """Write the notebook, or with --check compare it."""
    built = build_notebook()
    if arguments == ["--check"]:
        same = NOTEBOOK.is_file() and NOTEBOOK.read_text(encoding="utf-8") == built
        print("the notebook is up to date" if same else "the notebook is not what its cells give: run docs/make_notebook.py")
        return 0 if same else 1
    NOTEBOOK.write_text(built, encoding="utf-8")
    print(f"wrote {NOTEBOOK.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
