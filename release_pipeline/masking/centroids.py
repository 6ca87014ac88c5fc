"""Noise on the exact statistics of one column, spread over its records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.audit.audit import Streams, audit_table
from release_pipeline.audit.compared import Compared
from release_pipeline.audit.gates import Gate, Groups
from release_pipeline.audit.subgroups import Served, read_served
from release_pipeline.masking.strategy import (
    OF_COLUMN,
    RECORD,
    SUPPRESSION,
    Contexts,
    Figures,
    Grouped,
    Numbers,
    Progress,
    Suppressed,
    describe_scales,
)
from release_pipeline.mechanisms.basis.figures import percent
from release_pipeline.mechanisms.columns.methods import Statistics, add_noise, find_public_scale, find_variance
from release_pipeline.mechanisms.noise import Context, noise_stream, shuffled_positions
from release_pipeline.policy import Policy
from release_pipeline.policy.file.published import may_be_blanked
from release_pipeline.policy.file.sections import Suppress
from release_pipeline.rows.columns import AnyTable, ColumnTable, Read
from release_pipeline.rows.suppress import SuppressedTable, suppress_table


def mask(exact: Statistics, *, secret: bytes, context: Sequence[Context], clamp: bool = True) -> npt.NDArray[np.float64]:
    """The released value of each record, in record order: inside the domain, or with `clamp=False` where the noise put it."""
    released = add_noise(exact, clamp=clamp, secret=secret, context=context)
    return released if exact.are_records else released[exact.cluster]


# What the methods have in common that replace a record by the centroid of its cluster: from stored
# statistics to a masked table.


STATISTICS = ("size", "statistic", "scale")


@dataclass(frozen=True, slots=True)
class CentroidStrategy:
    """The second half of a strategy: noise, suppression and audit. The tables of the first half are `membership`, and what a
    value of each cluster is made of: here `statistics`, a row per cluster and column."""

    policy: Policy
    suppression_reads: ClassVar[tuple[str, ...]] = ()
    makes: ClassVar[tuple[str, ...]] = ("membership", "statistics")
    measures: ClassVar[tuple[str, ...]] = ()

    def cluster_column(self, name: str) -> str:
        """The column of `membership` that says in which cluster of a noise column a record is: each has clusters of its own."""
        return name

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """What `expect_columns` does, and what will be suppressed."""
        expected = self.expect_columns(read, secret=secret, progress=progress)
        return expected | self.forecast_suppression(read)

    def expect_columns(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """The figures of each noise column, simulated; the same data and method always give the same, so that trying again
        until a gate passes is no use."""
        expected: Figures = {}
        served = read_served(self.policy, read)
        for name in self.policy.noise_columns:
            progress(f"expecting the error of {name}")
            expected[name] = self.expect_column(name, read, secret, served)
        return expected

    @abstractmethod
    def expect_column(self, name: str, read: Read, secret: bytes, served: Served) -> dict[str, Any]:
        """The figures of one noise column."""

    @abstractmethod
    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """`membership` and `statistics`."""

    def judge(self, expected: Figures) -> list[Gate]:
        """The limit on suppression, where it is known what will be suppressed."""
        rule, forecast = self.policy.suppress, expected.get(SUPPRESSION)
        if forecast is None or not isinstance(rule, Suppress):
            return []
        gates = [Gate("suppression of small groups", forecast["share"], float(rule.at_most))]
        if forecast.get("left") == 0:
            gates.append(Gate("number of records that suppression leaves", 0, 1, at_least=True))
        return gates

    def forecast_suppression(self, read: Read) -> Figures:
        """The share of records in small groups, where all that makes groups is kept: it depends on no noise, so that it is known
        before budget is spent."""
        quasi = self.policy.released_quasi
        if not isinstance(self.policy.suppress, Suppress) or any(name not in self.policy.kept_columns for name in quasi):
            return {}
        if not quasi:
            return {}
        done = self.suppress(read, _read_columns(read, quasi))
        return {SUPPRESSION: {"share": done.share} | ({} if done.table.num_rows else {"left": 0})}

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """Nothing but the values that are released."""
        return {}

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> ColumnTable:
        """A value for each cluster, spread over its records."""
        columns = self.policy.released_columns
        order = shuffled_positions(self.count_records(read), noise_stream(secret, *context, "shuffle"))

        def make(name: str) -> Any:
            if name == RECORD:
                return pa.array(order)
            if name in self.policy.noise_columns:
                progress(f"masking {name}")
                masked = self.mask_column(name, read, secret=secret, context=(*context, name))
                return pa.array(masked[order])
            return read("records", [name]).column(0).take(pa.array(order))

        return ColumnTable((RECORD, *columns), len(order), make)

    def count_records(self, read: Read) -> int:
        """How many records were grouped."""
        return read("membership", [self.cluster_column(next(iter(self.policy.noise_columns)))]).num_rows

    def mask_column(self, name: str, read: Read, *, secret: bytes, context: Contexts) -> Numbers:
        """The released value of each record: noise on the statistics of its cluster."""
        exact = self.find_exact(name, read, secret=secret, context=context)
        return mask(exact, secret=secret, context=context, clamp=self.policy.clamps)

    def find_exact(self, name: str, read: Read, *, secret: bytes, context: Contexts) -> Statistics:
        """The exact statistics of a noise column, as they were stored."""
        mine = read("statistics", STATISTICS, where=(OF_COLUMN, name))
        return self._stored(name, mine, self._read_clusters(name, read))

    def _read_clusters(self, name: str, read: Read) -> npt.NDArray[np.intp]:
        """The cluster of each record in a noise column."""
        return read("membership", [self.cluster_column(name)]).column(0).to_numpy().astype(np.intp, copy=False)

    def suppress(self, read: Read, masked: AnyTable) -> Suppressed:
        """Without small groups of released quasi-identifiers: cells of kept ones are blanked, or records dropped."""
        rule = self.policy.suppress if isinstance(self.policy.suppress, Suppress) else None
        done = self.suppress_groups(masked)
        refusal = ""
        if rule is not None and done.records > rule.at_most * masked.num_rows:
            refusal = f"{done.share:.1%} of the records would have to be suppressed, and at most {percent(rule.at_most)} may be."
        return Suppressed(done.table, done.cells, done.dropped, done.share, done.anonymity, refusal)

    def suppress_groups(self, masked: AnyTable) -> SuppressedTable:
        """The table without small groups of released quasi-identifiers, whatever share of it that takes."""
        quasi, kept = self.policy.released_quasi, self.policy.kept_columns
        blanked = [name for name in quasi if name in kept and may_be_blanked(kept[name], self.policy.suppress)]
        fixed = [name for name in quasi if name not in blanked]
        return suppress_table(masked, blanked, fixed=fixed, below=self.policy.groups_below)

    def compare(self, read: Read, released: AnyTable) -> Compared:
        """A released table next to its records. No attacker has another list of quasi-identifiers that are replaced by
        centroids."""
        quasi, kept = self.policy.released_quasi, self.policy.kept_columns
        is_kept = all(name in kept for name in quasi)
        everybody = _read_columns(read, quasi) if quasi and is_kept else released
        own = released.column(RECORD).to_numpy()
        return Compared(self.policy, read, released, own, everybody)

    def audit(
        self, read: Read, released: AnyTable, *, groups: Groups | None, streams: Streams, progress: Progress
    ) -> dict[str, Any]:
        """What `audit_table` measures."""
        return audit_table(self.compare(read, released), groups=groups, streams=streams, progress=progress)

    def _stored(self, name: str, mine: pa.Table, cluster: npt.NDArray[np.intp]) -> Statistics:
        """The statistics of one column as `group` made them: a retry must not calibrate again (methods.md section 2)."""
        column, scale = self.policy.noise_columns[name], mine.column("scale").to_numpy()
        grid = column.exact_grid
        return Statistics(
            grid=grid,
            claim=None,
            consistency=self.policy.consistency,
            cluster=cluster,
            size=mine.column("size").to_numpy(),
            statistic=mine.column("statistic").to_numpy(),
            scale=scale,
            loss={},
            atoms=column.exact_atoms,
            public_scale=find_public_scale(self.policy.claim, scale),
            variance=None
            if (share := self.policy.column_epsilon.get(name)) is None
            else find_variance(self.policy.claim, grid, share),
            is_noisy=self.policy.method.is_noisy,
        )


def _read_columns(read: Read, names: Sequence[str]) -> ColumnTable:
    """Some columns of the records, each read when it is asked for."""
    return ColumnTable(tuple(names), read("records", [names[0]]).num_rows, lambda name: read("records", [name]).column(0))


def statistics_table(name: str, exact: Statistics) -> pa.Table:
    """The exact statistics of one column, a row per cluster."""
    return pa.table(
        {
            OF_COLUMN: pa.repeat(name, len(exact.size)),
            "size": pa.array(exact.size),
            "statistic": pa.array(exact.statistic),
            "scale": pa.array(exact.scale),
        }
    )


def collect_evidence(exact: Statistics) -> dict[str, Any]:
    """Internal figures of one column: none may be published, the exact losses least of all. Scales are in the column's own units,
    of the cluster sums."""
    figures: dict[str, Any] = {"records": int(exact.size.sum()), "clusters": len(exact.size)}
    if exact.claim is not None:
        scale = exact.scale if exact.public_scale is None else exact.scale[:1]  # all are the same
        figures["epsilon"] = str(exact.claim.epsilon)
        figures["clusters_without_noise"] = int(np.count_nonzero(scale == 0))
        figures |= describe_scales(scale, float(exact.grid.step))
    return figures | {f"loss_{scope}": loss for scope, loss in exact.loss.items()}
