"""How much memory a release will need: known before anything is charged, so that no release dies of it afterwards.

The figures are measured (`python -m benchmarks scale`) and rounded up: the largest stage counts. A method that
masks column by column holds arrays of one column at a time, whatever number of columns there are; others hold them all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from release_pipeline.errors import OutOfSpace
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.privacy.catalogue import Family
from release_pipeline.store.memory import DATABASE, format_size

PROGRAM = 400 << 20  # bytes: the interpreter, the libraries, and arrays of fixed size
STORED = 150  # bytes of a record that DuckDB holds in memory where it may; beyond its share it goes on on disk
HELD: dict[Family, tuple[int, int]] = {  # bytes of a record in arrays: whatever the columns, and for each of them more
    "columns": (60, 0),
    "by-value": (85, 0),
    "vectors": (130, 48),
    "mdav": (130, 48),
    "classes": (160, 64),
    "whole-table": (160, 64),
}
PARTS = 32  # and for each column where random parts of the records are masked by themselves
WEIGHED, GROUPED = 40, 24  # and where records have weights; where the audit is by groups


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The memory of a run."""

    needed: Annotated[int, "bytes that a release of so many rows needs, about"]
    allowed: Annotated[int, "bytes that a run may take: what site.yaml says, or what the machine has"]

    @property
    def is_enough(self) -> bool:
        """Whether a run may begin."""
        return self.needed <= self.allowed


def forecast_memory(policy: Policy, records: int, *, allowed: int) -> MemoryView:
    """What a release of so many records will need where a run may take so much."""
    fixed, each = HELD[policy.method.family]
    each += PARTS if policy.parts > 1 else 0
    fixed += (WEIGHED if policy.weight is not None else 0) + (GROUPED if policy.audit.groups else 0)
    arrays = records * (fixed + each * len(policy.released_columns))
    return MemoryView(PROGRAM + arrays + min(int(allowed * DATABASE), records * STORED), allowed)


def check_memory(site: Site, policy: Policy, records: int, *, where: str) -> None:
    """Refuse a release that needs more memory than a run may take; nothing is charged for it yet."""
    memory = forecast_memory(policy, records, allowed=site.memory)
    if memory.is_enough:
        return
    whose = "this machine has" if site.said_memory is None else "site.yaml allows it"
    gigabytes = math.ceil(find_enough(policy, records) / (1 << 30))
    raise OutOfSpace(
        f"a release of {records:,} records needs about {format_size(memory.needed)} of memory, and {whose} "
        f"{format_size(memory.allowed)}. Nothing is charged.",
        where=where,
        remedy=f"Run it where {gigabytes} GiB are to be had, and say 'memory: {gigabytes} GiB' in site.yaml; or release fewer "
        f"records at a time.",
    )


def find_enough(policy: Policy, records: int) -> int:
    """The least that a run must be allowed to take, about."""
    least = forecast_memory(policy, records, allowed=0).needed
    return min(math.ceil(least / (1 - DATABASE)), least + records * STORED)


def describe_memory(memory: MemoryView, records: int) -> str:
    """It in a line for a person."""
    about = f"about {format_size(memory.needed)} of {format_size(memory.allowed)} for {records:,} rows"
    return about if memory.is_enough else f"{about}: a run is refused before anything is charged"
