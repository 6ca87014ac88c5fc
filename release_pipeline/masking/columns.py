"""Column by column: each noise column has separate rank clusters and noise; small groups of kept columns are suppressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from release_pipeline.audit.subgroups import ROUNDS, Served, expect_served, is_limited, read_served
from release_pipeline.masking.centroids import CentroidStrategy, collect_evidence, mask, statistics_table
from release_pipeline.masking.microaggregate import Deviations, expect_column, microaggregate, microaggregate_together
from release_pipeline.masking.strategy import SUPPRESSION, Contexts, Figures, Grouped, Numbers, Progress
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.columns.methods import Statistics, simulate_noise
from release_pipeline.policy.file.sections import Suppress
from release_pipeline.policy.values.scalars import OURS
from release_pipeline.rows.columns import AnyTable, Read, filter_rows
from release_pipeline.rows.counted import tally_column
from release_pipeline.rows.suppress import SuppressedTable, find_large


@dataclass(frozen=True, slots=True)
class ColumnStrategy(CentroidStrategy):
    """dp-um, idp-ls, idp-cbls."""

    def expect_column(self, name: str, read: Read, secret: bytes, served: Served) -> dict[str, Any]:
        counted, limited = tally_column(name, self.policy.noise_columns[name], read), is_limited(name, self.policy)
        values = self._read_numbers(name, read) if limited or self.policy.protect.k is None else counted
        exact = microaggregate(self.policy, name, values, secret=secret, context=())
        column = Tally(exact.grid.values_of(counted.entries), counted.ends)
        if exact.are_records:
            deviations = Deviations.of_records(exact.grid.values_of(exact.statistic), exact.cluster, exact.size)
        else:
            deviations = Deviations.of_ranks(column, exact.size)
        how: dict[str, Any] = {"secret": secret, "clamp": self.policy.clamps}
        error, shape = expect_column(exact, column, deviations, context=(name,), **how)
        figures: dict[str, Any] = error.to_json() | shape.to_json()
        if not limited:
            return figures
        simulated = simulate_noise(exact, ROUNDS, context=(name, "served"), **how)
        seen = exact.grid.snap(self._read_numbers(name, read))
        return figures | expect_served(name, self.policy, simulated, seen, exact.cluster, served)

    def _read_numbers(self, name: str, read: Read) -> Numbers:
        return read("records", [name]).column(name).to_numpy()

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """`membership`, the cluster of each record in each column, and `statistics`: exact sums and scales of every cluster."""
        membership: dict[str, pa.Array] = {}
        statistics: list[pa.Table] = []
        evidence: Figures = {}
        for name in self.policy.noise_columns:
            progress(f"clustering {name}")
            exact = microaggregate(self.policy, name, self._read_numbers(name, read), secret=secret, context=context)
            membership[name] = pa.array(exact.cluster)
            statistics.append(statistics_table(name, exact))
            evidence[name] = collect_evidence(exact)
        return Grouped({"membership": pa.table(membership), "statistics": pa.concat_tables(statistics)}, evidence)


@dataclass(frozen=True, slots=True)
class RecordStrategy(ColumnStrategy):
    """laplace: every record is a separate cluster, whose sum is its value on the grid, and all scales are the same function of
    declared facts. So no table of clusters is stored: `mask` finds in the records what `group` found, on every machine."""

    makes: ClassVar[tuple[str, ...]] = ()

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """No tables: that the scales are enough, by the accountant."""
        evidence: Figures = {}
        for name in self.policy.noise_columns:
            progress(f"finding the scale of {name}")
            evidence[name] = collect_evidence(self.find_exact(name, read, secret=secret, context=context))
        return Grouped({}, evidence)

    def spell_out(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """The tables of the clusters, as other methods store them: for attacks that look at the method from outside."""
        return ColumnStrategy.group(self, read, secret=secret, context=context, progress=progress).tables

    def count_records(self, read: Read) -> int:
        """By the records: there is nothing else."""
        return read("records", [next(iter(self.policy.noise_columns))]).num_rows

    def find_exact(self, name: str, read: Read, *, secret: bytes, context: Contexts) -> Statistics:
        """The exact statistics of a noise column, as the records have them."""
        return microaggregate(self.policy, name, self._read_numbers(name, read), secret=secret, context=context)


# All noise columns together: a record is replaced by the centroid of one cluster, a vector.


CLUSTER = f"{OURS}_cluster"  # the cluster of a record, never released


@dataclass(frozen=True, slots=True)
class VectorStrategy(CentroidStrategy):
    """Clusters of all noise columns together, with noise: dp-mdav."""

    def cluster_column(self, name: str) -> str:
        """All noise columns have the same clusters."""
        return CLUSTER

    def expect_columns(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """The figures of all noise columns, simulated; the same data and method always give the same."""
        progress("expecting the errors")
        return self._expect(self._cluster(read, secret=secret, context=(), progress=progress), read, secret)

    def _expect(self, made: Mapping[str, Statistics], read: Read, secret: bytes) -> Figures:
        expected: Figures = {}
        served = read_served(self.policy, read)
        for name, exact in made.items():
            numbers = read("records", [name]).column(name).to_numpy()
            seen = exact.grid.snap(numbers)
            deviations = Deviations.of_records(seen, exact.cluster, exact.size)
            error, shape = expect_column(exact, Tally.of(seen), deviations, secret=secret, context=(name,))
            expected[name] = error.to_json() | shape.to_json()
            simulated = simulate_noise(exact, ROUNDS, secret=secret, context=(name, "served"))
            expected[name] |= expect_served(name, self.policy, simulated, seen, exact.cluster, served)
        return expected

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """`membership`, the cluster of each record, and `statistics`: exact sums and scales of every cluster and column."""
        progress("clustering all columns together")
        made = self._cluster(read, secret=secret, context=context, progress=progress)
        membership = next(iter(made.values())).cluster.astype(np.int32)
        tables = {
            "membership": pa.table({CLUSTER: pa.array(membership)}),
            "statistics": pa.concat_tables([statistics_table(name, exact) for name, exact in made.items()]),
        }
        return Grouped(tables, {name: collect_evidence(exact) for name, exact in made.items()})

    def _cluster(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> dict[str, Statistics]:
        def numbers(name: str) -> np.ndarray:
            return read("records", [name]).column(name).to_numpy()

        return microaggregate_together(self.policy, numbers, secret=secret, context=context, progress=progress)


@dataclass(frozen=True, slots=True)
class MdavStrategy(VectorStrategy):
    """The same without noise: mdav. What will be suppressed is known before the charge, for nothing is drawn."""

    def suppress_groups(self, masked: AnyTable) -> SuppressedTable:
        """As with noise. Where fewer than k records of a cluster are left, the others go too, since k is promised of the released
        table. That may make other groups small, so suppression begins again without them."""
        names, k = list(self.policy.noise_columns), self.policy.protect.k or 1
        left = masked
        while left.num_rows:
            done = VectorStrategy.suppress_groups(self, left)
            if not done.dropped or (is_left := find_large(left, done.table, names, at_least=k)).all():
                gone = masked.num_rows - left.num_rows
                records = gone + done.records
                return replace(done, dropped=gone + done.dropped, records=records, share=records / masked.num_rows)
            left = filter_rows(left, is_left, int(is_left.sum()))
        return SuppressedTable(left, 0, masked.num_rows, masked.num_rows, 1.0, None)

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """As with noise, and the share of records in small groups."""
        progress("expecting the errors")
        made = self._cluster(read, secret=secret, context=(), progress=progress)
        expected = self._expect(made, read, secret)
        if isinstance(self.policy.suppress, Suppress):
            values = {name: pa.array(mask(exact, secret=secret, context=(name,))) for name, exact in made.items()}
            kept = {name: read("records", [name]).column(0) for name in self.policy.kept_columns}
            expected[SUPPRESSION] = {"share": self.suppress(read, pa.table(values | kept)).share}
        return expected
