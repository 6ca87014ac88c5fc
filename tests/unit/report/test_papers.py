"""The papers: every sentence is bound to the fields that it was read from, and changes with each of them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
import yaml

from release_pipeline.privacy.catalogue.definitions import DEFINITIONS
from release_pipeline.report.escaping import escape_markdown
from release_pipeline.report.internal_view import ShareView
from release_pipeline.report.papers import (
    ENTRY,
    PAPERS_OF_A_SITE,
    PUBLIC_PAPERS,
    render_paper_html,
    render_papers,
    render_public_papers,
    statements,
)
from release_pipeline.report.papers.deployment import has_entry, write_deployment, write_entry
from release_pipeline.report.papers.nist import write_nist
from release_pipeline.report.papers.sources import name_place, read_field
from release_pipeline.report.papers.statements import Paper, Statement, state_fact
from release_pipeline.report.papers.view import Fields, PaperView, replace_field
from release_pipeline.report.public import CARD_SCHEMA, render_card_json
from release_pipeline.sentences import PAPERS
from tests.unit.report import paper_views, views
from tests.unit.report.paper_views import CHECKED, DP, IDP, MDAV, RHO, VECTORS, VIEWS, WITHDRAWN, of
from tests.unit.report.places import MISSING, find_place, find_place_in_schema
from tests.unit.report.validators import find_entry_faults

EXAMPLES: dict[str, tuple[Any, ...]] = {  # what could stand where there is nothing, or something of a few kinds
    "public.definition": tuple(DEFINITIONS),
    "public.record_count": (None, "not protected"),
    "public.method": ("dp-um", "dp-cdf", "dp-table", "dp-mdav"),
    "public.counts": (("data.counts.csv", "data.blocks.csv", "data.pairs.csv"), ()),
    "public.values": ("inside", "anywhere"),
    "public.grid": ("on", "off"),
    "public.looks": (paper_views.IDP.looks,),
    "public.about": (paper_views.ABOUT,),
    "public.about.places": (("Dayton",),),
    "public.columns": (paper_views.columns_of("noise"), paper_views.columns_of("synthesise")),
    "public.tables": ((paper_views.TABLE,),),
    "internal.attacks": (paper_views.ATTACKS, ()),
    "internal.gates": (paper_views.FAILED,),
    "internal.columns": (paper_views.internal_view().columns,),
    "internal.classes": (paper_views.internal_view().classes,),
    "internal.subgroups": (paper_views.internal_view().subgroups,),
    "internal.decide": (("Is it?",),),
    "checked.decisions": (CHECKED.decisions, ()),
    "checked.checks": (CHECKED.checks,),
    "checked.holding": (("ben", "cleo", "dora"), ("ben",), ()),
    "checked.policy": (CHECKED.policy,),
    "checked.caps": (CHECKED.caps,),
    "checked.published": (CHECKED.published,),
    "checked.needed": (1, 2, 3),
    "withdrawn": (paper_views.WITHDRAWN,),
    "state": ("retracted", "superseded"),
    "published": ("2020-01-02T03:04:05+00:00",),
    "edition": ("internal", "public"),
}
PUBLIC = (write_nist, write_deployment)
DONE = ("keep", "generalise", "synthesise", "noise")


def find_others(view: PaperView, path: str) -> Iterator[Any]:
    """Other values that a field could have."""
    value = read_field(view, path)
    yield from (example for example in EXAMPLES.get(path, ()) if example != value)
    if path.endswith(".done"):
        yield from (done for done in DONE if done != value)
    match value:
        case None:
            yield from ("Another word", 7, paper_views.SHARE, paper_views.LOW)
        case bool():
            yield not value
        case str():
            yield from ("2020-01-02T03:04:05+00:00", f"Another {value}")
        case int():
            yield from (value + 1, 0)
        case float():
            yield from (value + 0.123, value - 1.0)
        case ShareView():
            yield from (ShareView(0.9, 0.8, 0.95, 77, None), ShareView(0.4, 0.4, 0.4, 5, 9))
        case tuple():
            yield from ((), (0.9, 0.8, 0.99), None)
        case _:
            yield None


def write(paper: Any, view: PaperView) -> dict[tuple[str, int], str]:
    """The words of a paper by their places."""
    found: Paper = paper(view)
    words: dict[tuple[str, int], str] = {}
    if found.withdrawn is not None:
        words["withdrawn", 0] = found.withdrawn.words
    for section in found.sections:
        for item in section.items:
            words |= {(item.key, place): statement.words for place, statement in enumerate(item.statements)}
    return words


def sees_change(paper: Any, view: PaperView, path: str, place: tuple[str, int], statement: Statement) -> bool:
    """Whether another value of the field makes another sentence of it, or none: every other value of a figure or text that the
    sentence shows, and some value of what else it was chosen by."""
    seen: list[bool] = []
    for other in find_others(view, path):
        try:
            changed = write(paper, replace_field(view, path, other))
        except (TypeError, ValueError, AttributeError, KeyError, IndexError):  # no view has such a value there
            continue
        seen.append(changed.get(place) != statement.words)
    is_shown = path in statement.shown and isinstance(read_field(view, path), str | int | float | ShareView)
    return bool(seen) and (all(seen) if is_shown else any(seen))


CASES = [(name, paper) for name in VIEWS for paper in (PUBLIC if name == "public" else PAPERS_OF_A_SITE)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "paper"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_every_sentence_changes_with_each_field_that_it_names(name: str, paper: Any) -> None:
    """Whatever is named as the source of a sentence is one: change it, and see the sentence change."""
    view, tried = VIEWS[name], 0
    if (withdrawn := paper(view).withdrawn) is not None:
        assert all(sees_change(paper, view, path, ("withdrawn", 0), withdrawn) for path in withdrawn.paths), withdrawn.words
    for section in paper(view).sections:
        for item in section.items:
            assert item.asks.basis == "definition", item.key
            assert not item.asks.paths, item.key
            for place, statement in enumerate(item.statements):
                assert statement.basis != "definition", f"{item.key}: {statement.words}"
                assert statement.paths, f"{item.key}: {statement.words}"
                for path in statement.paths:
                    assert sees_change(paper, view, path, (item.key, place), statement), f"{path}: {statement.words}"
                    tried += 1
    assert tried


def test_nothing_is_said_of_a_release_without_a_source() -> None:
    """There is no way to such a sentence, not even by mistake."""
    with pytest.raises(TypeError, match="bound to nothing"):
        state_fact("nist.errors_none")


def test_definitions_are_the_same_for_every_release() -> None:
    """What a standard asks has nothing of a release in it."""
    for paper in PAPERS_OF_A_SITE:
        asked: dict[str, set[str]] = {}
        for view in VIEWS.values():
            for section in paper(view).sections:
                for item in section.items:
                    asked.setdefault(item.key, set()).add(item.asks.words)
        assert all(len(words) == 1 for words in asked.values())


def test_every_sentence_of_the_catalogue_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """By one of these views: none waits with a place that nobody fills."""
    made: set[str] = set()

    def note(key: str, /, **values: object) -> str:
        made.add(key)
        return PAPERS(key, **values)

    monkeypatch.setattr(statements, "PAPERS", note)
    for view in VIEWS.values():
        for paper in PAPERS_OF_A_SITE:
            paper(view)
    about_releases = {"said", "claim", "columns", "sums", "looks", "about", "attack", "rows", "data", "groups", "linkage"}
    about_releases |= {"state", "nist", "deployment", "check"}
    asked = {f"{part}.item" for part in ("nist", "deployment", "check")}
    fixed = {"nist", "deployment", "check"}  # whose titles of sections have no places, and are of no release
    wanted = {
        key
        for key, text in PAPERS.sentences.items()
        if key.split(".")[0] in about_releases and not any(key.startswith(part) for part in asked)
        if key.split(".")[0] not in fixed or "{" in text
    }
    assert wanted - made == set()


@pytest.mark.parametrize("name", [*VIEWS, "as it is without extras"])
def test_every_place_in_the_card_is_there(name: str) -> None:
    """With the value that was read, where the card has it as it is; what this card does not have has its place in the schema."""
    view, tried = VIEWS.get(name) or of(views.sample_view()), 0
    card = json.loads(render_card_json(view.public))
    for paper in PAPERS_OF_A_SITE:
        for _, statement in paper(view).list_statements():
            for path in statement.paths:
                document, _, place = name_place(view, path).partition(": ")
                if document != "privacy-card.json":
                    continue
                found, value = find_place(card, place.removesuffix(" (not in this card)")), read_field(view, path)
                tried += 1
                if place.endswith("(not in this card)"):
                    assert found is MISSING, place
                    assert value is None, place
                    assert find_place_in_schema(CARD_SCHEMA, place.removesuffix(" (not in this card)")), place
                elif isinstance(value, str | int) or value is None:
                    assert found == value, place
                else:
                    assert found is not MISSING, place
    assert tried


def test_places_beneath_the_facts_about_the_data_are_those_of_the_card() -> None:
    """Known answers: what the view has by numbers the card has by names."""
    view = of(IDP)
    known = {
        "public.about.licence.1": "about.licence.title",
        "public.about.licence.2": "about.licence.url",
        "public.about.places.0": "about.coverage.places[0]",
        "public.about.first": "about.coverage.first",
        "public.wider.0.0": "claim.wider[0].scope",
        "public.wider.0.1": "claim.wider[0].bound",
        "public.columns.2.domain.1": "columns[2].domain[1]",
        "public.looks.count": "looks.count",
    }
    assert {path: name_place(view, path) for path in known} == {
        path: f"privacy-card.json: {place}" for path, place in known.items()
    }
    assert name_place(of(DP), "public.looks") == "privacy-card.json: looks (not in this card)"


def test_a_finder_of_places_finds_none_that_is_not_there() -> None:
    """Else the tests above could not fail."""
    assert find_place({"about": {"licence": {"title": 1}}}, "about.licence.1") is MISSING
    assert find_place({"a": [{"b c": 2}]}, 'a[0]["b c"]') == 2
    assert find_place({"a": [0]}, "a[1]") is MISSING
    assert not find_place_in_schema(CARD_SCHEMA, "about.places")


@pytest.mark.parametrize("public", [DP, RHO, VECTORS, IDP], ids=["by value", "whole table", "vectors", "columns"])
def test_what_was_done_after_the_noise_is_that_of_the_family(public: Any) -> None:
    """Values without noise of their own were not carried out of their domain by it; an order is restored where there is one."""
    for papers in (write_nist, write_deployment):
        text = words_of(papers(of(dataclasses.replace(public, values="inside"))))
        assert ("noise carried out" in text) == (public in (IDP, VECTORS))
        assert ("Restoring the order" in text) == (public is IDP)
        assert ("list of values was made of its noisy counts" in text) == (public is DP)
        assert ("Rows are synthetic, made of the noisy counts" in text) == (public is RHO)
        assert "values on their grid and the noise" not in text


def test_synthetic_rows_are_told_as_such() -> None:
    """They are of no record, have no original, and the noise of their counts is public."""
    view = of(dataclasses.replace(RHO, tables=()))
    for paper in PAPERS_OF_A_SITE:
        assert "records about rand-hie-participants the release has" not in words_of(paper(view))
    text = words_of(write_nist(view))
    assert "synthetic rows, which are nobody's" in text
    assert "values of equal ranks compared" in text
    assert "No column and no table has a bound of its noise" not in text
    assert "law of the noise of each, are in data.counts.csv" in text


def test_a_paper_of_a_release_that_was_taken_back_begins_with_that() -> None:
    """With day, person and reason; a retracted one has no entry, and the page says why."""
    for name, words in (
        ("vectors, retracted", "Retracted on "),
        ("superseded", "Superseded on "),
    ):
        files = render_papers(VIEWS[name])
        for file, text in files.items():
            if not file.endswith(".yaml"):
                assert words in text.split("<h2" if file.endswith("html") else "\n## ")[0], file
                assert "olga" in text.split("<h2" if file.endswith("html") else "\n## ")[0], file
        assert (ENTRY in files) == (name == "superseded")
    text = words_of(write_deployment(of(IDP, state="retracted", withdrawn=WITHDRAWN)))
    assert "There is no entry: the release is retracted" in text
    assert "a table was wrong" in text
    assert "etracted" not in "".join(render_papers(of(IDP)).values())


def test_the_page_of_the_entry_is_not_called_internal() -> None:
    """It has public facts alone, and is made to be handed in."""
    files = render_papers(of(IDP))
    for ending in ("html", "md"):
        assert "Internal." not in files[f"deployment.{ending}"]
        assert "made to be handed in" in files[f"deployment.{ending}"]
        assert "Internal." in files[f"nist-sp-800-226.{ending}"]
    for view in VIEWS.values():
        paths = [path for _, statement in write_deployment(view).list_statements() for path in statement.paths]
        assert not any(path.startswith(("internal", "assessment", "checked")) for path in paths)


def test_questions_are_quoted_as_the_page_has_them() -> None:
    """Word for word, and with how many reviewers a policy needs where its file does not say."""
    asked = dataclasses.replace(paper_views.internal_view(), decide=("Is that enough?",))
    files = render_papers(of(IDP, internal=asked))
    assert "Is that enough?" in files["output-check.html"]
    assert "Is that enough?" in files["output-check.md"]
    assert "wrote the policy" not in files["output-check.md"]
    assert "policy: review.reviewers (2 where the policy file leaves it out)" in files["output-check.md"]


def test_what_nobody_stated_says_so() -> None:
    """And what somebody did stands there word for word."""
    stated, unstated = (
        [statement for paper in PAPERS_OF_A_SITE for _, statement in paper(VIEWS[name]).list_statements()]
        for name in ("idp", "dp, nothing stated")
    )
    for name, words in dataclasses.asdict(paper_views.STATED).items():
        assert any(words in one.words and one.basis == "stated" for one in stated), name
        assert any(f"assessment.{name}" in one.paths and one.basis == "not stated" for one in unstated), name


def words_of(found: Paper) -> str:
    """All that a paper says."""
    return "\n".join(statement.words for _, statement in found.list_statements())


def test_individual_differential_privacy_is_never_told_as_differential_privacy() -> None:
    """Nor is k-anonymity: there the standard does not apply, and none of its questions is answered."""
    individual = words_of(write_nist(of(IDP)))
    assert "claims individual differential privacy at scope column, and not differential privacy" in individual
    assert "no answer makes this a differential privacy guarantee" in individual
    assert "which the standard evaluates" in words_of(write_nist(of(DP)))
    assert "It is not differential privacy" not in words_of(write_nist(of(DP)))
    without = write_nist(of(MDAV))
    assert "it does not apply" in words_of(without)
    assert {item.key for section in without.sections for item in section.items} == {"applies", "provenance"}


@pytest.mark.parametrize(
    ("public", "variant"),
    [
        (IDP, "Custom"),
        (DP, "Custom"),
        (RHO, "Custom"),
        (dataclasses.replace(DP, scope="table"), "Pure DP"),
        (dataclasses.replace(RHO, scope="table"), "Zero-concentrated DP"),
    ],
    ids=["idp", "dp of columns", "rho of columns", "dp of the table", "rho of the table"],
)
def test_an_entry_is_valid_by_the_schema_of_the_registry(public: Any, variant: str) -> None:
    """Of every kind of claim, with names and texts that YAML would take for something else. The names of the registry are for
    claims of whole tables: of columns alone it says which scope."""
    for view in (public, dataclasses.replace(public, policy="yes", steward="no", rows_in=0)):
        text = write_entry(of(view))
        assert list(find_entry_faults(text)) == []
        entry = yaml.safe_load(text)
        assert entry["deployment"]["dp_variant"]["variant_name"] == variant
        parameters = entry["deployment"]["privacy_loss"]["privacy_parameters"]
        assert parameters["epsilon"] == float(str(view.epsilon))
        assert parameters.get("delta") == (None if view.delta is None else float(view.delta))
    assert re.fullmatch(r"[a-z0-9_]+\.yaml", ENTRY)


def test_an_epsilon_of_one_mean_is_no_parameter_of_a_release() -> None:
    """At scope centroid the words tell it, and no number that a program would take for the loss of what was released."""
    entry = yaml.safe_load(write_entry(of(dataclasses.replace(IDP, scope="centroid"))))
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] in ({}, None)
    assert list(find_entry_faults(write_entry(of(dataclasses.replace(IDP, scope="centroid"))))) == []


def test_what_policies_say_stays_a_text_in_the_markdown_of_an_entry() -> None:
    """No markup, link or picture of a column's name or a description."""
    assert IDP.about is not None
    hostile = "[x](javascript:alert(1)) <b> ![i](http://example.org/x.png)"
    about = dataclasses.replace(IDP.about, description=hostile, places=(hostile,))
    text = write_entry(of(dataclasses.replace(IDP, about=about)))
    assert [part for part in ("[x](", "<b>", "![i](") if part in text] == []


