"""All columns together: noisy counts of every column and of every pair, and synthetic rows that are made of these only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute

from release_pipeline.audit.audit import Streams, audit_synthetic
from release_pipeline.audit.columns import summarise_shapes
from release_pipeline.audit.compared import Compared
from release_pipeline.audit.gates import Gate, Groups
from release_pipeline.masking.microaggregate import count_rounds, summarise_found
from release_pipeline.masking.strategy import RECORD, Contexts, Figures, Grouped, Progress, Suppressed, draw_release
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import compare_ranks
from release_pipeline.mechanisms.by_value.noise_laws import name_noise, read_noise
from release_pipeline.mechanisms.noise import Context, NoiseStream, noise_stream, take_secret
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.mechanisms.whole_table import Cells, Design, Measured, expect_column, measure_table, plan_rows
from release_pipeline.mechanisms.whole_table.design import Block, SummedNoise
from release_pipeline.mechanisms.whole_table.measure import BlockCounts, list_sizes
from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import WholeTableFamily, declare_columns, pick_synthetic
from release_pipeline.policy.file.options import WholeTableOptions
from release_pipeline.rows.columns import AnyTable, CutTable, Read, find_encoders, load_table, spell_entries
from release_pipeline.rows.counted import CountedRecords, Counting, TableEngine

_compute: Any = pyarrow.compute  # its functions are made at run time

CELLS, PAIRS, BLOCKS = "column_cells", "pair_cells", "block_cells"  # in the vault
ORDINALS = ("one", "other", "third", "fourth", "fifth", "sixth")  # of the columns of a block
_FAMILY = WholeTableFamily(WholeTableOptions)


@dataclass(frozen=True, slots=True)
class WholeTableStrategy:
    """dp-table. `cells` has a row for each cell of a column that was counted, `pairs` for each two groups of cells of a pair of
    columns, and nothing else of the data. Where several columns were counted together, `blocks` has what pairs are sums of. A row
    that is released is no person's: its `RECORD` is its own number."""

    policy: Policy
    counting: Counting | None = None
    suppression_reads: ClassVar[tuple[str, ...]] = ()
    makes: ClassVar[tuple[str, ...]] = ()

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """The figures of all noise columns, simulated; the same data and method always give the same. The error is that of ranks,
        so of the distribution, since no row is a person's."""
        expected: Figures = {}
        design, counting = self._design(read), self._counting(read)
        for index, name in enumerate(self._names):
            if name in self.policy.noise_columns:
                progress(f"expecting the error of {name}")
                expected[name] = self._expect_column(name, counting.tally(index), design, index, secret)
        return expected

    def _expect_column(self, name: str, entries: Tally, design: Design, index: int, secret: bytes) -> dict[str, Any]:
        column = self.policy.noise_columns[name]
        width, random = column.exact_grid.width, make_random(secret, name, "simulated rows")
        values, errors = _pick_values(entries, width), list[float]()

        def release() -> Iterator[Tally]:
            """The simulated releases, of which one or two are held at a time; the error of each is noted."""
            for number in range(count_rounds(len(entries))):
                stream = _streams(secret, [name, "simulated counts", number])
                simulated = expect_column(entries, design, index, stream, random)
                errors.append(compare_ranks(values, _pick_values(simulated, width)))
                yield simulated

        points = np.array([*column.exact_atoms, *range(width + 1, width + 1 + len(column.reasons))], dtype=np.int64)
        shape = summarise_shapes(entries, release(), points).to_json()
        found: dict[str, Any] = summarise_found(errors).to_json() | shape
        return found | ({"group_mean": None} if name in self.policy.gates.group_mean else {})

    def judge(self, expected: Figures) -> list[Gate]:
        """Nothing else has a limit."""
        return []

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """No tables: everything that sees the data has noise."""
        records = self._count(read)
        return Grouped({}, {name: {"records": records} for name in self.policy.noise_columns})

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """`cells` and `pairs`, and `blocks` where pairs are sums."""
        names = self._names
        measured = measure_table(self._counting(read), self._design(read), _streams(secret, context), progress)
        pairs = {pair: (counts, measured.noise[pair].name) for pair, counts in measured.pairs.items()}
        blocks = {block: (own.counts, name_noise(own.noise)) for block, own in measured.blocks.items()}
        found = {CELLS: _cells_table(names, measured), PAIRS: _counts_table(names, pairs, ORDINALS[:2])}
        return found | ({BLOCKS: _counts_table(names, blocks, ORDINALS)} if blocks else {})

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> CutTable:
        """Rows that are made of the noisy counts: no noise is drawn here, and no record is looked at. A random order is theirs
        already."""
        names, measured = self._names, self._read_measured(read)
        plan = plan_rows(measured, make_random(secret, *context, "rows"), progress)
        columns = pick_synthetic(self.policy.columns)

        def cut(wanted: Sequence[str]) -> Iterator[pa.Table]:
            first = 0
            for number, block in enumerate(plan.make_blocks(), 1):
                progress(f"making rows: block {number:,} of {plan.blocks:,}")
                made, beyond = dict(zip(names, block, strict=True)), first + len(block[0])
                record = pa.array(np.arange(first, beyond, dtype=np.int64))
                spelled = {name: spell_entries(column, made[name]) for name, column in columns.items() if name in wanted}
                yield pa.table({RECORD: record} | spelled).select(wanted)
                first = beyond

        def make_column(name: str) -> pa.ChunkedArray:
            return pa.chunked_array([chunk for block in cut([name]) for chunk in block.column(name).chunks])

        return CutTable((RECORD, *columns), measured.design.records, make_column, cut)

    def suppress(self, read: Read, masked: AnyTable) -> Suppressed:
        """Nothing: no group of rows is one of people."""
        return Suppressed(masked, 0, 0, 0.0, None)

    def compare(self, read: Read, released: AnyTable) -> Compared:
        """A synthetic table next to the records that its counts were taken of; any order of these will do."""
        own = np.arange(read("records", [self._names[0]]).num_rows, dtype=np.intp)
        return Compared(self.policy, read, released, own, released, is_nobodys=True)

    def audit(
        self, read: Read, released: AnyTable, *, groups: Groups | None, streams: Streams, progress: Progress
    ) -> dict[str, Any]:
        """What `audit_synthetic` measures."""
        in_memory = replace(self, counting=None)

        def remake(read: Read) -> pa.Table:
            """A table like the released one, of these records, with noise that is never released."""
            secret = take_secret(streams("a release without the control group"))
            return load_table(draw_release(in_memory, {}, read, secret=secret)[0].table)

        compared = self.compare(read, released)
        after = CountedRecords(TableEngine(released), find_encoders(self.policy))
        return audit_synthetic(compared, self._counting(read), after, remake=remake, streams=streams, progress=progress)

    def _read_measured(self, read: Read) -> Measured:
        """The noisy counts of this release."""
        pairs = read(PAIRS, None)
        counted = read(BLOCKS, None) if are_sums(pairs) else pairs
        return read_measured(self._names, self._design(read), read(CELLS, None), counted)

    @property
    def _names(self) -> list[str]:
        return list(declare_columns(self.policy.columns))

    def _design(self, read: Read) -> Design:
        return _FAMILY.declare(self.policy, self._count(read))

    def _count(self, read: Read) -> int:
        return read("records", [self._names[0]]).num_rows if self.counting is None else len(self.counting.tally(0))

    def _counting(self, read: Read) -> Counting:
        return self.counting or CountedRecords(TableEngine(read("records", self._names)), find_encoders(self.policy))


