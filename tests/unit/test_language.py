"""Which language is spoken, by whom and how long; what German makes of figures; and that pages say what a catalogue has."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, get_args

import pytest

from release_pipeline import sentences
from release_pipeline.errors import InvalidArgument
from release_pipeline.flow.told import tell_about
from release_pipeline.policy import parse_policy
from release_pipeline.policy.about import LICENCES
from release_pipeline.policy.derivations import Bands
from release_pipeline.policy.hierarchies.dates import PERIODS
from release_pipeline.policy.periods import Every
from release_pipeline.policy.statements import state_claim, state_formally
from release_pipeline.policy.words import describe_claim
from release_pipeline.privacy.catalogue import METHODS, ClaimSpec, MethodSpec
from release_pipeline.privacy.figures import (
    count_things,
    format_count,
    format_day,
    format_decimal,
    format_moment,
    format_number,
    format_percent,
    format_range,
    percent,
    show_figure,
    show_share,
)
from release_pipeline.report.internal import render_internal
from release_pipeline.report.public import render_card_html, render_note
from release_pipeline.report.standards import dcat
from release_pipeline.sentences import LANGUAGES, POLICY, PUBLIC, STATUS, speaking, spoken
from tests.integration.sites import policy_text
from tests.pseudo import BEGIN, PSEUDO, list_unspoken, speaking_pseudo
from tests.unit.report import internal_views
from tests.unit.report.views import sample_view

CLAIMS = {f"{spec.name} {claim.section}": (spec, claim) for spec in METHODS.values() for claim in spec.claims}
COMMANDS = {"sha256sum", "c", "SHA256SUMS", "release-pipeline", "verify", "officer", "FINGERPRINT"}
LETTERS = {"k", "iDP", "DP", "zCDP", "check", "rows"}  # names of definitions, and of a command


def words_in(value: Any) -> Iterator[str]:
    """Every word that a view has, which a page may show as it is."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from words_in([getattr(value, field.name) for field in dataclasses.fields(value)])
    elif isinstance(value, str):
        yield from re.findall(r"[^\W\d_][\w.'-]*", value)
    elif isinstance(value, dict):
        for pair in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from words_in(pair)
    elif isinstance(value, list | tuple):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            yield from words_in(part)


def words_of(view: Any) -> set[str]:
    """The same, with and without a stop or an apostrophe behind, and with a large letter at the beginning."""
    found = set(words_in(view))
    found |= {word.rstrip(".'-") for word in found} | {f"{word}." for word in found}
    return found | {word[:1].upper() + word[1:] for word in found}


def test_a_language_is_spoken_inside_alone() -> None:
    """However deep, and whatever happens; another thread speaks its own."""
    heard: list[str] = []
    with speaking("de"):
        with speaking("en"):
            assert PUBLIC("page.check_heading") != ""
            english = PUBLIC("page.kind")
        assert spoken() == "de"
        german, status = PUBLIC("page.kind"), STATUS("matter.late")
        thread = threading.Thread(target=lambda: heard.append(PUBLIC("page.kind")))
        thread.start()
        thread.join()
    assert (english, german, heard, spoken()) == ("Privacy card", "Datenschutzkarte", ["Privacy card"], "en")
    assert status == STATUS("matter.late") == "late"  # of the people of a site, who are told in English
    with pytest.raises(ZeroDivisionError), speaking("de"):
        _ = 1 / 0
    assert spoken() == "en"


def test_a_sentence_that_a_language_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """When its file is read, and before anything was said in it; so is a language that is none."""
    read_file = sentences._read_file  # pyright: ignore[reportPrivateUsage]

    def read_less(audience: str, language: str) -> dict[str, str]:
        return {key: text for key, text in read_file(audience, language).items() if language == "en" or key != "page.kind"}

    monkeypatch.setattr(sentences, "_read_file", read_less)
    sentences.read_sentences.cache_clear()
    try:
        with pytest.raises(InvalidArgument, match=r"1 sentences are not both in de/public.toml and in English, like 'page.kind'"):
            sentences.check_language("de")
    finally:
        monkeypatch.undo()
        sentences.read_sentences.cache_clear()
    with pytest.raises(InvalidArgument, match="not spoken"):
        sentences.check_language("xx")


