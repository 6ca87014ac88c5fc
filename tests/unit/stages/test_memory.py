"""How many arrays as long as the table a stage holds at once: as few with six columns as with two, and none where they are on
disk."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from release_pipeline.flow import forecast
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.privacy import arrays, class_noise, distributions, groups, risk, standing_out
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays
from release_pipeline.privacy.by_value import quantiles
from release_pipeline.privacy.noise import NoiseStream, noise_stream, orders
from release_pipeline.privacy.records import ArrayRecords
from release_pipeline.privacy.risk import distinct_diversity
from release_pipeline.privacy.whole_table import expected, pool
from release_pipeline.privacy.whole_table import measure as measuring
from release_pipeline.privacy.whole_table import rows as making
from release_pipeline.stages import audit, audit_synthetic, column_table, suppress
from release_pipeline.stages.column_table import ColumnTable, select_cells
from release_pipeline.stages.compared import Compared, Read
from release_pipeline.stages.expected_linkage import expect_linkage
from release_pipeline.stages.measures import columns as measures
from release_pipeline.stages.measures import group_means
from release_pipeline.stages.measures.columns import measure_columns
from release_pipeline.stages.measures.groups import measure_groups
from release_pipeline.stages.package import check_released
from release_pipeline.stages.strategies import RECORD, find_strategy
from release_pipeline.store.scratch import OnDisk

_compute: Any = pyarrow.compute  # its functions are made at run time
ROWS = 200_000
MOST = 56  # bytes of a record: seven arrays of numbers, and Arrow's texts, which are not counted here, come in the eighth
MOST_RECORDS = 92  # where every record is a cluster of its own
PIECES = (
    (column_table, "PART"),
    (arrays, "SUMMED"),
    (arrays, "PIECE"),
    (distributions, "_CHUNK"),
    (orders, "_SLICE"),
    (quantiles, "_AT_ONCE"),
    (measuring, "SUMMED"),
    (expected, "SUMMED"),
    (group_means, "SUMMED"),
    (risk, "_CHUNK"),
    (risk, "_AT_ONCE"),
)
ON_DISK = 14  # bytes of a record: pieces of 65,536 of 200,000 records, of which there are some at once, are most of it
ON_DISK_EACH = 4  # and of one record more, where what is of fixed size is left out
SECRET = bytes(range(32))
HEAD = """\
gates: {linkage: 100%}
policy: many
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
"""
TEXT = (
    HEAD
    + """\
protect: {method: METHOD, epsilon: 4, k: 20}
columns:
  town: {role: quasi, do: keep, values: [north, south, east], why: needed}
