"""What Dagster's UI, and lineage, show of checks: sentences and counts, never a cell."""

from typing import Any

import dagster as dg

from release_pipeline.flow.openlineage.facets import Assertion
from release_pipeline.flow.release import Check, StageResult, families_of, round_up
from release_pipeline.policy import Policy


def count_record(check: Check) -> dict[str, str | int]:
    """The row that the UI shows of one check: its column, what was counted, and how often, rounded up to tens."""
    return {"column": check.column, "fact": check.fact, "up_to": round_up(check.count)}


def list_assertions(result: StageResult, policy: Policy) -> list[Assertion]:
    """The checks of the data for lineage: families and sentences, without counts, which may be of one record."""
    about = families_of(policy)
    return [Assertion(verdict.family, verdict.passed, about[verdict.family], len(verdict.checks)) for verdict in result.verdicts]


def check_result(
    name: str, asset: dg.AssetKey, passed: bool, messages: tuple[str, ...], counts: list[dict[str, str | int]] | None = None
) -> dg.AssetCheckResult:
    """A check with its sentences and its counts per column; never a cell."""
    metadata: dict[str, Any] = {"found": " ".join(messages) or "nothing"}
    if counts:
        metadata["counts"] = dg.MetadataValue.table([dg.TableRecord(dict(record)) for record in counts])
    return dg.AssetCheckResult(check_name=name, asset_key=asset, passed=passed, metadata=metadata)
