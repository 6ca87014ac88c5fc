"""Where the fields of a view stand in what a reader has: the card, the evidence, the policy, the events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

CARD = {  # a field of the public view, and the path in privacy-card.json
    "release": "release",
    "policy": "policy.name",
    "steward": "policy.steward",
    "population": "population",
    "published": "published",
    "tool": "tool",
    "method": "method.name",
    "method_words": "method.words",
    "paper": "method.paper",
    "consistency": "method.consistency",
    "values": "method.values",
    "grid": "method.grid",
    "definition": "claim.definition.name",
    "definition_words": "claim.definition.words",
    "neighbours": "claim.neighbours",
    "claim": "claim.words",
    "statement": "claim.statement",
    "epsilon": "claim.epsilon.total",
    "delta": "claim.epsilon.delta",
    "rho": "claim.epsilon.rho",
    "records_per_person": "claim.records_per_person",
    "household_size": "claim.household_size",
    "scope": "claim.scope.name",
    "wider": "claim.wider",
    "not_protected": "claim.not_protected",
    "k": "k.value",
    "k_words": "k.words",
    "anonymity_k": "anonymity_k.value",
    "series_epsilon": "series.epsilon",
    "population_spent": "series.population_spent",
    "cap": "series.cap",
    "cap_unit": "series.cap_unit",
    "parts": "parts",
    "rows_in": "rows.in",
    "rows_out": "rows.out",
    "cells_blanked": "suppression.cells_blanked",
    "suppression": "suppression.words",
    "columns": "columns",
    "tables": "tables",
    "looks": "looks",
    "about": "about",
    "policy_hash": "hashes.policy",
    "candidate_hash": "hashes.candidate",
    "head_event": "registry_head.event",
    "head_hash": "registry_head.hash",
}
EVIDENCE = {  # a field of the internal view, and the path in evidence.json
    "attacks": "audit.attacks, audit.inference",
    "classes": "audit.groups",
    "columns": "audit.error",
    "gates": "gates, facts, clamping, expectations",
    "in_class_guess": "audit.linking_by_guess",
    "in_class_linkage": "audit.linking_risk",
    "linkage": "audit.record_linkage",
    "linkage_chance": "audit.record_linkage_by_chance",
    "nearest": "audit.nearest",
    "sample": "audit.sample",
    "subgroups": "audit.subgroups",
    "suppression": "audit.suppressed",
    "warnings": "warnings",
}
CHECKED = {
    "needed": "policy: review.reviewers",
    "retain": "policy: retain",
    "decisions": "events.jsonl: approved, rejected",
    "holding": "events.jsonl: approved, and the keys that count",
    "policy": "events.jsonl: approved (policy)",
    "caps": "events.jsonl: approved (populations)",
    "published": "events.jsonl: publishing",
    "checks": "evidence.json: checks_passed",
}


def name_sources(paths: Iterable[str]) -> Iterator[str]:
    """Where these fields stand, document by document, each place once."""
    found: dict[str, dict[str, None]] = {}
    for path in paths:
        document, _, place = _name_source(path).partition(": ")
        found.setdefault(document, {})[place] = None
    yield from (f"{document}: {', '.join(places)}" for document, places in found.items())


def _name_source(path: str) -> str:
    root, _, rest = path.partition(".")
    first, dot, more = rest.partition(".")
    match root:
        case "public":
            return f"privacy-card.json: {CARD[first]}{dot}{more}"
        case "internal":
            return "report.html: decide" if first == "decide" else f"evidence.json: {EVIDENCE[first]}"
        case "assessment":
            return f"policy: assessment.{rest}"
        case "checked":
            return CHECKED[first]
        case "state" | "published":
            return "events.jsonl: state of the release"
        case _:
            return f"paper: {root}"