def test_the_judge_of_entries_finds_faults() -> None:
    """A key that the schema does not know, a day that is none, another address."""
    text = write_entry(of(IDP))
    assert list(find_entry_faults(text.replace("variant_name", "variant")))
    assert list(find_entry_faults(text.replace('publication_date: "2026-11-20"', 'publication_date: "20.11.2026"')))
    assert list(find_entry_faults(text.replace('url_slug: "', 'url_slug: "x')))


def test_an_entry_of_individual_differential_privacy_says_what_it_is() -> None:
    """Where the variant, the parameters and the notes stand."""
    entry = yaml.safe_load(write_entry(of(IDP)))["deployment"]
    assert "is not differential privacy" in entry["privacy_loss"]["privacy_parameters_details"]
    assert "individual differential privacy at scope column" in entry["administrative"]["notes"]
    assert "not bounded" in entry["dp_variant"]["unprotected_quantities"]


def test_an_entry_says_what_its_paper_says() -> None:
    """Field by field, and nothing in it is of the confidential side."""
    view = of(IDP)
    entry = yaml.safe_load(write_entry(view))["deployment"]
    for section in write_deployment(view).sections:
        for item in section.items:
            group, _, name = item.field.partition(".")
            if name not in ("data_curators", "publication_date", "data_product_type", "variant_name"):
                said = [statement.words for statement in item.statements]
                shown = said if item.field == "basic.name" else map(escape_markdown, said)
                assert all(words in entry[group][name] for words in shown), item.field
            paths = [path for statement in item.statements for path in statement.paths]
            assert not any(path.startswith(("internal", "assessment", "checked")) for path in paths)


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (of(MDAV), "does not claim differential privacy"),
        (of(DP, published=None, state="candidate"), "an entry needs a day of publication"),
        (of(dataclasses.replace(DP, about=None)), "does not say what the data are"),
    ],
    ids=["no claim", "not published", "no about"],
)
def test_there_is_no_entry_where_there_can_be_none(view: PaperView, why: str) -> None:
    """And the paper says why."""
    assert not has_entry(view)
    assert ENTRY not in render_papers(view)
    assert why in words_of(write_deployment(view))
    with pytest.raises(ValueError, match="no entry"):
        write_entry(view)


