"""Rows of dp-table are made of the noisy counts that are published with them: of the records nothing but their number is seen.

The audit of the claim looks at these counts alone, so that it would see no rows that tell more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from experiments.claims import list_suite
from release_pipeline.claims.trials import read_records, say_nothing
from release_pipeline.claims.views import make_whole_pairs
from release_pipeline.masking import find_strategy
from release_pipeline.masking.strategy import Contexts, Progress
from release_pipeline.masking.whole_table import WholeTableStrategy
from release_pipeline.policy import Policy
from release_pipeline.rows.columns import Read, load_table

pytestmark = pytest.mark.slow
SECRET = b"r" * 32
SUITE = {name: policy for name, policy in list_suite().items() if policy.protect.is_synthetic}


class InOrder(WholeTableStrategy):
    """Lays the least row where the least record lies, by one column, and so on."""

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> pa.Table:
        """Rows in the order of the records."""
        rows = load_table(super().mask(read, secret=secret, context=context, progress=progress))
        ascending, records = (np.argsort(table.column("a").to_numpy(), kind="stable") for table in (rows, read("records", ["a"])))
        place = np.empty_like(ascending)
        place[records] = ascending
        return rows.take(pa.array(place))


def list_records(policy: Policy) -> Iterator[pa.Table]:
    """Equally many records each time: some, the same the other way round, others, and some of which nothing is known."""
    first, *_, last = make_whole_pairs(policy)
    yield first.first
    yield first.first.take(pa.array(np.arange(first.first.num_rows)[::-1]))
    yield last.second
    yield pa.table({name: pa.nulls(first.first.num_rows) for name in first.first.column_names})


def spell_bytes(table: pa.Table) -> bytes:
    """All that a table has, and no more: two that are alike give the same."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def is_made_of_counts(strategy: WholeTableStrategy) -> bool:
    """Whether the rows are the same to the byte whatever the records are, as long as the noisy counts are those of the first."""
    records = list_records(strategy.policy)
    first = next(records)
    counts = strategy.measure(read_records(first), secret=SECRET, context=(), progress=say_nothing)

    def make_rows(table: pa.Table) -> bytes:
        def read(name: str, columns: Any) -> pa.Table:
            return read_records(table)(name, columns) if name == "records" else counts[name]

        return spell_bytes(load_table(strategy.mask(read, secret=SECRET, context=(), progress=say_nothing)))

    made = make_rows(first)
    return all(make_rows(table) == made for table in records)


@pytest.mark.parametrize("name", SUITE)
def test_rows_tell_no_more_than_the_noisy_counts(name: str) -> None:
    """Nor does their order."""
    strategy = find_strategy(SUITE[name])
    assert isinstance(strategy, WholeTableStrategy)
    assert is_made_of_counts(strategy)


def test_rows_in_the_order_of_the_records_are_seen() -> None:
    """They are the same rows, and as good."""
    assert not is_made_of_counts(InOrder(SUITE["dp-table"]))
