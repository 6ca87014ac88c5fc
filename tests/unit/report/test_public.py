"""The texts of a package: every public fact is in them, nothing else is, and no text of the view can become anything but text."""

from __future__ import annotations

import ast
import dataclasses
import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.formats.card import Card, Looks
from release_pipeline.formats.package import PackageView
from release_pipeline.mechanisms.basis.figures import count_things, format_count
from release_pipeline.mechanisms.catalogue.spec import DEFINITIONS
from release_pipeline.pages.escaping import describe_word, escape_markdown, format_name, format_text
from release_pipeline.publish import public
from release_pipeline.publish.public import CARD_SCHEMA, render_card_html, render_datapackage, render_note
from release_pipeline.publish.public import render_card_json as render_card
from release_pipeline.sentences import PUBLIC
from tests.unit.report.pages import Page
from tests.unit.report.views import (
    FACTS,
    HOSTILE,
    TEXT_FACTS,
    TEXTS,
    every_facts,
    make_package,
    public_facts,
    sample_view,
)

PACKAGE = Path(public.__file__).parents[1]
TEMPLATES = [
    PACKAGE / "pages" / "templates" / name for name in ("RELEASE_NOTE.md", "page.html", "privacy-card.html")
]  # those of the package
RENDERING = [
    *(PACKAGE / "publish" / f"{name}.py" for name in ("public", "texts", "method_texts", "standards")),
    PACKAGE / "pages" / "escaping.py",
    PACKAGE / "formats" / "about.py",
]
HASHES = {"data.csv": ("ab" * 32, 12_345), "data.parquet": ("cd" * 32, 6_789)}
SAID = tuple(
    PUBLIC(f"caveat.{key}") for key in ("without_noise", "guessed_off_grid", "guessed_by_rows", "guessed_by_habit", "counted")
)
VALIDATOR = jsonschema.Draft202012Validator(CARD_SCHEMA)


def render_card_json(view: PackageView) -> str:
    """privacy-card.json of a package."""
    return render_card(view.card)


def render_package(view: PackageView) -> str:
    """datapackage.json with two hashes."""
    return render_datapackage(view, HASHES)


def leaves(value: Any) -> Iterator[Any]:
    """Every text and number of a view or of a JSON value, without the keys."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from leaves(dataclasses.asdict(value))
    elif isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def list_facts(facts: dict[str, Any]) -> set[str | int]:
    """Every text and number among the facts of a release."""
    return {leaf for leaf in leaves(facts) if leaf is not None}


def own_sentences() -> set[str]:
    """Every sentence of the catalogue, and every text constant of the renderers."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in RENDERING]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    constants = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return constants | set(PUBLIC.sentences.values()) | {definition.tag for definition in DEFINITIONS.values()}


def words(text: str) -> set[str]:
    """What is written in letters and digits."""
    return set(re.findall(r"\w+", text))


def own_words() -> set[str]:
    """Every word of the renderer and of the templates, the style of the page left out."""
    style = re.compile(r"<style>.*</style>|{% block style %}.*?{% endblock %}", re.DOTALL)
    texts = [style.sub("", file.read_text(encoding="utf-8")) for file in TEMPLATES]
    return words(" ".join([*own_sentences(), *texts]))


VOCABULARY = own_words()


def shown(leaf: str | int) -> set[str]:
    """A fact as people may see it: a text in the prose, a name, a count."""
    return (
        {format_text(leaf), format_name(leaf), format_text(describe_word(leaf))}
        if isinstance(leaf, str)
        else {format_count(leaf), str(leaf)}
    )


@pytest.mark.slow
@given(every_facts())
def test_the_card_keeps_its_schema(facts: dict[str, Any]) -> None:
    """Whatever the facts are."""
    VALIDATOR.validate(json.loads(render_card_json(make_package(**facts))))


def test_the_schema_is_a_schema_and_explains_everything() -> None:
    """2020-12; no object takes what it does not name; every property has its description, and is required."""
    jsonschema.Draft202012Validator.check_schema(CARD_SCHEMA)
    assert CARD_SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    waiting, objects = [CARD_SCHEMA], 0
    while waiting:
        part = waiting.pop()
        if part.get("type") in ("object", ["object", "null"]):
            objects += 1
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
            assert all(inner.get("description") for inner in part["properties"].values()), part["properties"]
            waiting += part["properties"].values()
        waiting += [part["items"]] if "items" in part else []
        waiting += part.get("$defs", {}).values()
    assert objects > 10


