"""The texts of a public package, each a pure function of one `PackageView`: card, page and note.

What the view has no field for cannot get into them. Besides the view's own texts and numbers there are only the sentences of the
catalogue (`sentences`), which the templates and the method's family choose from. Nothing here knows a policy, a table, a clock or
the environment. datapackage.json is made in `datapackage`; how texts are escaped is in `escaping`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from release_pipeline.policy.documents import to_json
from release_pipeline.policy.schemas import make_object
from release_pipeline.privacy.figures import count_things, format_count
from release_pipeline.report.about import list_facts
from release_pipeline.report.card import (
    Card,
    Claim,
    ColumnBudget,
    Looks,
    TableBudget,
    WiderScope,
)
from release_pipeline.report.escaping import load_templates
from release_pipeline.report.families import FamilyTexts, find_texts
from release_pipeline.report.view import PackageView
from release_pipeline.sentences import POLICY, PUBLIC


def make_card_schema() -> dict[str, Any]:
    """The JSON Schema of `privacy-card.json`, with what its parts must agree on."""
    definition = {"properties": {"name": {"enum": ["k-epsilon", "k-anonymity"]}}}
    with_classes = {
        "k": {"properties": {"is_k_anonymity": {"const": True}}},
        "series": {"properties": {"epsilon": {"type": "null"}}},
    }
    with_clusters = {
        "k": {"properties": {"is_k_anonymity": {"const": False}}},
        "series": {"properties": {"epsilon": {"type": "string"}}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:release-pipeline:privacy-card:1",
        "title": "Privacy card",
        **make_object(Card, is_closed=True),
        "if": {"properties": {"claim": {"properties": {"definition": definition}}}},
        "then": {"properties": with_classes},
        "else": {"properties": with_clusters},
    }


CARD_SCHEMA = make_card_schema()


def render_card_json(card: Card) -> str:
    """privacy-card.json; ASCII, in one fixed order."""
    return json.dumps(to_json(card), indent=2, ensure_ascii=True) + "\n"


def render_card_html(package: PackageView) -> str:
    """privacy-card.html: the same facts as one page that needs nothing else, for an analyst and for a citizen."""
    return load_templates("html").get_template("privacy-card.html").render(_context(package))


def render_note(package: PackageView) -> str:
    """RELEASE_NOTE.md: what an analyst must know to use the data and to verify the package."""
    return load_templates("markdown").get_template("RELEASE_NOTE.md").render(_context(package))


def _context(package: PackageView) -> dict[str, Any]:
    return {
        "package": package,
        "card": package.card,
        "texts": find_texts(package),
        "list_facts": list_facts,
        "law_words": PUBLIC("values.law"),
    }


def complete_card(package: PackageView) -> PackageView:
    """The package, its card with the sentences that follow from its facts and from the family of its method."""
    card, texts = package.card, find_texts(package)
    k = replace(card.k, is_k_anonymity=texts.is_k_anonymity, why_not=None if texts.is_k_anonymity else texts.describe_k())
    completed = replace(
        card,
        looks=None if card.looks is None else replace(card.looks, words=_describe_looks(card.looks)),
        claim=_complete_claim(card, texts),
        k=k,
        anonymity_k=replace(card.anonymity_k, words=texts.describe_anonymity()),
        series=replace(card.series, of=PUBLIC("card.series_of"), words=texts.describe_series()),
        rows=replace(card.rows, kind=texts.describe_kind_of_rows()),
        noise=texts.describe_noise(),
    )
    return replace(package, card=completed)


def _complete_claim(card: Card, texts: FamilyTexts) -> Claim:
    """The claim with what epsilon is of, and with what is not covered: by the policy, and by how its parameters were chosen."""
    claim, of_column = card.claim, PUBLIC("card.epsilon_of_column")
    columns = tuple(
        ColumnBudget(column=column.name, epsilon=column.epsilon, rho=column.rho, of=of_column)
        for column in card.columns
        if column.epsilon is not None or column.rho is not None
    )
    tables = tuple(TableBudget(table=table.name, epsilon=table.epsilon, rho=table.rho) for table in card.tables)
    uncovered = () if card.looks is None else (PUBLIC("looks.uncovered"),)
    words = PUBLIC.read_section("scope").get(claim.scope.name, claim.scope.name)
    return replace(
        claim,
        epsilon=replace(claim.epsilon, of=texts.describe_epsilon_of(), columns=columns, tables=tables),
        scope=replace(claim.scope, words=words),
        wider=tuple(_list_wider(card, texts)),
        not_protected=(*claim.not_protected, *uncovered),
        caveats=tuple(texts.list_caveats()),
    )


def _describe_looks(looks: Looks) -> str:
    """That parameters may have been chosen with knowledge of the data, and what follows from it."""
    trials, runs = count_things(looks.count, "trial"), format_count(looks.runs)
    others = format_count(looks.count - looks.runs)
    return PUBLIC("looks.words", trials=trials, others=others, runs=runs, last=looks.last)


def _list_wider(card: Card, texts: FamilyTexts) -> Iterator[WiderScope]:
    """Each wider scope with its bound, and why there is none where the bound says so for the table."""
    why = texts.describe_no_bound() if card.swap is None else PUBLIC("no_bound.swapped")
    for wider in card.claim.wider:
        is_unbounded = wider.scope == "table" and wider.bound.startswith(POLICY("bound.none"))
        yield replace(wider, why=why if is_unbounded else None)
