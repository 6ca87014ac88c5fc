"""The papers that an officer files: what each says of every kind of claim, and what it never says."""

from __future__ import annotations

import dataclasses
import html
import re
from typing import Any

import pytest
import yaml

from release_pipeline.formats.about import Coverage
from release_pipeline.publish.papers import (
    DPIA,
    ENTRY,
    NIST,
    PUBLIC_PAPERS,
    PaperView,
    render_entry,
    render_paper,
    render_papers,
    render_public_papers,
)
from tests.unit.report import paper_views
from tests.unit.report.paper_views import DP, IDP, MDAV, RHO, STATED, VIEWS, of
from tests.unit.report.validators import find_entry_faults
from tests.unit.report.views import FACTS, sample_view

UNSTATED = "Not stated: the policy's assessment says nothing of this."


def read(name: str, view: PaperView) -> str:
    """The sentences of a page, a line each; or an entry as it is."""
    if name == ENTRY:
        return render_entry(view)
    found = re.findall(r"<li>(.*?)</li>|<p class=\"(?:withdrawn|edition).*?>(.*?)</p>", render_paper(name, view))
    return html.unescape("\n".join("".join(parts) for parts in found))


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_has_its_papers(name: str) -> None:
    """A missing field is an error of the template, and every item of a page is answered."""
    files = render_papers(VIEWS[name]) if VIEWS[name].internal else {NIST: render_paper(NIST, VIEWS[name])}
    assert (ENTRY in files) == (VIEWS[name].has_entry and VIEWS[name].internal is not None)
    for file, text in files.items():
        if file != ENTRY:
            assert re.search(r"<ul>\s*</ul>", text) is None, file
            assert not re.search(r"\bNone\b|Undefined|\{\{|\}\}", text), file


def test_synthetic_rows_are_told_as_such() -> None:
    """They are of no record, have no original, and the noise of their counts is public."""
    view = of(RHO | {"tables": ()})
    for name in (NIST, DPIA):
        assert "records about rand-hie-participants the release has" not in read(name, view)
    text = read(NIST, view)
    assert "synthetic rows; no row was copied from a record" in text
    assert "values of equal ranks compared" in text
    assert "No column and no table has a public bound of its noise" not in text
    assert "data.counts.csv and data.pairs.csv have the counts and the noise distribution of each" in text


def test_swapped_columns_are_told_as_such() -> None:
    """Their entries have no noise, and what swapping promises is said of values."""
    text = read(DPIA, VIEWS["swapped"])
    assert "has no noise; its entries were exchanged within blocks of at least 10 people." in text
    assert "is right in at most one in 10 rows on average, whatever else they know." in text
    assert "Every block has at least 2 different values of ill." in text
    assert "Every group" not in text


def test_a_paper_of_a_release_that_was_taken_back_begins_with_that() -> None:
    """With day, person and reason; a retracted one has no entry."""
    for name, words in (("vectors, retracted", "Retracted on "), ("superseded", "Superseded on ")):
        files = render_papers(VIEWS[name])
        for file in (NIST, DPIA):
            top = files[file].split("<h2")[0]
            assert words in top
            assert "olga" in top
            assert "a table was wrong." in top
        assert (ENTRY in files) == (name == "superseded")
    assert "etracted" not in "".join(render_papers(of(IDP)).values())


def test_what_nobody_stated_says_so() -> None:
    """And what somebody did stands there word for word."""
    stated, unstated = (read(NIST, VIEWS[name]) + read(DPIA, VIEWS[name]) for name in ("idp", "dp, nothing stated"))
    for words in STATED.values():
        assert f"The policy states: “{words}”" in stated
        assert words not in unstated
    assert UNSTATED not in stated
    assert unstated.count(UNSTATED) == 12  # an item that quotes two parts says it once


def test_individual_differential_privacy_is_never_told_as_differential_privacy() -> None:
    """Nor is k-anonymity: there the standard does not apply, and none of its questions is answered."""
    individual = read(NIST, of(IDP))
    assert "claims individual differential privacy at scope column, and not differential privacy" in individual
    assert "no answer makes this a differential privacy guarantee" in individual
    assert "It is not differential privacy, does not protect groups" in read(DPIA, of(IDP))
    assert "which the standard evaluates" in read(NIST, of(DP))
    assert "It is not differential privacy" not in read(NIST, of(DP))
    without = render_paper(NIST, of(MDAV))
    assert "it does not apply" in without
    assert without.count("<h2") == 2


