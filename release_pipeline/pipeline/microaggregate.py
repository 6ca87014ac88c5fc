"""The third stage: budget is spent, then clusters, sums and scales are made."""

from __future__ import annotations

import hashlib

from release_pipeline.errors import Blocked, OutOfSpace
from release_pipeline.formats.passed_stages import Masked, Microaggregated, Validated
from release_pipeline.ledger.looks import charge_run, tell_stopped_runs
from release_pipeline.ledger.states import list_statuses
from release_pipeline.masking import find_strategy
from release_pipeline.masking.swapping import BLOCK, SWAPPED
from release_pipeline.mechanisms.catalogue import MECHANISM_VERSION
from release_pipeline.pipeline.checkpoints import (
    check_tables,
    find_checkpoint,
    find_earlier_blocks,
    keep_people,
    read_checkpoint,
    write_checkpoint,
)
from release_pipeline.pipeline.context import StageContext, StageResult
from release_pipeline.pipeline.forecast import check_entries, check_memory
from release_pipeline.pipeline.gates import check_differencing, judge_before_charge, refuse_failed
from release_pipeline.pipeline.in_place import count_cells, open_records
from release_pipeline.pipeline.reservation import Reservation, next_revision, reserve
from release_pipeline.pipeline.vaults import check_vaults
from release_pipeline.policy.plans.plan import check_rows
from release_pipeline.store.vault import ReleaseWorkspace


def microaggregate(context: StageContext) -> StageResult:
    """Reserve the loss, then make what is exact: clusters, sums and scales of every noise column, in the strategy's tables."""
    policy = context.policy
    with context.open_workspace() as workspace:
        checkpoint = read_checkpoint(context, workspace, Validated, check=True)
        with context.counting_refusals():
            check_rows(policy, checkpoint.records)
        drawn = find_checkpoint(context, workspace, Masked)
        if drawn is not None:
            served = _serve(context, workspace, drawn, checkpoint)
            charge_run(context.site, context.id)
            return served
        is_copied, where = not checkpoint.snapshot, str(context.id)
        try:
            check_memory(context.site, policy, checkpoint.records, is_copied=is_copied, where=where)
        except OutOfSpace:  # how many records there are is not public yet
            context.count_refusal()
            raise
        check_vaults(context.site, policy.population, workspace)
        with context.counting_refusals():
            cells = count_cells(policy, workspace, checkpoint)
            check_entries(context.site, policy, checkpoint.records, is_copied=is_copied, cells=cells, where=where)
            check_differencing(context, workspace, list_statuses(context.site))
            records = open_records(context, workspace, checkpoint)
            foreseen = judge_before_charge(context, records, checkpoint.content)
            refuse_failed(context, foreseen)
            wanted = Reservation(policy, context.id, checkpoint.records, checkpoint.version, checkpoint.origins)
            tell_stopped_runs(context.site, context.id, context.policy_hash)
            secret = reserve(context.site, wanted, context.probe)
        charge_run(context.site, context.id)
        version = context.hash_version([checkpoint.version, hashlib.sha256(secret).hexdigest(), MECHANISM_VERSION])
        stored = find_checkpoint(context, workspace, Microaggregated)
        if stored is not None and stored.version == version:  # a retry must not calibrate again: another machine may round
            check_tables(context, workspace, stored)
            return _microaggregated(context, stored)
        earlier = find_earlier_blocks(context, workspace)
        strategy = find_strategy(policy, earlier=earlier, counting=records.counting)
        noise_context = context.noise_context(checkpoint.version)
        made = strategy.group(records.read, secret=secret, context=noise_context, progress=context.progress)
        for name, table in made.tables.items():
            workspace.write(name, table)
        keep_people(context, workspace)
        if earlier is not None:
            workspace.keep_blocks(policy.policy, SWAPPED, BLOCK)
        evidence = {name: {**figures, **foreseen.errors.get(name, {})} for name, figures in made.evidence.items()}
        payload = {"input": checkpoint.version, "columns": evidence, "facts": dict(made.facts)}
        payload |= {"linked": foreseen.linked} if foreseen.linked is not None else {}
        stored = write_checkpoint(context, workspace, Microaggregated, version, list(made.tables), **payload)
        context.probe.reached("the clusters are made, not yet committed")
    context.probe.reached("the clusters are committed")
    return _microaggregated(context, stored)


def _serve(context: StageContext, workspace: ReleaseWorkspace, drawn: Masked, validated: Validated) -> StageResult:
    """Return the result that an earlier attempt stored, if it was for the same input and policy."""
    if drawn.policy_hash != context.policy_hash or drawn.input != validated.version:
        raise Blocked(
            "noise was already drawn for this release, for other data or another policy; it is not drawn again.",
            where=str(context.id),
            remedy=f"Restore source and policy. {next_revision(context.id)}",
        )
    checkpoint = find_checkpoint(context, workspace, Microaggregated)
    if checkpoint is None:
        raise Blocked(
            "an earlier attempt left no record of its clusters.", where=str(context.id), remedy=next_revision(context.id)
        )
    return _microaggregated(context, checkpoint)


def _microaggregated(context: StageContext, checkpoint: Microaggregated) -> StageResult:
    policy = context.policy
    facts = {"noise_columns": len(policy.noise_columns), "method": policy.protect.method, **context.claim_figures()}
    internal = {"expected_error": {name: checkpoint.columns[name]["error"] for name in policy.noise_columns}}
    return StageResult("microaggregated", checkpoint.version, facts, internal)
