"""The memory that a release will need: known before anything is charged, so that no release dies of it afterwards.

The figures are measured (`python -m experiments.benchmarks.scale`) and rounded up: the largest stage counts. A method that masks
column by column holds arrays of one column at a time, and of all columns the cluster of each record; others hold all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from release_pipeline.errors import Blocked, OutOfSpace
from release_pipeline.mechanisms.catalogue import Family
from release_pipeline.mechanisms.whole_table.pool import count_pool
from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import ColumnKind
from release_pipeline.rows.checks import round_up
from release_pipeline.store.environment import DATABASE, format_size
from release_pipeline.store.site import Site

PROGRAM = 400 << 20  # bytes: the interpreter, the libraries, and arrays of fixed size
STORED = 150  # bytes of a record that DuckDB holds in memory where it may; beyond its share it spills to disk
HELD: dict[Family, tuple[int, int]] = {  # bytes of a record in arrays: independent of the columns, and for each of them more
    "columns": (60, 4),
    "by-value": (85, 4),
    "vectors": (60, 30),
    "mdav": (130, 48),
    "classes": (160, 64),
    "whole-table": (0, 0),  # it holds what columns have of entries
}
# where few records make a cluster, and this is more: bytes of a record, and of a record and of a cluster for each of the columns
# that are held at once
CLUSTERED: dict[Family, tuple[int, int, int]] = {
    "columns": (40, 0, 95),
    "by-value": (40, 0, 85),
    "vectors": (55, 22, 175),
    "mdav": (55, 22, 175),
}
SUMS = 28  # of a cluster for each masked column, next to its name, in the table of exact sums
NAMED = 8  # of a cluster for each masked column, next to its name, when what is stored of exact sums is hashed
UNITED = 64  # and where those of random parts are joined, of which all are held
RECORDS = 104  # where every record is a separate cluster: there are arrays of clusters, too
PARTS = 32  # and for each column where random parts of the records are masked separately
WEIGHED, GROUPED = 40, 24  # and where records have weights; where the audit is by groups
COPIED, COPIED_COLUMN = 36, 1  # of a record, and for each column, where records that are counted are copied to the vault
# of each entry that a column of numbers has, of each such column, and of that with most; of a grid with very many points the
# entries grow as the root of the records
ENTRY, MOST_ENTRY, OF_ROOT = 32, 110, 300
COMBINATION = 210  # bytes of each different row of the quasi-identifiers
LABELLED, LABEL = 130, 110  # and of each different value of one that is made coarser; and for each of its levels
# of a record of the pool that rows are made of; and for each column and each pair of them
POOL, POOL_COLUMN, POOL_PAIR = 280, 35, 1
IN_PROGRAM = 96 << 20  # and so many of all of these are the program's
SWAP, SWAP_COLUMN = 130, 120  # bytes of a record, and for each swapped column, while blocks are made
NONE_COUNTED: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The memory of a run."""

    needed: Annotated[int, "bytes that a release of so many rows needs, about"]
    allowed: Annotated[int, "bytes that a run may take: what site.yaml says, or what the machine has"]

    @property
    def is_enough(self) -> bool:
        """Return whether a run may begin."""
        return self.needed <= self.allowed


def forecast_memory(
    policy: Policy, records: int, *, allowed: int, is_copied: bool | None = None, cells: Mapping[str, int] = NONE_COUNTED
) -> MemoryView:
    """What a release of so many records will need where a run may take so much. `is_copied`: whether the vault has them, or what
    the policy says of it; `cells`: how many different ones columns have, where that was counted."""
    fixed, each = HELD[policy.method.family]
    more = (WEIGHED if policy.weight is not None else 0) + (GROUPED if policy.audit.groups else 0)
    arrays = max(records * (fixed + each * len(policy.released_columns)), _count_clustered(policy, records))
    if policy.parts > 1:
        arrays += records * PARTS * len(policy.released_columns) + _count_named(policy, records, UNITED)
    if policy.method.family == "columns":
        arrays += _count_named(policy, records, SUMS)
    arrays = max(arrays + records * more, _count_named(policy, records, NAMED))
    if policy.method.family == "whole-table" and (_may_be_copied(policy) if is_copied is None else is_copied):
        arrays += records * (COPIED + COPIED_COLUMN * len(policy.released_columns))
    swapped = len(policy.swapped_columns)
    blocks = records * (SWAP + SWAP_COLUMN * swapped) if swapped else 0
    arrays += _count_listed(policy, records) + _count_entries(policy, records, cells) + _count_pool(policy, records) + blocks
    return MemoryView(PROGRAM + arrays + min(int(allowed * DATABASE), records * STORED), allowed)


def _may_be_copied(policy: Policy) -> bool:
    """Return whether the policy keeps the records from being counted in their source."""
    place = policy.source.path or ""
    may_stay = policy.source.spark or policy.source.table or place.lower().endswith(".parquet")
    return not (policy.is_only_counted and may_stay and policy.source.postgres is None)


def _count_clustered(policy: Policy, records: int) -> int:
    """Return the bytes of arrays of records and of clusters: where few records make a cluster, the latter are most of it."""
    if _are_records(policy):
        return records * RECORDS
    if policy.method.family not in CLUSTERED:
        return 0
    fixed, of_record, of_cluster = CLUSTERED[policy.method.family]
    at_once = len(policy.noise_columns) if policy.method.family in ("vectors", "mdav") else 1
    return records * (fixed + at_once * of_record) + at_once * _count_clusters(policy, records) * of_cluster


