"""What an attacker looks at in a release, as numbers of what was seen: as much as the claim covers, and no more.

A column's list is looked at without the other columns of its rows; one centroid or one record on its own is found as nobody could
find it from outside, which only makes the attacker stronger. Places that matter are *landmarks*: the ends of the domain, and what
the centroids of both tables are without noise. Between them values are alike.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.promises import Both, Codes, count_learnt
from release_pipeline.claims.tables import Pair
from release_pipeline.claims.trials import Counted, Ints, Noiseless, Seen, derive_secret, read_records, say_nothing
from release_pipeline.masking import BLOCKS, CELLS, PAIRS, find_strategy
from release_pipeline.masking.whole_table import read_measured
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.by_value.noise_laws import Noise
from release_pipeline.mechanisms.whole_table import Measured
from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import WholeTableFamily, declare_columns, pick_synthetic
from release_pipeline.policy.file.options import WholeTableOptions
from release_pipeline.rows.columns import find_entries, spell_entries

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


# What an attacker sees of a method that counts by value, who has all noisy counts and knows both
# tables.
#
# Who is in which random part the attacker knows too: that is drawn without the data, and the claim
# holds however it comes out. So the exact counts of both tables are known in the cells of each
# draw, and what is unknown is which of the two was counted.


DECIMALS = 9  # of figures: sums of the same terms in another order are the same figure
Units: TypeAlias = Mapping[str, Ints]  # a table's numbers in grid units, by column


@dataclass(frozen=True, slots=True)
class NoisyList:
    """Noisy counts or sums of one list, and how far they are from the exact ones of either table."""

    noise: Noise
    one: Floats
    other: Floats

    @property
    def log_ratio(self) -> float:
        """How much likelier these numbers are of the other table, in nats; (|y - c_one| - |y - c_other|) / t, added up, where the
        noise is Laplace's."""
        return float(self.noise.log_ratio(self.other, self.one).sum())

    def likeness(self, second: NoisyList) -> float:
        """How much more this list and a second one have the same noise, lane by lane, if both are of the other table. Lanes in
        which the tables do not differ cancel; noise that is drawn twice shows in the others."""
        lanes = min(len(self.one), len(second.one))
        mine, its = self.noise.spread, second.noise.spread
        apart = [np.abs(a[:lanes] / mine - b[:lanes] / its) for a, b in ((self.one, second.one), (self.other, second.other))]
        return float((apart[0] - apart[1]).sum())


def compare_lists(noise: Noise, counts: Ints, one: Ints, other: Ints) -> NoisyList:
    """Noisy counts beside the exact ones of either table."""
    return NoisyList(noise, counts - one.astype(np.float64), counts - other.astype(np.float64))


def show_counts(draws: Sequence[Mapping[str, Counted]], one: Units, other: Units) -> dict[str, npt.NDArray[Any]]:
    """What each draw shows of the columns that both tables have here, by the way of looking."""
    figures: dict[str, Floats] = defaultdict(lambda: np.zeros(len(draws)))
    cells = np.zeros((len(draws), 2), dtype=np.int64)
    for draw, counted in enumerate(draws):
        stages_of = {
            (name, part, number): (stage, rows)
            for name in one
            for part, (stages, rows) in enumerate(zip(counted[name].stages, counted[name].rows, strict=True))
            for number, stage in enumerate(stages, 1)
        }
        lists = {
            key: compare_lists(stage.noise, stage.counts, *(_count(units[key[0]][rows], stage.edges) for units in (one, other)))
            for key, (stage, rows) in stages_of.items()
        }
        for (_, _, number), found in lists.items():
            figures["likelihood ratio of all counts"][draw] += found.log_ratio
            figures[f"likelihood ratio of stage {number}"][draw] += found.log_ratio
        for words, first, second in _pair_lists(lists):
            figures[f"the same noise in {words}"][draw] += first.likeness(second)
        edges = [stage.edges for stage, _ in stages_of.values()]
        cells[draw] = zlib.crc32(np.concatenate(edges).tobytes()), sum(map(len, edges))
    rounded = {words: figure.round(DECIMALS) for words, figure in figures.items()}
    return {"which cells were counted": cells[:, 0], "how many cells were counted": cells[:, 1], **rounded}


def _pair_lists(lists: Mapping[tuple[str, int, int], NoisyList]) -> Iterator[tuple[str, NoisyList, NoisyList]]:
    """Lists whose noise must not be the same: of two stages, of two columns, of two parts."""
    for (first, one), (second, other) in combinations(lists.items(), 2):
        differs = [a != b for a, b in zip(first, second, strict=True)]
        if differs == [False, False, True]:
            yield f"stages {first[2]} and {second[2]}", one, other
        elif differs == [True, False, False]:
            yield f"columns {first[0]} and {second[0]}", one, other
        elif differs == [False, True, False]:
            yield "two parts", one, other


def _count(units: Ints, edges: Ints) -> Ints:
    """How many of these numbers are in each cell."""
    return np.bincount(np.searchsorted(edges, units, side="right") - 1, minlength=len(edges) - 1)


# What an attacker sees of a method that counts a whole table, who has all of its noisy counts and
# knows both tables.
#
# Rows are made of the noisy counts, and tell no more. Given the cells, which are seen, the exact
# counts of both tables are known in them, and what is unknown is which of the two was counted;
# cells themselves depend on the records by noisy cut points.


