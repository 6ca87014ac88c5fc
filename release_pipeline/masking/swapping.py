"""Swapping: after any method of single columns, each column's masked values change places within blocks of alike records
(`mechanisms.clusters.mdav`). A method's claim about the list of a column stays true, since the list is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.audit.audit import MODEL_SAMPLE, Streams, attack_without_control, audit_table, predict_targets
from release_pipeline.audit.compared import Compared
from release_pipeline.audit.gates import OF_BLOCKS, Gate, Groups
from release_pipeline.audit.models import TRAINED_SHARE
from release_pipeline.errors import Blocked, InvalidArgument
from release_pipeline.masking.centroids import CentroidStrategy
from release_pipeline.masking.strategy import RECORD, Contexts, Figures, Grouped, Progress, Suppressed, be_quiet, draw_release
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.mechanisms.clusters.mdav import NO_BLOCK, describe_alike, make_blocks, swap_positions
from release_pipeline.mechanisms.noise import NoiseStream, noise_stream, shuffled_first, take_secret
from release_pipeline.mechanisms.risk.risk import distinct_diversity
from release_pipeline.policy import Policy
from release_pipeline.policy.values.scalars import OURS
from release_pipeline.rows.columns import AnyTable, ColumnTable, Read, load_table, number_cells

SWAPPED = "swapped"  # in the vault: the block of every record
BLOCK = f"{OURS}_block"  # never released
OWNER = f"{OURS}_of_"  # before the name of a swapped column: whose value each row has, never released


@dataclass(frozen=True, slots=True)
class SwapStrategy:
    """A method of single columns whose released values change places.

    `earlier`: the block that each record was in, of an earlier release about the same people; below 0 where there was none.
    """

    policy: Policy
    strategy: CentroidStrategy
    earlier: IntArray | None = None
    suppression_reads: ClassVar[tuple[str, ...]] = CentroidStrategy.suppression_reads
    makes: ClassVar[tuple[str, ...]] = (*CentroidStrategy.makes, SWAPPED)  # of some methods not all of them

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """The figures of the method, since each column's list does not change; and the l-diversity of swapped categories in
        blocks, which depends on no noise. Blocks are always made here, so that a failure comes before budget is spent."""
        expected = self.strategy.expect(read, secret=secret, progress=progress)
        block = self._make_blocks(read)
        is_left = block >= 0
        for name in self._limited if is_left.any() else ():
            cells, of_blocks = number_cells(read("records", [name]).column(0))[1][is_left], block[is_left]
            expected[f"{BLOCK} {name}"] = {"l-diversity": distinct_diversity(of_blocks, cells)}
        return expected

    def judge(self, expected: Figures) -> list[Gate]:
        """As the method does, and the limits on what blocks give away of swapped categories."""
        gates, limits = self.strategy.judge(expected), self.policy.gates.l_diversity
        for name in self._limited:
            value = expected.get(f"{BLOCK} {name}", {}).get("l-diversity")
            if value is not None:
                gates.append(Gate(f"l-diversity of {name} in blocks", value, float(limits[name]), True, OF_BLOCKS, name))
        return gates

    @property
    def _limited(self) -> list[str]:
        """The swapped categories on which the policy has a limit."""
        swapped = (name for name in self.policy.swapped_columns if name not in self.policy.noise_columns)
        return [name for name in swapped if name in self.policy.gates.l_diversity]

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """The tables of the method, and `swapped`: the block of each record, -1 of those that suppression drops."""
        made = self.strategy.group(read, secret=secret, context=context, progress=progress)
        progress("finding blocks of alike people")
        blocks = pa.table({BLOCK: pa.array(self._make_blocks(read))})
        return replace(made, tables={**made.tables, SWAPPED: blocks})

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """As the method does."""
        return self.strategy.measure(read, secret=secret, context=context, progress=progress)

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> ColumnTable:
        """The masked records, each swapped column in a separate order within the blocks. `RECORD` says whose the kept entries of
        a row are; a column next to each swapped one says whose its values are."""
        masked = self.strategy.mask(read, secret=secret, context=context, progress=progress)
        swapped = self.policy.swapped_columns
        own = masked.column(RECORD)
        block = read_blocks(read, own.to_numpy())

        @lru_cache(maxsize=1)  # a column is asked for, and then whose its values are
        def find_source(name: str) -> pa.Array:
            return pa.array(swap_positions(block, noise_stream(secret, *context, name, "swap")))

        def make(name: str) -> Any:
            if (of := name.removeprefix(OWNER)) != name:
                return own.take(find_source(of))
            column = masked.column(name)
            return column.take(find_source(name)) if name in swapped else column

        names = [each for name in masked.column_names for each in ([name, f"{OWNER}{name}"] if name in swapped else [name])]
        return ColumnTable(tuple(names), masked.num_rows, make)

    def suppress(self, read: Read, masked: AnyTable) -> Suppressed:
        """The table that the method leaves. Refused where a block would be too small, or in two groups: then suppression did not
        do what the blocks were made for."""
        done = self.strategy.suppress(read, masked)
        if done.obstacle:
            return done
        block = read_blocks(read, done.table.column(RECORD).to_numpy())
        quasi = [number_cells(done.table.column(name))[1] for name in self.policy.released_quasi]
        parts = group_by([block, *quasi])
        least = int(np.bincount(parts).min())
        if (block < 0).any() or least < self.policy.block_size or parts.max() != group_by([block]).max():
            raise Blocked("the blocks of swapping do not fit the groups that suppression left.", where="swap")
        figures = {**done.figures, "blocks": int(parts.max()) + 1, "smallest_block": least}
        return replace(done, figures=figures)

    def compare(self, read: Read, released: AnyTable) -> Compared:
        """A row is next to the record whose kept entries it has; no error is of one record."""
        owners = {name: released.column(f"{OWNER}{name}").to_numpy() for name in self.policy.swapped_columns}
        return replace(self.strategy.compare(read, released), is_nobodys=True, owners=owners)

    def audit(
        self, read: Read, released: AnyTable, *, groups: Groups | None, streams: Streams, progress: Progress
    ) -> dict[str, Any]:
        """What `audit_table` measures. Attacks are on a table like this one made without a control group, and models are tested
        on records that it was made without: values of those that it was made of are in the rows of others, too."""

        def attack(compared: Compared, streams: Streams) -> dict[str, Any]:
            stream = streams("a release without the control group")
            return attack_without_control(compared, partial(self._remake, stream=stream), streams, among=compared.originals)

        compared = self.compare(read, released)
        parts: dict[str, Any] = {"attack": attack, "predictor": self._predict_unseen}
        return audit_table(compared, groups=groups, streams=streams, progress=progress, **parts)

    def _predict_unseen(self, compared: Compared, streams: Streams) -> dict[str, Any]:
        """How well models predict records, if they learned from a table like this one that was made without these records."""
        rows = shuffled_first(compared.released.num_rows, MODEL_SAMPLE, streams("unseen"))
        tested = compared.original_of[rows[int(TRAINED_SHARE * len(rows)) :]]
        read = compared.read_few(np.setdiff1d(np.arange(compared.originals), tested))
        try:
            made = self._remake(read, stream=streams("a release without those that are tested"))
        except InvalidArgument:  # too few are left for blocks: there is nothing to learn from
            return {}
        few = shuffled_first(made.num_rows, len(rows) - len(tested), streams("learned"))
        return predict_targets(self.compare(read, made).among(few), replace(compared, original_of=tested))

    def _remake(self, read: Read, *, stream: NoiseStream) -> pa.Table:
        """A release of some records, with noise that is never released."""
        alone, secret = replace(self, earlier=None), take_secret(stream)
        grouped = alone.group(read, secret=secret, context=(), progress=be_quiet).tables
        suppressed, _ = draw_release(alone, grouped, read, secret=secret)
        if suppressed.obstacle:
            raise InvalidArgument("so few records leave no group that is large enough.", where="suppress")
        return load_table(suppressed.table)

    def _make_blocks(self, read: Read) -> IntArray:
        """The block of each record: within the groups that suppression leaves, by the masked columns. Blocks by swapped
        categories would have one category each, and reveal it."""
        cell = self._find_cells(read)
        features = describe_alike([self._read_numbers(name, read) for name in self.policy.noise_columns])
        return make_blocks(features, cell, self.policy.block_size, earlier=self.earlier)

    def _find_cells(self, read: Read) -> IntArray:
        """The group of kept quasi-identifiers that each record will be released in; below 0 where it will not."""
        quasi = self.policy.released_quasi
        records: int = read("records", [self.policy.swapped_columns[0]]).num_rows
        if not quasi:
            return np.zeros(records, dtype=np.int64)
        kept = {name: read("records", [name]).column(0) for name in quasi}
        left = self.strategy.suppress(read, pa.table({RECORD: pa.array(np.arange(records)), **kept})).table
        cell = np.full(records, NO_BLOCK, dtype=np.int64)
        if left.num_rows:
            cell[left.column(RECORD).to_numpy()] = group_by([number_cells(left.column(name))[1] for name in quasi])
        return cell

    def _read_numbers(self, name: str, read: Read) -> FloatArray:
        """The values of a masked column as the method sees them, NaN for a reason to have none."""
        spec, numbers = self.policy.noise_columns[name], read("records", [name]).column(0).to_numpy()
        return np.where(spec.find_reasons(numbers) < 0, spec.coded_grid.snap(numbers), np.nan)


def read_blocks(read: Read, records: npt.NDArray[np.integer[Any]] | None = None) -> IntArray:
    """The block of every record, or of some of them."""
    blocks = np.asarray(read(SWAPPED, [BLOCK]).column(0).to_numpy(), dtype=np.int64)
    return blocks if records is None else blocks[records]
