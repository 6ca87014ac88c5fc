"""All noise columns together: a record is replaced by the centroid of one cluster, a vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from release_pipeline.policy.scalars import OURS
from release_pipeline.policy.suppression import Suppress
from release_pipeline.privacy.methods import Statistics, simulate_noise
from release_pipeline.privacy.tally import Tally
from release_pipeline.stages.mask import mask
from release_pipeline.stages.microaggregate import Deviations, expect_column, microaggregate_together
from release_pipeline.stages.served import ROUNDS, expect_served, read_served
from release_pipeline.stages.strategies.centroids import CentroidStrategy, collect_evidence, statistics_table
from release_pipeline.stages.strategies.strategy import SUPPRESSION, Contexts, Figures, Grouped, Progress, Read

CLUSTER = f"{OURS}_cluster"  # the cluster of a record, never released


@dataclass(frozen=True, slots=True)
class VectorStrategy(CentroidStrategy):
    """Clusters of all noise columns together, with noise: dp-mdav."""

    def cluster_column(self, name: str) -> str:
        """All noise columns have the same clusters."""
        return CLUSTER

    def expect_columns(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """Simulated, with the same data and method always alike, so that nobody tries until a gate passes."""
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