@pytest.mark.parametrize(
    ("public", "variant"),
    [
        (IDP, "Custom"),
        (DP, "Custom"),
        (RHO, "Custom"),
        (DP | {"scope": "table"}, "Pure DP"),
        (RHO | {"scope": "table"}, "Zero-concentrated DP"),
    ],
    ids=["idp", "dp of columns", "rho of columns", "dp of the table", "rho of the table"],
)
def test_an_entry_is_valid_by_the_schema_of_the_registry(public: Any, variant: str) -> None:
    """Of every kind of claim, with names and texts that YAML would take for something else. The names of the registry are for
    claims of whole tables: of columns alone it says which scope."""
    for view in (public, public | {"policy": "yes", "steward": "no", "rows_in": 0}):
        text = render_entry(of(view))
        assert list(find_entry_faults(text)) == []
        entry = yaml.safe_load(text)["deployment"]
        assert entry["dp_variant"]["variant_name"] == variant
        parameters = entry["privacy_loss"]["privacy_parameters"]
        known = FACTS | view
        assert parameters["epsilon"] == float(known["epsilon"])
        assert parameters.get("delta") == (None if known["delta"] is None else float(known["delta"]))
        assert (f"at scope {known['scope']}" in entry["administrative"]["notes"]) == (known["scope"] != "table")


def test_an_epsilon_of_one_mean_is_no_parameter_of_a_release() -> None:
    """At scope centroid the words tell it, and no number that a program would take for the loss of what was released."""
    text = render_entry(of(IDP | {"scope": "centroid"}))
    assert yaml.safe_load(text)["deployment"]["privacy_loss"]["privacy_parameters"] == {}
    assert list(find_entry_faults(text)) == []


def test_the_judge_of_entries_finds_faults() -> None:
    """A key that the schema does not know, a day that is none, another address."""
    text = render_entry(of(IDP))
    assert list(find_entry_faults(text.replace("variant_name", "variant")))
    assert list(find_entry_faults(text.replace('publication_date: "2026-11-20"', 'publication_date: "20.11.2026"')))
    assert list(find_entry_faults(text.replace('url_slug: "', 'url_slug: "x')))


def test_an_entry_of_individual_differential_privacy_says_what_it_is() -> None:
    """Where the variant, the parameters and the notes stand."""
    entry = yaml.safe_load(render_entry(of(IDP)))["deployment"]
    assert "is not differential privacy" in entry["privacy_loss"]["privacy_parameters_details"]
    assert "individual differential privacy at scope column" in entry["administrative"]["notes"]
    assert "not bounded" in entry["dp_variant"]["unprotected_quantities"]


@pytest.mark.parametrize(
    "view",
    [of(MDAV), of(DP, published=None, state="candidate")],
    ids=["no claim", "not published"],
)
def test_there_is_no_entry_where_there_can_be_none(view: PaperView) -> None:
    """Nor is one made by mistake."""
    assert not view.has_entry
    assert ENTRY not in render_papers(view)
    with pytest.raises(ValueError, match="no entry"):
        render_entry(view)


def test_the_package_has_papers_of_public_facts_alone() -> None:
    """Of a claim of DP or individual DP; no paper at all otherwise."""
    files = render_public_papers(sample_view(**IDP))
    assert tuple(files) == PUBLIC_PAPERS
    assert files[ENTRY] == render_papers(of(IDP, published=FACTS["published"]))[ENTRY]
    for text in files.values():
        assert not any(word in text for word in ("Internal.", "Our word on", "Attack", "Mean squared error"))
    assert "Not known from what is public" in files[NIST]
    assert "noindex" not in files[NIST]
    assert "noindex" in render_paper(NIST, of(IDP))
    assert render_public_papers(sample_view(**MDAV)) == {}


def test_texts_stay_texts() -> None:
    """Of the policy, of reasons and of names: in HTML, and in the Markdown and YAML of an entry."""
    hostile = "<script>alert(1)</script> [x](javascript:y) ![i](http://example.org/x.png)\nurl_slug: 1"
    about = dataclasses.replace(IDP["about"], title=hostile, description=hostile, coverage=Coverage(places=(hostile,)))
    withdrawn = dataclasses.replace(paper_views.WITHDRAWN, why=hostile)
    public = IDP | {"about": about}
    files = render_papers(of(public, assessment=dict.fromkeys(STATED, hostile), state="superseded", withdrawn=withdrawn))
    for name in (NIST, DPIA):
        assert "<script>" not in files[name]
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in files[name]
    entry = yaml.safe_load(files[ENTRY])
    assert entry["url_slug"] != 1
    description = entry["deployment"]["basic"]["description"]
    assert [part for part in ("<script>", "[x](", "![i](", "\n") if part in description] == []
