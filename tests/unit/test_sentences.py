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
from release_pipeline.privacy.catalogue.readings import list_stated
from release_pipeline.report.escaping import TEMPLATES, load_templates
from release_pipeline.sentences import ENGLISH, Catalogue, read_sentences

PACKAGE = Path(sentences.__file__).parents[1]
CATALOGUES = {name: known for name, known in vars(sentences).items() if isinstance(known, Catalogue)}
WITHOUT_WORDS = [file.name for file in sorted(TEMPLATES.iterdir()) if file.suffix in (".html", ".md")]
ASKED_BY = {
    "html": "PUBLIC",
    "markdown": "PUBLIC",
    "review": "REVIEWERS",
    "list_heads": "REVIEWERS",
    "state_fact": "PAPERS",
}  # functions that take a sentence for a format
ASKED_IN = {  # and those of templates
    "say": "PUBLIC",
    "review": "REVIEWERS",
    "status": "STATUS",
    "explore": "EXPLORE",
    "paper": "PAPERS",
}
TRANSLATED = {"de": ("figures", "kit", "policy", "public", "reviewers")}  # by language, whose files are whole
FORMAL = "formal"  # the audience of a translation alone: its English stands in `privacy.catalogue`
ANY: frozenset[str] = frozenset("*")  # places of sentences that are filled later
SAME_IN_GERMAN: dict[str, dict[str, str]] = {  # sentences that are right as they are in English, by file
    "figures": {
        "list.comma": "places alone",
        "list.semicolon": "places alone",
    },
    "kit": {},
    "policy": {
        "amount.table": "places alone",
        "method.ordered": "places alone",
        "noise.is": "places alone",
        "rule.is": "places alone",
    },
    "public": {
        "about.with_address": "places alone",
        "about.unit": "in",
        **dict.fromkeys(
            (f"licence_title.{name}" for name in ("ODbL-1.0", "ODC-By-1.0", "PDDL-1.0", "OGL-UK-3.0", "etalab-2.0")),
            "a name in English alone",
        ),
        "page.definition": "the same word",
        "page.definition_is": "places alone",
        "page.epsilon": "a letter's name",
        "page.k": "a letter",
        "page.k_is": "a letter",
        "page.table.epsilon": "a letter's name",
    },
    "reviewers": {
        "distributions.ks": "an abbreviation of names",
        "distributions.caption": "a name",
        "sample.original": "the same word",
        "structure.in_group": "places alone",
        "structure.bar_mean": "places alone",
        "predictions.model": "places alone",
        "predictions.bar_pmse": "an abbreviation",
        "predictions.bar_original": "the same word",
        "subgroups.give_or_take": "places alone",
        "subgroups.in_column": "places alone",
        "levels.is": "places alone",
        "page.definition": "the same word",
        "told.entry": "places alone",
    },
}
STOPS = (".", "?", ";")  # a semicolon where the next sentence goes on
MARKS = {  # what a sentence has in every language, as often
    "tags of HTML": r"</?[a-z][^>]*>",
    "code, and what is stressed": r"`[^`]*`|\*\*",
    "files and options": r"\b[A-Za-z_-]+\.(?:csv|html|json|md|py)\b|--[a-z]+",
    "braces that are meant": r"\{\{|\}\}",
    "columns of a table": r" ?\| ?",
    "signs": r"[√→±●]|\(\*\)",
    "digits": r"\d+",
    "lists and headings": r"(?m)^(?:- |#+ )",
    "a space at an end": r"\A\s+|\s+\Z",
}
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
        passes_on = file.name in ("escaping.py", "prose.py", "figures.py", "statements.py")
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


@pytest.mark.parametrize("name", CATALOGUES)
def test_sentences_are_whole(name: str) -> None:
    """A place is a plain name; nothing begins or ends with a space, but for what joins names."""
    for key, text in CATALOGUES[name].sentences.items():
        assert all(place.isidentifier() for place in places_of(text)), key
        assert text, key
        assert len(text) < 1200, key
        assert not any(mark in text for mark in ("{%", "{{ ", "\t")), key