def _are_records(policy: Policy) -> bool:
    """Return whether every record is masked separately: arrays of clusters are those of records then."""
    return policy.method.family == "columns" and policy.protect.k is None


def _count_entries(policy: Policy, records: int, cells: Mapping[str, int]) -> int:
    """The bytes of tallies, where a method needs nothing else of the records."""
    if policy.method.family != "whole-table":
        return 0
    some, columns = min(records, OF_ROOT * math.isqrt(records)), policy.noise_columns.items()
    entries = [min(column.coded_grid.encoder.size, max(some, cells.get(name, 0))) for name, column in columns]
    return ENTRY * sum(entries) + MOST_ENTRY * max(entries, default=0)


def _count_pool(policy: Policy, records: int) -> int:
    """Return the bytes of the pool that synthetic rows are made from: it is no larger for very many records."""
    if policy.method.family != "whole-table":
        return 0
    columns = len(policy.released_columns)
    each = POOL + POOL_COLUMN * columns + POOL_PAIR * columns * (columns - 1) // 2
    return max(count_pool(records) * each - IN_PROGRAM, 0)


def _count_clusters(policy: Policy, records: int) -> int:
    most = records // (policy.protect.k or 1)
    return min(most, _count_rows(policy.generalised_columns.values(), records)) if policy.generalised_columns else most


def _count_named(policy: Policy, records: int, each: int) -> int:
    """Return so many bytes, and those of its column's name, for each row of a table that has one for each cluster and masked
    column. Some methods have no such table."""
    if _are_records(policy) or policy.method.family not in ("columns", "classes", "vectors", "mdav"):
        return 0
    return _count_clusters(policy, records) * sum(each + len(name.encode()) for name in policy.noise_columns)


def _count_listed(policy: Policy, records: int) -> int:
    """Return the bytes of what is handled one by one: rows of quasi-identifiers, and values that have labels."""
    labels = sum(
        _count_rows([column], records) * (LABELLED + LABEL * column.hierarchy.levels)
        for column in policy.generalised_columns.values()
    )
    return _count_combinations(policy, records) * COMBINATION + labels


def _count_combinations(policy: Policy, records: int) -> int:
    """Return how many different rows the released quasi-identifiers may have, which are handled one by one."""
    columns = [policy.released_columns[name] for name in policy.released_quasi]
    return _count_rows(columns, records, clamps=policy.clamps)


def _count_rows(columns: Iterable[ColumnKind], records: int, *, clamps: bool = False) -> int:
    """Return how many different rows of these columns there may be."""
    most = 1
    for column in columns:
        values = column.most_values(clamps=clamps)
        if values is None or most * values >= records:
            return records
        most *= values
    return most


def check_memory(site: Site, policy: Policy, records: int, *, is_copied: bool, where: str) -> None:
    """Refuse a release that needs more memory than a run may take; nothing is charged for it yet."""
    needed = partial(forecast_memory, policy, records, is_copied=is_copied)
    memory = needed(allowed=site.memory)
    if memory.is_enough:
        return
    if site.forbids_looks:
        raise OutOfSpace("a release of these records needs more memory than a run may take. Nothing is charged.", where=where)
    whose = "this machine has" if site.said_memory is None else "site.yaml allows it"
    gigabytes = math.ceil(find_enough(needed) / (1 << 30))
    raise OutOfSpace(
        f"a release of up to {round_up(records):,} records needs about {format_size(memory.needed)} of memory, and {whose} "
        f"{format_size(memory.allowed)}. Nothing is charged.",
        where=where,
        remedy=f"Run it where {gigabytes} GiB are to be had, and say 'memory: {gigabytes} GiB' in site.yaml; or release fewer "
        "records at a time.",
    )


def check_entries(site: Site, policy: Policy, records: int, *, is_copied: bool, cells: Mapping[str, int], where: str) -> None:
    """Refuse a release whose columns have more different numbers than the memory of a run is enough for. How many they have is
    confidential, so it is judged by the next power of two, and the message has no figure; the caller counts it as a trial."""
    coarse = {name: 1 << (count - 1).bit_length() for name, count in cells.items() if count}
    if forecast_memory(policy, records, allowed=site.memory, is_copied=is_copied, cells=coarse).is_enough:
        return
    raise Blocked(
        "its columns have too many different numbers for the memory that a run may take. Nothing is charged.",
        where=where,
        remedy="Allow more by 'memory' in site.yaml, or declare coarser grids.",
    )


def find_enough(forecast: Callable[..., MemoryView]) -> int:
    """The least that a run must be allowed to take, about, by what is forecast where it is `allowed` so much."""
    low, high = 0, 1 << 60
    while low < high:
        middle = (low + high) // 2
        is_enough = forecast(allowed=middle).is_enough
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return low


def describe_memory(memory: MemoryView, records: int) -> str:
    """Return the need and the allowance in a line."""
    about = f"about {format_size(memory.needed)} of {format_size(memory.allowed)} for {records:,} rows"
    return about if memory.is_enough else f"{about}: a run is refused before anything is charged"
