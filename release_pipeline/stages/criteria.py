"""Singling out, linkability and inference (WP216) of a release: what of the attacks' success is beyond their control groups.

What a limit is on is foreseen, before anything is charged: releases are simulated with noise that is never released, or made as
they will be where nothing is drawn, and attacked as the audit attacks the one that leaves. What the audit finds of that one is
told beside it, and gates nothing (methods.md section 2; docs/decisions/0025-limits-by-criterion.md). All of it is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.sections import Gates
from release_pipeline.privacy.attacks import CRITERIA, Attack, bound_gain, find_criterion, name_attacks, pool_attacks
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.stages.audit import attack_table, draw_attacked
from release_pipeline.stages.column_table import load_table
from release_pipeline.stages.compared import Compared, Read
from release_pipeline.stages.gates import ATTACKED, Gate
from release_pipeline.stages.strategies import RECORD, Strategy
from release_pipeline.stages.strategies.strategy import Progress

ROUNDS = 10  # simulated releases, each attacked on people and a control group of its own
OVERALL = "inferring"  # the mean over the columns, which would hide the worst: no criterion is judged by it
PURPOSE = "criteria"  # of all streams here

Entry = dict[str, Any]  # one attack, as evidence keeps it


def expect_criteria(policy: Policy, strategy: Strategy, read: Read, *, secret: bytes, progress: Progress) -> list[Entry]:
    """What attacks on a release of these records are to be expected to find, an entry for each attack; nothing where no limit is
    set. The same records and method give the same figures. `secret` is none of a release's; `strategy` makes a release, one part
    where the policy publishes parts."""
    if not policy.gates.of_criteria:
        return []
    found: dict[str, list[Attack]] = {}
    for number, compared in enumerate(_simulate(policy, strategy, read, secret)):
        progress(f"attacking simulated releases, {number + 1} of {ROUNDS}")

        def streams(*purpose: Context, number: int = number) -> NoiseStream:
            return noise_stream(secret, PURPOSE, number, *purpose)

        attacks, by_column = attack_table(draw_attacked(compared, streams), streams)
        for attack in (*attacks, *by_column.values()):
            found.setdefault(attack.name, []).append(attack)
    return [_note(policy, pool_attacks(rounds)) for name, rounds in found.items() if name != OVERALL]


def _simulate(policy: Policy, strategy: Strategy, read: Read, secret: bytes) -> Iterator[Compared]:
    """Releases as they would leave after suppression, with other noise; those that suppression refuses are left out. Where
    nothing is drawn there is one, again and again."""
    is_alike = not policy.method.is_noisy and policy.parts == 1
    grouped: Mapping[str, pa.Table] | None = None
    made: Compared | None = None
    for number in range(ROUNDS):
        if is_alike and made is not None:
            yield made
            continue
        context = (PURPOSE, number)
        if grouped is None or policy.parts > 1:
            grouped = strategy.group(read, secret=secret, context=context, progress=_quiet).tables
        read_made = _read_with(read, grouped)
        masked = strategy.mask(read_made, secret=secret, context=context, progress=_quiet)
        done = strategy.suppress(read_made, masked)
        if done.obstacle:
            continue
        released = load_table(done.table)
        made = Compared(policy, read, released, np.asarray(released.column(RECORD).to_numpy(), dtype=np.intp), released)
        yield made


def _read_with(read: Read, made: Mapping[str, pa.Table]) -> Read:
    """What the stages before have made, with these tables."""

    def read_made(table: str, columns: Sequence[str] | None) -> pa.Table:
        if table not in made:
            return read(table, columns)
        return made[table] if columns is None else made[table].select(list(columns))

    return read_made


def _note(policy: Policy, attack: Attack) -> Entry:
    """An attack as evidence keeps it: `beyond` its control group, as a share of what was left to gain (GEM23), and the `most`
    of it."""
    criterion, column = find_criterion(attack.name)
    return {
        "criterion": criterion,
        "attack": attack.name,
        "column": column,
        "rate": asdict(attack.attack),
        "control": asdict(attack.control),
        "guess": attack.guess,
        "beyond": asdict(attack.risk),
        "most": bound_gain(attack),
        "limit": find_limit(policy.gates, criterion, column),
    }


def find_limit(gates: Gates, criterion: str, column: str) -> float | None:
    """What a policy lets an attack gain beyond its control group; None where it sets no limit."""
    limit = gates.of_criteria.get(criterion)
    if isinstance(limit, Mapping):
        limit = limit.get(column)
    return None if limit is None else float(limit)


def judge_criteria(policy: Policy, foreseen: Sequence[Mapping[str, Any]]) -> list[Gate]:
    """A gate for each attack that the policy limits, on the most that it gains beyond its control group as far as was tried: the
    upper end of its interval, so that nothing passes because little was tried. Where nothing was foreseen it fails."""
    known = {entry["attack"]: entry["most"] for entry in foreseen}
    found: list[Gate] = []
    for criterion in policy.gates.of_criteria:
        for name in name_attacks(criterion, policy.released_columns):
            column = find_criterion(name)[1]
            limit, most = find_limit(policy.gates, criterion, column), known.get(name)
            if limit is not None:
                value = np.nan if most is None else float(most)
                found.append(Gate(f"gain of {name} beyond its control group", value, limit, basis=ATTACKED, column=column))
    return found


def list_criteria(policy: Policy, audit: Mapping[str, Any], foreseen: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Every attack on the released table, criterion by criterion, with what was `foreseen` of those that have a limit; record
    linkage, which has no control group, with those that it is told beside. `audit`: its figures, as evidence keeps them."""
    expected = {entry["attack"]: entry for entry in foreseen}
    found = {attack["name"]: attack for attack in (*audit.get("attacks", ()), *audit.get("inference", {}).values())}
    entries: list[Entry] = []
    for criterion, own in CRITERIA.items():
        for name in name_attacks(criterion, policy.released_columns):
            if (attack := found.get(name)) is not None:
                entry = {"criterion": criterion, "attack": name, "column": find_criterion(name)[1], "guess": attack["guess"]}
                entry |= {"rate": attack["attack"], "control": attack["control"], "beyond": attack["risk"]}
                if (known := expected.get(name)) is not None:
                    entry |= {"foreseen": known["beyond"], "most": known["most"], "limit": known["limit"]}
                entries.append(entry)
        entries += [{"criterion": criterion, "column": "", **linked} for linked in _list_linkage(audit) if own.linkage]
    return entries


def _list_linkage(audit: Mapping[str, Any]) -> Iterator[Entry]:
    """Who lies nearest to their own original, among all records and within groups that look alike, and how many by chance."""
    for figure, name, chance in (
        ("record_linkage", "record linkage", "record_linkage_by_chance"),
        ("linking_risk", "record linkage within classes", "linking_by_guess"),
    ):
        if audit.get(figure) is not None:
            yield {"attack": name, "rate": audit[figure], "guess": audit.get(chance, 0.0)}


def _quiet(_: str) -> None:
    """Strategies tell every column."""
