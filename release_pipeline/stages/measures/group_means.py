"""What became of the means of groups: of every column of numbers in every group of every column of categories, over the standard
deviation of the numbers, beside those of as many original records drawn anew with replacement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

LEAST = 10  # records of a group, before and after: of fewer a mean would tell of single persons
WORST = 5  # groups that are named

Numbers = npt.NDArray[np.float64]  # NaN: no value
Labels = npt.NDArray[Any]


def measure_group_means(
    labels: Mapping[str, tuple[Labels, Labels]], numbers: Mapping[str, tuple[Numbers, Numbers]], anew: npt.NDArray[np.intp]
) -> dict[str, Any] | None:
    """How far means are off, a mean over all that were compared and weighted by their records, with that of records drawn anew;
    and the worst of all. `labels`, `numbers`: before and after. None where nothing can be compared."""
    offs, chances, weights = list[float](), list[float](), list[int]()
    named: list[dict[str, Any]] = []
    for column, (before, after) in numbers.items():
        spread = float(np.nanstd(before)) if np.isfinite(before).any() else 0.0
        if not spread > 0:
            continue
        for by, (was, now) in labels.items():
            groups, place = np.unique(was, return_inverse=True)
            matched = np.searchsorted(groups, now).clip(max=len(groups) - 1)
            there = groups[matched] == now
            sides = ((place, before), (matched[there], after[there]), (place[anew], before[anew]))
            found = [_find_means(*side, len(groups)) for side in sides]
            for at in range(len(groups)):
                label, fewest = str(groups[at]), min(int(counts[at]) for _, counts in found)
                if not label or fewest < LEAST:
                    continue
                original, released, drawn = (float(means[at]) for means, _ in found)
                offs.append(abs(released - original) / spread)
                chances.append(abs(drawn - original) / spread)
                weights.append(int(found[0][1][at]))
                group = {"by": by, "label": label, "column": column, "original": original, "released": released}
                named.append({**group, "off": offs[-1], "records": weights[-1]})
    if not named:
        return None
    mean, by_chance = (float(np.average(each, weights=weights)) for each in (offs, chances))
    worst = sorted(named, key=lambda group: -group["off"])[:WORST]
    return {"mean": mean, "by_chance": by_chance, "compared": len(named), "worst": worst}


def _find_means(place: npt.NDArray[np.intp], values: Numbers, groups: int) -> tuple[Numbers, npt.NDArray[np.intp]]:
    """The mean of each group, and how many of its records have a value; 0 where none has."""
    known = np.isfinite(values)
    counts = np.bincount(place[known], minlength=groups)
    sums: Any = np.bincount(place[known], weights=values[known], minlength=groups)
    return sums / np.maximum(counts, 1), counts
