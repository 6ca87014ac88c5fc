"""Counts by value: noisy counts of cells are all that is measured of a column, and every rank is given what explains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute

from release_pipeline.audit.columns import list_points, summarise_shapes
from release_pipeline.audit.subgroups import Served, expect_served, is_limited
from release_pipeline.masking.centroids import CentroidStrategy
from release_pipeline.masking.microaggregate import count_rounds, expect_ranks
from release_pipeline.masking.strategy import OF_COLUMN, Contexts, Figures, Grouped, Numbers, Progress
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value import ByValue, Stage
from release_pipeline.mechanisms.by_value.noise_laws import name_noise, read_noise
from release_pipeline.mechanisms.clusters.rank import cut_ranks, rank_records
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.policy.families.columns import ByValueFamily
from release_pipeline.policy.file.options import ByValueOptions
from release_pipeline.rows.columns import Read, find_entries
from release_pipeline.rows.counted import tally_column

_compute: Any = pyarrow.compute  # its functions are made at run time

COUNTS = "counts"
_FAMILY = ByValueFamily(ByValueOptions)


@dataclass(frozen=True, slots=True)
class ByValueStrategy(CentroidStrategy):
    """dp-cdf. `membership` has the group of k ranks of each record in each column; `counts` a row for each cell that was
    counted, and nothing else of the data."""

    makes: ClassVar[tuple[str, ...]] = ("membership",)
    measures: ClassVar[tuple[str, ...]] = (COUNTS,)

    def expect_column(self, name: str, read: Read, secret: bytes, served: Served) -> dict[str, Any]:
        declared, counted = self._declare(name), self._tally(name, read)
        records, high = len(counted), float(declared.grid.hi)
        column = Tally(declared.coded.values_of(counted.entries), counted.ends)
        stream = noise_stream(secret, name, "simulated counts")
        rounds = range(count_rounds(records // declared.k))
        simulated = [declared.release(declared.measure(counted.count_within, records, stream), records) for _ in rounds]
        figures = expect_ranks(column, simulated, high).to_json()
        figures |= summarise_shapes(column, simulated, list_points(self.policy.noise_columns[name])).to_json()
        if not is_limited(name, self.policy):
            return figures
        units = self._units(name, read)
        start = cut_ranks(records, declared.k)[0]
        valued = (_blank(released.at(start), high) for released in simulated)
        numbers = _blank(declared.coded.values_of(units), high)
        return figures | expect_served(name, self.policy, valued, numbers, rank_records(units, declared.k)[1], served)

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """Who is in which group of k ranks, ties in an order that only the secret knows."""
        membership: dict[str, pa.Array] = {}
        evidence: Figures = {}
        for name in self.policy.noise_columns:
            progress(f"ranking {name}")
            ties = noise_stream(secret, *context, name, "ties")
            units, k = self._units(name, read), self._declare(name).k
            membership[name] = pa.array(rank_records(units, k, ties)[1])
            epsilon = str(self.policy.column_epsilon[name])
            evidence[name] = {"records": len(units), "clusters": len(units) // k, "epsilon": epsilon}
        return Grouped({"membership": pa.table(membership)} if membership else {}, evidence)

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """`counts`: the noisy counts of every column, stage by stage."""
        tables: list[pa.Table] = []
        for name in self.policy.noise_columns:
            progress(f"counting {name}")
            units = self._tally(name, read)
            stream = noise_stream(secret, *context, name, "counts")
            tables.append(counts_table(name, self._declare(name).measure(units.count_within, len(units), stream)))
        return {COUNTS: pa.concat_tables(tables)}

    def mask_column(self, name: str, read: Read, *, secret: bytes, context: Contexts) -> Numbers:
        """What its group of ranks is given by the noisy counts: no noise is drawn here."""
        cluster = self._read_clusters(name, read)
        declared, records = self._declare(name), len(cluster)
        released = declared.release(read_stages(read(COUNTS, None), name), records)
        return released.at(cut_ranks(records, declared.k)[0])[cluster]

    def _declare(self, name: str) -> ByValue:
        return _FAMILY.declare(self.policy, name)

    def _tally(self, name: str, read: Read) -> Tally:
        return tally_column(name, self.policy.noise_columns[name], read)

    def _units(self, name: str, read: Read) -> IntArray:
        return find_entries(self.policy.noise_columns[name], read("records", [name]).column(name))


def _blank(values: Numbers, high: float) -> Numbers:
    """Values, and NaN for points above `high`, which stand for none."""
    return np.where(values > high, np.nan, values)


def counts_table(name: str, stages: Sequence[Stage]) -> pa.Table:
    """The noisy counts of one column, a row per cell: its first and its last grid unit."""

    def rows(stage: int, counted: Stage) -> dict[str, Any]:
        count = len(counted.counts)
        return {
            OF_COLUMN: pa.repeat(name, count),
            "stage": pa.array(np.full(count, stage, dtype=np.int64)),
            "first": pa.array(counted.edges[:-1]),
            "last": pa.array(counted.edges[1:] - 1),
            "count": pa.array(counted.counts),
            "noise": pa.repeat(name_noise(counted.noise), count),
        }

    return pa.concat_tables([pa.table(rows(number, one)) for number, one in enumerate(stages, 1)])


def read_stages(counts: pa.Table, name: str) -> list[Stage]:
    """The stages of a column, as `counts_table` had them."""
    mine = counts.filter(_compute.equal(counts.column(OF_COLUMN), name))
    stages: list[Stage] = []
    number = mine.column("stage").to_numpy()
    for stage in range(1, int(number.max(initial=0)) + 1):
        rows = mine.filter(pa.array(number == stage))
        edges = np.append(rows.column("first").to_numpy(), rows.column("last").to_numpy()[-1] + 1)
        stages.append(Stage(edges, rows.column("count").to_numpy(), read_noise(rows.column("noise")[0].as_py())))
    return stages
