"""Joins the modules of the verifier, or of the signer, into one file that needs Python's standard library alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_OURS = "release_pipeline"
_RUN = '\n\nif __name__ == "__main__":\n    sys.exit(main())\n'


def join_verifier() -> str:
    """The text of `verify.py`, as every dossier has it."""
    return _join("verifier")


def join_signer() -> str:
    """The text of `sign.py`, with the parts of the verifier that it uses."""
    return _join("signer")


def _join(package: str) -> str:
    """The command of a package and the modules that it imports, those that are imported first; `usage` says what it is for."""
    imports: dict[str, set[str]] = {}
    parts: list[str] = []
    for module in dict.fromkeys(_list_modules(f"{_OURS}.{package}.command")):
        tree, text = _read(module)
        lines = text.splitlines(keepends=True)
        for node in tree.body:
            if isinstance(node, ast.Import):
                imports.setdefault("", set()).update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(_OURS):
                imports.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
        last = max(node.end_lineno or 0 for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
        parts.append(f"# --- {ast.get_docstring(tree)}\n\n{''.join(lines[last:]).strip()}\n")
    imports.pop("__future__")
    usage = (_PACKAGE / package / "usage.txt").read_text(encoding="utf-8").strip()
    heads = [f"import {name}\n" for name in sorted(imports.pop(""))]
    heads += [f"from {module} import {', '.join(sorted(names))}\n" for module, names in sorted(imports.items())]
    head = f'#!/usr/bin/env python3\n"""{usage}\n"""\n\nfrom __future__ import annotations\n\n{"".join(heads)}'
    return "\n\n".join((head, *parts)).rstrip() + _RUN


def _list_modules(module: str) -> Iterator[str]:
    """The modules that a module is made of, each after those that it imports."""
    for node in _read(module)[0].body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS):
            yield from _list_modules(node.module or "")
    yield module


def _read(module: str) -> tuple[ast.Module, str]:
    text = (_PACKAGE / Path(*module.split(".")[1:])).with_suffix(".py").read_text(encoding="utf-8")
    return ast.parse(text), text
