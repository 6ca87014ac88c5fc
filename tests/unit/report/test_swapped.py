"""The reviewers' page of swapped values: no row is one person's, and what that does to each figure."""

from __future__ import annotations

import dataclasses
import re

from release_pipeline.formats.attack_views import ClaimView, CriterionView, Difference, NearView
from release_pipeline.formats.card import SwappedView
from release_pipeline.formats.internal_view import GateView, InternalView, LookView, SwapView
from release_pipeline.formats.package import PackageView
from release_pipeline.publish.public import render_card_html, render_card_json, render_note
from release_pipeline.report.internal import list_sections, render_internal
from release_pipeline.report.questions import list_questions
from tests.unit.report import views
from tests.unit.report.internal_views import sample_view, share

ODD = "<b>town & more"
SWAP = SwapView(8, ("income", "mhi"), (ODD, "sex"), 700, 8)


def make_view(swap: SwapView = SWAP) -> InternalView:
    """The sample with swapped values and strangers."""
    beyond = Difference(0.01, -0.02, 0.04)
    near = NearView(("site",), share(0.9), share(0.9), beyond, 0.0, 0.0, (), ClaimView("", share(0.3), share(0.2), 0.25, beyond))
    return dataclasses.replace(sample_view(), swap=swap, nearest=near, are_ranks=True)


def read(view: InternalView) -> str:
    return " ".join(re.sub("<[^>]*>", "", render_internal(view)).replace("&#39;", "'").replace("&amp;", "&").split())


def test_the_lemma_is_said_before_the_ladder() -> None:
    """With what the people of a block have in common, where they have; names stay names."""
    text = read(make_view())
    assert "one of at least 8 people with the same released &lt;b&gt;town & more and sex." in text
    assert "is right in at most 12.5% of the rows on average" in text
    assert text.index("12.5% of the rows") < text.index("Someone who knows all released columns of a person")
    alone = read(make_view(dataclasses.replace(SWAP, alike=())))
    assert "comes from one of at least 8 people. Anyone who names a person" in alone
    assert ODD not in render_internal(make_view())
    assert "at most 12.5%" not in read(sample_view())


def test_no_row_is_spoken_of_as_a_record() -> None:
    text = read(make_view())
    anchors = {section.anchor for section in list_sections(make_view())}
    assert "structure" not in anchors
    assert {"classes", "suppression", "attacks", "errors"} <= anchors
    for words in (
        "so values of equal ranks are compared",
        "Correlations of ranks, released minus original",
        "Groups: how their means changed",
        "tested on records that the mechanism did not see",
        "Values were exchanged inside 700 blocks, the smallest of 8 records.",
        "of strangers",
    ):
        assert words in text, words
    for words in ("own row is not there", "rows were taken out", "synthetic", "Mean absolute error of income:", "rows alone"):
        assert words not in text, words
    before = read(make_view(dataclasses.replace(SWAP, blocks=0, smallest=0)))
    assert "Values were exchanged inside" not in before, "a gate stopped it before there were blocks"


def test_l_is_of_blocks() -> None:
    view = make_view()
    assert view.classes is not None
    classes = dataclasses.replace(view.classes, diversity={"ill": 1, "job": 3})
    view = dataclasses.replace(view, classes=classes)
    text = read(view)
    assert "some blocks have only 1 value of ill. Anyone who knows that a person is in such a block" in text
    assert "every block has at least 3 different values of job." in text
    asked = [question.words for question in list_questions(view, is_dp=True)]
    assert any("In some blocks everybody has the same ill" in words for words in asked)


def make_public(**changes: object) -> PackageView:
    """The demo's release with swapped values."""
    swap = SwappedView(10, 20, ("site",), ("income",), "A row does not belong to one person.")
    return views.sample_view(swap=swap, **changes)


def plain(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", "", page).replace("&#39;", "'").split())


def test_the_card_names_the_size_of_blocks_beside_k() -> None:
    """In people, not records; and what it says of k does not deny what blocks promise."""
    text = plain(render_card_html(make_public()))
    assert "block size: 10 people Each swapped value of a row comes from one of at least so many people" in text
    assert "is right in at most one in 10 rows, on average" in text
    for page in (text, render_card_json(make_public().card), render_note(make_public())):
        assert "it says nothing about combinations of columns" not in page
    assert "block size" not in plain(render_card_html(views.sample_view()))


def test_an_attack_that_a_guess_equals_is_no_finding() -> None:
    """The question names the guess; where it does as well there is none."""
    clear = CriterionView("inference", "inferring ill", share(0.84, 0.01), 0.6, share(0.5, 0.01), share(0.3, 0.05))
    lucky = dataclasses.replace(clear, guess=0.837)

    def ask(attack: CriterionView) -> list[str]:
        view = dataclasses.replace(make_view(), criteria=(attack,))
        return [question.words for question in list_questions(view, is_dp=True) if "inferring ill" in question.words]

    assert ask(clear) == [
        "Is it acceptable that inferring ill succeeds for 84.0% of the people tried that rows were made of, for 50.0% of "
        "strangers, and by guessing for 60.0%?"
    ]
    assert ask(lucky) == []
    judged = "more than the control, but not clearly more than guessing"
    assert judged in read(dataclasses.replace(make_view(), criteria=(lucky,)))
    assert judged not in read(dataclasses.replace(make_view(), criteria=(clear,)))


def test_what_swapping_leaves_exact_is_asked() -> None:
    """Categories that are swapped have no noise, so that their counts are the original ones; numbers have."""

    def ask(swap: SwapView) -> list[str]:
        return [question.words for question in list_questions(make_view(swap), is_dp=True) if "adds no noise" in question.words]

    assert ask(SWAP) == []
    [asked] = ask(dataclasses.replace(SWAP, columns=("income", "vote")))
    assert asked.startswith("Swapping adds no noise to vote: the number of people with each entry, in every group of the kept")


def test_what_two_values_of_a_row_reveal_is_said_with_the_lemma() -> None:
    """One half for four columns and blocks of ten, as docs/guarantees.md says; certain for more columns than people."""
    four = dataclasses.replace(SWAP, k=10, columns=("a", "b", "c", "d"))
    said = "some two belong to the same person with a probability of up to"
    assert f"Of the 4 swapped values of a row, {said} 49.6%." in read(make_view(four))
    assert f"{said} 100%." in read(make_view(dataclasses.replace(four, k=3)))
    assert said not in read(make_view(dataclasses.replace(four, columns=("a",))))


def test_a_bound_is_shown_as_proved_and_one_look_is_one() -> None:
    """A limit that swapping keeps has no measured value."""
    gate = GateView("share of rows that someone links", 0.1, 0.15, False, True, "swapping", is_proved=True)
    looked = LookView(7, "2026-11-01", "ana", "mask", ("2 settings",))
    view = dataclasses.replace(make_view(), gates=(gate, dataclasses.replace(gate, is_proved=False)), looks=(looked,))
    text = read(view)
    assert text.count("at most 0.1: proved, not measured") == 1
    [asked] = [question.words for question in list_questions(view, is_dp=True) if "chosen without the data" in question.words]
    assert "The registry has 1 trial on confidential records" in asked
