"""How much memory a release will need: known before anything is charged, so that no release dies of it afterwards.

The figures are measured (`python -m experiments.benchmarks.scale`) and rounded up: the largest stage counts. A method that
masks column by column holds arrays of one column at a time, whatever number of columns there are; others hold them all.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Literal, TypeAlias

from release_pipeline.errors import OutOfSpace
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import OPTIONAL
from release_pipeline.policy.kinds import GeneraliseColumn, ListedColumn, NoiseColumn
from release_pipeline.policy.published import SURVEY_FORMATS
from release_pipeline.policy.ties import find_ties
from release_pipeline.privacy.catalogue import Family
from release_pipeline.privacy.whole_table.pool import count_pool
from release_pipeline.store.memory import DATABASE, DATABASE_ALONE, LARGE, format_size
from release_pipeline.store.shared import is_shared

Engine: TypeAlias = Literal["memory", "duckdb", "spark"]
ALONE: tuple[Engine, ...] = ("duckdb", "spark")  # where arrays do not lie in memory, however short
WORK = Fraction(1, 6)  # of the memory, for pieces of arrays that are worked on, where these lie on disk
MOST = 60  # bytes of a record in pieces of arrays, where it is one piece
PROGRAM = 400 << 20  # bytes: the interpreter, the libraries, and arrays of fixed size
SPARE = 4  # that part of the memory, at most, has columns that were read already, and what allocators keep of what was freed
STORED = 150  # bytes of a record that DuckDB holds in memory where it may; beyond its share it goes on on disk
HELD: dict[Family, tuple[int, int]] = {  # bytes of a record in arrays: whatever the columns, and for each of them more
    "columns": (60, 0),
    "by-value": (85, 0),
    "vectors": (60, 30),
    "mdav": (130, 48),
    "classes": (160, 64),
    "whole-table": (130, 24),
}
# where few records make a cluster, and that is more: bytes of a record, and of a record and of a cluster for each of the columns
# that are held at once
CLUSTERED: dict[Family, tuple[int, int, int]] = {
    "columns": (40, 0, 85),
    "by-value": (40, 0, 85),
    "vectors": (55, 22, 175),
    "mdav": (55, 22, 175),
}
NAMED = 8  # of a cluster for each masked column, beside its name, when what is stored of exact sums is hashed
UNITED = 64  # and where those of random parts are put together, of which all are held
RECORDS = 96  # where every record is a cluster of its own: there are arrays of clusters, too
PARTS = 32  # and for each column where random parts of the records are masked by themselves
WEIGHED, GROUPED = 40, 24  # and where records have weights; where the audit is by groups
COMBINATION = 210  # bytes of each different row of the quasi-identifiers, wherever arrays lie
LABELLED, LABEL = 130, 110  # and of each different value of one that is made coarser; and for each of its levels
# of a record of the pool that rows are made of, wherever arrays lie; and for each column and each pair of them
POOL, POOL_COLUMN, POOL_PAIR = 280, 35, 1
IN_PROGRAM = 128 << 20  # and so many of all of these are the program's
SWAP, SWAP_COLUMN = 130, 120  # bytes of a record, and for each swapped column, while blocks are made, wherever arrays lie
FLAGS = 2  # bytes of a record that are in memory where arrays lie on disk
# and of a cluster, by the families whose arrays may lie there; of whole tables there are counts, and no clusters
CLUSTER: dict[Family, int] = {"columns": 220, "by-value": 48, "whole-table": 0, "classes": 300}


_ENGINE_IS = "where arrays as long as the table lie: in memory, on disk as DuckDB's, or where a cluster works on them"
_BESIDE_IS = "bytes of the program that come on top, where site.yaml says `engine: duckdb` or `engine: spark`"


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The memory of a run."""

    needed: Annotated[int, "bytes that a release of so many rows needs, about"]
    allowed: Annotated[int, "bytes that a run may take: what site.yaml says, or what the machine has"]
    engine: Annotated[Engine, _ENGINE_IS] = dataclasses.field(default="memory", metadata=OPTIONAL)
    beside: Annotated[int, _BESIDE_IS] = dataclasses.field(default=0, metadata=OPTIONAL)

    @property
    def is_enough(self) -> bool:
        """Whether a run may begin."""
        return self.needed <= self.allowed


def forecast_memory(policy: Policy, records: int, *, allowed: int, engine: str = "memory", is_said: bool = True) -> MemoryView:
    """What a release of so many records will need where a run may take so much, which site.yaml says (`is_said`) or the machine
    has."""
    here = _forecast_in_memory(policy, records, allowed)
    if engine == "memory" or not goes_to_disk(policy) or (engine == "auto" and here.is_enough):
        return here
    there = _forecast_on_disk(policy, records, allowed, engine, PROGRAM if engine in ALONE and is_said else 0)
    return here if engine == "auto" and there.needed >= here.needed else there


