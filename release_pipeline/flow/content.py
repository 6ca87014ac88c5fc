"""How results are kept in the vault between stages, and the hash of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from release_pipeline.policy import Policy
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.methods import DEFINITION, Claim, Statistics
from release_pipeline.store.vault import ReleaseRoom

_compute: Any = pyarrow.compute  # its functions are made at run time


def statistics_table(name: str, exact: Statistics) -> pa.Table:
    """The exact statistics of one column, a row per cluster."""
    return pa.table(
        {
            "column_name": pa.repeat(name, len(exact.size)),
            "size": pa.array(exact.size),
            "statistic": pa.array(exact.statistic),
            "scale": pa.array(exact.scale),
        }
    )


def stored_statistics(
    policy: Policy, name: str, statistics: pa.Table, membership: pa.Table, evidence: Mapping[str, Any]
) -> Statistics:
    """The statistics of one column as `microaggregate` stored them: a retry must not calibrate anew (methods.md section 2)."""
    protect = policy.protect
    mine = statistics.filter(_compute.equal(statistics.column("column_name"), name))
    return Statistics(
        grid=policy.noise_columns[name].exact_grid,
        claim=Claim(DEFINITION[protect.method], policy.column_epsilon[name], protect.scope),
        consistency=choose_consistency(protect.consistency, method=protect.method, scope=protect.scope),
        cluster=membership.column(name).to_numpy().astype(np.intp),
        size=mine.column("size").to_numpy(),
        statistic=mine.column("statistic").to_numpy(),
        scale=mine.column("scale").to_numpy(),
        loss={"centroid": evidence["loss_centroid"], "column": evidence["loss_column"]},
    )


def fingerprint(table: pa.Table) -> str:
    """SHA-256 of the content of a table of one column: its type, its entries and where they are missing."""
    column = table.column(0).combine_chunks()
    digest = hashlib.sha256(str(column.type).encode())
    digest.update(column.is_null().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        digest.update(np.ascontiguousarray(column.fill_null(0).to_numpy(zero_copy_only=False)).tobytes())
        return digest.hexdigest()
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.string()).cast(pa.binary())
    texts = column.fill_null(b"").cast(pa.large_binary())
    for buffer in texts.buffers()[1:]:
        digest.update(buffer or b"")
    return digest.hexdigest()


def content_of(room: ReleaseRoom, table: str) -> dict[str, str]:
    """The hash of each column of a table in the vault."""
    return {name: fingerprint(room.read(table, [name])) for name in sorted(room.columns(table))}
