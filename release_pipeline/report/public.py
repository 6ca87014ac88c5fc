"""The texts of a public package, each a pure function of one `PublicView`: card, page and note.

What the view has no field for cannot get into them: beside the view's own texts and numbers there are only the sentences of the
catalogue (`sentences`), which the templates and the method's family choose from. Nothing here knows a policy, a table, a clock or
the environment. datapackage.json is made in `datapackage`; how texts are escaped is in `escaping`.
"""

from __future__ import annotations

import json
from typing import Any

from release_pipeline.policy.documents import to_json
from release_pipeline.privacy.figures import count_things, format_count
from release_pipeline.report.card import (
    Anonymity,
    Budget,
    Card,
    Claim,
    ColumnBudget,
    Definition,
    Groups,
    Hashes,
    Looks,
    Method,
    PolicyName,
    RegistryHead,
    Rows,
    Scope,
    Series,
    Suppression,
    TableBudget,
    WiderScope,
    make_card_schema,
)
from release_pipeline.report.escaping import load_templates
from release_pipeline.report.families import FamilyTexts, find_texts
from release_pipeline.report.view import LooksView, PublicView
from release_pipeline.sentences import POLICY, PUBLIC

CARD_SCHEMA = make_card_schema()


def render_card_json(view: PublicView) -> str:
    """privacy-card.json: the `Card` of the view; ASCII, in one fixed order."""
    return json.dumps(to_json(_make_card(view, find_texts(view))), indent=2, ensure_ascii=True) + "\n"


def render_card_html(view: PublicView) -> str:
    """privacy-card.html: the same facts as one page that needs nothing else, for an analyst and for a citizen."""
    return load_templates("html").get_template("privacy-card.html").render(_context(view))


def render_note(view: PublicView) -> str:
    """RELEASE_NOTE.md: what an analyst must know to use the data and to verify the package."""
    return load_templates("markdown").get_template("RELEASE_NOTE.md").render(_context(view))


def _context(view: PublicView) -> dict[str, Any]:
    texts = find_texts(view)
    return {
        "view": view,
        "texts": texts,
        "wider": _list_wider(view, texts),
        "looks_words": None if view.looks is None else _describe_looks(view.looks),
        "not_protected": _list_uncovered(view),
        "scope_words": _describe_scope(view),
        "law_words": PUBLIC("values.law"),
    }


def _describe_looks(looks: LooksView) -> str:
    """That parameters may have been chosen with knowledge of the data, and what follows from it."""
    trials, explored = count_things(looks.count, "trial"), format_count(looks.count - looks.runs)
    sources = {"source": PUBLIC("looks.source"), "file": PUBLIC("looks.file")}
    data = sources[looks.on[0]] if len(set(looks.on)) == 1 else PUBLIC("looks.both")
    runs = format_count(looks.runs)
    return PUBLIC("looks.words", trials=trials, data=data, explored=explored, runs=runs, last=looks.last)


def _list_uncovered(view: PublicView) -> tuple[str, ...]:
    """What the claim does not cover, a sentence each: by the policy, and by how its parameters were chosen."""
    return (*view.not_protected, *(() if view.looks is None else [PUBLIC("looks.uncovered")]))


def _tell_looks(looks: LooksView) -> Looks:
    words = _describe_looks(looks)
    return Looks(count=looks.count, runs=looks.runs, last=looks.last, on=looks.on, words=words)


def _describe_scope(view: PublicView) -> str:
    return PUBLIC.read_section("scope").get(view.scope, view.scope)


def _list_wider(view: PublicView, texts: FamilyTexts) -> tuple[WiderScope, ...]:
    """Each wider scope with its bound, and why there is none where the bound says so for the table."""
    why = texts.describe_no_bound() if view.swap is None else PUBLIC("no_bound.swapped")
    unbounded = POLICY("bound.none")
    return tuple(
        WiderScope(
            scope=scope,
            bound=bound,
            why=why if scope == "table" and bound.startswith(unbounded) else None,
        )
        for scope, bound in view.wider
    )


def _make_card(view: PublicView, texts: FamilyTexts) -> Card:
    return Card(
        headline=view.headline,
        cannot_occur=view.cannot_occur,
        looks=None if view.looks is None else _tell_looks(view.looks),
        about=view.about.to_card(view.release, view.published),
        release=view.release,
        published=view.published,
        supersedes=view.supersedes,
        tool=view.tool,
        policy=PolicyName(name=view.policy, steward=view.steward),
        population=view.population,
        claim=_make_claim(view, texts),
        method=Method(
            name=view.method,
            words=view.method_words,
            paper=view.paper,
            consistency=view.consistency,
            values=view.values,
            grid=view.grid,
        ),
        k=Groups(
            value=view.k,
            words=view.k_words,
            is_k_anonymity=texts.is_k_anonymity,
            why_not=None if texts.is_k_anonymity else texts.describe_k(),
        ),
        anonymity_k=Anonymity(value=view.anonymity_k, words=texts.describe_anonymity()),
        series=Series(
            epsilon=view.series_epsilon,
            of=PUBLIC("card.series_of"),
            population_spent=view.population_spent,
            cap=view.cap,
            cap_unit=view.cap_unit,
            words=texts.describe_series(),
        ),
        parts=view.parts,
        swap=view.swap,
        rows=Rows(in_=view.rows_in, out=view.rows_out, kind=texts.describe_kind_of_rows()),
        suppression=Suppression(words=view.suppression, cells_blanked=view.cells_blanked),
        noise=texts.describe_noise(),
        columns=view.columns,
        tables=view.tables,
        how_to_use=view.how_to_use,
        analysis=view.analysis,
        formats=view.formats,
        hashes=Hashes(policy=view.policy_hash, candidate=view.candidate_hash),
        registry_head=RegistryHead(event=view.head_event, hash=view.head_hash, first=view.head_first),
    )


def _make_claim(view: PublicView, texts: FamilyTexts) -> Claim:
    return Claim(
        words=view.claim,
        statement=view.statement,
        definition=Definition(name=view.definition, words=view.definition_words),
        neighbours=view.neighbours,
        records_per_person=view.records_per_person,
        privacy_unit=view.privacy_unit,
        record_count=view.record_count,
        epsilon=Budget(
            total=view.epsilon,
            delta=view.delta,
            rho=view.rho,
            of=texts.describe_epsilon_of(),
            columns=tuple(
                ColumnBudget(
                    column=column.name,
                    epsilon=column.epsilon,
                    rho=column.rho,
                    of=PUBLIC("card.epsilon_of_column"),
                )
                for column in view.columns
                if column.epsilon is not None or column.rho is not None
            ),
            tables=tuple(TableBudget(table=table.name, epsilon=table.epsilon, rho=table.rho) for table in view.tables),
        ),
        scope=Scope(name=view.scope, words=_describe_scope(view)),
        wider=_list_wider(view, texts),
        not_protected=_list_uncovered(view),
        caveats=tuple(texts.list_caveats()),
    )
