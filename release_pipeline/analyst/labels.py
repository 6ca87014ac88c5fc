"""A column of a release with what its entries mean in their place, as the card says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.facts import ColumnFacts, Facts, check_name
from release_pipeline.errors import InvalidArgument


def find_column(facts: Facts, name: str) -> ColumnFacts:
    """What the card says of a column; a name that it does not have is refused."""
    check_name(name)
    if name not in facts.columns:
        raise InvalidArgument("the release has no such column.", where=name, remedy=f"It has {', '.join(facts.columns)}.")
    return facts.columns[name]


def label_column(facts: Facts, data: Mapping[str, npt.NDArray[Any]], name: str, *, reasons: bool) -> npt.NDArray[np.object_]:
    """The labels of a column's entries, a text for each record: the entry itself where it has none; None where there is no value,
    or the reason with `reasons`."""
    labels = dict(find_column(facts, name).labels)
    if not labels:
        raise InvalidArgument(
            "the card says of no value of this column what it means.", where=name, remedy=f"Take it as it is: data['{name}']."
        )
    entries = [entry_of(cell) for cell in data[name].tolist()]
    told = [""] * len(entries)
    if reasons and f"{name}_missing" in data:
        told = [entry_of(cell) for cell in data[f"{name}_missing"].tolist()]
    found = [labels.get(entry, entry) if entry else reason or None for entry, reason in zip(entries, told, strict=True)]
    return np.array(found, dtype=np.object_)


def entry_of(cell: Any) -> str:
    """A cell as the card writes entries; an empty text for none."""
    if cell is None or cell != cell or str(cell) == "<NA>":
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
