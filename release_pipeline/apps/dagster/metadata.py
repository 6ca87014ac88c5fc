"""The one way from evidence to Dagster's metadata: an allow-list with a type and a meaning for each fact.

Whoever may look at Dagster's UI sees all of it. A fact that is not listed here cannot get there, and figures computed against
the original only where the site says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from release_pipeline.pipeline.context import StageResult
from release_pipeline.pipeline.release import STAGES
from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import GeneraliseColumn, NoiseColumn
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
    "together": (int,),
    "values": (str,),
    "weights": (dict,),
}


def build_metadata(result: StageResult, *, show_internal: bool) -> dict[str, Any]:
    """The metadata of a materialization. Raises `ValueError` for a fact that is not allowed, or of another type."""
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


# The columns of a release, as everybody may know them: type, what is done to each, where it comes
# from. Of the policy alone.


TYPES = {"number": "double", "whole number": "bigint", "text": "varchar", "date": "date", "moment": "timestamp"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a stage's table. `origins`: the columns of the source that it is made of; `passed`: the stages on
    the way."""

    name: str
    type: str
    words: str
    origins: tuple[str, ...]
    passed: tuple[str, ...]


def list_columns(policy: Policy) -> tuple[Column, ...]:
    """The released columns, in their order."""
    return tuple(_list_columns(policy))


def _list_columns(policy: Policy) -> Iterator[Column]:
    for name, column in policy.released_columns.items():
        passed = tuple(each for each in STAGES if each != "microaggregated" or name not in policy.kept_columns)
        yield Column(name, TYPES[column.released_as], describe_column(policy, name), (name,), passed)


def describe_column(policy: Policy, name: str) -> str:
    """What a column is, and what is done to it."""
    column = policy.columns[name]
    if policy.protect.is_synthetic:
        return f"{column.role}; synthetic: made of noisy counts of all columns"
    if isinstance(column, NoiseColumn):
        k = f", k = {policy.protect.k}" if policy.protect.k else ""
        if name not in policy.column_epsilon:
            return f"{column.role}; replaced by centroids of {policy.protect.method}{k}"
        swapped = f", then swapped within blocks of {policy.block_size} or more alike records" if policy.swap is not None else ""
        return f"{column.role}; noise by {policy.protect.method}{k}, {policy.unit} {policy.column_epsilon[name]}{swapped}"
    if isinstance(column, GeneraliseColumn):
        return f"{column.role}; made coarser: {column.hierarchy.words}"
    if name in policy.swapped_columns:
        return f"{column.role}; as it is, swapped within blocks of {policy.block_size} or more alike records"
    return f"{column.role}; released as it is"


def column_metadata(policy: Policy, previous: dg.AssetKey) -> dict[str, Any]:
    """The released columns, what was done to each, and which columns of the previous asset each comes from."""
    columns = list_columns(policy)
    deps = {each.name: [dg.TableColumnDep(asset_key=previous, column_name=name) for name in each.origins] for each in columns}
    return {
        "dagster/column_schema": dg.TableSchema(
            columns=[dg.TableColumn(each.name, type=each.type, description=each.words) for each in columns]
        ),
        "dagster/column_lineage": dg.TableColumnLineage(deps_by_column=deps),
    }


def column_origins(policy: Policy) -> Any:
    """For an auditor: where each released column comes from, and what it passed on the way.

    The same as the declared column lineage, which Dagster records, and only its commercial UI draws.
    """
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "released": each.name,
                    "from source column": ", ".join(each.origins),
                    "done": each.words,
                    "passed": " > ".join(each.passed),
                }
            )
            for each in list_columns(policy)
        ]
    )


def _flatten(figures: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    flat: list[tuple[str, float]] = []
    for name, value in figures.items():
        if isinstance(value, Mapping):
            flat += _flatten(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):  # curves, matrices and what there is not: see the report
            flat.append((f"{prefix}{name}", float(value)))
    return flat


# What Dagster's UI shows of checks: sentences and counts, never a cell.


def count_record(check: Check) -> dict[str, str | int]:
    """The row that the UI shows of one check: its column, what was counted, and how often, rounded up to tens."""
    return {"column": check.column, "fact": check.fact, "up_to": round_up(check.count)}


def check_result(
    name: str, asset: dg.AssetKey, passed: bool, messages: tuple[str, ...], counts: list[dict[str, str | int]] | None = None
) -> dg.AssetCheckResult:
    """A check with its sentences and its counts per column; never a cell."""
    metadata: dict[str, Any] = {"found": " ".join(messages) or "nothing"}
    if counts:
        metadata["counts"] = dg.MetadataValue.table([dg.TableRecord(dict(record)) for record in counts])
    return dg.AssetCheckResult(check_name=name, asset_key=asset, passed=passed, metadata=metadata)