@pytest.mark.parametrize("template", WITHOUT_WORDS)
def test_templates_have_no_words_of_their_own(template: str) -> None:
    """All words that readers see are in the catalogue, but for the commands that they type; labels of elements too."""
    tree = load_templates("html").parse((TEMPLATES / template).read_text(encoding="utf-8"))
    styles = [block for block in tree.find_all(nodes.Block) if block.name == "style"]
    style = {id(node) for block in styles for node in block.find_all(nodes.TemplateData)}
    left = "".join(node.data for node in tree.find_all(nodes.TemplateData) if id(node) not in style)
    labels = re.findall(r'(?:aria-label|data-label|title)="([^"]*)"', left)
    left = re.sub(r"<style>.*?</style>|<[^>]*>", " ", left, flags=re.DOTALL)
    for known in ("sha256sum -c SHA256SUMS", "release-pipeline verify . --officer FINGERPRINT", "data."):
        left = left.replace(known, "")
    assert re.findall(r"[^\W\d_]+", " ".join([left, *labels])) == []


@pytest.mark.parametrize(
    "language",
    sorted(folder.name for folder in sentences.HERE.iterdir() if folder.name not in ("en", "__pycache__") and folder.is_dir()),
)
def test_every_language_is_listed_and_whole(language: str) -> None:
    """Its files are those that are said to be there, and each is of an audience."""
    files = sorted(file.name for file in (sentences.HERE / language).iterdir())
    assert files == sorted(f"{audience}.toml" for audience in (*TRANSLATED.get(language, ()), FORMAL))
    assert {*TRANSLATED[language]} == {known.audience for known in CATALOGUES.values() if known.is_translated}
    assert language in sentences.LANGUAGES
    assert sentences.check_language(language) == language


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_formal_statement_has_a_reading(language: str) -> None:
    """One for each text of the catalogue of methods, and no other; formulas, papers and figures are the same."""
    readings, stated = sentences.read_formal(language), dict(list_stated())
    assert readings.keys() == stated.keys(), {key: stated[key] for key in stated.keys() - readings.keys()}
    formulas = r"P\[[^\]]*\](?: <= e\^epsilon P\[[^\]]*\])?|e\^\(?[\w ]+\)?|alpha (?:rho|> 1)|[A-Z]{2,}[0-9]{2}|\bk\b"
    for key, text in stated.items():
        assert sorted(re.findall(formulas, readings[key])) == sorted(re.findall(formulas, text)), key
        assert sorted(re.findall(r"\d+", readings[key])) == sorted(re.findall(r"\d+", text)), key
        assert readings[key].endswith(".") == text.endswith("."), key


TRANSLATIONS = [(language, audience) for language, audiences in TRANSLATED.items() for audience in audiences]


@pytest.mark.parametrize(("language", "audience"), TRANSLATIONS)
def test_a_translation_has_every_sentence_with_its_places_and_marks(language: str, audience: str) -> None:
    """The same keys in the same order, so that the files can be read side by side; in each sentence the same places, tags, files
    and numbers."""
    english, other = read_sentences(audience, ENGLISH), read_sentences(audience, language)
    assert list(other) == list(english)
    for key, text in english.items():
        assert sorted(_list_places(other[key])) == sorted(_list_places(text)), key
        for kind, mark in MARKS.items():
            assert sorted(re.findall(mark, other[key])) == sorted(re.findall(mark, text)), f"{key}: {kind}"


@pytest.mark.parametrize("audience", TRANSLATED["de"])
def test_no_sentence_was_left_in_english(audience: str) -> None:
    """But for those that are listed, which are still the same."""
    english, german = read_sentences(audience, ENGLISH), read_sentences(audience, "de")
    assert {key for key, text in english.items() if german[key] == text} == set(SAME_IN_GERMAN[audience])


@pytest.mark.parametrize(("language", "audience"), TRANSLATIONS)
def test_translated_sentences_are_whole(language: str, audience: str) -> None:
    """A sentence that ends with its stop does so in every language, and what is a part of one does not."""
    english, other = read_sentences(audience, ENGLISH), read_sentences(audience, language)
    for key, text in english.items():
        if not key.startswith("mark."):
            assert other[key].rstrip().endswith(STOPS) == text.rstrip().endswith(STOPS), key
        assert len(other[key]) < 1200, key
        assert not any(mark in other[key] for mark in ("{%", "{{ ", "\t")), key


def _list_places(text: str) -> list[str]:
    """The names of the places, as often as they stand."""
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]


def test_a_missing_place_is_refused() -> None:
    """And so is a key that nobody has."""
    with pytest.raises(KeyError):
        sentences.PUBLIC("page.title")
    with pytest.raises(KeyError):
        sentences.PUBLIC("page.nothing")


def test_a_brace_of_a_value_is_no_place() -> None:
    """What is filled in is not looked at."""
    assert sentences.PUBLIC("page.title", release="{k}{0}") == "Privacy card of {k}{0}"