def spoil(card: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    """Put a value where another was."""
    *way, last = path
    inner: Any = card
    for step in way:
        inner = inner[step]
    inner[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("error",), "0.12"),
        (("claim", "epsilon", "exact_loss"), "1.93"),
        (("columns", 2, "scale"), "11"),
        (("claim", "epsilon", "total"), 2),
        (("claim", "epsilon", "total"), "two"),
        (("k", "is_k_anonymity"), True),
        (("k", "value"), 25.5),
        (("registry_head", "event"), "41"),
        (("registry_head", "hash"), "5c"),
        (("registry_head", "first"), None),
        (("rows", "out"), -1),
        (("columns", 0, "type"), "time"),
        (("supersedes",), 3),
    ],
)
def test_the_schema_refuses(path: tuple[str | int, ...], value: Any) -> None:
    """What is no part of a card, or of another type."""
    card = json.loads(render_card_json(sample_view()))
    spoil(card, path, value)
    assert not VALIDATOR.is_valid(card)


def test_how_values_without_noise_can_be_told_is_said_where_there_are_any() -> None:
    """By their rows, or where the order was restored by what people are known to have, or off the grid by being on it; and what a
    right guess gives. idp-ls at scope centroid has none."""
    ways = {
        ("none", "on"): PUBLIC("caveat.guessed_by_rows"),
        ("isotonic", "on"): PUBLIC("caveat.guessed_by_habit"),
        ("none", "off"): PUBLIC("caveat.guessed_off_grid"),
        ("isotonic", "off"): PUBLIC("caveat.guessed_off_grid"),
    }
    for renderer in (render_card_json, render_card_html, render_note):
        has_none = sample_view(method="idp-ls", scope="centroid", consistency="none")
        assert not [said for said in SAID if said in html.unescape(" ".join(renderer(has_none).split()))]
        for (consistency, grid), content in ways.items():
            text, dp = (
                html.unescape(" ".join(renderer(sample_view(consistency=consistency, grid=grid, **names)).split()))
                for names in ({}, {"definition": "dp", "method": "dp-um"})
            )
            assert {content, PUBLIC("caveat.counted"), PUBLIC("caveat.without_noise")} <= {said for said in SAID if said in text}
            assert not [said for said in SAID if said in dp]
            assert sum(said in text for said in SAID) == 3


def test_caveats_follow_the_definition() -> None:
    """What is true of iDP alone is said of iDP alone, and of clusters where there are clusters."""
    dp = sample_view(definition="dp", method="laplace", k=None, anonymity_k=None)
    for renderer in (render_card_json, render_card_html, render_note):
        text, other = (html.unescape(" ".join(renderer(view).split())) for view in (sample_view(), dp))
        assert all(
            said in text
            for said in (
                PUBLIC("caveat.individual"),
                PUBLIC("caveat.without_noise"),
                PUBLIC("k.of_column"),
                PUBLIC("no_bound.clusters"),
            )
        )
        assert all(PUBLIC(key) in other for key in ("k.none", "no_bound.kept", "caveat.given"))
        assert not any(
            said in other
            for said in (
                PUBLIC("caveat.individual"),
                PUBLIC("noise.bound_alone"),
                PUBLIC("k.of_column"),
                PUBLIC("no_bound.clusters"),
            )
        )


def test_a_card_of_classes_says_what_being_kept_costs() -> None:
    """The number as it is drawn is within e^epsilon; kept, and released so, within e^(2 epsilon)."""
    view = sample_view(definition="k-epsilon", method="k-epsilon", scope="class")
    for renderer in (render_card_json, render_card_html):
        text = html.unescape(" ".join(renderer(view).split()))
        assert PUBLIC("caveat.kept_in_class") in text
        assert "a factor of at most e^epsilon, as the noise is drawn" in text


def test_looks_are_told_everywhere_and_change_nothing_else() -> None:
    """In the card a key, and a sentence among what is not covered; without looks a card has neither."""
    view, plain = sample_view(looks=Looks(count=12, runs=10, last="2026-03-10")), sample_view()
    said = PUBLIC("looks.words", trials="12 trials", others="2", runs="10", last="2026-03-10")
    uncovered = PUBLIC("looks.uncovered")
    assert "12 trials on" in said
    assert "(runs that released nothing: 10, others: 2)" in said
    card = json.loads(render_card_json(view))
    assert card.pop("looks") == {"count": 12, "runs": 10, "last": "2026-03-10", "words": said}
    assert card["claim"]["not_protected"].pop() == uncovered
    without = json.loads(render_card_json(plain))
    assert without.pop("looks") is None
    assert card == without
    for renderer in (render_card_html, render_note):
        text, other = (html.unescape(" ".join(renderer(each).split())) for each in (view, plain))
        assert said in text
        assert uncovered in text
        assert (
            text.replace(f"- {uncovered} ", "")
            .replace(f"<li>{uncovered}</li> ", "")
            .replace(f"<p>{said}</p> ", "")
            .replace(f"**Trials on the data:** {said} ", "")
            == other
        )