def test_the_package_has_papers_of_public_facts_alone() -> None:
    """Of a claim of DP or individual DP and a policy that says what the data are; no paper at all otherwise."""
    files = render_public_papers(IDP)
    assert tuple(files) == PUBLIC_PAPERS
    for text in files.values():
        assert not any(word in text for word in ("evidence.json", "assessment.", "report.html", "Internal."))
    assert "Not known from what is public" in files["nist-sp-800-226.md"]
    assert render_public_papers(MDAV) == render_public_papers(dataclasses.replace(DP, about=None)) == {}


class Outline(HTMLParser):
    """Headings, heads of tables and language of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.heads: list[dict[str, str | None]] = []
        self.tags: list[str] = []
        self.language = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an outline is made of."""
        self.tags.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "th":
            self.heads.append(dict(attrs))
        if tag == "html":
            self.language = dict(attrs).get("lang") or ""


@pytest.mark.parametrize("name", VIEWS)
def test_pages_can_be_read_by_everybody(name: str) -> None:
    """A language, one first heading and no level left out, a head with its scope for each column and row, a caption for each
    table; nothing that runs."""
    for paper in PAPERS_OF_A_SITE:
        page = Outline()
        page.feed(text := render_paper_html(paper(VIEWS[name])))
        assert page.language == "en"
        assert page.levels.count(1) == 1
        assert page.levels[0] == 1
        assert all(after - before <= 1 for before, after in zip(page.levels, page.levels[1:], strict=False))
        assert all(head.get("scope") in ("col", "row") for head in page.heads)
        assert page.tags.count("caption") == page.tags.count("table") > 0
        assert "script" not in page.tags
        assert "default-src 'none'" in text


