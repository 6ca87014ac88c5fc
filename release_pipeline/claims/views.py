"""An attacker's views of a release, as numbers of what was seen: as much as the claim covers, and no more.

A column's list is viewed without the other columns of its rows. A single centroid or record is located as nobody outside could,
which only makes the attacker stronger. Values that matter are *landmarks*: the ends of the domain, and the centroids of both
tables without noise. Values between two landmarks are treated alike.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.promises import Both, Codes, count_learnt
from release_pipeline.claims.tables import Pair
from release_pipeline.claims.trials import Counted, Noiseless, Seen, derive_secret, read_records, say_nothing
from release_pipeline.masking import BLOCKS, CELLS, PAIRS, find_strategy
from release_pipeline.masking.whole_table import read_measured
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.by_value.noise_laws import Noise
from release_pipeline.mechanisms.whole_table import Measured
from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import WholeTableFamily, declare_columns, pick_synthetic
from release_pipeline.policy.file.options import WholeTableOptions
from release_pipeline.rows.columns import find_entries, spell_entries

BINS, FEW = 32, 10  # the most groups of figures, and the fewest figures in a group
MOST_CLUSTERS = 4  # for which all assignments of vectors are tried
_NO_NOISE = 1e-9  # the scale of a centroid without noise, as a number that can be divided by
MOST_CODES = 0.25  # of the draws: if nearly every draw shows something different, nothing can be learnt from frequencies
Look: TypeAlias = Callable[[Seen], npt.NDArray[Any]]


def look_at_list(name: str, landmarks: FloatArray, both: tuple[Noiseless | None, Noiseless | None]) -> dict[str, Look]:
    """Return views of the list of a column's released values, and of the order in which they are."""
    looks: dict[str, Look] = {
        "values, sorted": lambda seen: np.sort(seen.values[name], axis=1),
        "places between landmarks, sorted": lambda seen: np.sort(_places(seen.values[name], landmarks), axis=1),
        "how many lie at each end": lambda seen: _count_ends(_places(seen.values[name], landmarks)),
        "the mean": lambda seen: np.nanmean(np.where(seen.order >= 0, seen.in_rows(name), np.nan), axis=1),
        "the first and the last row": lambda seen: _places(seen.in_rows(name)[:, [0, -1]], landmarks),
    }
    first, second = both
    if first is not None and second is not None and first.centroids[name].shape == second.centroids[name].shape:
        looks["likelihood ratio of the centroids"] = partial(_log_ratio, name=name, first=first, second=second)
    return looks


def look_at_lists(names: Sequence[str], of_each: Mapping[str, dict[str, Look]]) -> dict[str, Look]:
    """Return views of several columns at once, none of them row by row."""
    looks: dict[str, Look] = {}
    for view in ("places between landmarks, sorted", "how many lie at each end"):
        parts = [of_each[name][view] for name in names]
        looks[f"{view}, in all columns"] = lambda seen, parts=parts: np.concatenate([look(seen) for look in parts], axis=1)
    for a, b in combinations(names[:4], 2):
        looks[f"how many values {a} and {b} have in common, rank by rank"] = lambda seen, a=a, b=b: np.sum(
            np.sort(seen.values[a], axis=1) == np.sort(seen.values[b], axis=1), axis=1
        )
    ratios = [of_each[name].get("likelihood ratio of the centroids") for name in names]
    if all(ratio is not None for ratio in ratios):
        looks["likelihood ratio of all centroids"] = lambda seen: np.sum([look(seen) for look in ratios if look], axis=0)
    return looks


def look_at_rows(
    names: Sequence[str], landmarks: Mapping[str, FloatArray], both: tuple[Noiseless | None, Noiseless | None]
) -> dict[str, Look]:
    """Return views of a table row by row, and of which rows share everything."""

    def places(seen: Seen) -> IntArray:
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
    first, second = both
    if first is not None and second is not None and len(first.size) <= MOST_CLUSTERS:
        looks["likelihood ratio of the vectors"] = partial(_log_ratio_of_vectors, names=names, first=first, second=second)
    return looks


def look_at_centroid(names: Sequence[str], landmarks: Mapping[str, FloatArray], record: int) -> dict[str, Look]:
    """Return views of the centroid of one record's cluster: its value in these columns."""

    def values(seen: Seen) -> FloatArray:
        return np.stack([seen.values[name][:, record] for name in names], axis=1)

    return {
        "the value": values,
        "the place between landmarks": lambda seen: np.stack(
            [_places(seen.values[name][:, [record]], landmarks[name])[:, 0] for name in names], axis=1
        ),
    }


