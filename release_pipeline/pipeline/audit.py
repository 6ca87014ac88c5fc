"""The sixth stage: figures of utility and risk, and the gates of the policy."""

from __future__ import annotations

from release_pipeline.audit.gates import judge_gates, judge_groups, measure_groups
from release_pipeline.formats.passed_stages import Audited, Microaggregated, Suppressed, Validated
from release_pipeline.masking import RECORD, find_strategy
from release_pipeline.masking.criteria import list_criteria
from release_pipeline.masking.simulation import judge_linkage
from release_pipeline.masking.swapping import read_blocks
from release_pipeline.mechanisms.noise import Context, NoiseStream, noise_stream
from release_pipeline.pipeline.candidate import collect_context
from release_pipeline.pipeline.checkpoints import check_records, find_checkpoint, read_checkpoint, write_checkpoint
from release_pipeline.pipeline.context import StageContext, StageResult
from release_pipeline.pipeline.in_place import open_records, stored_table

AUDIT = "audit 4"  # changes when the figures do, so that they are measured again
PLOTTED = (  # figures of an audit that are worth a line over the releases; the page has all
    "error",
    "absolute_error",
    "relative_error",
    "ks",
    "sse_paper",
    "record_linkage",
    "information_loss",
    "share_suppressed",
)


def audit(context: StageContext) -> StageResult:
    """Return figures of utility and risk, and the gates of the policy judged only on the expected error and on the released
    table.

    Measured once: another audit of the same table, after the same releases, returns the same.
    """
    policy = context.policy
    with context.open_workspace() as workspace:
        suppressed = read_checkpoint(context, workspace, Suppressed, check=True)
        clusters = read_checkpoint(context, workspace, Microaggregated, check=True)
        check_records(context, workspace, clusters, are_read=True)
        version = context.hash_version([suppressed.version, AUDIT])
        stored = find_checkpoint(context, workspace, Audited)
        if stored is None or stored.version != version:
            secret = bytes.fromhex(context.site.keyed_hash(f"audit of {context.id}".encode()))

            def streams(*purpose: Context) -> NoiseStream:
                return noise_stream(secret, *purpose)

            released = stored_table(workspace, suppressed.table)
            blocks = None if policy.swap is None else read_blocks(workspace.read, released.column(RECORD).to_numpy())
            groups = measure_groups(released, policy, blocks)
            records = open_records(context, workspace, read_checkpoint(context, workspace, Validated))
            strategy = find_strategy(policy, counting=records.counting)
            figures = strategy.audit(records.read, released, groups=groups, streams=streams, progress=context.progress)
            figures |= {"suppressed": suppressed.figures}
            figures |= {"share_suppressed": suppressed.share}
            judged = judge_gates(clusters.columns, policy.gates)
            judged += judge_linkage(policy, clusters.linked)
            judged += judge_groups(groups, policy.gates)
            beside = stored.context if stored is not None else collect_context(context.site, policy, context.id)
            gates = [gate.to_json() for gate in judged]
            beside = {**beside, "criteria": list_criteria(policy, figures)}
            stored = write_checkpoint(context, workspace, Audited, version, [], internal=figures, gates=gates, **beside)
    context.probe.reached("audited")
    gates = stored.judged
    facts = {
        "gates": len(gates),
        "gates_passed": sum(gate.passed for gate in gates),
        **context.claim_figures(),
    }
    plotted = {name: stored.internal[name] for name in PLOTTED if name in stored.internal}
    return StageResult("audited", version, facts, plotted, gates=gates)
