"""What an attacker looks at in a release, as numbers of what was seen: as much as the claim covers, and no more.

A column's list is looked at without the other columns of its rows; one centroid or one record on its own is found as nobody could
find it from outside, which only makes the attacker stronger. Places that matter are *landmarks*: the ends of the domain, and what
the centroids of both tables are without noise. Between them values are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.claims.events import Both, Codes, count_learnt
from release_pipeline.claims.trials import Floats, Ints, Noiseless, Seen

BINS, FEW = 32, 10  # groups of figures at the most, and how many figures a group has at the least
MOST_CLUSTERS = 4  # that vectors are given to in every way
_NO_NOISE = 1e-9  # the scale of a centroid without noise, as a number that one may divide by
MOST_CODES = 0.25  # of the draws: where nearly every draw shows something else, nothing can be learnt from how often
Look: TypeAlias = Callable[[Seen], npt.NDArray[Any]]


def look_at_list(name: str, landmarks: Floats, both: tuple[Noiseless | None, Noiseless | None]) -> dict[str, Look]:
    """Ways to look at the list of a column's released values, and at the order in which they lie."""
    looks: dict[str, Look] = {
        "values, sorted": lambda seen: np.sort(seen.values[name], axis=1),
        "places between landmarks, sorted": lambda seen: np.sort(_places(seen.values[name], landmarks), axis=1),
        "how many lie at each end": lambda seen: _count_ends(_places(seen.values[name], landmarks)),
        "the mean": lambda seen: np.nanmean(np.where(seen.order >= 0, seen.in_rows(name), np.nan), axis=1),
        "the first and the last row": lambda seen: _places(seen.in_rows(name)[:, [0, -1]], landmarks),
    }
    one, other = both
    if one is not None and other is not None and one.centroids[name].shape == other.centroids[name].shape:
        mine, its = one, other
        looks["likelihood ratio of the centroids"] = lambda seen: _log_ratio(seen.values[name], name, mine, its)
    return looks


def look_at_lists(names: Sequence[str], of_each: Mapping[str, dict[str, Look]]) -> dict[str, Look]:
    """Ways to look at several columns at once, none of them row by row."""
    looks: dict[str, Look] = {}
    for view in ("places between landmarks, sorted", "how many lie at each end"):
        parts = [of_each[name][view] for name in names]
        looks[f"{view}, in all columns"] = lambda seen, parts=parts: np.concatenate([look(seen) for look in parts], axis=1)
    for one, other in combinations(names[:4], 2):
        looks[f"how many values {one} and {other} have in common, rank by rank"] = lambda seen, one=one, other=other: np.sum(
            np.sort(seen.values[one], axis=1) == np.sort(seen.values[other], axis=1), axis=1
        )
    ratios = [of_each[name].get("likelihood ratio of the centroids") for name in names]
    if all(ratio is not None for ratio in ratios):
        looks["likelihood ratio of all centroids"] = lambda seen: np.sum([look(seen) for look in ratios if look], axis=0)
    return looks


def look_at_rows(
    names: Sequence[str], landmarks: Mapping[str, Floats], both: tuple[Noiseless | None, Noiseless | None]
) -> dict[str, Look]:
    """Ways to look at a table row by row, and at which rows share everything."""

    def places(seen: Seen) -> Ints:
        code = np.zeros(seen.order.shape, dtype=np.int64)
        for name in names:
            code = code * (2 * len(landmarks[name]) + 2) + _places(seen.in_rows(name), landmarks[name]) + 1
        return code

    looks: dict[str, Look] = {
        "places of rows between landmarks, sorted": lambda seen: np.sort(places(seen), axis=1),
        "the first and the last row, whole": lambda seen: places(seen)[:, [0, -1]],
        "how many rows lie at an end, by column": lambda seen: np.concatenate(
            [_count_ends(_places(seen.values[name], landmarks[name])) for name in names], axis=1
        ),
    }
    one, other = both
    if one is not None and other is not None and len(one.size) <= MOST_CLUSTERS:
        mine, its = one, other
        looks["likelihood ratio of the vectors"] = lambda seen: _log_ratio_of_vectors(seen, names, mine, its)
    return looks


def look_at_centroid(names: Sequence[str], landmarks: Mapping[str, Floats], record: int) -> dict[str, Look]:
    """Ways to look at the one centroid that a record's cluster has: its value in these columns."""

    def values(seen: Seen) -> Floats:
        return np.stack([seen.values[name][:, record] for name in names], axis=1)

    return {
        "the value": values,
        "the place between landmarks": lambda seen: np.stack(
            [_places(seen.values[name][:, [record]], landmarks[name])[:, 0] for name in names], axis=1
        ),
    }


