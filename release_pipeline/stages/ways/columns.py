"""Column by column: each noise column has rank clusters and noise of its own; small groups of kept columns are suppressed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute

from release_pipeline.policy import Policy
from release_pipeline.policy.model import NoiseColumn, Protect, Suppress
from release_pipeline.policy.plan import percent
from release_pipeline.privacy.methods import Claim, Statistics
from release_pipeline.privacy.noise import NoiseStream, noise_stream, shuffled_positions
from release_pipeline.stages.audit import Gate, audit_columns
from release_pipeline.stages.mask import mask
from release_pipeline.stages.microaggregate import expect_error, microaggregate
from release_pipeline.stages.suppress import suppress_table
from release_pipeline.stages.ways.way import RECORD, Contexts, Figures, Grouped, Progress, Read, Suppressed, describe_scales

_compute: Any = pyarrow.compute  # its functions are made at run time


@dataclass(frozen=True, slots=True)
class ColumnWay:
    """laplace, dp-um, idp-ls, idp-cbls."""

    policy: Policy
    protect: Protect
    suppression_reads: ClassVar[tuple[str, ...]] = ()

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """Simulated, with the same data and method always alike, so that nobody tries until a gate passes."""
        expected: Figures = {}
        for name in self.policy.noise_columns:
            progress(f"expecting the error of {name}")
            numbers = read("records", [name]).column(name).to_numpy()
            exact = microaggregate(self.policy, name, numbers, secret=secret, context=())
            expected[name] = {"error": expect_error(exact, numbers, secret=secret, context=(name,))}
        return expected

    def judge(self, expected: Figures) -> list[Gate]:
        """Nothing beyond the gates on errors: what small groups cost does not depend on noise."""
        return []

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """`membership`, the cluster of each record in each column, and `statistics`: exact sums and scales of every cluster."""
        membership: dict[str, Any] = {}
        parts: list[pa.Table] = []
        evidence: Figures = {}
        for name in self.policy.noise_columns:
            progress(f"clustering {name}")
            numbers = read("records", [name]).column(name).to_numpy()
            exact = microaggregate(self.policy, name, numbers, secret=secret, context=context)
            membership[name] = pa.array(exact.cluster.astype(np.int32))
            parts.append(_statistics_table(name, exact))
            evidence[name] = _collect_evidence(exact)
        return Grouped({"membership": pa.table(membership), "statistics": pa.concat_tables(parts)}, evidence)

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> pa.Table:
        """Noise on the stored statistics, spread over the records of each cluster."""
        statistics, membership = read("statistics", None), read("membership", None)
        order = shuffled_positions(membership.num_rows, noise_stream(secret, *context, "shuffle"))
        columns: dict[str, Any] = {RECORD: pa.array(order)}
        for name, column in self.policy.released_columns.items():
            if isinstance(column, NoiseColumn):
                progress(f"masking {name}")
                exact = self._stored(name, statistics, membership)
                columns[name] = pa.array(mask(exact, secret=secret, context=(*context, name))[order])
            else:
                columns[name] = read("records", [name]).column(0).combine_chunks().take(pa.array(order))
        return pa.table(columns)

    def suppress(self, read: Read, masked: pa.Table) -> Suppressed:
        """Without small groups of kept quasi-identifiers."""
        rule = self.policy.suppress if isinstance(self.policy.suppress, Suppress) else None
        done = suppress_table(masked, self.policy.released_quasi, below=self.policy.groups_below)
        refusal = ""
        if rule is not None and done.records > rule.at_most * masked.num_rows:
            refusal = f"{done.share:.1%} of the records would have to be suppressed, and at most {percent(rule.at_most)} may be."
        return Suppressed(done.table, done.cells, done.dropped, done.share, done.anonymity, refusal)

    def audit(self, read: Read, released: pa.Table, *, stream: NoiseStream) -> dict[str, Any]:
        """Errors against the original, and how many records can be linked to it."""
        names = list(self.policy.noise_columns)
        own = released.column(RECORD).to_numpy()
        return audit_columns(read("records", names), released.select(names), own, stream=stream)

    def _stored(self, name: str, statistics: pa.Table, membership: pa.Table) -> Statistics:
        """The statistics of one column as `group` made them: a retry must not calibrate anew (methods.md section 2)."""
        mine = statistics.filter(_compute.equal(statistics.column("column_name"), name))
        return Statistics(
            grid=self.policy.noise_columns[name].exact_grid,
            claim=Claim(self.policy.definition, self.policy.column_epsilon[name], self.protect.scope),
            consistency=self.policy.consistency,
            cluster=membership.column(name).to_numpy().astype(np.intp),
            size=mine.column("size").to_numpy(),
            statistic=mine.column("statistic").to_numpy(),
            scale=mine.column("scale").to_numpy(),
            loss={},
        )


def _statistics_table(name: str, exact: Statistics) -> pa.Table:
    """The exact statistics of one column, a row per cluster."""
    return pa.table(
        {
            "column_name": pa.repeat(name, len(exact.size)),
            "size": pa.array(exact.size),
            "statistic": pa.array(exact.statistic),
            "scale": pa.array(exact.scale),
        }
    )


def _collect_evidence(exact: Statistics) -> dict[str, Any]:
    """Internal figures of one column: none may be published, the exact losses least of all. Scales are in the column's own units,
    of the cluster sums."""
    return {
        "epsilon": str(exact.claim.epsilon),
        "records": int(exact.size.sum()),
        "clusters": len(exact.size),
        "clusters_without_noise": int(np.count_nonzero(exact.scale == 0)),
        **describe_scales(exact.scale, float(exact.grid.step)),
        "loss_centroid": exact.loss["centroid"],
        "loss_column": exact.loss["column"],
    }
