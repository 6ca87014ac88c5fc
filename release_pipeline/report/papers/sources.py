"""Where the fields of a view stand in what a reader has: the card, the evidence, the policy, the events.

A place in a file of JSON is written as its keys, with dots between them; `[2]` is an entry of a list, counted from 0, and
`["a b"]` a key that is no plain word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from release_pipeline.policy.sections import Review
from release_pipeline.sentences import PAPERS

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
    "privacy_unit": "claim.privacy_unit",
    "record_count": "claim.record_count",
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
    "swap": "swap",
    "rows_in": "rows.in",
    "rows_out": "rows.out",
    "cells_blanked": "suppression.cells_blanked",
    "suppression": "suppression.words",
    "columns": "columns",
    "counts": "noise",
    "tables": "tables",
    "looks": "looks",
    "about": "about",
    "policy_hash": "hashes.policy",
    "candidate_hash": "hashes.candidate",
    "head_event": "registry_head.event",
    "head_hash": "registry_head.hash",
}
ABOUT = {  # a fact about the data as the view has it, and its place under `about` of the card
    "licence.0": "licence.name",
    "licence.1": "licence.title",
    "licence.2": "licence.url",
    "publisher.0": "publisher.name",
    "publisher.1": "publisher.url",
    "places": "coverage.places",
    "first": "coverage.first",
    "last": "coverage.last",
}
WIDER = ("scope", "bound")  # of an entry of `claim.wider`
OPTIONAL = ("looks", "about", "record_count", "swap")  # keys that a card has only where there is something to say
EVIDENCE = {  # a field of the internal view, and the path in evidence.json
    "attacks": "audit.attacks, audit.inference",
    "classes": "audit.groups",
    "columns": "audit.error",
    "gates": "gates",
    "linkage": "audit.record_linkage",
    "linkage_chance": "audit.record_linkage_by_chance",
    "linkage_ladder": "audit.linkage_ladder",
    "nearest": "audit.nearest",
    "sample": "audit.sample.population",
    "subgroups": "audit.subgroups",
    "warnings": "warnings",
}
CHECKED = {
    "retain": "policy: retain",
    "decisions": "events.jsonl: approved, returned, rejected",
    "voted": "events.jsonl: approved, returned",
    "holding": "events.jsonl: approved, and the keys that count",
    "policy": "events.jsonl: approved (policy)",
    "caps": "events.jsonl: approved (populations)",
    "published": "events.jsonl: published",
    "checks": "evidence.json: checks_passed",
}


def group_places(places: Iterable[str]) -> Iterator[str]:
    """These places document by document, each once."""
    found: dict[str, dict[str, None]] = {}
    for each in places:
        document, _, place = each.partition(": ")
        found.setdefault(document, {})[place] = None
    yield from (f"{document}: {', '.join(places)}" for document, places in found.items())


def name_place(view: Any, path: str) -> str:
    """Where a field of a view for papers stands, as `DOCUMENT: PLACE`; one that is not there, where it would stand."""
    root, _, rest = path.partition(".")
    first, _, more = rest.partition(".")
    match root:
        case "public":
            return f"privacy-card.json: {_name_in_card(view, first, more)}"
        case "internal" if first == "clusters":
            return "policy: protect.k"
        case "internal" if first == "swap":
            return "policy: protect.swap.k"
        case "internal":
            return "report.html: decide" if first == "decide" else f"evidence.json: {_name_in_evidence(view, path)}"
        case "assessment":
            return f"policy: assessment.{rest}"
        case "checked" if first == "needed":
            place, default = "review.reviewers", Review().reviewers
            return f"policy: {PAPERS('paper.by_default', place=place, default=default)}"
        case "checked" if first == "checks" and more:
            family = read_field(view, f"checked.checks.{more.partition('.')[0]}.0")
            return f"{CHECKED[first]}{write_key(str(family))}"
        case "checked":
            return CHECKED[first]
        case "state":
            return "events.jsonl: state of the release"
        case "published":
            return "events.jsonl: publishing"
        case "withdrawn":
            return f"events.jsonl: {view.state}"
        case _:
            return f"paper: {root}"


def read_field(view: Any, path: str) -> Any:
    """What stands at a path; None where something on the way is not there."""
    found = view
    for step in path.split("."):
        if found is None:
            return None
        found = found[int(step)] if step.isdecimal() else getattr(found, step)
    return found


def write_key(name: str) -> str:
    """A key as the next step of a place."""
    return f".{name}" if re.fullmatch(r"[A-Za-z_]\w*", name) else f"[{json.dumps(name, ensure_ascii=False)}]"


def _name_in_card(view: Any, first: str, more: str) -> str:
    place = CARD[first]
    if first in OPTIONAL and read_field(view, f"public.{first}") is None:
        return PAPERS("paper.absent", place=place)
    if first == "about":
        known = next((known for known in ABOUT if more == known or more.startswith(f"{known}.")), "")
        more = ABOUT[known] + more.removeprefix(known) if known else more
    if first == "wider" and more:
        number, _, part = more.partition(".")
        more = f"{number}.{WIDER[int(part)]}" if part else number
    return place + _write_steps(more)


def _name_in_evidence(view: Any, path: str) -> str:
    """Beneath an entry that the view was given the place of; else by the column or the name that the entry is of."""
    _, first, *more = path.split(".")
    entry = ".".join(("internal", first, *more[:1]))
    if entry in view.places:
        return view.places[entry]
    place, name = EVIDENCE[first], more[0] if more else ""
    match first:
        case "columns" if name:
            column = write_key(read_field(view, f"{entry}.name"))
            field = more[1] if len(more) > 1 else ""
            return {"expected_error": f"columns{column}.error", "clamped": f"clamping{column}.share"}.get(
                field, f"audit.error{column}"
            )
        case "subgroups" if name:
            return place + write_key(read_field(view, f"{entry}.by"))
        case "classes" if name in ("diversity", "closeness") and len(more) > 1:
            return f"{place}.{name}{write_key(read_field(view, f'{entry}.{more[1]}.0'))}"
        case "classes" if name:
            return f"{place}.{'number' if name == 'groups' else name}"
        case "attacks" | "gates":
            return place  # which of them, the view alone does not tell
        case "linkage" | "linkage_ladder":
            return place
        case _:
            return place + _write_steps(".".join(more))


def _write_steps(path: str) -> str:
    steps = path.split(".") if path else []
    return "".join(f"[{step}]" if step.isdecimal() else write_key(step) for step in steps)
