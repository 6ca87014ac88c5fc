"""How many arrays as long as the table a stage holds at once: as few with six columns as with two."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.stages.column_table import ColumnTable
from release_pipeline.stages.compared import Compared
from release_pipeline.stages.measures import columns as measures
from release_pipeline.stages.measures.columns import measure_columns
from release_pipeline.stages.measures.groups import measure_groups
from release_pipeline.stages.package import check_released
from release_pipeline.stages.strategies import RECORD, find_strategy

ROWS = 200_000
MOST = 56  # bytes of a record: seven arrays of numbers, and Arrow's texts, which are not counted here, come in the eighth
SECRET = bytes(range(32))
TEXT = """\
policy: many
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: METHOD, epsilon: 4, k: 20}
columns:
  town: {role: quasi, do: keep, values: [north, south, east], why: needed}
COLUMNS
suppress: {quasi_groups_below: 5, at_most: 50%}
"""


def make_policy(method: str, columns: int) -> Policy:
    """So many noise columns beside one that is kept."""
    noise = [
        f"  c{number}: {{role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}}"
        for number in range(columns)
    ]
    return parse_policy(TEXT.replace("METHOD", method).replace("COLUMNS", "\n".join(noise)), name="many.yaml")


def read_made(stored: dict[str, Callable[[str], Any]]) -> Callable[[str, Sequence[str] | None], pa.Table]:
    """Columns that are made when they are asked for, as the vault reads them."""

    def make(name: str) -> Any:
        rng = np.random.default_rng(sum(map(ord, name)))
        if name == "town":
            return pa.array(np.array(["north", "south", "east"], dtype=object)[rng.integers(0, 3, ROWS)])
        return pa.array(np.round(np.minimum(rng.lognormal(7, 1, ROWS), 20_000)))

    def read(table: str, columns: Sequence[str] | None) -> pa.Table:
        if table == "records":
            return pa.table({name: make(name) for name in columns or ()})
        found = stored[table]
        return found("") if columns is None else pa.table({name: found(name) for name in columns})

    return read


def _whole(table: pa.Table, _: str) -> pa.Table:
    return table


def measure_peak(task: Callable[[], object]) -> float:
    """The most bytes of a record that NumPy and Python held at once."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1] / ROWS
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 6])
@pytest.mark.parametrize("method", ["idp-cbls", "dp-cdf"])
def test_a_stage_holds_few_arrays_whatever_the_columns(method: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters, noise, suppression, audit, the last look before publishing; clusters are stored, and read when needed."""
    monkeypatch.setattr(measures, "HELD", 0)
    policy = make_policy(method, columns)
    strategy, kept = find_strategy(policy), dict[str, Any]()
    stored: dict[str, Callable[[str], Any]] = {"membership": lambda name: kept[name]}
    read = read_made(stored)

    def keep(_: str, column: str, values: Any) -> None:
        kept[column] = pa.array(values.to_numpy(), pa.int32())

    def quiet(_: str) -> None:
        """No progress."""

    def group() -> None:
        made = strategy.group(read, secret=SECRET, context=(), progress=quiet, keep=keep)
        stored["statistics"] = lambda _: made.tables["statistics"]

    def expect() -> None:
        strategy.expect(read, secret=SECRET, progress=quiet)

    expect()  # what is loaded for it is not counted
    peaks = {"expect": measure_peak(expect), "group": measure_peak(group) - 4 * columns}  # these are the vault's otherwise
    measured = strategy.measure(read, secret=SECRET, context=(), progress=quiet)
    stored |= {name: partial(_whole, table) for name, table in measured.items()}
    masked = strategy.mask(read, secret=SECRET, context=(), progress=quiet)
    peaks["mask"] = measure_peak(lambda: [masked.column(name) and None for name in masked.column_names])
    found: list[Any] = []
    peaks["suppress"] = measure_peak(lambda: found.append(strategy.suppress(read, masked)))
    released = found[0].table
    own = released.column(RECORD).to_numpy()
    everybody = ColumnTable(("town",), ROWS, lambda name: read("records", [name]).column(0))
    compared = Compared(policy, read, released, own, everybody)
    peaks["groups"] = measure_peak(lambda: measure_groups(released, policy))
    peaks["audit"] = measure_peak(lambda: measure_columns(compared))
    published = ColumnTable(tuple(policy.published_columns), released.num_rows, lambda name: released.column(name))
    peaks["publish"] = measure_peak(lambda: list(check_released(published, policy, rows=ROWS, on_grid=True)))
    assert max(peaks.values()) <= MOST, {stage: round(peak, 1) for stage, peak in peaks.items()}
