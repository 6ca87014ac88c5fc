"""How far synthetic tables of one, two and three columns are from the original ones: total variation distances, beside those of
as many original records drawn anew with replacement, which is what chance alone would do to the very table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions

GROUPS = 12  # of a column of numbers, of about as many original records each; so many values of others, the rare ones together
MOST_TRIPLES = 100  # drawn at random, where there are more
WORST = 5  # pairs that are named

Codes = Mapping[str, tuple[IntArray, IntArray]]


def measure_structure(entries: Codes, nominal: Sequence[str], stream: NoiseStream) -> dict[str, Any]:
    """Of every column, every pair, and some sets of three: the mean distance, and that of records drawn anew; of pairs also the
    worst. `entries`: of every column before and after."""
    groups = {name: _group(*both, is_nominal=name in nominal) for name, both in entries.items()}
    count = len(next(iter(groups.values()))[0])
    anew = draw_anew(count, stream)
    names = list(groups)
    triples = list(combinations(names, 3))
    drawn: list[int] = np.sort(shuffled_positions(len(triples), stream)[:MOST_TRIPLES]).tolist() if triples else []
    chosen = [triples[place] for place in drawn]
    pairs = {pair: _distance(groups, pair, None) for pair in combinations(names, 2)}
    worst = sorted(pairs, key=lambda pair: -pairs[pair])[:WORST]
    return {
        "columns": {name: _distance(groups, (name,), None) for name in names},
        "columns_by_chance": _mean([_distance(groups, (name,), anew) for name in names]),
        "pairs": _mean(list(pairs.values())),
        "pairs_by_chance": _mean([_distance(groups, pair, anew) for pair in pairs]),
        "worst_pairs": [{"one": one, "other": other, "distance": pairs[one, other]} for one, other in worst],
        "triples": _mean([_distance(groups, triple, None) for triple in chosen]),
        "triples_by_chance": _mean([_distance(groups, triple, anew) for triple in chosen]),
        "triples_tried": len(chosen),
    }


def draw_anew(count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """As many records as there are, with replacement."""
    words = stream.further_words(stream.take_lanes(1), 0, 0)
    return np.fromiter((next(words) % count for _ in range(count)), dtype=np.intp, count=count)


def _mean(distances: Sequence[float]) -> float | None:
    return float(np.mean(distances)) if distances else None


def _group(before: IntArray, after: IntArray, *, is_nominal: bool) -> tuple[IntArray, IntArray]:
    """The group of each entry: by the ranks of originals, or the commonest entries alone and the others together."""
    if not is_nominal and len(np.unique(before)) > GROUPS:
        cuts = np.unique(np.sort(before)[len(before) * np.arange(1, GROUPS) // GROUPS])
        return np.searchsorted(cuts, before, side="right"), np.searchsorted(cuts, after, side="right")
    counts = np.bincount(np.append(before, after))
    common = np.argsort(-np.bincount(before, minlength=len(counts)), kind="stable")[: GROUPS - 1]
    place = np.full(len(counts), len(common), dtype=np.int64)
    place[common] = np.arange(len(common))
    return place[before], place[after]


def _distance(groups: Codes, names: Sequence[str], anew: npt.NDArray[np.intp] | None) -> float:
    """Half the sum of the differences of the shares of all cells; with `anew`, of originals drawn anew instead of what is
    synthetic."""
    before, after = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for name in names:
        was, now = groups[name]
        size = int(max(was.max(), now.max())) + 1
        before = before * size + was
        after = after * size + (now if anew is None else was[anew])
    size = int(max(before.max(), after.max())) + 1
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (before, after)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)