RECORDS = 40  # with few of them one is a large part of every node
Floats: TypeAlias = npt.NDArray[np.float64]
Shown: TypeAlias = dict[str, npt.NDArray[Any]]
_FAMILY = WholeTableFamily(WholeTableOptions)


def make_whole_pairs(policy: Policy) -> list[Pair]:
    """Neighbours that differ in all columns at once: the one ends of them against the others."""
    declared, people = declare_columns(policy.columns), policy.records_per_person
    last = {name: column.width + column.labels for name, column in declared.items()}
    rest = RECORDS - people
    tables: dict[str, tuple[dict[str, IntArray], dict[str, int], dict[str, int]]] = {}
    even = {name: np.rint(np.linspace(0, column.width, rest)).astype(np.int64) for name, column in declared.items()}
    middle = {name: np.full(rest, column.width // 2, dtype=np.int64) for name, column in declared.items()}
    inside = {name: int(column.is_wide) for name, column in declared.items()}  # ends are cells of their own, whatever is cut
    zeros, ends = inside, {name: column.width - inside[name] for name, column in declared.items()}
    tables["one moves past all of an even spread"] = even, zeros, ends
    tables["one moves from one side of a heap to the other"] = middle, zeros, ends
    beside = {name: min(column.width // 2 + 1, column.width) for name, column in declared.items()}
    tables["one leaves a heap for the entry beside it"] = (
        middle,
        {name: column.width // 2 for name, column in declared.items()},
        beside,
    )
    tables["one loses all values"] = even, zeros, last
    return [
        Pair(words, _spell(policy, others, first, people), _spell(policy, others, to, people), people)
        for words, (others, first, to) in tables.items()
    ]


def _spell(policy: Policy, others: Mapping[str, IntArray], first: Mapping[str, int], people: int) -> pa.Table:
    columns: dict[str, Any] = {}
    counted = pick_synthetic(policy.columns)
    for name, entries in others.items():
        columns[name] = spell_entries(counted[name], np.append(np.full(people, first[name]), entries).astype(np.int64))
    return pa.table(columns)


def show_whole(policy: Policy, pair: Pair, *, draws: int, purpose: str) -> tuple[Shown, Shown]:
    """What each draw shows, of either table, by the way of looking."""
    first, second = (_show(policy, pair, side, draws=draws, purpose=purpose) for side in range(2))
    return first, second


def _show(policy: Policy, pair: Pair, side: int, *, draws: int, purpose: str) -> Shown:
    names, strategy = list(declare_columns(policy.columns)), find_strategy(policy)
    design = _FAMILY.declare(policy, pair.one.num_rows)
    exact = [{name: _entries(policy, name, table) for name in names} for table in (pair.one, pair.other)]
    figures: dict[str, Floats] = defaultdict(lambda: np.zeros(draws))
    cells = np.zeros((draws, 1 + len(design.cuts)), dtype=np.int64)
    for draw in range(draws):
        secret = derive_secret(purpose, "noise", side, draw)
        table = pair.other if side else pair.one
        made = strategy.measure(read_records(table), secret=secret, context=(), progress=say_nothing)
        measured = read_measured(names, design, made[CELLS], made.get(BLOCKS, made[PAIRS]))
        lists = dict(_list_all(names, measured, exact))
        for words, found in lists.items():
            figures["likelihood ratio of all counts"][draw] += found.log_ratio
            figures[f"likelihood ratio of {words}"][draw] += found.log_ratio
        for (words, one), (others, other) in combinations(lists.items(), 2):
            figures[f"the same noise in {words} and {others}"][draw] += one.likeness(other)
        for place, name in enumerate(names):
            if design.columns[place].labels:
                # noise that adds up to 0 over the values is no likelier of either table, but their number is told
                valued = len(measured.cells[place].edges) - 1
                figures[f"how many have a value of {name}"][draw] = measured.margins[place][:valued].sum()
        edges = [measured.cells[place].edges for place in design.cuts]
        cells[draw, 0] = zlib.crc32(b"".join(found.tobytes() for found in edges))
        cells[draw, 1:] = [found[len(found) // 2] for found in edges]
    shown: Shown = {words: figure.round(DECIMALS) for words, figure in figures.items()}
    if design.cuts:
        shown["which cells were counted"] = cells[:, 0]
        shown |= {f"where the middle cell of {names[place]} begins": cells[:, 1 + i] for i, place in enumerate(design.cuts)}
    return shown


def _list_all(names: list[str], measured: Measured, exact: list[dict[str, IntArray]]) -> Iterator[tuple[str, NoisyList]]:
    """The counts of every column, and of every pair, or of the columns that were counted together: pairs are sums of these."""
    groups: list[list[IntArray]] = []
    for place, name in enumerate(names):
        cell = [measured.cells[place].find(entries[name]) for entries in exact]
        groups.append([measured.groups[place][found] for found in cell])
        yield name, _compare_codes(measured.design.margins, measured.margins[place], cell)
    for columns, own in measured.tables.items():
        both = [np.ravel_multi_index([groups[column][side] for column in columns], own.counts.shape) for side in range(2)]
        yield " with ".join(names[column] for column in columns), _compare_codes(own.noise, own.counts.ravel(), both)


def _compare_codes(noise: Noise, counts: IntArray, codes: Sequence[IntArray]) -> NoisyList:
    one, other = (np.bincount(found, minlength=len(counts)) for found in codes)
    return compare_lists(noise, counts, one, other)


def _entries(policy: Policy, name: str, table: pa.Table) -> IntArray:
    return find_entries(pick_synthetic(policy.columns)[name], table.column(name))