def test_figures_in_german() -> None:
    """Known answers: marks, no-break space before the sign of percent, days, one and many."""
    with speaking("de"):
        assert [show_figure(number) for number in (0.12345, 999.4, -28699.2)] == ["0,123", "999", "\u221228.699"]
        assert [show_share(share) for share in (0.00004, 0.745, 0.99999, 0.0)] == [
            "weniger als 0,01\u00a0%",
            "74,5\u00a0%",
            "mehr als 99,9\u00a0%",
            "0\u00a0%",
        ]
        assert (format_percent(0.574), percent(Decimal("0.015"))) == ("57,4\u00a0%", "1,5\u00a0%")
        assert (format_count(20190), count_things(1, "record"), count_things(5638, "record")) == (
            "20.190",
            "1 Datensatz",
            "5.638 Datensätze",
        )
        assert [format_number(value) for value in (12345.6, -2e-7, None, float("inf"))] == [
            "12.346",
            "\u22122 × 10\u207b\u2077",
            "nicht verfügbar",
            "unendlich",
        ]
        assert format_range(0.1, 0.25) == "0,1 bis 0,25"
        assert (format_day("2026-11-25"), format_moment("2026-11-25T14:30:00+00:00")) == ("25.11.2026", "25.11.2026, 14:30 UTC")
        assert [format_decimal(text) for text in ("0.5", "50000", "-200000.50", "1990", "2020-01-01", "1.2.3")] == [
            "0,5",
            "50.000",
            "\u2212200.000,50",
            "1990",
            "2020-01-01",
            "1.2.3",
        ]


def test_the_claim_is_read_in_german_and_stated_in_english() -> None:
    """The hash says which language a policy has, and that of one without is the same as ever."""
    policy, plain = parse_policy(policy_text(language="de"), name="people"), parse_policy(policy_text(), name="people")
    assert (
        policy.canonical_hash() != plain.canonical_hash() == parse_policy(policy_text(language="en"), name="p").canonical_hash()
    )
    with speaking(policy.language):
        assert describe_claim(policy).startswith("Epsilon 2 insgesamt (1 für jede von 2 Spalten), iDP")
        assert state_claim(policy).startswith("Für die tatsächliche Tabelle D")
        assert state_formally(policy) == policy.claim.statement
    assert describe_claim(policy) == describe_claim(plain)


def test_entries_that_a_derivation_makes_are_data() -> None:
    """They are the same whatever language a page is in; what the page says of them is not."""
    bands = Bands.model_validate({"bands": "age", "at": [Decimal("0.5"), 70000]})
    with speaking("de"):
        assert bands.outputs == ("below 0.5", "0.5 to below 70000", "70000 or more")
        assert next(iter(bands.preview())) == "unter 0,5: below 0.5"


def test_known_licences_are_called_as_they_are_in_a_language() -> None:
    """In English by the names of the policy."""
    assert PUBLIC.read_section("licence_title") == {name: title for name, (title, _) in LICENCES.items()}
    about = parse_policy(policy_text(), name="people").about
    assert about is not None
    assert tell_about(about).licence[1] == "Creative Commons Zero 1.0 Universal"
    with speaking("de"):
        assert tell_about(about).licence[1] == "Creative Commons Zero 1.0 Universell"


@pytest.mark.parametrize(("spec", "claim"), CLAIMS.values(), ids=CLAIMS)
def test_card_and_note_say_nothing_that_is_not_in_the_catalogue(spec: MethodSpec, claim: ClaimSpec) -> None:
    """Beside the view's own words, under every method."""
    view = sample_view(
        language=PSEUDO,
        translation="A reading.",
        method=spec.name,
        definition=claim.definition.key,
        scope=claim.scope,
        k=25 if spec.takes_k else None,
        headline="epsilon 2 for everything" if spec.family == "whole-table" else None,
        series_epsilon="2" if claim.definition.composes else None,
    )
    known = words_of(view) | COMMANDS | LETTERS
    with speaking_pseudo():
        card, note = render_card_html(view), render_note(view)
    assert BEGIN in card
    assert f'<html lang="{PSEUDO}">' in card
    assert set(list_unspoken(card, is_html=True)) - known == set()
    assert set(list_unspoken(note, is_html=False)) - known == set()


@pytest.mark.parametrize("view", [internal_views.sample_view(), internal_views.empty_view(), internal_views.stopped_view()])
def test_neither_does_the_report(view: Any) -> None:
    """Likewise of what reviewers see."""
    told = dataclasses.replace(view, language=PSEUDO, translation="A reading.")
    with speaking_pseudo():
        page = render_internal(told)
    cut = {word for word in list_unspoken(page, is_html=True) if "…" not in word}
    assert cut - words_of(told) - LETTERS == set()


def test_catalogues_of_data_are_told_of_every_language() -> None:
    """By the code of the European Union's list."""
    assert dcat.CODES.keys() == LANGUAGES.keys() - {"en"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_period_of_dates_has_a_word(language: str) -> None:
    """Those of hierarchies and those of derived columns."""
    with speaking(language):
        assert {*PERIODS, *get_args(Every)} <= POLICY.read_section("every").keys()
