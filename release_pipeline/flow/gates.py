"""The gates that are judged before anything is charged: who cannot pass them spends nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from release_pipeline.errors import Blocked, GateFailed
from release_pipeline.flow.files import write_private_json
from release_pipeline.flow.notes import ReleaseNotes
from release_pipeline.flow.states import Standing
from release_pipeline.stages.audit import judge_gates
from release_pipeline.stages.ways import Figures, find_way
from release_pipeline.store.folders import make_private_folder
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.vault import ReleaseRoom

Standings: TypeAlias = Mapping[ReleaseId, Standing]


def check_history(flow: ReleaseNotes, room: ReleaseRoom, standings: Standings) -> None:
    """Refuse when vault and registry do not know of the same releases: one of them is an older copy."""
    for name in room.charged():
        if all(str(known.id) != name or known.charge is None for known in standings.values()):
            raise Blocked(
                f"the vault knows of the charged release {name}, and the registry does not.",
                where=str(flow.id),
                remedy="Was an older registry put back? Restore the last one.",
            )


def check_differencing(flow: ReleaseNotes, room: ReleaseRoom, standings: Standings) -> None:
    """Refuse the release when, since another of its policy, at least one person joined and fewer than the policy's number did, or
    left: who has both could subtract them. Compared with every charged release, which includes the one before it. Refused too
    when that cannot be told of a release whose noise is drawn."""
    below = flow.policy.differencing_below
    if below <= 1:
        return
    known_people = room.charged()
    others = [
        known
        for known in standings.values()
        if known.charge is not None and known.id.policy == flow.id.policy and known.id.release != flow.id.release
    ]
    for other in others:
        elsewhere = other.charge is not None and other.charge.population != flow.policy.population
        if other.drawn is not None and (elsewhere or not known_people.get(str(other.id), False)):
            why = "it was of another population" if elsewhere else "the vault does not know who was in it"
            raise Blocked(
                f"nobody can tell who joined or left since {other.id}: {why}.",
                where=str(flow.id),
                remedy="Restore the vault, or set differencing_below: 0, which the privacy officer must approve.",
            )
    found: list[str] = []
    for other, joined, left in room.compare_people([str(known.id) for known in others]):
        for count, verb in ((joined, "joined"), (left, "left")):
            if 0 < count < below:
                found.append(f"since {other} fewer than {below} people {verb}, and not none.")
    if found:
        mine = standings.get(flow.id, Standing(flow.id)).charge
        raise GateFailed(
            " ".join(found),
            findings=tuple(found),
            where=str(flow.id),
            remedy="Publish later with more people, or leave those who joined or left out of the source. "
            + ("Nothing is charged." if mine is None else "It was charged before that other release was made, and stays so."),
        )


def keep_refusal(flow: ReleaseNotes, figures: Mapping[str, Any]) -> None:
    """What stood behind a refusal, in the vault: no message has it, for it is computed from the data."""
    file = _refusal_file(flow)
    make_private_folder(file.parent)
    write_private_json(file, {"release": str(flow.id), **figures})


def _refusal_file(flow: ReleaseNotes) -> Path:
    return flow.site.vault / "refused" / f"{flow.id.file_name}.json"


def expect_errors(flow: ReleaseNotes, room: ReleaseRoom, content: str) -> Figures:
    """What error to expect of every noise column, and the gates on it judged: before anything is charged, so that a policy that
    cannot pass costs nothing. The same data and method give the same figures, so that nobody tries until they pass."""
    method = flow.policy.protect.model_dump_json()
    secret = bytes.fromhex(flow.site.keyed_hash(json.dumps(["expected error", content, method]).encode()))
    way = find_way(flow.policy)
    expected = way.expect(room.read, secret=secret, progress=flow.progress)
    failed = [gate for gate in (*judge_gates(expected, flow.policy.gates), *way.judge(expected)) if not gate.passed]
    if failed:
        keep_refusal(flow, {"gates": [(gate.name, gate.value, gate.limit) for gate in failed], "expected": expected})
        words = tuple(gate.words for gate in failed)
        file = _refusal_file(flow).relative_to(flow.site.home)
        remedy = f"No noise was drawn, and nothing is charged. The figures: {file}."
        raise GateFailed(" ".join(words), findings=words, where=str(flow.id), remedy=remedy)
    _refusal_file(flow).unlink(missing_ok=True)  # of an attempt that failed
    return expected
