"""What swapping asks of the rest of a policy: blocks of k people or more, all with the same kept entries."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.options import AnyOptions
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.sections import Person
from release_pipeline.policy.suppression import Suppress
from release_pipeline.policy.text import Problem
from release_pipeline.privacy.figures import join_last


def check_swap(parts: Parts, protect: AnyOptions) -> Iterator[Problem]:
    """Columns that would keep their place though others change it, groups that are smaller than a block, and random parts."""
    swap = protect.swapped
    for name, column in parts.kept.items():
        if column.is_swapped and swap is None:
            what = f"nothing says in which blocks the entries of '{name}' change places."
            yield ("columns", name, "do"), what, "Add swap: {k: 10, within: kept} under protect, or drop the column."
        if swap is not None and column.role == "confidential" and not column.is_swapped:
            what = f"'{name}' would keep its place while other columns change theirs, and help to tell whose row it is."
            yield ("columns", name, "do"), what, "Say do: swap, or drop the column."
    if swap is None:
        return
    if protect.partitions is not None:
        what = "blocks are made of all records together, and random parts are masked each on its own."
        yield ("protect", "swap"), what, "Remove partitions, or swap."
    records = parts.person.records if isinstance(parts.person, Person) else 1
    least = swap.k * records
    if parts.gates is not None and parts.gates.min_rows is not None and parts.gates.min_rows < least:
        what = f"min_rows is below {least}, the records of one block in which values are swapped."
        yield ("gates", "min_rows"), what, "Lower k of swap, or raise min_rows."
    quasi = [name for name, column in parts.kept.items() if column.role in RECOGNISED]
    if not quasi or not parts.complete:
        return
    each = "" if records == 1 else f", {swap.k} for each of the {records} records that one may have"
    if not isinstance(parts.suppress, Suppress) or parts.suppress.quasi_groups_below < least:
        what = f"a block has {least} records or more{each}, and groups of {join_last(quasi)} may have fewer."
        remedy = f"Write suppress: {{quasi_groups_below: {least}, at_most: 5%}} with the share you mean."
        yield ("suppress",), what, remedy