def test_texts_stay_texts() -> None:
    """Of the policy, of reasons and of names: in HTML and in Markdown."""
    hostile = "<script>alert(1)</script> [x](javascript:y) `z` **b**"
    assessment = dataclasses.replace(paper_views.STATED, purpose=hostile)
    decisions = (dataclasses.replace(CHECKED.decisions[0], signed=paper_views.signed(9, "ben", hostile)),)
    view = of(IDP, assessment=assessment, checked=dataclasses.replace(CHECKED, decisions=decisions))
    for name, text in render_papers(view).items():
        if not name.endswith(".yaml"):
            assert "<script>" not in text, name
        if name.endswith(".md"):
            assert "[x](" not in text, name
            assert "**b**" not in text, name


def test_a_statement_tells_each_source_once() -> None:
    """Document by document."""
    view = of(IDP, places={"internal.attacks.0": "audit.attacks[3]"})
    fields = [
        Fields(view)(path) for path in ("public.epsilon", "public.delta", "internal.attacks.0.risk", "internal.attacks.0.guess")
    ]
    assert state_fact("said.as_is", *fields[1:], words=fields[0]).sources == (
        "privacy-card.json: claim.epsilon.delta, claim.epsilon.total",
        "evidence.json: audit.attacks[3]",
    )