def _pick_values(entries: Tally, width: int) -> Tally:
    """Those that are values, and not reasons to have none; all where none is."""
    values = entries.between(0, width + 1)
    return values if len(values) else entries


def _streams(secret: bytes, context: Contexts) -> Any:
    """A stream for each purpose and column."""

    def stream(*purpose: Context) -> NoiseStream:
        return noise_stream(secret, *context, "counts", *purpose)

    return stream


def _cells_table(names: list[str], measured: Measured) -> pa.Table:
    """A row per cell: its first and its last entry, its group in the tables of pairs, and its noisy count."""

    def rows(index: int, name: str) -> pa.Table:
        cells, count = measured.cells[index], len(measured.margins[index])
        beyond = cells.column.width + 1 + np.arange(cells.column.labels)
        return pa.table(
            {
                "column_name": pa.repeat(name, count),
                "first": pa.array(np.append(cells.edges[:-1], beyond)),
                "last": pa.array(np.append(cells.edges[1:] - 1, beyond)),
                "group": pa.array(measured.groups[index]),
                "count": pa.array(measured.margins[index]),
                "noise": pa.repeat(name_noise(measured.design.margins), count),
            }
        )

    return pa.concat_tables([rows(place, name) for place, name in enumerate(names)])


def _counts_table(names: list[str], tables: Mapping[Block, tuple[IntArray, str]], ordinals: Sequence[str]) -> pa.Table:
    """A row per combination of groups of columns together, with their noisy count and the law of its noise. Where there are
    fewer columns than in others the last names and groups are empty."""
    groups = [f"group_{ordinal}" for ordinal in ordinals]
    types = [pa.string()] * len(ordinals) + [pa.int64()] * len(groups) + [pa.int64(), pa.string()]
    schema = pa.schema(zip((*ordinals, *groups, "count", "noise"), types, strict=True))

    def rows(columns: Block, counts: IntArray, law: str) -> pa.Table:
        arrays: dict[str, Any] = {"count": pa.array(counts.ravel()), "noise": pa.repeat(law, counts.size)}
        arrays |= {ordinal: pa.repeat(names[column], counts.size) for ordinal, column in zip(ordinals, columns, strict=False)}
        arrays |= {
            group: pa.array(own) for group, own in zip(groups, np.indices(counts.shape).reshape(counts.ndim, -1), strict=False)
        }
        return pa.table([arrays.get(field.name, pa.nulls(counts.size, field.type)) for field in schema], schema=schema)

    made = [rows(columns, counts, law) for columns, (counts, law) in tables.items()]
    return pa.concat_tables(made) if made else schema.empty_table()


