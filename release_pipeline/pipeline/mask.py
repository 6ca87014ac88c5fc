"""The fourth stage: noise is drawn, once per release."""

from __future__ import annotations

from release_pipeline.formats.passed_stages import Masked, Microaggregated, Validated
from release_pipeline.masking import find_strategy
from release_pipeline.masking.tables import TABLES, measure_tables
from release_pipeline.pipeline.checkpoints import check_records, check_tables, find_checkpoint, read_checkpoint, write_checkpoint
from release_pipeline.pipeline.context import StageContext, StageResult
from release_pipeline.pipeline.in_place import open_records
from release_pipeline.pipeline.reservation import reserved_secret
from release_pipeline.policy.plans.plan import describe_claim

MASKED = "masked"


def mask(context: StageContext) -> StageResult:
    """Write `masked`: noise on the statistics, rows shuffled, what was measured with noise for it, and the tables next to it. It
    is committed and recorded as drawn, and then the secret is forgotten."""
    policy = context.policy
    with context.open_workspace() as workspace:
        checkpoint = read_checkpoint(context, workspace, Microaggregated, check=True)
        check_records(context, workspace, checkpoint, are_read=True)
        drawn = find_checkpoint(context, workspace, Masked)
        if drawn is not None:  # an attempt may have stopped right after it committed
            check_tables(context, workspace, drawn)
            context.record_drawn(drawn.version)
            return _masked(context, drawn)
        secret = reserved_secret(context.site, policy, context.id, source=checkpoint.input)
        records = open_records(context, workspace, read_checkpoint(context, workspace, Validated))
        strategy, noise_context = find_strategy(policy, counting=records.counting), context.noise_context(checkpoint.input)
        measured = strategy.measure(records.read, secret=secret, context=noise_context, progress=context.progress)
        records.check(str(context.id))  # margins do not show that entries changed places
        if policy.tables:
            cells = measure_tables(policy, workspace.read, secret=secret, context=noise_context, progress=context.progress)
            measured = {**measured, TABLES: cells}
        for name, counted in measured.items():
            workspace.write(name, counted)
        table = strategy.mask(records.read, secret=secret, context=noise_context, progress=context.progress)
        workspace.write(MASKED, table)
        tables = [MASKED, *measured]
        version = context.hash_version([workspace.hash_table(name) for name in tables])
        drawn = write_checkpoint(context, workspace, Masked, version, tables, input=checkpoint.input, records=table.num_rows)
        context.probe.reached("the noise is drawn, not yet committed")
    context.probe.reached("the masked table is committed")
    context.record_drawn(drawn.version)
    return _masked(context, drawn)


def _masked(context: StageContext, drawn: Masked) -> StageResult:
    facts = {"rows": drawn.records, "claim": describe_claim(context.policy), **context.claim_figures()}
    return StageResult("masked", drawn.version, facts)