def test_a_method_that_nobody_knows_has_no_card() -> None:
    """It is not taken for one of a family that it may not be of."""
    for renderer in (render_card_json, render_card_html, render_note):
        with pytest.raises(InvalidArgument, match="method"):
            renderer(sample_view(method="dp-new"))


@pytest.mark.slow
@given(public_facts())
def test_every_fact_is_on_the_page(facts: dict[str, Any]) -> None:
    """In words that people can read; who may read the release is there as a sentence."""
    text = Page(render_card_html(make_package(**facts))).text
    for fact in list_facts(facts) - {facts["audience"].readers}:
        assert any(" ".join(form.split()) in text for form in shown(fact)), fact


OURS = {*own_sentences(), Card.FORMAT, None, False, True}


@pytest.mark.slow
@given(every_facts())
def test_the_card_holds_nothing_but_the_facts_and_our_sentences(facts: dict[str, Any]) -> None:
    """Leaf by leaf."""
    noise = ("noise.inside", "noise.inside_without_order", "noise.anywhere")
    notes = {f"{PUBLIC(key)} {PUBLIC('noise.bound_alone')}" for key in noise}
    looks = set[str]()
    if (told := facts["looks"]) is not None:
        numbers = {"trials": count_things(told.count, "trial"), "last": told.last}
        numbers |= {"others": format_count(told.count - told.runs), "runs": format_count(told.runs)}
        looks = {PUBLIC("looks.words", **numbers)}
    strangers = set(leaves(json.loads(render_card_json(make_package(**facts))))) - list_facts(facts) - OURS - notes - looks
    assert not strangers


@pytest.mark.slow
@given(every_facts())
def test_pages_hold_no_word_but_of_the_facts_and_of_the_templates(facts: dict[str, Any]) -> None:
    """Word by word, numbers too."""
    known = VOCABULARY | words(" ".join(form for fact in list_facts(facts) for form in shown(fact)))
    known |= words(format_count(facts["rows_in"] - facts["rows_out"]))  # records that classes dropped
    if (looks := facts["looks"]) is not None:
        known |= words(format_count(looks.count - looks.runs))  # trials by explore
    view = make_package(**facts)
    assert words(Page(render_card_html(view)).text) <= known
    assert words(read_markdown(render_note(view))) <= known