COLUMNS
suppress: {quasi_groups_below: 5, at_most: 50%}
"""
)


def make_policy(method: str, columns: int, *, k: int = 20) -> Policy:
    """So many noise columns beside one that is kept."""
    noise = [
        f"  c{number}: {{role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}}"
        for number in range(columns)
    ]
    text = (
        TEXT.replace("METHOD", method)
        .replace(", k: 20", f", k: {k}" if method not in ("laplace", "dp-table") else "")
        .replace("COLUMNS", "\n".join(noise))
    )
    if method == "dp-table":
        text = text.replace("do: noise", "do: synthesise").replace("do: keep", "do: synthesise").replace(", why: needed", "")
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("suppress"))
    return parse_policy(text, name="many.yaml")


class Stored:
    """What a vault has: tables, and columns that came by themselves, or part by part, in Arrow's memory, which is not counted."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        self.columns: dict[str, dict[str, list[Any]]] = {}

    def keep(self, table: str, column: str, values: Any) -> None:
        """As the vault does."""
        parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        own = [part if pa.types.is_string(part.type) else _compute.add(part, pa.scalar(0, part.type)) for part in parts]
        self.columns.setdefault(table, {}).setdefault(column, []).extend(own)

    def read(self, table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        """The same."""
        if table in self.tables:
            return select_cells(self.tables[table], columns, where)
        return select_cells(
            pa.table({name: pa.chunked_array(all_) for name, all_ in self.columns[table].items()}), columns, where
        )


def read_made(stored: Stored) -> Read:
    """Columns that are made when they are asked for, as the vault reads them."""

    def make(name: str) -> Any:
        rng = np.random.default_rng(sum(map(ord, name)))
        if name == "town":
            return pa.array(np.array(["north", "south", "east"], dtype=object)[rng.integers(0, 3, ROWS)])
        return pa.array(np.round(np.minimum(rng.lognormal(7, 1, ROWS), 20_000)))

    def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        if table != "records":
            return stored.read(table, columns, where=where)
        return pa.table({name: make(name) for name in columns or ()})

    return read


def measure_peak(task: Callable[[], object]) -> float:
    """The most bytes of a record that NumPy and Python held at once."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1] / ROWS
    finally:
        tracemalloc.stop()


def read_from_disk(disk: OnDisk, stored: Stored) -> Read:
    """The same, columns being made once and kept in files."""
    made = read_made(Stored())
    kept: dict[str, Any] = {}

    def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        if table != "records":
            return stored.read(table, columns, where=where)
        return pa.table({name: kept[name] for name in columns or ()})

    for name in ("town", *(f"c{number}" for number in range(6))):
        column = made("records", [name]).column(0)
        kept[name] = disk.keep_column(iter(column.chunks), column.type, ROWS)
    return read


def keep_on_disk(disk: OnDisk, column: Any, rows: int = ROWS) -> Any:
    """A column that a stage made, as the vault reads it again."""
    parts = column if isinstance(column, Iterator) else iter(column.chunks)
    first = next(parts)
    return disk.keep_column(chain([first], parts), first.type, rows)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "k"), [("idp-cbls", 10), ("idp-cbls", 500), ("dp-cdf", 500), ("dp-cdf", 1), ("laplace", 0)])
def test_on_disk_a_stage_holds_less_than_two_arrays(method: str, k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is in the chain: what is left are pieces, arrays of the clusters, and a byte or two of each record."""
    monkeypatch.setattr(measures, "HELD", 0)
    for module, name in PIECES:
        monkeypatch.setattr(module, name, 4_096)
    disk, policy = OnDisk(tmp_path, 4_096), make_policy(method, 2, k=k)
    strategy, stored = find_strategy(policy, records=ArrayRecords(disk)), Stored()
    read = read_from_disk(disk, stored)

    def group() -> None:
        stored.tables |= strategy.group(read, secret=SECRET, context=(), progress=quiet, keep=stored.keep).tables

    def expect() -> None:
        strategy.expect(read, secret=SECRET, progress=quiet)

    expect()  # what is loaded for it is not counted

    def link() -> None:
        expect_linkage(policy, strategy, read, secret=SECRET, progress=quiet, keep=stored.keep)
        stored.columns.clear()

    monkeypatch.setattr(audit, "ATTACKED_SAMPLE", 3_000)
    peaks = {"expect": measure_peak(expect), "link": measure_peak(link), "group": measure_peak(group)}
    measured: dict[str, pa.Table] = {}
    peaks["measure"] = measure_peak(lambda: measured.update(strategy.measure(read, secret=SECRET, context=(), progress=quiet)))
    stored.tables |= measured
    masked, columns = strategy.mask(read, secret=SECRET, context=(), progress=quiet), dict[str, Any]()
    assert isinstance(masked, ColumnTable)
    peaks["mask"] = measure_peak(
        lambda: columns.update({name: keep_on_disk(disk, masked.parts(name)) for name in masked.column_names})
    )
    table, found = ColumnTable(tuple(columns), ROWS, lambda name: columns[name]), list[Any]()
    peaks["suppress"] = measure_peak(lambda: found.append(strategy.suppress(read, table)))
    compared = Compared(policy, read, table, columns[RECORD].to_numpy(), table, arrays=disk)
    peaks["groups"] = measure_peak(lambda: measure_groups(table, policy, disk))
    peaks["audit"] = measure_peak(lambda: measure_columns(compared))
    published = ColumnTable(tuple(policy.published_columns), ROWS, table.make)
    peaks["publish"] = measure_peak(lambda: list(check_released(published, policy, rows=ROWS, on_grid=True)))
    print(method, k, {stage: round(peak, 1) for stage, peak in peaks.items()})
    assert max(peaks.values()) <= ON_DISK, {stage: round(peak, 1) for stage, peak in peaks.items()}


@pytest.mark.parametrize(("is_on_disk", "most"), [(False, MOST), (True, ON_DISK_EACH)])
def test_different_values_by_group_take_no_more(
    is_on_disk: bool, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record with a value of its own, and most of them in one group."""
    for module, name in PIECES:
        monkeypatch.setattr(module, name, 4_096)
    where: Arrays = OnDisk(tmp_path, 4_096) if is_on_disk else IN_MEMORY
    rng = np.random.default_rng(5)
    group, values = where.empty(ROWS, np.int64), where.empty(ROWS, np.float64)
    group[:], values[:] = rng.random(ROWS) < 0.02, rng.random(ROWS)
    peak = measure_peak(lambda: distinct_diversity(group, values, where))
    assert peak <= most, peak


@pytest.mark.slow
@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_table_made_anew_is_what_the_forecast_counts(is_on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stages hold of one record more: the table of half as many records is a part of it. What is of fixed size (the pool, a
    block of rows, the records that are attacked) is smaller here."""
    for module, name in PIECES:
        monkeypatch.setattr(module, name, 4_096)
    for module, name, value in (
        (making, "BLOCK", 10_000),
        (pool, "MOST_POOL", 60_000),
        (audit_synthetic, "ATTACKED_SAMPLE", 3_000),
    ):
        monkeypatch.setattr(module, name, value)
    columns = 3
    policy = make_policy("dp-table", columns, k=0)
    peaks: list[dict[str, float]] = []
    for rows in (ROWS // 50, ROWS // 4, ROWS // 2):  # what is loaded for the first is not counted
        where: Arrays = OnDisk(tmp_path, 4_096) if is_on_disk else IN_MEMORY
        made = read_made(Stored())
        names = policy.released_columns
        peaks.append(
            measure_stages(
                policy, where, {name: made("records", [name]).column(0).slice(0, rows).combine_chunks() for name in names}
            )
        )
    grown = {stage: 4 * (peaks[2][stage] - peaks[1][stage]) for stage in peaks[0]}
    fixed, each = forecast.HELD["whole-table"]
    most = ON_DISK_EACH if is_on_disk else fixed + each * (columns + 1)
    print({stage: round(one, 1) for stage, one in grown.items()}, most)
    assert max(grown.values()) <= most, {stage: round(one, 1) for stage, one in grown.items()}


def measure_stages(policy: Policy, where: Arrays, records: dict[str, Any]) -> dict[str, float]:
    """The most that each stage held, in bytes of one of `ROWS` records."""
    rows = len(next(iter(records.values())))
    kept = records
    if isinstance(where, OnDisk):
        kept = {name: where.keep_column(iter([column]), column.type, rows) for name, column in records.items()}
    stored = Stored()

    def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        if table != "records":
            return stored.read(table, columns, where=where)
        return pa.table({name: kept[name] for name in columns or ()})

    strategy, columns = find_strategy(policy, records=ArrayRecords(where)), dict[str, Any]()

    def keep_parts(column: Any, count: int) -> Any:
        parts = column if isinstance(column, Iterator) else iter(column.chunks)
        return keep_on_disk(where, parts, count) if isinstance(where, OnDisk) else pa.chunked_array(list(parts))

    def group() -> None:
        stored.tables |= strategy.group(read, secret=SECRET, context=(), progress=quiet, keep=stored.keep).tables

    def mask() -> None:
        masked = strategy.mask(read, secret=SECRET, context=(), progress=quiet)
        assert isinstance(masked, ColumnTable)
        for name in masked.column_names:
            columns[name] = keep_parts(masked.parts(name), masked.num_rows)

    def streams(*purpose: Any) -> NoiseStream:
        return noise_stream(SECRET, *purpose)

    peaks = {"expect": measure_peak(lambda: strategy.expect(read, secret=SECRET, progress=quiet))}
    if not policy.protect.is_synthetic:
        keep = stored.keep
        peaks["link"] = measure_peak(lambda: expect_linkage(policy, strategy, read, secret=SECRET, progress=quiet, keep=keep))
        stored.columns.clear()
    peaks["group"] = measure_peak(group)
    peaks["measure"] = measure_peak(
        lambda: stored.tables.update(strategy.measure(read, secret=SECRET, context=(), progress=quiet))
    )
    peaks["mask"] = measure_peak(mask)
    masked, left = ColumnTable(tuple(columns), len(columns[RECORD]), lambda name: columns[name]), list[Any]()
    peaks["suppress"] = measure_peak(lambda: left.append(strategy.suppress(read, masked)))
    table: Any = left[0].table
    rest = {name: keep_parts(table.column(name), table.num_rows) for name in columns}
    released = ColumnTable(tuple(columns), table.num_rows, lambda name: rest[name])
    peaks["audit"] = measure_peak(lambda: strategy.audit(read, released, groups=None, streams=streams, progress=quiet))
    return peaks


CLASSES = (
    HEAD
    + """\
protect: {method: k-epsilon, grouping: ola, epsilon: 4, k: 5}
columns:
  town: {role: quasi, do: generalise, hierarchy: {groups: {coast: [north, south], inland: [east]}}}
  age:  {role: quasi, do: generalise, why: x, hierarchy: {intervals: LEVELS, domain: [0, 199999], grid: 1, outside: fail}}
  c0:   {role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
  c1:   {role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
suppress: {grouping_at_most: 5%, confidence: 90%, at_most: 90%}
"""
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_on_disk", "ages", "levels"),
    [(False, 50, [10]), (True, 50, [10]), (False, 0, [10]), (True, 0, [10, 100, 1000, 10000, 100000])],
)
def test_classes_are_what_the_forecast_counts(
    is_on_disk: bool, ages: int, levels: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stages hold of one record more, where there are few combinations of quasi-identifiers, and where each record has one
    of its own, in classes of about ten."""
    own = (
        (class_noise, "SUMMED"),
        (standing_out, "SUMMED"),
        (standing_out, "PIECE"),
        (suppress, "_AT_ONCE"),
        (groups, "_AT_ONCE"),
    )
    for module, name in (*PIECES, *own):
        monkeypatch.setattr(module, name, 4_096)
    monkeypatch.setattr(audit, "ATTACKED_SAMPLE", 3_000)
    policy, made = parse_policy(CLASSES.replace("LEVELS", str(levels)), name="many.yaml"), read_made(Stored())
    peaks: list[dict[str, float]] = []
    for rows in (ROWS // 50, ROWS // 10, ROWS // 5):  # what is loaded for the first is not counted
        where: Arrays = OnDisk(tmp_path, 4_096) if is_on_disk else IN_MEMORY
        records = {name: made("records", [name]).column(0).slice(0, rows).combine_chunks() for name in ("town", "c0", "c1")}
        records["age"] = pa.array(np.arange(rows) % (ages or rows), pa.float64())
        peaks.append(measure_stages(policy, where, records))
    grown = {stage: 10 * (peaks[2][stage] - peaks[1][stage]) for stage in peaks[0]}
    fixed, each = forecast.HELD["classes"]
    most = ON_DISK_EACH if is_on_disk else fixed + each * 4
    if not ages:
        most += forecast.COMBINATION + forecast.LABELLED + (len(levels) + 2) * forecast.LABEL + forecast.CLUSTER["classes"] // 5
    print({stage: round(one, 1) for stage, one in grown.items()}, most)
    assert max(grown.values()) <= most, {stage: round(one, 1) for stage, one in grown.items()}


def prepare_group(strategy: Any) -> tuple[Read, Stored, Callable[[], None]]:
    """How a strategy reads, what is stored, and its `group`, of which everything is stored."""
    stored = Stored()
    read = read_made(stored)

    def group() -> None:
        stored.columns.clear()
        stored.tables |= strategy.group(read, secret=SECRET, context=(), progress=quiet, keep=stored.keep).tables

    return read, stored, group


def quiet(_: str) -> None:
    """No progress."""


def count_forecast(policy: Policy) -> float:
    """The bytes of a record that the forecast has for arrays."""
    needed = forecast.forecast_memory(policy, ROWS, allowed=1 << 60).needed
    return (needed - forecast.PROGRAM) / ROWS - forecast.STORED


def check_masking(policy: Policy) -> Stored:
    """That no stage up to the noise holds more than the forecast counts; gives what they stored."""
    strategy = find_strategy(policy)
    read, stored, group = prepare_group(strategy)

    def expect() -> None:
        strategy.expect(read, secret=SECRET, progress=quiet)

    expect()  # what is loaded for it is not counted
    peaks = {"expect": measure_peak(expect), "group": measure_peak(group)}
    stored.tables |= strategy.measure(read, secret=SECRET, context=(), progress=quiet)
    masked = strategy.mask(read, secret=SECRET, context=(), progress=quiet)
    masked.column("c0")
    peaks["mask"] = measure_peak(lambda: [masked.column(name) and None for name in masked.column_names])
    print(peaks, count_forecast(policy))
    assert max(peaks.values()) <= count_forecast(policy), peaks
    return stored


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 12])
@pytest.mark.parametrize(("method", "k"), [("dp-um", 1), ("idp-ls", 2), ("idp-cbls", 3), ("idp-cbls", 20)])
def test_exact_sums_of_one_column_are_held_at_a_time(method: str, k: int, columns: int) -> None:
    """Of few records to a cluster and many columns all of them would be more than what is held of one column. What is hashed of
    them is what the forecast counts."""
    stored = check_masking(make_policy(method, columns, k=k))
    statistics = stored.read("statistics", None)
    assert stored.tables == {}
    assert len(statistics) == columns * (ROWS // k)
    longest = max(statistics.column(name).nbytes for name in statistics.column_names) / len(statistics)
    most = forecast.NAMED + len("c0")
    assert most - 4 <= longest <= most, longest


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 20])
def test_simulated_counts_are_what_the_forecast_counts(k: int) -> None:
    """With k 1, as it is unless a policy says otherwise, they are some arrays as long as the table."""
    check_masking(make_policy("dp-cdf", 2, k=k))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 10])
@pytest.mark.parametrize(
    ("method", "k"),
    [
        ("order: hilbert", 2),
        ("order: hilbert", 20),
        ("order: corner, statistic: trimmed", 3),
        ("order: corner, statistic: trimmed", 60_000),
        ("order: hilbert, scope: centroid", 2),
    ],
)
def test_vectors_are_what_the_forecast_counts(method: str, k: int, columns: int) -> None:
    """Beside the numbers that were read, of which there is one column at a time."""
    text = HEAD + f"protect: {{method: dp-mdav, epsilon: 4, k: {k}, {method}}}\ncolumns:\n  town: {{role: quasi, do: drop}}\n"
    number = "{role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}"
    check_masking(parse_policy(text + "".join(f"  c{place}: {number}\n" for place in range(columns)), name="many.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 6])
@pytest.mark.parametrize("method", ["idp-cbls", "dp-cdf", "laplace"])
def test_a_stage_holds_few_arrays_whatever_the_columns(method: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters, noise, suppression, audit, the last look before publishing; clusters are stored, and read when needed."""
    monkeypatch.setattr(measures, "HELD", 0)
    policy = make_policy(method, columns)
    strategy = find_strategy(policy)
    read, stored, group = prepare_group(strategy)

    def expect() -> None:
        strategy.expect(read, secret=SECRET, progress=quiet)

    expect()  # what is loaded for it is not counted
    peaks = {"expect": measure_peak(expect), "group": measure_peak(group)}
    measured = strategy.measure(read, secret=SECRET, context=(), progress=quiet)
    stored.tables |= measured
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
    most = MOST_RECORDS if method == "laplace" else MOST
    assert max(peaks.values()) <= most, {stage: round(peak, 1) for stage, peak in peaks.items()}