def number_shown(shown: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> Both | None:
    """What was shown of each draw of both tables, by number; None where it is something else nearly each time."""
    rows = [part if part.ndim == 2 else part[:, np.newaxis] for part in shown]
    if rows[0].shape[1] != rows[1].shape[1]:
        return None
    learnt = [part[: count_learnt(len(part))] for part in rows]
    together = np.concatenate(rows)
    if together.shape[1] == 1 and together.dtype.kind == "f":
        cuts = _cut_figures(np.concatenate(learnt))
        together = np.searchsorted(cuts, together) * 2 + np.isin(together, cuts)
    _, codes = np.unique(together, axis=0, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    both = codes[: len(rows[0])], codes[len(rows[0]) :]
    known = np.concatenate([codes[: len(part)] for codes, part in zip(both, learnt, strict=True)])
    return both if len(np.unique(known)) <= MOST_CODES * len(known) else None


def number_records(values: Floats, landmarks: Sequence[Floats]) -> Codes:
    """What one record shows in each draw, of its columns (draws by columns), as numbers; -1 where it was not released."""
    code = np.zeros(len(values), dtype=np.int64)
    for place, marks in enumerate(landmarks):
        code = code * (2 * len(marks) + 2) + _places(values[:, [place]], marks)[:, 0] + 1
    return np.where(np.isnan(values).any(axis=1), -1, code)


def _places(values: Floats, landmarks: Floats) -> Ints:
    """Where values lie among ascending landmarks: odd at one, even between; -1 where there is none."""
    below = np.searchsorted(landmarks, values, side="left")
    at = np.isin(values, landmarks)
    return np.where(np.isnan(values), -1, 2 * below + at)


def _count_ends(places: Ints) -> Ints:
    """How many lie at the lowest landmark or below, and how many at the highest or above."""
    top = int(places.max(initial=0))
    return np.stack([np.sum((places >= 0) & (places <= 1), axis=1), np.sum(places >= top - 1, axis=1)], axis=1)


def _log_ratio(values: Floats, name: str, one: Noiseless, other: Noiseless) -> Floats:
    """The logarithm of the likelihood ratio, for Laplace noise on the centroids in ascending order: as somebody reckons who knows
    both tables and the scales. Where order or domain were restored it is a figure like any other."""
    starts = np.cumsum(one.size) - one.size
    centroids = np.sort(values, axis=1)[:, starts]
    apart = np.abs(centroids - np.sort(one.centroids[name])) - np.abs(centroids - np.sort(other.centroids[name]))
    return (apart / np.maximum(one.scales[name], _NO_NOISE)).sum(axis=1)


def _log_ratio_of_vectors(seen: Seen, names: Sequence[str], one: Noiseless, other: Noiseless) -> Floats:
    """The logarithm of the likelihood ratio of a release that is a list of vectors in no order, each as often as its cluster is
    large: over all ways in which clusters of their sizes could have given them. 0 where that cannot be told."""
    ways = [np.array(way) for way in permutations(range(len(one.size))) if np.array_equal(one.size[list(way)], one.size)]
    centroids = [np.stack([part.centroids[name] for name in names], axis=1) for part in (one, other)]
    scales = np.stack([one.scales[name] for name in names], axis=1)
    rows = np.stack([seen.in_rows(name) for name in names], axis=2)
    found = np.zeros(seen.draws)
    for draw, table in enumerate(rows):
        vectors, counts = np.unique(table, axis=0, return_counts=True)
        if len(vectors) != len(one.size):
            continue
        by_size = np.argsort(counts, kind="stable")
        if not np.array_equal(counts[by_size], np.sort(one.size)):
            continue
        given = np.empty_like(vectors)
        given[np.argsort(one.size, kind="stable")] = vectors[by_size]
        fits = [
            np.logaddexp.reduce([-(np.abs(given[way] - of) / np.maximum(scales, _NO_NOISE)).sum() for way in ways])
            for of in centroids
        ]
        found[draw] = fits[1] - fits[0]
    return found


def _cut_figures(figures: Floats) -> Floats:
    """Places that cut figures into about equally frequent groups; where there are few figures, all of them."""
    distinct = np.unique(figures)
    bins = min(BINS, max(len(figures) // FEW, 2))
    return distinct if len(distinct) <= bins else np.unique(np.quantile(figures, np.linspace(0, 1, bins + 1)[1:-1]))
