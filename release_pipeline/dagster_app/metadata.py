"""The one way from evidence to Dagster's metadata: an allow-list with a type and a meaning for each fact.

Whoever may look at Dagster's UI sees all of it. A fact that is not listed here cannot get there, and figures computed against
the original only where the site says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from release_pipeline.flow.release import STAGES, StageResult
from release_pipeline.policy import Policy
from release_pipeline.policy.derivations import list_leaves
from release_pipeline.policy.kinds import CalibrateColumn, GeneraliseColumn, NoiseColumn, RecomputeColumn, ReleasedColumn

TYPES = {"number": "double", "whole number": "bigint", "text": "varchar", "date": "date", "moment": "timestamp"}
ALLOWED: dict[str, tuple[type, ...]] = {
    "anonymity_k": (int, type(None)),
    "arrays": (str,),
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
        if result.words:
            metadata["internal/notes"] = dg.MetadataValue.md("\n".join(f"- {word}" for word in result.words))
        metadata |= {f"internal/{name}": value for name, value in _flatten(result.internal)}
    return metadata


def column_metadata(policy: Policy, previous: dg.AssetKey, *, stage: str) -> dict[str, Any]:
    """The released columns, what was done to each, and which columns of the previous asset each comes from. From the candidate on
    there are recomputed ones, which come of those that they are made of."""
    columns = [dg.TableColumn(name, type=_type(column), description=_words(policy, name)) for name, column in _released(policy)]
    deps = {name: [dg.TableColumnDep(asset_key=previous, column_name=name)] for name, _ in _released(policy)}
    for name in policy.recomputed_columns if stage in ("candidate", "published") else ():
        how = policy.derive[name]
        kind = TYPES["text" if how.is_text else "number"]
        columns.append(dg.TableColumn(name, type=kind, description=_words(policy, name)))
        leaves = list_leaves(policy.derive, policy.recomputed_columns, name)
        origins = leaves if stage == "candidate" else [name]
        deps[name] = [dg.TableColumnDep(asset_key=previous, column_name=column) for column in origins]
    for name in policy.calibrated_columns if stage in ("candidate", "published") else ():
        columns.append(dg.TableColumn(name, type=TYPES["number"], description=_words(policy, name)))
        deps[name] = [dg.TableColumnDep(asset_key=previous, column_name=name)]
    return {
        "dagster/column_schema": dg.TableSchema(columns=columns),
        "dagster/column_lineage": dg.TableColumnLineage(deps_by_column=deps),
    }


def column_origins(policy: Policy) -> Any:
    """For an auditor: where each released column comes from, and what it passed on the way.

    The same as the declared column lineage, which Dagster records, and only its commercial UI draws.
    """
    records: list[dg.TableRecord] = []
    for name, _ in _released(policy):
        passed = [stage for stage in STAGES if stage != "microaggregated" or name not in policy.kept_columns]
        row = {"released": name, "from source column": name, "done": _words(policy, name), "passed": " > ".join(passed)}
        records.append(dg.TableRecord(row))
    for name in policy.recomputed_columns:
        leaves = ", ".join(list_leaves(policy.derive, policy.recomputed_columns, name))
        records.append(
            dg.TableRecord({"released": name, "from source column": leaves, "done": _words(policy, name), "passed": "candidate"})
        )
    for name, column in policy.calibrated_columns.items():
        row = {"released": name, "from source column": ", ".join(column.to), "done": _words(policy, name), "passed": "candidate"}
        records.append(dg.TableRecord(row))
    return dg.MetadataValue.table(records)


def _released(policy: Policy) -> list[tuple[str, ReleasedColumn]]:
    return list(policy.released_columns.items())


def _type(column: ReleasedColumn) -> str:
    return TYPES[column.released_as]


def _words(policy: Policy, name: str) -> str:
    column = policy.columns[name]
    if policy.protect.is_synthetic:
        return f"{column.role}; synthetic: made of noisy counts of all columns"
    if isinstance(column, NoiseColumn):
        k = f", k = {policy.protect.k}" if policy.protect.k else ""
        if name not in policy.column_epsilon:
            return f"{column.role}; replaced by centroids of {policy.protect.method}{k}"
        return f"{column.role}; noise by {policy.protect.method}{k}, {policy.unit} {policy.column_epsilon[name]}"
    if isinstance(column, CalibrateColumn):
        return f"{column.role}; made of the published tables {', '.join(column.to)} and the released rows"
    if isinstance(column, RecomputeColumn):
        return f"{column.role}; made of what is published: {'; '.join(policy.derive[name].preview())}"
    if isinstance(column, GeneraliseColumn):
        return f"{column.role}; made coarser: {column.hierarchy.words}"
    return f"{column.role}; released as it is"


def _flatten(figures: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    flat: list[tuple[str, float]] = []
    for name, value in figures.items():
        if isinstance(value, Mapping):
            flat += _flatten(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):  # curves, matrices and what there is not: see the report
            flat.append((f"{prefix}{name}", float(value)))
    return flat
