"""What became of the means of groups: of every column of numbers in every group of every column of categories, over the standard
deviation of the numbers, beside those of as many original records drawn anew with replacement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.privacy.utility import variance_of
from release_pipeline.stages.column_table import MISSING, number_cells

LEAST = 10  # records of a group, before and after: of fewer a mean would tell of single persons
WORST = 5  # groups that are named

Numbers = npt.NDArray[np.float64]  # NaN: no value
Codes = npt.NDArray[np.int32]  # the number of each record's group, `MISSING` of one that is in none


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a column, and that of each record before, after, and drawn anew."""

    names: Sequence[str]
    was: Codes
    now: Codes
    anew: Codes

    @classmethod
    def of(cls, before: pa.ChunkedArray, after: pa.ChunkedArray, anew: npt.NDArray[np.intp]) -> Grouping:
        """By the texts of originals, ascending; blank cells are in no group."""
        known, was = number_cells(before)
        others, now = number_cells(after)
        texts = [str(text) for text in known.to_pylist()]
        names = sorted({text for text in texts if text})
        place = {text: number for number, text in enumerate(names)}
        was, now = (
            np.array([*(place.get(text, MISSING) for text in told), MISSING], dtype=np.int32)[numbers]
            for told, numbers in ((texts, was), ([str(text) for text in others.to_pylist()], now))
        )
        return cls(names, was, now, was[anew])


def measure_group_means(
    labels: Mapping[str, Grouping],
    numbers: Iterable[tuple[str, tuple[Numbers, Numbers]]],
    anew: npt.NDArray[np.intp],
) -> dict[str, Any] | None:
    """How far means are off, a mean over all that were compared and weighted by their records, with that of records drawn anew;
    and the worst of all. `numbers`: columns before and after, one after the other. None where nothing can be compared."""
    offs, chances, weights = list[float](), list[float](), list[int]()
    named: list[dict[str, Any]] = []
    for column, (before, after) in numbers:
        known = before[np.isfinite(before)]
        spread = float(np.sqrt(variance_of(known))) if len(known) else 0.0
        del known
        if not spread > 0:
            continue
        drawn = before[anew]
        for by, group in labels.items():
            sides = ((group.was, before), (group.now, after), (group.anew, drawn))
            found = [_find_means(*side, len(group.names)) for side in sides]
            for at, label in enumerate(group.names):
                if min(int(counts[at]) for _, counts in found) < LEAST:
                    continue
                original, released, again = (float(means[at]) for means, _ in found)
                offs.append(abs(released - original) / spread)
                chances.append(abs(again - original) / spread)
                weights.append(int(found[0][1][at]))
                one = {"by": by, "label": label, "column": column, "original": original, "released": released}
                named.append({**one, "off": offs[-1], "records": weights[-1]})
    if not named:
        return None
    mean, by_chance = (float(np.average(each, weights=weights)) for each in (offs, chances))
    worst = sorted(named, key=lambda group: -group["off"])[:WORST]
    return {"mean": mean, "by_chance": by_chance, "compared": len(named), "worst": worst}


def _find_means(codes: Codes, values: Numbers, groups: int) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The mean of each group, and how many of its records have a value; 0 where none has."""
    known = np.isfinite(values) & (codes != MISSING)
    counts = np.bincount(codes[known], minlength=groups)
    sums = np.bincount(codes[known], weights=values[known], minlength=groups)
    return sums / np.maximum(counts, 1), counts
