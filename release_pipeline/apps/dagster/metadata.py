"""The one way from evidence to Dagster's metadata: an allow-list with a type and a meaning for each fact.

Everyone with access to Dagster's UI sees all of it. Only facts that are listed here can get there, and figures computed from the
original only where the site allows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from release_pipeline.pipeline.context import StageResult
from release_pipeline.pipeline.release import STAGES
from release_pipeline.policy import Policy
from release_pipeline.rows.checks import Check, round_up

ALLOWED: dict[str, tuple[type, ...]] = {
    "anonymity_k": (int, type(None)),
    "candidate_hash": (str,),
    "cells_blanked": (int,),
    "checks": (int,),
    "classes": (str,),
    "claim": (str,),
    "column_bound": (str,),
    "columns_in_source": (int,),
    "columns_read": (int,),
    "definition": (str,),
    "delta": (str,),
    "epsilon": (float, type(None)),
    "gates": (int,),
    "gates_passed": (int,),
    "k": (int, type(None)),
    "levels": (dict,),
    "looks": (int,),
    "method": (str,),
    "package_hash": (str,),
    "part": (str,),
    "parts": (int,),
    "noise_columns": (int,),
    "policy_hash": (str,),
    "population_spent": (str,),
    "release": (str,),
    "rho": (float,),
    "rows": (int,),
    "rows_dropped": (int,),
    "rows_in": (int,),
    "rows_out": (int,),
    "scope": (str,),
    "series_epsilon": (float, type(None)),
    "series_rho": (float,),
    "share_suppressed": (float,),
    "table_bound": (str,),
    "table_version": (int,),
    "together": (int,),
    "values": (str,),
    "weights": (dict,),
}


def build_metadata(result: StageResult, *, show_internal: bool) -> dict[str, Any]:
    """Return the metadata of a materialization. Raises `ValueError` for a fact that is not allowed, or of another type."""
    metadata: dict[str, Any] = {}
    for name, value in result.facts.items():
        kinds = ALLOWED.get(name)
        if kinds is None or type(value) not in kinds:
            raise ValueError(f"the fact '{name}' ({type(value).__name__}) may not stand in Dagster's metadata")
        if isinstance(value, dict):
            metadata[name] = ", ".join(f"{part} {figure}" for part, figure in value.items())
        elif value is not None:
            metadata[name] = value
    if show_internal:
        if result.warnings:
            metadata["internal/notes"] = dg.MetadataValue.md("\n".join(f"- {word}" for word in result.warnings))
        metadata |= {f"internal/{name}": value for name, value in _flatten(result.internal)}
    return metadata


# The columns of a release, as the policy shows them to everyone: their types, and the treatment of each.


TYPES = {"number": "double", "whole number": "bigint", "text": "varchar", "date": "date", "moment": "timestamp"}


def describe_column(policy: Policy, name: str) -> str:
    """Return a column's description: its type and its treatment."""
    column = policy.columns[name]
    if policy.protect.is_synthetic:
        return f"{column.role}; synthetic: made of noisy counts of all columns"
    method = f"{policy.protect.method}, k = {policy.protect.k}" if policy.protect.k else policy.protect.method
    mask = f"replaced by centroids of {method}"
    if name in policy.column_epsilon:
        mask = f"noise by {method}, {policy.unit} {policy.column_epsilon[name]}"
    coarser = "made coarser: " if name in policy.generalised_columns else ""
    blocks = f"; swapped within {policy.block_size} or more alike records" if name in policy.swapped_columns else ""
    return f"{column.role}; {coarser}{column.describe(mask)}{blocks}"


def column_metadata(policy: Policy, previous: dg.AssetKey) -> dict[str, Any]:
    """Return the released columns, the treatment of each, and its source column in the previous asset."""
    columns = policy.released_columns
    deps = {name: [dg.TableColumnDep(asset_key=previous, column_name=name)] for name in columns}
    return {
        "dagster/column_schema": dg.TableSchema(
            columns=[
                dg.TableColumn(name, type=TYPES[column.released_as], description=describe_column(policy, name))
                for name, column in columns.items()
            ]
        ),
        "dagster/column_lineage": dg.TableColumnLineage(deps_by_column=deps),
    }


def column_origins(policy: Policy) -> Any:
    """Return each released column's origin and the stages that it passed, for an auditor.

    Equal to the declared column lineage, which Dagster records but draws only in its commercial UI.
    """
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "released": name,
                    "from source column": name,
                    "done": describe_column(policy, name),
                    "passed": " > ".join(
                        stage for stage in STAGES if stage != "microaggregated" or name not in policy.kept_columns
                    ),
                }
            )
            for name in policy.released_columns
        ]
    )


def _flatten(figures: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    flat: list[tuple[str, float]] = []
    for name, value in figures.items():
        if isinstance(value, Mapping):
            flat += _flatten(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):  # the report has the rest: curves and matrices
            flat.append((f"{prefix}{name}", float(value)))
    return flat


# What Dagster's UI shows of checks: sentences and counts, never a cell.


def count_record(check: Check) -> dict[str, str | int]:
    """Return the row that the UI shows of one check: its column, what was counted, and the count, rounded up to tens."""
    return {"column": check.column, "fact": check.fact, "up_to": round_up(check.count)}


def check_result(
    name: str, asset: dg.AssetKey, passed: bool, messages: tuple[str, ...], counts: list[dict[str, str | int]] | None = None
) -> dg.AssetCheckResult:
    """Return a check with its sentences and its counts per column; never a cell."""
    metadata: dict[str, Any] = {"found": " ".join(messages) or "nothing"}
    if counts:
        metadata["counts"] = dg.MetadataValue.table([dg.TableRecord(dict(record)) for record in counts])
    return dg.AssetCheckResult(check_name=name, asset_key=asset, passed=passed, metadata=metadata)
