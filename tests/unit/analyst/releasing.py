"""Releases of made-up tables, for tests of the analyst's kit: each column masked by itself as the facts say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from release_pipeline.analyst import Facts, Release
from release_pipeline.mechanisms import mask_column

SECRET = bytes(range(32))


def release_like(table: Mapping[str, Any], facts: Facts, *, secret: bytes = SECRET) -> Release:
    """The table as the facts' method of single columns releases it."""
    data: dict[str, Any] = {}
    for name, column in facts.columns.items():
        if name not in facts.masked:
            if name in table:
                data[name] = np.asarray(table[name])
            continue
        assert column.grid is not None
        assert column.epsilon is not None
        data[name] = mask_column(
            table[name],
            domain=(column.grid.lo, column.grid.hi),
            grid=column.grid.step,
            method=facts.method,
            epsilon=column.epsilon,
            k=facts.k,
            scope=facts.scope,
            consistency=facts.consistency,
            clamp=facts.clamped,
            on_grid=facts.on_grid,
            secret=secret,
            context=(name,),
        ).values
    return Release(facts, data)