def number_shown(shown: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> Both | None:
    """Return what was shown in each draw of both tables, as numbers; None if it is different nearly each time."""
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
    learnt_codes = np.concatenate([codes[: len(part)] for codes, part in zip(both, learnt, strict=True)])
    return both if len(np.unique(learnt_codes)) <= MOST_CODES * len(learnt_codes) else None


def number_records(values: FloatArray, landmarks: Sequence[FloatArray]) -> Codes:
    """Return what one record shows in each draw of its columns (draws by columns), as numbers; -1 if it was not released."""
    code = np.zeros(len(values), dtype=np.int64)
    for column, marks in enumerate(landmarks):
        code = code * (2 * len(marks) + 2) + _places(values[:, [column]], marks)[:, 0] + 1
    return np.where(np.isnan(values).any(axis=1), -1, code)


def _places(values: FloatArray, landmarks: FloatArray) -> IntArray:
    """Return the positions of values among ascending landmarks: odd at a landmark, even between; -1 if there is no value."""
    below = np.searchsorted(landmarks, values, side="left")
    at = np.isin(values, landmarks)
    return np.where(np.isnan(values), -1, 2 * below + at)


def _count_ends(places: IntArray) -> IntArray:
    """Return how many are at the lowest landmark or below, and how many at the highest or above."""
    top = int(places.max(initial=0))
    return np.stack([np.sum((places >= 0) & (places <= 1), axis=1), np.sum(places >= top - 1, axis=1)], axis=1)


def _log_ratio(seen: Seen, *, name: str, first: Noiseless, second: Noiseless) -> FloatArray:
    """Return the logarithm of the likelihood ratio of each draw, for Laplace noise on the centroids in ascending order: computed
    by somebody who knows both tables and the scales. If order or domain were restored it is only a score."""
    starts = np.cumsum(first.size) - first.size
    centroids = np.sort(seen.values[name], axis=1)[:, starts]
    apart = np.abs(centroids - np.sort(first.centroids[name])) - np.abs(centroids - np.sort(second.centroids[name]))
    return (apart / np.maximum(first.scales[name], _NO_NOISE)).sum(axis=1)


def _log_ratio_of_vectors(seen: Seen, *, names: Sequence[str], first: Noiseless, second: Noiseless) -> FloatArray:
    """Return the logarithm of the likelihood ratio of each draw, for a release that is an unordered list of vectors, each as
    often as its cluster is large: over all ways in which clusters of their sizes could have given them. 0 if there is no
    answer."""
    sizes = first.size
    ways = [np.array(way) for way in permutations(range(len(sizes))) if np.array_equal(sizes[list(way)], sizes)]
    centroids = [np.stack([part.centroids[name] for name in names], axis=1) for part in (first, second)]
    scales = np.stack([first.scales[name] for name in names], axis=1)
    rows = np.stack([seen.in_rows(name) for name in names], axis=2)
    ratios = np.zeros(len(rows))
    for draw, table in enumerate(rows):
        vectors, counts = np.unique(table, axis=0, return_counts=True)
        by_size = np.argsort(counts, kind="stable")
        if not np.array_equal(counts[by_size], np.sort(sizes)):
            continue
        given = np.empty_like(vectors)
        given[np.argsort(sizes, kind="stable")] = vectors[by_size]
        fits = [
            np.logaddexp.reduce([-(np.abs(given[way] - of) / np.maximum(scales, _NO_NOISE)).sum() for way in ways])
            for of in centroids
        ]
        ratios[draw] = fits[1] - fits[0]
    return ratios


def _cut_figures(figures: FloatArray) -> FloatArray:
    """Return cut points that divide figures into about equally frequent groups; if there are few figures, all of them."""
    distinct = np.unique(figures)
    bins = min(BINS, max(len(figures) // FEW, 2))
    return distinct if len(distinct) <= bins else np.unique(np.quantile(figures, np.linspace(0, 1, bins + 1)[1:-1]))


# The view of an attacker on a method that counts by value, who has all noisy counts and knows both tables.
#
# The attacker also knows who is in which random part: parts are drawn without the data, and the claim holds for every draw. So
# the exact counts of both tables are known in the cells of each draw, and only which of the two was counted is unknown.


DECIMALS = 9  # of figures: sums of the same terms in another order must be equal
Units: TypeAlias = Mapping[str, IntArray]  # a table's numbers in grid units, by column


@dataclass(frozen=True, slots=True)
class NoisyList:
    """The noise of one list of counts or sums, and how far these are from the exact ones of the first and of the second table."""

    noise: Noise
    off_first: FloatArray
    off_second: FloatArray

    @property
    def log_ratio(self) -> float:
        """Return how much likelier these numbers are under the second table, in nats; (|y - c_first| - |y - c_second|) / t, added
        up, where the noise is Laplace's."""
        return float(self.noise.log_ratio(self.off_second, self.off_first).sum())

    def likeness(self, other: NoisyList) -> float:
        """Return how much more this list and another one have the same noise, lane by lane, if both are of the second table.
        Lanes in which the tables do not differ cancel; noise that is used twice shows in the others."""
        lanes, mine, its = min(len(self.off_first), len(other.off_first)), self.noise.spread, other.noise.spread
        first = np.abs(self.off_first[:lanes] / mine - other.off_first[:lanes] / its)
        second = np.abs(self.off_second[:lanes] / mine - other.off_second[:lanes] / its)
        return float((first - second).sum())


def compare_lists(noise: Noise, counts: IntArray, first: IntArray, second: IntArray) -> NoisyList:
    """Return noisy counts compared with the exact ones of either table."""
    return NoisyList(noise, counts - first.astype(np.float64), counts - second.astype(np.float64))


def show_counts(draws: Sequence[Mapping[str, Counted]], first: Units, second: Units) -> dict[str, npt.NDArray[Any]]:
    """Return what each draw shows of the columns that both tables have here, by view."""
    figures: dict[str, FloatArray] = defaultdict(lambda: np.zeros(len(draws)))
    cells, both = np.zeros((len(draws), 2), dtype=np.int64), (first, second)
    for draw, counted in enumerate(draws):
        stages_of = {
            (name, part, number): (stage, rows)
            for name in first
            for part, (stages, rows) in enumerate(zip(counted[name].stages, counted[name].rows, strict=True))
            for number, stage in enumerate(stages, 1)
        }
        lists = {
            key: compare_lists(stage.noise, stage.counts, *(_count(units[key[0]][rows], stage.edges) for units in both))
            for key, (stage, rows) in stages_of.items()
        }
        for (_, _, number), noisy_list in lists.items():
            figures["likelihood ratio of all counts"][draw] += noisy_list.log_ratio
            figures[f"likelihood ratio of stage {number}"][draw] += noisy_list.log_ratio
        for pair, noisy_list, other in _pair_lists(lists):
            figures[f"the same noise in {pair}"][draw] += noisy_list.likeness(other)
        edges = [stage.edges for stage, _ in stages_of.values()]
        cells[draw] = zlib.crc32(np.concatenate(edges).tobytes()), sum(map(len, edges))
    rounded = {view: figure.round(DECIMALS) for view, figure in figures.items()}
    return {"which cells were counted": cells[:, 0], "how many cells were counted": cells[:, 1], **rounded}


def _pair_lists(lists: Mapping[tuple[str, int, int], NoisyList]) -> Iterator[tuple[str, NoisyList, NoisyList]]:
    """Yield pairs of lists that must not have the same noise: of two stages, two columns, or two parts."""
    for (key, noisy_list), (other_key, other) in combinations(lists.items(), 2):
        differs = [a != b for a, b in zip(key, other_key, strict=True)]
        if differs == [False, False, True]:
            yield f"stages {key[2]} and {other_key[2]}", noisy_list, other
        elif differs == [True, False, False]:
            yield f"columns {key[0]} and {other_key[0]}", noisy_list, other
        elif differs == [False, True, False]:
            yield "two parts", noisy_list, other


def _count(units: IntArray, edges: IntArray) -> IntArray:
    """Return how many of these numbers are in each cell."""
    return np.bincount(np.searchsorted(edges, units, side="right") - 1, minlength=len(edges) - 1)


# The view of an attacker on a method that counts a whole table, who has all of its noisy counts and knows both tables.
#
# Rows are made from the noisy counts, and reveal no more. Given the cells, which are visible, the exact counts of both tables are
# known in them, and only which of the two was counted is unknown; cells themselves depend on the records by noisy cut points.


RECORDS = 40  # so few that one record is a large part of every node
Shown: TypeAlias = dict[str, npt.NDArray[Any]]
_FAMILY = WholeTableFamily(WholeTableOptions)


def make_whole_pairs(policy: Policy) -> list[Pair]:
    """Return neighbours that differ in all columns at once: one end of each column against the other."""
    declared, people = declare_columns(policy.columns), policy.records_per_person
    rest = RECORDS - people
    even = {name: np.rint(np.linspace(0, column.width, rest)).astype(np.int64) for name, column in declared.items()}
    middle = {name: column.width // 2 for name, column in declared.items()}
    heap = {name: np.full(rest, entry, dtype=np.int64) for name, entry in middle.items()}
    low = {name: int(column.is_wide) for name, column in declared.items()}  # ends are separate cells, wherever cuts are
    high = {name: column.width - low[name] for name, column in declared.items()}
    beside = {name: min(column.width // 2 + 1, column.width) for name, column in declared.items()}
    last = {name: column.width + column.labels for name, column in declared.items()}
    return [
        Pair(description, _spell(policy, others, before, people), _spell(policy, others, after, people), people)
        for description, others, before, after in (
            ("one moves past all of an even spread", even, low, high),
            ("one moves from one side of a heap to the other", heap, low, high),
            ("one leaves a heap for the entry beside it", heap, middle, beside),
            ("one loses all values", even, low, last),
        )
    ]


def _spell(policy: Policy, others: Mapping[str, IntArray], first: Mapping[str, int], people: int) -> pa.Table:
    counted = pick_synthetic(policy.columns)
    return pa.table(
        {
            name: spell_entries(counted[name], np.append(np.full(people, first[name]), entries).astype(np.int64))
            for name, entries in others.items()
        }
    )


def show_whole(policy: Policy, pair: Pair, *, draws: int, purpose: str) -> tuple[Shown, Shown]:
    """Return what each draw shows, of either table, by view."""
    first, second = (_show(policy, pair, side, draws=draws, purpose=purpose) for side in range(2))
    return first, second


def _show(policy: Policy, pair: Pair, side: int, *, draws: int, purpose: str) -> Shown:
    names, strategy = list(declare_columns(policy.columns)), find_strategy(policy)
    design = _FAMILY.declare(policy, pair.first.num_rows)
    exact = [{name: _entries(policy, name, table) for name in names} for table in (pair.first, pair.second)]
    read = read_records(pair.second if side else pair.first)
    figures: dict[str, FloatArray] = defaultdict(lambda: np.zeros(draws))
    cells = np.zeros((draws, 1 + len(design.cuts)), dtype=np.int64)
    for draw in range(draws):
        secret = derive_secret(purpose, "noise", side, draw)
        made = strategy.measure(read, secret=secret, context=(), progress=say_nothing)
        measured = read_measured(names, design, made[CELLS], made.get(BLOCKS, made[PAIRS]))
        lists = dict(_list_all(names, measured, exact))
        for columns, noisy_list in lists.items():
            figures["likelihood ratio of all counts"][draw] += noisy_list.log_ratio
            figures[f"likelihood ratio of {columns}"][draw] += noisy_list.log_ratio
        for (columns, noisy_list), (other_columns, other) in combinations(lists.items(), 2):
            figures[f"the same noise in {columns} and {other_columns}"][draw] += noisy_list.likeness(other)
        for column, name in enumerate(names):
            if design.columns[column].labels:
                # noise that adds up to 0 over the values is no likelier of either table, but their number is public
                valued = len(measured.cells[column].edges) - 1
                figures[f"how many have a value of {name}"][draw] = measured.margins[column][:valued].sum()
        edges = [measured.cells[column].edges for column in design.cuts]
        cells[draw, 0] = zlib.crc32(b"".join(part.tobytes() for part in edges))
        cells[draw, 1:] = [part[len(part) // 2] for part in edges]
    shown: Shown = {view: figure.round(DECIMALS) for view, figure in figures.items()}
    if design.cuts:
        shown["which cells were counted"] = cells[:, 0]
        shown |= {f"where the middle cell of {names[column]} begins": cells[:, 1 + i] for i, column in enumerate(design.cuts)}
    return shown


def _list_all(names: list[str], measured: Measured, exact: list[dict[str, IntArray]]) -> Iterator[tuple[str, NoisyList]]:
    """Yield the counts of every column, and of every pair, or of columns that were counted together: pairs are sums of these."""
    groups: list[list[IntArray]] = []
    for column, name in enumerate(names):
        cells = [measured.cells[column].find(entries[name]) for entries in exact]
        groups.append([measured.groups[column][part] for part in cells])
        yield name, _compare_codes(measured.design.margins, measured.margins[column], cells)
    for columns, table in measured.tables.items():
        codes = [np.ravel_multi_index([groups[column][side] for column in columns], table.counts.shape) for side in range(2)]
        yield " with ".join(names[column] for column in columns), _compare_codes(table.noise, table.counts.ravel(), codes)


def _compare_codes(noise: Noise, counts: IntArray, codes: Sequence[IntArray]) -> NoisyList:
    first, second = (np.bincount(part, minlength=len(counts)) for part in codes)
    return compare_lists(noise, counts, first, second)


def _entries(policy: Policy, name: str, table: pa.Table) -> IntArray:
    return find_entries(pick_synthetic(policy.columns)[name], table.column(name))
