"""Singling out, linkability and inference (WP14) of a release: how much more attacks succeed than on their control groups. They
gate nothing (docs/decisions/0011-limits-are-not-set-on-drawn-noise.md), and all of it is confidential."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from release_pipeline.mechanisms.attacks import CRITERIA, find_criterion, name_attacks
from release_pipeline.policy import Policy

Entry = dict[str, Any]  # one attack, as evidence keeps it


def list_criteria(policy: Policy, audit: Mapping[str, Any]) -> list[Entry]:
    """Every attack on the released table, criterion by criterion; record linkage, which has no control group, with linkability.
    `audit`: its figures, as evidence keeps them."""
    attacks = {attack["name"]: attack for attack in (*audit.get("attacks", ()), *audit.get("inference", {}).values())}
    entries: list[Entry] = []
    for criterion, described in CRITERIA.items():
        for name in name_attacks(criterion, policy.released_columns):
            if (attack := attacks.get(name)) is None:
                continue
            entry = {"criterion": criterion, "attack": name, "column": find_criterion(name)[1], "guess": attack["guess"]}
            entry |= {"worst": attack["worst"], "rate": attack["attack"], "control": attack["control"], "beyond": attack["risk"]}
            entries.append(entry)
        if described.linkage and audit.get("record_linkage") is not None:
            guess = audit["record_linkage_by_chance"]
            linked = {"attack": "record linkage", "rate": audit["record_linkage"], "guess": guess}
            entries.append({"criterion": criterion, "column": "", **linked})
    return entries
