"""The gates that are judged before anything is charged: who cannot pass them spends nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from release_pipeline.audit.gates import LINKED, Gate, judge_gates
from release_pipeline.errors import Blocked, GateFailed
from release_pipeline.formats.evidence import read_evidence
from release_pipeline.ledger.looks import WITHHELD
from release_pipeline.ledger.states import ReleaseStatus
from release_pipeline.masking import Figures, find_strategy
from release_pipeline.masking.simulation import PURPOSE, Ladder, expect_linkage, explain_linkage, judge_linkage, needs_no_draws
from release_pipeline.pipeline.checkpoints import find_earlier_blocks
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.in_place import Records
from release_pipeline.report.page import BEFORE_CHARGE, render_report
from release_pipeline.store.files import make_private_folder, write_private_json, write_text
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.vault import ReleaseWorkspace

Standings: TypeAlias = Mapping[ReleaseId, ReleaseStatus]


def check_differencing(context: StageContext, workspace: ReleaseWorkspace, statuses: Standings) -> None:
    """Refuse the release when, since another of its policy, at least one person joined and fewer than the policy's number did, or
    left: who has both could subtract them. Compared with every charged release, which includes the one before it. Refused too
    when that cannot be told of a release whose noise is drawn, or was lost with the site."""
    below = context.policy.differencing_below
    if below <= 1:
        return
    known_people = workspace.charged()
    others = [
        known
        for known in statuses.values()
        if known.charge is not None and known.id.policy == context.id.policy and known.id.release != context.id.release
    ]
    for other in others:
        elsewhere = other.charge is not None and other.charge.population != context.policy.population
        is_out = other.drawn is not None or other.lost  # of what was lost with the site nobody knows that it was not
        if is_out and (elsewhere or not known_people.get(str(other.id), False)):
            why = "it was of another population" if elsewhere else "the vault does not know who was in it"
            why = "it was lost with the site, and with it who was in it" if other.lost else why
            raise Blocked(
                f"nobody can tell who joined or left since {other.id}: {why}.",
                where=str(context.id),
                remedy=f"{'Set' if other.lost else 'Restore the vault, or set'} differencing_below: 0, which the privacy officer "
                "must approve.",
            )
    reasons: list[str] = []
    for other, joined, left in workspace.compare_people([str(known.id) for known in others]):
        for count, verb in ((joined, "joined"), (left, "left")):
            if 0 < count < below:
                reasons.append(f"since {other} fewer than {below} people {verb}, and not none.")
    if reasons:
        mine = statuses.get(context.id, ReleaseStatus(context.id)).charge
        raise GateFailed(
            " ".join(reasons),
            findings=tuple(reasons),
            where=str(context.id),
            remedy="Publish later with more people, or leave those who joined or left out of the source. "
            + ("Nothing is charged." if mine is None else "It was charged before that other release was made, and stays so."),
        )


def keep_refusal(context: StageContext, figures: Mapping[str, Any]) -> None:
    """What stood behind a refusal, in the vault: no message has it, for it is computed from the data."""
    file = _refusal_file(context.site, context.id)
    make_private_folder(file.parent)
    forget_refusal(context.site, context.id)  # first, so that no page of an earlier attempt is next to these figures
    write_private_json(file, {"release": str(context.id), **figures})


def read_refusal(site: Site, release: ReleaseId) -> dict[str, Any]:
    """The figures of an attempt that was refused; none where it was not, or not by gates."""
    file = _refusal_file(site, release)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def show_refusal(context: StageContext, evidence: Mapping[str, Any], stopped_at: str) -> str:
    """The page that shows why, of what was measured until then, in the vault; gives in words where it is."""
    file = _refusal_file(context.site, context.id).with_suffix(".html")
    make_private_folder(file.parent)
    write_text(file, render_report(context.policy, read_evidence(evidence, where=str(context.id)), stopped_at=stopped_at))
    return f"A page that shows why: {file.relative_to(context.site.home)}."


def forget_refusal(site: Site, release: ReleaseId) -> None:
    """Remove figures and page of an attempt that was refused."""
    for ending in (".json", ".html"):
        _refusal_file(site, release).with_suffix(ending).unlink(missing_ok=True)


def _refusal_file(site: Site, release: ReleaseId) -> Path:
    return site.vault / "refused" / f"{release.file_name}.json"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What to expect of a release, as far as it was asked for: `errors` by column, what share of its rows is `linked`, with the
    `ladder` that it is of, and the gates on both, judged."""

    errors: Figures
    ladder: Ladder
    linked: float | None
    judged: tuple[Gate, ...]


def judge_before_charge(context: StageContext, records: Records, content: str) -> Foreseen:
    """What error to expect of every noise column, and what linkage where it has a limit, and the gates on both judged: before
    anything is charged, so that a policy that cannot pass costs nothing. The same data and method give the same figures. Linkage
    draws by data and name of the method only: else a change of epsilon by a billionth would draw again, until a limit is met by
    luck."""
    policy = context.policy
    secret = _draw_lot(context.site, "expected error", content, policy.protect.model_dump_json())
    strategy = find_strategy(policy, earlier=find_earlier_blocks(context, records.workspace), counting=records.counting)
    expected = strategy.expect(records.read, secret=secret, progress=context.progress)
    ladder: Ladder = ()
    if not needs_no_draws(policy):  # it has a limit that its method does not keep by itself
        lot = _draw_lot(context.site, PURPOSE, content, policy.protect.method)
        ladder = expect_linkage(policy, find_strategy(policy), records.read, secret=lot, progress=context.progress)
    linked = ladder[-1].linked.value if ladder else None
    judged = (*judge_gates(expected, policy.gates), *strategy.judge(expected), *judge_linkage(policy, linked))
    return Foreseen(expected, ladder, linked, judged)


def _draw_lot(site: Site, purpose: str, content: str, method: str) -> bytes:
    """The secret of what is simulated for a purpose, which is none of a release's: the same for the same data and method."""
    return bytes.fromhex(site.keyed_hash(json.dumps([purpose, content, method]).encode()))


def refuse_failed(context: StageContext, foreseen: Foreseen) -> None:
    """Raise `GateFailed` where a gate did not pass, with the figures and a page in the vault; else forget those of an earlier
    attempt."""
    policy, judged = context.policy, foreseen.judged
    failed = [gate for gate in judged if not gate.passed]
    if not failed:
        forget_refusal(context.site, context.id)
        return
    context.count_refusal()  # before a figure is written
    free = "No noise was drawn, and nothing is charged." if policy.method.is_noisy else "Nothing is charged."
    if context.site.forbids_looks:
        forget_refusal(context.site, context.id)
        reasons = tuple(gate.describe("the figure is withheld") for gate in failed)
        raise GateFailed(" ".join(reasons), findings=reasons, where=str(context.id), remedy=f"{free} {WITHHELD}")
    reasons = tuple(gate.refusal for gate in failed)
    how = f"{explain_linkage(policy, foreseen.ladder)} " if any(gate.basis == LINKED for gate in failed) else ""
    figures = {"gates": [gate.to_json() for gate in judged], "expected": foreseen.errors}
    figures |= {"foreseen_ladder": [asdict(rung) for rung in foreseen.ladder]} if foreseen.ladder else {}
    keep_refusal(context, figures)
    shown = show_refusal(context, read_refusal(context.site, context.id), BEFORE_CHARGE)
    file = _refusal_file(context.site, context.id).relative_to(context.site.home)
    remedy = f"{how}{free} The figures: {file}. {shown}"
    raise GateFailed(" ".join(reasons), findings=reasons, where=str(context.id), remedy=remedy)
