"""The catalogues of sentences: every key that is used exists with the places that are filled, and every key is used."""

from __future__ import annotations

import ast
import re
import string
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import nodes

from release_pipeline import sentences
from release_pipeline.pages.escaping import TEMPLATES, load_templates
from release_pipeline.sentences import Catalogue

PACKAGE = Path(sentences.__file__).parents[1]
CATALOGUES = {name: known for name, known in vars(sentences).items() if isinstance(known, Catalogue)}
WITHOUT_WORDS = [file.name for file in sorted(TEMPLATES.iterdir()) if file.suffix in (".html", ".md")]
ASKED_BY = {
    "html": "PUBLIC",
    "markdown": "PUBLIC",
    "review": "REVIEWERS",
    "list_heads": "REVIEWERS",
}  # functions that take a sentence for a format
ASKED_IN = {  # and those of templates
    "say": "PUBLIC",
    "review": "REVIEWERS",
    "status": "STATUS",
}
ANY: frozenset[str] = frozenset("*")  # places of sentences that are filled later
Use = tuple[str, frozenset[str] | None, str]  # a key, the places that are filled (None: a whole section), and where
SECTIONS = {"count_things": 1, "things": 1}  # functions of figures by things, and the place of what is counted


def find_in_code(file: Path) -> Iterator[tuple[str, Use]]:
    """The catalogue, and what of it is asked for."""
    text = file.read_text(encoding="utf-8")
    if not any(f"{name}(" in text or f"{name}." in text for name in (*CATALOGUES, *ASKED_BY, *SECTIONS)):
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name, section, with_places = node.func, False, False
        if isinstance(name, ast.Name) and name.id in SECTIONS and isinstance(what := node.args[SECTIONS[name.id]], ast.Constant):
            yield "FIGURES", (f"things.{what.value}", ANY, f"{file.relative_to(PACKAGE)}:{node.lineno}")
            continue
        if isinstance(name, ast.Attribute) and name.attr in ("read_section", "read_phrases"):
            name, section, with_places = name.value, True, name.attr == "read_phrases"
        if not isinstance(name, ast.Name) or ASKED_BY.get(name.id, name.id) not in CATALOGUES:
            continue
        where = f"{file.relative_to(PACKAGE)}:{node.lineno}"
        passes_on = file.name in ("escaping.py", "prose.py", "figures.py")
        if passes_on and not isinstance(node.args[0], ast.Constant):
            continue  # which passes keys on
        assert isinstance(node.args[0], ast.Constant), f"{where}: the key is a text, so that it can be looked for"
        filled = frozenset(word.arg or "" for word in node.keywords)
        if section:
            filled = ANY if with_places else None
        yield ASKED_BY.get(name.id, name.id), (str(node.args[0].value), filled, where)


def find_in_template(name: str) -> Iterator[tuple[str, Use]]:
    """Likewise in a template."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    for call in load_templates("html").parse(text).find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in SECTIONS:
            what = call.args[SECTIONS[call.node.name]]
            assert isinstance(what, nodes.Const), f"{name}:{call.lineno}"
            yield "FIGURES", (f"things.{what.value}", ANY, f"{name}:{call.lineno}")
        elif isinstance(call.node, nodes.Name) and call.node.name in ASKED_IN:
            key = call.args[0]
            assert isinstance(key, nodes.Const), f"{name}:{call.lineno}"
            yield ASKED_IN[call.node.name], (key.value, frozenset(word.key for word in call.kwargs), f"{name}:{call.lineno}")


def find_uses() -> dict[str, list[Use]]:
    """Every use of every catalogue."""
    found: dict[str, list[Use]] = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for name, use in find_in_code(file):
            found[name].append(use)
    for template in sorted(TEMPLATES.iterdir()):
        if template.suffix in (".html", ".md"):
            for name, use in find_in_template(template.name):
                found[name].append(use)
    return found


USES = find_uses()


def places_of(text: str) -> set[str]:
    """The names of the places of a sentence."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("name", CATALOGUES)
def test_every_key_that_is_used_exists_with_its_places(name: str) -> None:
    """No more and no fewer places than are filled."""
    known = CATALOGUES[name].sentences
    for key, filled, where in USES[name]:
        if filled == ANY:
            assert CATALOGUES[name].read_phrases(key), f"{where}: there is no section {key}"
        elif filled is None:
            assert not any(places_of(text) for text in CATALOGUES[name].read_section(key).values()), where
            assert CATALOGUES[name].read_section(key), f"{where}: there is no section {key}"
        else:
            assert key in known, f"{where}: there is no sentence {key}"
            assert places_of(known[key]) == filled, f"{where}: {key}"


@pytest.mark.parametrize("name", CATALOGUES)
def test_every_key_is_used(name: str) -> None:
    """By itself, or with its section."""
    keys = {key for key, filled, _ in USES[name] if filled is not None and filled != ANY}
    sections = tuple(f"{key}." for key, filled, _ in USES[name] if filled is None or filled == ANY)
    assert {key for key in CATALOGUES[name].sentences if key not in keys and not key.startswith(sections or ("\n",))} == set()


def test_templates_have_no_words_of_their_own() -> None:
    """All words that readers see are in the catalogue, but for the commands that they type; labels of elements too."""
    assert [(template, words) for template in WITHOUT_WORDS if (words := find_own_words(template))] == []


def find_own_words(template: str) -> list[str]:
    """The words of a template that are not from the catalogue."""
    tree = load_templates("html").parse((TEMPLATES / template).read_text(encoding="utf-8"))
    styles = [block for block in tree.find_all(nodes.Block) if block.name == "style"]
    style = {id(node) for block in styles for node in block.find_all(nodes.TemplateData)}
    left = "".join(node.data for node in tree.find_all(nodes.TemplateData) if id(node) not in style)
    labels = re.findall(r'(?:aria-label|data-label|title)="([^"]*)"', left)
    left = re.sub(r"<style>.*?</style>|<[^>]*>", " ", left, flags=re.DOTALL)
    for known in ("sha256sum -c SHA256SUMS", "release-pipeline verify . --officer FINGERPRINT", "data."):
        left = left.replace(known, "")
    return re.findall(r"[^\W\d_]+", " ".join([left, *labels]))