def test_it_sees_nothing_but_a_view() -> None:
    """The renderers import the standard library, Jinja2, the view, sentences, figures and the catalogue of methods."""
    nodes = [node for file in RENDERING for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    others = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    mine = {".".join(("release_pipeline", file.parent.name, file.stem)) for file in RENDERING}
    known = {
        "jinja2",
        "jinja2.filters",
        "release_pipeline.sentences",
        "release_pipeline.formats.card",
        "release_pipeline.formats.package",
        "release_pipeline.publish.method_texts",
    }
    known |= {
        "release_pipeline.mechanisms.basis.dates",
        "release_pipeline.mechanisms.basis.figures",
        "release_pipeline.policy.documents",
        "release_pipeline.policy.values.formats",
        "release_pipeline.mechanisms.catalogue",
        "release_pipeline.mechanisms.catalogue.spec",
    }
    assert others <= known | mine
    assert "release_pipeline.formats.package" in others


PLAIN = Page(render_card_html(sample_view()))
OF_THE_METHOD = {"method": "idp-cbls", "definition": "idp", "scope": "column"}  # names that are looked up


@pytest.mark.slow
@given(TEXTS | HOSTILE)
def test_hostile_texts_leave_the_page_as_it_is(text: str) -> None:
    """With the same text in every field there are the same tags as ever, and none of the unseen characters."""
    columns = tuple(dataclasses.replace(column, name=text, role=text, why=text, noise=text) for column in FACTS["columns"])
    fields = dict.fromkeys(TEXT_FACTS, text) | {"columns": columns}
    view = sample_view(**fields | OF_THE_METHOD)
    page = Page(render_card_html(view))
    assert [tag for tag, _ in page.tags if tag != "span"] == [tag for tag, _ in PLAIN.tags if tag != "span"]
    assert [attributes for _, attributes in page.tags] == [attributes for _, attributes in PLAIN.tags]
    for rendered in (render_card_html(view), render_note(view)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f\ud800-\udfff]", rendered)


@pytest.mark.slow
@given(TEXTS | HOSTILE)
def test_hostile_texts_leave_the_note_as_it_is(text: str) -> None:
    """In Markdown too: as many lines, headings, rows and cells as ever, and no HTML, code, link or picture."""
    assume(text != PUBLIC("suppression.none"))  # which says something
    columns = tuple(dataclasses.replace(column, name=text, role=text, why=text, noise=text) for column in FACTS["columns"])
    fields = dict.fromkeys(TEXT_FACTS, text) | {"columns": columns}
    note, plain = render_note(sample_view(**fields | OF_THE_METHOD)), render_note(sample_view())
    assert [shape(line) for line in note.splitlines()] == [shape(line) for line in plain.splitlines()]
    assert note.count("`") == plain.count("`")
    assert not re.search(r"[<>]|(?<!\\)[\[\]]|://", note)


def read_markdown(text: str) -> str:
    """What a reader sees of it: each backslash and each entity stands for one character."""
    return html.unescape(re.sub(r"\\(.)", r"\1", text))


def shape(line: str) -> tuple[str, int]:
    """What a line of Markdown is, and its cells."""
    start = re.match(r"#+ |- |\||    |  |$|[^ ]", line)
    assert start is not None, line
    return (start[0] if start[0].strip("# -|") == "" else "text"), len(re.findall(r"\|", line))


@given(st.text())
def test_escaped_markdown_reads_back(text: str) -> None:
    """Nothing is lost: without backslashes and entities it is the text again."""
    assert read_markdown(escape_markdown(format_text(text))) == format_text(text)


@given(st.text())
def test_names_are_shown_character_by_character(text: str) -> None:
    """Two names that differ are shown differently, unless one spells out the other's unseen character."""
    if "[U+" not in text:
        assert re.sub(r"\[U\+([0-9A-F]+)\]", lambda unseen: chr(int(unseen[1], 16)), format_name(text)) == text


def test_the_page_needs_nothing_else() -> None:
    """No script, no address, nothing to load: the policy of the page itself would not let it."""
    view = sample_view()
    text = render_card_html(view)
    for address in (view.card.about.licence.url, str(view.card.about.contact.url)):  # in words: nothing points there
        text = text.replace(address, "an address")
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "form", "a"}
    assert not re.search(r"https?:|url\(|@import|src=|href=|\son\w+=", text)
    assert ("html", {"lang": "en"}) in page.tags
    assert "default-src 'none'" in text
    assert {"main", "header", "section", "footer", "table", "caption", "th", "dl"} <= tags
    assert all(query in text for query in ("prefers-color-scheme: dark", "max-width: 40rem", "@media print", "size: A4"))


def test_values_that_may_lie_anywhere_are_told_as_such() -> None:
    """Nothing is said of a domain that would have been restored, and it is no constraint; the reader is told to leave them."""
    free, inside = sample_view(values="anywhere"), sample_view()
    for renderer in (render_card_html, render_note):
        assert "Leave them there" in renderer(free)
        assert "Leave them there" not in renderer(inside)
        assert "inside: released values lie in their declared domain" in renderer(inside)
    assert "back into the domain" in render_note(inside)
    assert "back into the domain" not in render_note(free)
    assert json.loads(render_card_json(free))["method"]["values"] == "anywhere"
    fields = json.loads(render_package(free))["resources"][0]["schema"]["fields"]
    assert [name for name in fields if "minimum" in name.get("constraints", {})] == []
    assert fields[0]["constraints"] == {"enum": [1, 2, 3, 4, 5, 6]}
    assert "declared domain 0 to 50000, beyond which released values may lie" in fields[2]["description"]


def test_what_the_standard_cannot_say_is_refused() -> None:
    """Another format, type, bound, value or hash; and a file without its hash."""
    column = FACTS["columns"][2]
    for change in (
        {"type": "time"},
        {"type": "date", "domain": ("0", "100")},
        {"domain": ("low", "high")},
        {"domain": ("0", "Infinity")},
        {"type": "integer", "values": ("a",)},
    ):
        with pytest.raises(ValueError):
            render_package(sample_view(columns=(dataclasses.replace(column, **change),)))
    with pytest.raises(ValueError, match="format"):
        render_datapackage(sample_view(formats=("xlsx",)), {"data.xlsx": ("ab" * 32, 1)})
    with pytest.raises(ValueError, match="hex"):
        render_datapackage(sample_view(formats=("csv",)), {"data.csv": ("secret", 1)})
    with pytest.raises(KeyError):
        render_datapackage(sample_view(), {"data.csv": HASHES["data.csv"]})
