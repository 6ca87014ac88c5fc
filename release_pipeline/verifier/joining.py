"""Joins the modules of the verifier, or of the signer, into one file that needs only Python's standard library."""

from __future__ import annotations

import ast
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_OURS = "release_pipeline"
_RUN = '\n\nif __name__ == "__main__":\n    sys.exit(main())\n'


def join_verifier() -> str:
    """Return the text of `verify.py`, as every dossier has it."""
    return _join("verifier")


def join_signer() -> str:
    """Return the text of `sign.py`, with the parts of the verifier that it uses."""
    return _join("signer")


def _join(package: str) -> str:
    """Return the command of a package and the modules that it imports, those that are imported first; `usage` describes its
    use."""
    imports: dict[str, set[str]] = {}
    parts: list[str] = []
    modules: dict[str, tuple[ast.Module, str]] = {}
    _read_modules(f"{_OURS}.{package}.command", modules)
    for tree, text in modules.values():
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


def _read_modules(module: str, modules: dict[str, tuple[ast.Module, str]]) -> None:
    """Add a module to the read ones, after the modules that it imports."""
    if module in modules:
        return
    text = (_PACKAGE / Path(*module.split(".")[1:])).with_suffix(".py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS):
            _read_modules(node.module or "", modules)
    modules[module] = tree, text