def count_blocks(blocks: pa.Table) -> int:
    """How many tables of columns that were counted together there are."""
    return blocks.select(ORDINALS).group_by(list(ORDINALS)).aggregate([]).num_rows


def are_sums(pairs: pa.Table) -> bool:
    """Whether counts of pairs are sums of others."""
    laws: list[str] = _compute.unique(pairs.column("noise")).to_pylist()
    return any(SummedNoise.read(law).terms > 1 for law in laws)


def read_measured(names: list[str], design: Design, cells: pa.Table, counted: pa.Table) -> Measured:
    """What was measured, as `cells` has it, and `blocks`, or `pairs` where these are no sums. The noise is named next to the
    counts."""
    cells_of: list[Cells] = []
    margins: list[IntArray] = []
    groups: list[IntArray] = []
    for place, name in enumerate(names):
        mine = cells.filter(_compute.equal(cells.column("column_name"), name))
        column = design.columns[place]
        own = mine.num_rows - column.labels
        last = mine.column("last").to_numpy()[:own]
        cells_of.append(Cells(column, np.append(mine.column("first").to_numpy()[:own], last[-1] + 1)))
        margins.append(mine.column("count").to_numpy())
        groups.append(mine.column("group").to_numpy())
    tables = dict(_read_tables(names, counted, list_sizes(groups)))
    return Measured(design, tuple(cells_of), tuple(margins), tuple(groups), tables)


def _read_tables(names: list[str], counted: pa.Table, sizes: Sequence[int]) -> Iterator[tuple[Block, BlockCounts]]:
    """The tables of columns together, which follow one another."""
    counts, noise = counted.column("count").to_numpy(), counted.column("noise")
    columns = counted.select([ordinal for ordinal in ORDINALS if ordinal in counted.column_names])
    start = 0
    while start < counted.num_rows:
        [row] = columns.slice(start, 1).to_pylist()
        block: Block = tuple(names.index(name) for name in row.values() if name is not None)
        shape = [sizes[column] for column in block]
        end = start + math.prod(shape)
        yield block, BlockCounts(counts[start:end].reshape(shape), read_noise(noise[start].as_py()))
        start = end
