"""Promises that are counted: how small the groups of a released table are, and what the confidence boxes of its records hold.

Counted here in plain words of the definitions, and not by the functions that the stages use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from release_pipeline.claims.trials import release_tables
from release_pipeline.errors import InvalidArgument
from release_pipeline.policy import Policy
from release_pipeline.privacy.standing_out import confidence_width
from release_pipeline.stages.strategies import CLASS, RECORD

NOBODY = 10**9  # what was seen where no record had any


def count_smallest(policy: Policy, tables: Sequence[pa.Table], names: Sequence[str], *, draws: int) -> tuple[int, int]:
    """The smallest group of records with equal entries in these columns, in so many releases of each table; and how many releases
    that were."""
    smallest, releases = NOBODY, 0
    for number, table in enumerate(tables):
        for released, _ in release_tables(policy, table, draws=draws, purpose=f"groups {number}"):
            releases += 1
            rows = zip(*(released.column(name).to_pylist() for name in names), strict=True)
            smallest = min([smallest, *Counter(rows).values()])
    return smallest, releases


def count_intervals(policy: Policy, tables: Sequence[pa.Table], *, draws: int) -> tuple[int, int]:
    """The fewest originals that the confidence box of a released record holds, among those that hold any: originals of its class,
    as near to its released numbers as the noise of its class goes with that confidence."""
    rule = policy.suppress
    confidence = rule.confidence if rule is not None else None
    if confidence is None:
        raise InvalidArgument("the policy suppresses nothing by confidence, so that no interval is promised.", where="suppress")
    fewest, releases = NOBODY, 0
    for number, table in enumerate(tables):
        for released, made in release_tables(policy, table, draws=draws, purpose=f"intervals {number}"):
            releases += 1
            if released.num_rows:
                fewest = min(fewest, _fewest_inside(policy, table, released, made, confidence))
    return fewest, releases


def _fewest_inside(policy: Policy, table: pa.Table, released: pa.Table, made: dict[str, pa.Table], confidence: Decimal) -> int:
    names = list(policy.noise_columns)
    group = made["membership"].column(CLASS).to_numpy()
    own = released.column(RECORD).to_numpy()
    inside = np.ones((len(own), len(group)), dtype=np.bool_)
    inside &= group[own][:, np.newaxis] == group
    scales = {name: np.zeros(0, dtype=np.int64) for name in names}
    of = np.array(made["statistics"].column("column_name").to_pylist())
    for name in names:
        scales[name] = made["statistics"].column("scale").to_numpy()[of == name]
    for name, column in policy.noise_columns.items():
        grid = column.exact_grid
        original, seen = grid.quantise(table.column(name).to_numpy()), grid.quantise(released.column(name).to_numpy())
        reach = np.array([confidence_width(int(scale), confidence, len(names)) for scale in scales[name][group[own]]])
        inside &= np.abs(seen[:, np.newaxis] - original) <= reach[:, np.newaxis]
    counts = inside.sum(axis=1)
    return int(counts[counts > 0].min(initial=NOBODY))