def goes_to_disk(policy: Policy) -> bool:
    """Whether arrays of this policy may lie on disk, so that memory need not grow with the records: of methods that look at one
    column after the other, and nothing else that holds all records at once."""
    if policy.method.family not in CLUSTER or policy.protect.cuts_numbers:
        return False
    gates, written = policy.gates, set(SURVEY_FORMATS).isdisjoint(policy.publish.formats)
    is_looked_at_whole = (
        policy.audit.groups or gates.of_groups or gates.group_mean or policy.recomputed_columns or find_ties(policy)
    )
    return policy.parts == 1 and policy.weight is None and not policy.tables and written and not is_looked_at_whole


def find_disk_from(site: Site, policy: Policy) -> int | None:
    """From how many records on arrays lie on disk; None where they never do."""
    if not goes_to_disk(policy) or site.engine == "memory":
        return None
    low, high = LARGE, 1 << 48
    if site.engine in ALONE:
        return low
    while low < high:  # the first that is too many for memory
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _forecast_in_memory(policy, middle, site.memory).is_enough else (low, middle)
    return low


def find_spare(site: Site, policy: Policy) -> Callable[[int], int]:
    """By how many records a release has: the bytes of memory that it leaves for columns of it that were read, and for what was
    freed. Of little memory none, of much a quarter. What site.yaml says is read now."""
    forecast = _find_forecast(site, policy)

    def count_spare(records: int) -> int:
        memory = forecast(records)
        return max(min(memory.allowed - memory.needed, memory.allowed // SPARE), 0)

    return count_spare


def _find_forecast(site: Site, policy: Policy) -> Callable[[int], MemoryView]:
    is_said = site.said_memory is not None
    return partial(forecast_memory, policy, allowed=site.memory, engine=site.engine, is_said=is_said)


def _forecast_in_memory(policy: Policy, records: int, allowed: int) -> MemoryView:
    fixed, each = HELD[policy.method.family]
    more = (WEIGHED if policy.weight is not None else 0) + (GROUPED if policy.audit.groups else 0)
    arrays = max(records * (fixed + each * len(policy.released_columns)), _count_clustered(policy, records))
    if policy.parts > 1:
        arrays += records * PARTS * len(policy.released_columns) + _count_named(policy, records, UNITED)
    arrays = max(arrays + records * more, _count_named(policy, records, NAMED)) + _count_anyway(policy, records)
    return MemoryView(PROGRAM + arrays + min(int(allowed * DATABASE), records * STORED), allowed)


def _forecast_on_disk(policy: Policy, records: int, allowed: int, engine: str, beside: int) -> MemoryView:
    """`beside`: the bytes of the program, where they come on top of what site.yaml says."""
    arrays = records * FLAGS
    if not _are_records(policy):
        arrays += _count_clusters(policy, records) * CLUSTER[policy.method.family]
    arrays += _count_anyway(policy, records)
    work = min(int(allowed * find_share(engine, policy)), records * STORED) + min(int(allowed * WORK), records * MOST)
    return MemoryView(PROGRAM - beside + arrays + work, allowed, find_place(engine, records), beside)


def _count_anyway(policy: Policy, records: int) -> int:
    """The bytes of what is in memory wherever arrays lie."""
    swapped = len(policy.swapped_columns)
    blocks = records * (SWAP + SWAP_COLUMN * swapped) if swapped else 0
    return _count_listed(policy, records) + _count_pool(policy, records) + blocks


def _count_clustered(policy: Policy, records: int) -> int:
    """The bytes of arrays of records and of clusters: where few records make a cluster, the latter are most of it."""
    if _are_records(policy):
        return records * RECORDS
    if policy.method.family not in CLUSTERED:
        return 0
    fixed, of_record, of_cluster = CLUSTERED[policy.method.family]
    at_once = len(policy.noise_columns) if policy.method.family in ("vectors", "mdav") else 1
    return records * (fixed + at_once * of_record) + at_once * _count_clusters(policy, records) * of_cluster


def _are_records(policy: Policy) -> bool:
    """Whether every record is masked by itself: arrays of clusters are those of records then."""
    return policy.method.family == "columns" and policy.protect.k is None


def _count_pool(policy: Policy, records: int) -> int:
    """The bytes of the pool that synthetic rows are made of: it is no larger for very many records."""
    if policy.method.family != "whole-table":
        return 0
    columns = len(policy.released_columns)
    each = POOL + POOL_COLUMN * columns + POOL_PAIR * columns * (columns - 1) // 2
    return max(count_pool(records) * each - IN_PROGRAM, 0)


def _count_clusters(policy: Policy, records: int) -> int:
    most = records // (policy.protect.k or 1)
    return min(most, _count_rows(policy.generalised_columns.values(), records)) if policy.generalised_columns else most


def _count_named(policy: Policy, records: int, each: int) -> int:
    """So many bytes, and those of its column's name, for each row of a table that has one for each cluster and masked column. Of
    some methods there is no such table."""
    if _are_records(policy) or policy.method.family not in ("columns", "classes", "vectors", "mdav"):
        return 0
    return _count_clusters(policy, records) * sum(each + len(name.encode()) for name in policy.noise_columns)


def find_place(engine: str, records: int) -> Engine:
    """Whose arrays of so many records are, that do not lie in memory: those of few are this machine's in any case."""
    return "spark" if engine == "spark" and is_shared(records) else "duckdb"


def find_share(engine: str, policy: Policy) -> Fraction:
    """What of the memory is DuckDB's: half of it where arrays lie on disk, however short."""
    return DATABASE_ALONE if engine in ALONE and goes_to_disk(policy) else DATABASE


def _count_listed(policy: Policy, records: int) -> int:
    """The bytes of what is looked at one by one: rows of quasi-identifiers, and values that have labels."""
    labels = sum(
        _count_rows([column], records) * (LABELLED + LABEL * column.hierarchy.levels)
        for column in policy.generalised_columns.values()
    )
    return _count_combinations(policy, records) * COMBINATION + labels


def _count_combinations(policy: Policy, records: int) -> int:
    """How many different rows the released quasi-identifiers may have, which are looked at one by one."""
    columns = [policy.released_columns[name] for name in policy.released_quasi]
    return _count_rows(columns, records, clamps=policy.clamps)


def _count_rows(columns: Iterable[object], records: int, *, clamps: bool = False) -> int:
    """How many different rows of these columns there may be."""
    most = 1
    for column in columns:
        if isinstance(column, ListedColumn):
            most *= len(column.entries) + 1
        elif isinstance(column, GeneraliseColumn):
            most *= column.hierarchy.most_values + len(column.reasons)
        else:
            most *= column.coded_grid.width + 2 if isinstance(column, NoiseColumn) and clamps else records
        if most >= records:
            return records
    return most


def check_memory(site: Site, policy: Policy, records: int, *, where: str) -> None:
    """Refuse a release that needs more memory than a run may take; nothing is charged for it yet."""
    memory = _find_forecast(site, policy)(records)
    if memory.is_enough:
        return
    whose = "this machine has" if site.said_memory is None else "site.yaml allows it"
    gigabytes = math.ceil(find_enough(policy, records, engine=site.engine) / (1 << 30))
    said = forecast_memory(policy, records, allowed=site.memory, engine=site.engine)  # as it will be when site.yaml says it
    there = math.ceil((gigabytes * (1 << 30) + said.beside) / (1 << 30))
    elsewhere = (
        " Or say 'engine: duckdb' there: arrays lie on disk then."
        if site.engine == "memory" and forecast_memory(policy, records, allowed=site.memory, engine="duckdb").is_enough
        else ""
    )
    raise OutOfSpace(
        f"a release of {records:,} records needs about {format_size(memory.needed)} of memory, and {whose} "
        f"{format_size(memory.allowed)}. Nothing is charged.",
        where=where,
        remedy=f"Run it where {there} GiB are to be had, and say 'memory: {gigabytes} GiB' in site.yaml; or release fewer "
        f"records at a time.{elsewhere}",
    )


def find_enough(policy: Policy, records: int, *, engine: str = "memory") -> int:
    """The least that a run must be allowed to take, about."""
    low, high = 0, 1 << 60
    while low < high:
        middle = (low + high) // 2
        is_enough = forecast_memory(policy, records, allowed=middle, engine=engine).is_enough
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return low


def describe_place(engine: str) -> str:
    """Where arrays lie that are not in memory."""
    return "on a cluster" if engine == "spark" else "on disk"


def describe_memory(memory: MemoryView, records: int) -> str:
    """It in a line for a person."""
    about = f"about {format_size(memory.needed)} of {format_size(memory.allowed)} for {records:,} rows"
    if memory.engine != "memory":
        about += f", arrays {describe_place(memory.engine)}"
    if memory.beside:
        about += f", beside {format_size(memory.beside)} for the program"
    return about if memory.is_enough else f"{about}: a run is refused before anything is charged"
