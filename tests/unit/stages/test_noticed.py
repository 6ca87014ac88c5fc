"""What is noticed in the data, as counts and in words."""

from __future__ import annotations

import json

import pytest

from release_pipeline.flow.evidence import read_evidence
from release_pipeline.sentences import speaking
from release_pipeline.stages import noticed as kinds
from release_pipeline.stages.noticed import Noticed

NOTICED = {
    "clamped": Noticed(kinds.CLAMPED, "income", 1_200, among=2_400),
    "little": Noticed(kinds.CLAMPED, "income", 1, among=80_000),
    "coded": Noticed(kinds.CODED, "income", 1),
    "blank": Noticed(kinds.BLANK, "income", 12_000),
    "filled": Noticed(kinds.FILLED, "income", 2),
    "ties": Noticed(kinds.TIES, "income"),
    "heavily": Noticed(kinds.HEAVILY_CLAMPED, "income", share=0.1),
    "others": Noticed(kinds.OF_OTHER_RELEASES, "year", 3),
    "some": Noticed(kinds.OF_OTHER_RELEASES, "year", kinds.SOME),
    "share": Noticed(kinds.EXPECTATION, "order", 10, at_most="2.5%", columns=("came", "left")),
    "count": Noticed(kinds.EXPECTATION, "order", 10, at_most="1", columns=("came",)),
}
WORDS = {
    "clamped": "column income: up to 1,200 records outside the declared domain, clamped to it (50.00% of all).",
    "little": "column income: up to 1 record outside the declared domain, clamped to it (less than 0.01% of all).",
    "coded": "column income: up to 1 record with a code for no value, released without one as declared.",
    "blank": "column income: up to 12,000 records without a value, released without one as declared.",
    "filled": "column income: up to 2 records without a value, filled as declared.",
    "ties": "column income: heavy ties; at least half of the records share one value, so many clusters are constant.",
    "heavily": "column income: clamping took more than 10% of its variance. Means, spreads and links between columns are "
    "those of the clamped values.",
    "others": "column year: up to 3 records of releases that the policy does not list.",
    "some": "column year: some records of releases that the policy does not list.",
    "share": "expectation order: up to 10 records break it, and at most 2.5% of records may (columns came, left).",
    "count": "expectation order: up to 10 records break it, and at most 1 record may (columns came).",
}
GERMAN = {
    "clamped": "Spalte income: 1.200 Datensätze außerhalb des festgelegten Wertebereichs, auf ihn begrenzt: 50,00\u00a0% aller.",
    "share": "Erwartung order: bis zu 10 Datensätze verletzen sie; höchstens zulässig: 2,5\u00a0% der Datensätze "
    "(Spalten came, left).",
    "count": "Erwartung order: bis zu 10 Datensätze verletzen sie; höchstens zulässig: 1 Datensatz (Spalten came).",
}


@pytest.mark.parametrize("name", NOTICED)
def test_each_is_told_as_earlier_versions_noted_it(name: str) -> None:
    """In English, word for word, for old evidence has these words alone."""
    assert NOTICED[name].words == WORDS[name]


@pytest.mark.parametrize("name", NOTICED)
def test_each_is_told_in_german(name: str) -> None:
    """In no word as in English, but for names."""
    with speaking("de"):
        told = NOTICED[name].words
    assert told == GERMAN.get(name, told)
    same = {"income:", "year:", "order:", "10", "1", "2", "3", "(columns", "came,", "left).", "came)."}
    assert not {*told.split()} & {*WORDS[name].split()} - same


def test_every_kind_is_tried() -> None:
    """And evidence gives back what it keeps, without what does not belong to a kind."""
    written = json.loads(json.dumps([one.to_json() for one in NOTICED.values()]))
    assert written[5] == {"kind": "ties", "name": "income"}
    evidence = read_evidence({"release": "people/1/r1", "gates": [], "noticed": written}, where="here")
    assert evidence.noticed == tuple(NOTICED.values())
    assert {one.kind for one in NOTICED.values()} == kinds._WORDS.keys()  # pyright: ignore[reportPrivateUsage]
