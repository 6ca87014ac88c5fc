"""The fifth stage: the masked records without small groups."""

from __future__ import annotations

from release_pipeline.formats.passed_stages import PASSED, Masked, Suppressed
from release_pipeline.masking import find_strategy
from release_pipeline.pipeline.checkpoints import read_checkpoint, write_checkpoint
from release_pipeline.pipeline.context import StageContext, StageResult
from release_pipeline.pipeline.gates import keep_refusal
from release_pipeline.pipeline.in_place import stored_table
from release_pipeline.pipeline.mask import MASKED


def suppress(context: StageContext) -> StageResult:
    """Write `suppressed`, the masked records without small groups, or block the release when these are too many. Where a policy
    suppresses nothing the note has the masked table's hashes again, and there is no copy."""
    with context.open_workspace() as workspace:
        checkpoint = read_checkpoint(context, workspace, Masked, check=True)
        strategy = find_strategy(context.policy)
        for kind in PASSED:
            if kind.stage in strategy.suppression_reads:
                read_checkpoint(context, workspace, kind, check=True)
        masked = stored_table(workspace, MASKED)
        done = strategy.suppress(workspace.read, masked)
        numbers = {
            "cells_blanked": done.cells,
            "rows_dropped": done.dropped,
            "anonymity_k": done.anonymity,
            "rows": done.table.num_rows,
        }
        version = context.hash_version([checkpoint.version, done.cells, done.dropped])
        if not done.obstacle:
            left = MASKED if done.table is masked else "suppressed"
            if left != MASKED:
                workspace.write(left, done.table)
            figures = dict(done.figures)
            write_checkpoint(context, workspace, Suppressed, version, [left], **numbers, share=done.share, figures=figures)
    context.probe.reached("suppressed")
    if done.obstacle:
        if done.refusal and done.figures:
            keep_refusal(context, {"suppressed": dict(done.figures)})
        context.block(done.obstacle)
    shown = {name: number for name, number in numbers.items() if name != "anonymity_k"}  # of a table that may be withheld
    facts = {**shown, "share_suppressed": done.share, **context.claim_figures()}
    return StageResult("suppressed", version, facts, dict(done.figures))
