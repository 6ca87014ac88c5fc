"""The seven stages of one release from its source to the candidate, a function and a module each.

Every stage opens the release's tables in the vault, checks that the stage before it has run under the same policy, and writes its
tables and a sealed note in one transaction. Noise is drawn once per release: a later attempt gets the stored draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from release_pipeline.errors import DataRefused
from release_pipeline.pipeline.audit import audit
from release_pipeline.pipeline.candidate import freeze_candidate
from release_pipeline.pipeline.context import NOT_MET, StageContext, StageResult
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.mask import mask
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.suppress import suppress
from release_pipeline.pipeline.validate import validate

Stage: TypeAlias = Callable[[StageContext], StageResult]
STAGES: Mapping[str, Stage] = {  # in their order, by the state after each
    "ingested": ingest,
    "validated": validate,
    "microaggregated": microaggregate,
    "masked": mask,
    "suppressed": suppress,
    "audited": audit,
    "candidate": freeze_candidate,
}


def run_release(context: StageContext) -> StageResult:
    """Run every stage in order, and return the result of the last one; this is `run` without Dagster."""
    with context.recording_refusals():
        results = [_run_stage(stage, context) for stage in STAGES.values()]
    return results[-1]


def _run_stage(stage: Stage, context: StageContext) -> StageResult:
    result = stage(context)
    if result.refusal:
        raise DataRefused(NOT_MET, findings=result.refusal, where=str(context.id))
    return result
