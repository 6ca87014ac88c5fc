"""What pages of the site have beyond their files: the order of pages, help, keys of JSON documents, docstrings, examples.

It is added while pages are read, from the program itself, so that nothing of it is written twice, and no made page is in the
checkout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from release_pipeline.apps.cli.commands import PROGRAM
from release_pipeline.apps.cli.program import cli

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 88  # of what commands say, in letters
LISTED = re.compile(r"^- \[([^\]]+)\]\(([^)#\s]+)\)", re.MULTILINE)
CAPTION = re.compile(r"^### (.+)$", re.MULTILINE)
SECTION = re.compile(r"^## (release_pipeline[\w.]*)$", re.MULTILINE)
NAME = re.compile(r"^- `(\w+)`: ", re.MULTILINE)
BESIDES = re.compile(r"`(release_pipeline(?:\.\w+)+)`: (?:`(\w+)\()?")
FRONT_DOOR = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Release Pipeline</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"></head>
<body><p><a href="docs/index.html">Release Pipeline</a></p></body></html>
"""
UNNAMED = {  # parts of the theme, and how they are when they have a name
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '          \n<noscript>\n<div class="admonition error">': '<h1>Search</h1>\n<noscript>\n<div class="admonition error">',
}


def add_made_part(_app: Sphinx, page: str, content: list[str]) -> None:
    """Give a page the part that is made."""
    if make := MADE.get(page):
        content[0] += f"\n{make(content[0])}\n"


def add_front_door(app: Sphinx, error: Exception | None) -> None:
    """`index.html` at the top leads to the first page, wherever the site lies."""
    if error is None:
        (Path(app.outdir) / "index.html").write_text(FRONT_DOOR, encoding="utf-8")


def name_parts(app: Sphinx, error: Exception | None) -> None:
    """What the theme leaves without a name or a level has one, for people who hear the page."""
    if error is not None:
        return
    for file in Path(app.outdir).rglob("*.html"):
        text = named = file.read_text(encoding="utf-8")
        for part, with_name in UNNAMED.items():
            named = named.replace(part, with_name)
        if named != text:
            file.write_text(named, encoding="utf-8")


def order_pages(text: str) -> str:
    """The navigation, in the order of what the first page lists under its last heading."""
    parts = CAPTION.split(text.rpartition("\n## ")[2])[1:]
    return "\n".join(_toctree(LISTED.findall(listed), caption) for caption, listed in zip(parts[::2], parts[1::2], strict=True))


def order_listed(text: str) -> str:
    """The pages that a page lists, below it."""
    return _toctree(LISTED.findall(text))


def _toctree(pages: list[tuple[str, str]], caption: str = "") -> str:
    lines = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), ""]
    return "\n".join([*lines, *(f"{title} <{file.removesuffix('.md')}>" for title, file in pages), "```", ""])


def list_commands(_text: str) -> str:
    """What `--help` says of every command, as the program says it."""
    return "\n".join(
        f"{'##' if context.command_path.count(' ') < 2 else '###'} {context.command_path}\n\n```text\n{context.get_help()}\n```\n"
        for context in find_commands()
    )


def find_commands(context: click.Context | None = None) -> Iterator[click.Context]:
    """Every command, and then what is below it, with the words that call it."""
    context = context or click.Context(cli, info_name=PROGRAM, terminal_width=WIDTH, **cli.context_settings)
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            if command := context.command.get_command(context, name):
                yield from find_commands(click.Context(command, info_name=name, parent=context))


def describe_names(_text: str) -> str:
    """The docstrings of what the page of importable names lists, and of nothing else."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    parts = SECTION.split(text)[1:]
    names = {module: NAME.findall(listed.partition("\n## ")[0]) for module, listed in zip(parts[::2], parts[1::2], strict=True)}
    for found, function in BESIDES.findall(text.partition("\n## Besides\n")[2].partition("\n## ")[0]):
        module, name = (found, function) if function else found.rsplit(".", 1)
        names.setdefault(module, []).append(name)
    return "\n".join(_describe_module(module, listed) for module, listed in names.items())


def _describe_module(module: str, names: list[str]) -> str:
    return f"## {module}\n\n```{{eval-rst}}\n{''.join(_describe(module, name) for name in names)}```\n"


def _describe(module: str, name: str) -> str:
    found = getattr(import_module(module), name)
    if isinstance(found, type):
        return f".. autoclass:: {module}.{name}\n   :members:\n\n"
    return f".. auto{'function' if callable(found) else 'data'}:: {module}.{name}\n\n"


def mark_up_docstring(_app: Sphinx, _what: str, _name: str, _found: object, _options: object, lines: list[str]) -> None:
    """Docstrings are plain text with code between backquotes, and examples: nothing else in them is a sign of markup."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            pieces = line.split("`")
            marked = (f"``{piece}``" if odd % 2 else re.sub(r"([\\*|_<>])", r"\\\1", piece) for odd, piece in enumerate(pieces))
            lines[number] = "".join(marked)


def show_policies(text: str) -> str:
    """The policies that the page lists, as they are in the checkout."""
    files = [ROOT / "docs" / file for _, file in LISTED.findall(text)]
    return "\n".join(f"## {file.name}\n\n```yaml\n{file.read_text(encoding='utf-8')}```\n" for file in files)


def list_keys(_text: str) -> str:
    """What every key of every JSON document means, as its schema has it."""
    from make_json import list_keys as make_tables  # beside this file: only conf.py can import it

    return make_tables()


MADE: dict[str, Callable[[str], str]] = {
    "docs/index": order_pages,
    "docs/decisions/README": order_listed,
    "examples/README": order_listed,
    "docs/commands": list_commands,
    "docs/json": list_keys,
    "docs/reference": describe_names,
    "docs/policies": show_policies,
}
