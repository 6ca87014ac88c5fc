"""The texts of a public package, each a pure function of one `PublicView`: card, page and note.

What the view has no field for cannot get into them: beside the view's own texts and numbers there are only the sentences of the
catalogue (`sentences`), which the templates and the method's family choose from. Nothing here knows a policy, a table, a clock or
the environment. datapackage.json is made in `datapackage`; how texts are escaped is in `escaping`.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from release_pipeline.privacy.figures import count_things, format_count
from release_pipeline.report.datapackage import describe_table
from release_pipeline.report.escaping import load_templates
from release_pipeline.report.families import FamilyTexts, find_texts
from release_pipeline.report.view import ColumnView, LooksView, PublicView, TableView
from release_pipeline.sentences import POLICY, PUBLIC

CARD_FORMAT = "privacy-card/1"
CARD_SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "privacy-card.schema.json").read_text(encoding="utf-8"))


def render_card_json(view: PublicView) -> str:
    """privacy-card.json: every field of the view, by the names that `CARD_SCHEMA` describes; ASCII, in one fixed order."""
    return json.dumps(_make_card(view, find_texts(view)), indent=2, ensure_ascii=True) + "\n"


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
        "table_words": {table.name: describe_table(table) for table in view.tables},
    }


def _describe_looks(looks: LooksView) -> str:
    """That parameters may have been chosen with knowledge of the data, and what follows from it."""
    trials, explored = count_things(looks.count, "trial"), format_count(looks.count - looks.runs)
    sources = {"source": PUBLIC("looks.source"), "file": PUBLIC("looks.file")}
    data = sources[looks.on[0]] if len(set(looks.on)) == 1 else PUBLIC("looks.both")
    runs = format_count(looks.runs)
    return PUBLIC("looks.words", trials=trials, data=data, explored=explored, runs=runs, last=looks.last)


def _list_uncovered(view: PublicView) -> list[str]:
    """What the claim does not cover, a sentence each: by the policy, and by how its parameters were chosen."""
    return [*view.not_protected, *([] if view.looks is None else [PUBLIC("looks.uncovered")])]


def _tell_looks(looks: LooksView) -> dict[str, Any]:
    return {
        "count": looks.count,
        "runs": looks.runs,
        "last": looks.last,
        "on": list(looks.on),
        "words": _describe_looks(looks),
    }


def _describe_scope(view: PublicView) -> str:
    return PUBLIC.read_section("scope").get(view.scope, view.scope)


def _list_wider(view: PublicView, texts: FamilyTexts) -> list[dict[str, str | None]]:
    """Each wider scope with its bound, and why there is none where the bound says so for the table."""
    why = texts.describe_no_bound() if view.swap is None else PUBLIC("no_bound.swapped")
    return [
        {"scope": scope, "bound": bound, "why": why if scope == "table" and bound.startswith(POLICY("bound.none")) else None}
        for scope, bound in view.wider
    ]


def _make_card(view: PublicView, texts: FamilyTexts) -> dict[str, Any]:
    return {
        "format": CARD_FORMAT,
        "headline": view.headline,
        "cannot_occur": list(view.cannot_occur),
        "looks": None if view.looks is None else _tell_looks(view.looks),
        "about": None if view.about is None else view.about.to_json(view.release, view.published),
        "release": view.release,
        "published": view.published,
        "supersedes": view.supersedes,
        "tool": view.tool,
        "policy": {"name": view.policy, "steward": view.steward},
        "population": view.population,
        "claim": {
            "words": view.claim,
            "statement": view.statement,
            "definition": {"name": view.definition, "words": view.definition_words},
            "neighbours": view.neighbours,
            "records_per_person": view.records_per_person,
            "privacy_unit": view.privacy_unit,
            "record_count": view.record_count,
            "epsilon": {
                "total": view.epsilon,
                "delta": view.delta,
                "rho": view.rho,
                "of": texts.describe_epsilon_of(),
                "columns": [
                    {
                        "column": column.name,
                        "epsilon": column.epsilon,
                        "rho": column.rho,
                        "of": PUBLIC("card.epsilon_of_column"),
                    }
                    for column in view.columns
                    if column.epsilon is not None or column.rho is not None
                ],
                "tables": [{"table": table.name, "epsilon": table.epsilon, "rho": table.rho} for table in view.tables],
            },
            "scope": {"name": view.scope, "words": _describe_scope(view)},
            "wider": _list_wider(view, texts),
            "not_protected": _list_uncovered(view),
            "caveats": texts.list_caveats(),
        },
        "method": {
            "name": view.method,
            "words": view.method_words,
            "paper": view.paper,
            "consistency": view.consistency,
            "values": view.values,
            "grid": view.grid,
        },
        "k": {
            "value": view.k,
            "words": view.k_words,
            "is_k_anonymity": texts.is_k_anonymity,
            "why_not": None if texts.is_k_anonymity else texts.describe_k(),
            "l": view.diversity,
        },
        "anonymity_k": {"value": view.anonymity_k, "words": texts.describe_anonymity()},
        "series": {
            "epsilon": view.series_epsilon,
            "of": PUBLIC("card.series_of"),
            "population_spent": view.population_spent,
            "cap": view.cap,
            "cap_unit": view.cap_unit,
            "words": texts.describe_series(),
        },
        "parts": list(view.parts),
        "swap": None if view.swap is None else dataclasses.asdict(view.swap),
        "rows": {"in": view.rows_in, "out": view.rows_out, "kind": texts.describe_kind_of_rows()},
        "suppression": {"words": view.suppression, "cells_blanked": view.cells_blanked},
        "noise": texts.describe_noise(),
        "columns": [_make_column(column) for column in view.columns],
        "tables": [_make_table(table) for table in view.tables],
        "how_to_use": list(view.how_to_use),
        "analysis": list(view.analysis),
        "formats": list(view.formats),
        "hashes": {"policy": view.policy_hash, "candidate": view.candidate_hash},
        "registry_head": {"event": view.head_event, "hash": view.head_hash, "first": view.head_first},
    }


def _make_table(table: TableView) -> dict[str, Any]:
    return {
        "name": table.name,
        "file": table.file,
        "by": list(table.by),
        "sum": table.sum,
        "deep": table.deep,
        "epsilon": table.epsilon,
        "rho": table.rho,
        "step": table.step,
        "weight": None if table.weight is None else dataclasses.asdict(table.weight),
        "having": table.having,
        "lacking": table.lacking,
        "levels": [
            {"level": level.level, "cells": level.cells, "noise": level.noise, "words": level.words} for level in table.levels
        ],
        "words": describe_table(table),
    }


def _make_column(column: ColumnView) -> dict[str, Any]:
    made, calibrated = column.made, column.calibrated
    return {
        "name": column.name,
        "role": column.role,
        "done": column.done,
        "type": column.type,
        "why": column.why,
        "domain": None if column.domain is None else list(column.domain),
        "grid": column.grid,
        "values": list(column.values),
        "epsilon": column.epsilon,
        "noise": column.noise,
        "missing": column.missing,
        "hierarchy": column.hierarchy,
        "levels": list(column.levels),
        "level": column.level,
        "law": column.law,
        "atoms": list(column.atoms),
        "centre": column.centre,
        "tail": column.tail,
        "rho": column.rho,
        "made": None if made is None else {"by": made.by, "of": list(made.of), "words": made.words},
        "calibrated": None if calibrated is None else {"to": list(calibrated.to), "words": calibrated.words},
        "label": column.label,
        "description": column.description,
        "unit": column.unit,
        "question": column.question,
        "labels": [{"value": value, "label": label} for value, label in column.labels],
    }
