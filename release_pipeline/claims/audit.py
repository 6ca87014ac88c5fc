"""The audit of claims: the worst attack on each promise of a policy, and what it proves.

No attack refutes a claim that holds; the closer the proved figure is to the claimed one, the stronger the attack was. A broken
claim is refuted: the proved figure is above the claimed one, with a confidence of 99.9%.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.answers import make_answer_pairs, show_answers
from release_pipeline.claims.groups import NOBODY, count_blocks, count_intervals, count_links, count_smallest
from release_pipeline.claims.promises import Both, Promise, choose_event, count_learnt, left_to_prove
from release_pipeline.claims.tables import ClassTable, Pair, make_classes, make_crowds, make_pairs
from release_pipeline.claims.trials import Noiseless, count_both, describe_noiseless, release_each
from release_pipeline.claims.views import (
    Look,
    look_at_centroid,
    look_at_list,
    look_at_lists,
    look_at_rows,
    make_whole_pairs,
    number_records,
    number_shown,
    show_counts,
    show_whole,
)
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.policy import Policy
from release_pipeline.policy.families import find_family

SLOWER = 50  # times fewer releases if values are swapped, because each has many blocks
MOST_VALUES = 60  # distinguished values of a record
MANY_CELLS = 1_000  # of tables: with twice as many or more there are fewer draws
LOSSES = ("epsilon", "rho", "share")  # figures that may not exceed the claimed ones
FEWER, LEAST_EXPLORED = 5, 30  # the largest reduction of draws of counts; and the fewest draws of each pair
Shown: TypeAlias = Mapping[str, npt.NDArray[Any]]  # what was seen of one table, by view: a row for each draw
Watch: TypeAlias = Callable[..., tuple[Shown, Shown]]  # what `draws` of each of two tables show, for a `purpose`


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of releases that are drawn: of each table to find the worst pair, and of that pair to prove; of `classes`, many
    of which are in a table; of each table in which groups are `counted`; and to prove with `counts` by value, where each draw
    takes several fits."""

    explore: int
    prove: int
    classes: int
    counted: int
    counts: int


FULL = Effort(explore=600, prove=25_000, classes=800_000, counted=20, counts=10_000)
QUICK = Effort(explore=120, prove=2_000, classes=40_000, counted=2, counts=600)
BRIEF = Effort(explore=30, prove=400, classes=4_000, counted=2, counts=200)  # a hundred promises in a minute, over all methods


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the audit of one promise. `claimed` and `proved` are epsilons, rhos or shares of links; for counts, the least
    number that is promised and the least that was seen, None if there was nothing to count."""

    promise: str
    definition: str
    measure: Literal["epsilon", "rho", "share", "records", "values"]
    claimed: float
    proved: float | None
    draws: int
    tables: str
    view: str

    @property
    def holds(self) -> bool:
        """Return whether no attack broke the promise."""
        if self.proved is None:
            return True
        return self.proved <= self.claimed if self.measure in LOSSES else self.proved >= self.claimed


def audit_promise(policy: Policy, promise: Promise, effort: Effort) -> Finding:
    """Return what the worst attacks on one promise prove."""
    match promise.covers:
        case "groups":
            classes = [each.table for each in make_classes(policy)] if policy.generalised_columns else []
            tables = [*make_crowds(policy), *classes]
            return _count(promise, count_smallest(policy, tables, promise.columns, draws=effort.counted))
        case "intervals":
            tables = [each.table for each in make_classes(policy)]
            return _count(promise, count_intervals(policy, tables, draws=effort.counted))
        case "blocks":
            return _count(promise, count_blocks(policy, make_crowds(policy), draws=effort.counted))
        case "links":
            low, links, view = count_links(policy, make_crowds(policy), draws=effort.prove // SLOWER)
            crowds = "made-up records of all declared values"
            return Finding(promise.description, promise.definition, "share", promise.most or 0.0, low, links, crowds, view)
        case "record":
            return _attack_records(policy, promise, effort)
        case _:
            return _attack_pairs(policy, promise, effort)


def _attack_pairs(policy: Policy, promise: Promise, effort: Effort) -> Finding:
    """Return what is proved by guessing which of two neighbouring tables was released, for the pair that differs most."""
    if promise.covers == "tables":
        pairs = make_answer_pairs(policy, promise.columns)
        watches: list[Watch] = [partial(show_answers, policy, promise.columns, pair) for pair in pairs]
        cells = sum(policy.tabulations[name].shape.total for name in promise.columns)  # one record changes a few of them
        return _tell_apart(promise, pairs, watches, *_count_draws(effort, cells // MANY_CELLS))
    if promise.covers == "whole":
        pairs = make_whole_pairs(policy)
        watches = [partial(show_whole, policy, pair) for pair in pairs]
        return _tell_apart(promise, pairs, watches, *_count_draws(effort, 1))
    pairs = make_pairs(policy, promise.columns)
    if find_family(policy.protect).publishes_counts:
        columns = len(policy.noise_columns)
        promises = 1 if columns == 1 else columns + 1  # one for every column, and one for all
        watches = [partial(_watch_counts, policy, pair, promise.columns) for pair in pairs]
        return _tell_apart(promise, pairs, watches, *_count_draws(effort, columns * policy.parts * promises))
    watches = [partial(_watch, policy, pair, _looks(policy, promise, pair)) for pair in pairs]
    return _tell_apart(promise, pairs, watches, effort.explore, effort.prove)


def _tell_apart(promise: Promise, pairs: Sequence[Pair], watches: Sequence[Watch], explored: int, proved: int) -> Finding:
    """Return what is proved by the pair that some draws distinguish best."""

    def explore(number: int) -> float:
        shown = watches[number](draws=explored, purpose=f"explore {number}")
        return choose_event(_number(*shown, explored), promise.prove)[1]

    worst = max(range(len(pairs)), key=explore)
    seen = _number(*watches[worst](draws=proved, purpose="prove"), proved)
    return _prove(promise, seen, pairs[worst].description)


def _count_draws(effort: Effort, slower: int) -> tuple[int, int]:
    """Return how many draws of counts explore each pair, and how many prove: fewer, down to a limit, if each is so many times
    slower."""
    draws = effort.counts // min(max(slower, 1), FEWER)
    return max(draws // 40, LEAST_EXPLORED), draws


def _attack_records(policy: Policy, promise: Promise, effort: Effort) -> Finding:
    """Return what is proved by guessing which of two records of a class was released, for the class that reveals most."""
    draws = effort.classes if policy.parts == 1 else effort.classes // 10  # with random parts each release makes other classes

    def explore(table: ClassTable) -> float:
        seen = _watch_records(policy, table, draws=draws // 20, purpose=f"explore {table.description}")
        return choose_event(seen, promise.prove)[1]

    worst = max(make_classes(policy), key=explore)
    seen = _watch_records(policy, worst, draws=draws, purpose="prove")
    return _prove(promise, seen, f"a class of {worst.description}")


def _prove(promise: Promise, seen: Mapping[str, Both], tables: str) -> Finding:
    """Return what the best event proves, by draws that were not used to choose it."""
    event, _ = choose_event(seen, promise.prove)
    left = left_to_prove(seen[event.view])
    proved, draws = event.bound(left, promise.prove), 2 * len(left[0])
    claimed = promise.epsilon or 0.0
    return Finding(promise.description, promise.definition, promise.measure, claimed, proved, draws, tables, event.view)


def _count(promise: Promise, counted: tuple[int, int]) -> Finding:
    smallest, releases = counted
    return Finding(
        promise.description,
        promise.definition,
        "records",
        promise.least or 0,
        None if smallest == NOBODY else smallest,
        releases,
        "made-up records of all declared values",
        "counted",
    )


def _watch(policy: Policy, pair: Pair, looks: Mapping[str, Look], *, draws: int, purpose: str) -> tuple[Shown, Shown]:
    first, second = release_each(policy, [pair.first, pair.second], draws=draws, purpose=purpose)
    return {view: look(first) for view, look in looks.items()}, {view: look(second) for view, look in looks.items()}


def _watch_counts(policy: Policy, pair: Pair, names: Sequence[str], *, draws: int, purpose: str) -> tuple[Shown, Shown]:
    """Return what these columns' noisy counts show. They are published: values made from them reveal no more, and are not
    drawn."""
    counted = count_both(policy, pair.first, pair.second, draws=draws, purpose=purpose)
    units = [_units(policy, table, names) for table in (pair.first, pair.second)]
    return show_counts(counted[0], *units), show_counts(counted[1], *units)


def _units(policy: Policy, table: pa.Table, names: Sequence[str]) -> dict[str, IntArray]:
    return {name: policy.noise_columns[name].coded_grid.quantise(table.column(name).to_numpy()) for name in names}


def _number(first: Shown, second: Shown, draws: int) -> dict[str, Both]:
    """Return the views that can be learned from, with the observations as numbers. A view that one table never has shows nothing
    there."""
    nothing = np.zeros(draws, dtype=np.int64)
    views = dict.fromkeys([*first, *second])
    numbered = {view: number_shown((first.get(view, nothing), second.get(view, nothing))) for view in views}
    often_seen = {view: both for view, both in numbered.items() if both is not None}
    return often_seen or {"nothing that is seen often enough": (nothing, nothing)}


def _watch_records(policy: Policy, table: ClassTable, *, draws: int, purpose: str) -> dict[str, Both]:
    """Return what each kind of record of the class shows, for every two kinds: equal records are of one kind."""
    [seen] = release_each(policy, [table.table], draws=max(draws // table.copies, 8), purpose=purpose)
    names = list(policy.noise_columns)
    size = len(table.units)
    values = np.stack([seen.values[name].reshape(-1, size) for name in names], axis=2)
    learnt = values[: count_learnt(len(values))]
    marks = [_landmarks_of(policy, name, learnt[:, :, column]) for column, name in enumerate(names)]
    records = sorted(np.unique(table.units, axis=0, return_index=True)[1].tolist())  # the first of each kind
    codes = {record: number_records(values[:, record], marks) for record in records}
    return {f"records {a + 1} and {b + 1}": (codes[a], codes[b]) for a, b in combinations(records, 2)}


def _looks(policy: Policy, promise: Promise, pair: Pair) -> dict[str, Look]:
    noiseless = describe_noiseless(policy, pair.first), describe_noiseless(policy, pair.second)
    landmarks = {name: _landmarks(policy, name, noiseless) for name in promise.columns}
    match promise.covers:
        case "list":
            [name] = promise.columns
            return look_at_list(name, landmarks[name], noiseless)
        case "lists":
            of_each = {name: look_at_list(name, landmarks[name], noiseless) for name in promise.columns}
            return look_at_lists(promise.columns, of_each)
        case "centroid":
            return look_at_centroid(promise.columns, landmarks, _moved_record(policy, promise, pair, noiseless))
        case _:
            of_first = look_at_list(promise.columns[0], landmarks[promise.columns[0]], noiseless)
            return {**look_at_rows(promise.columns, landmarks, noiseless), **(of_first if len(promise.columns) == 1 else {})}


def _moved_record(policy: Policy, promise: Promise, pair: Pair, noiseless: tuple[Noiseless | None, Noiseless | None]) -> int:
    """Return a record of the cluster whose centroid changes most relative to its noise, and that is not replaced itself."""
    first, second = noiseless
    if first is None or second is None:
        return pair.changed
    change = np.zeros(len(first.size))
    for name in promise.columns:
        apart = np.abs(first.centroids[name] - second.centroids[name])
        change += np.divide(apart, first.scales[name], out=np.where(apart > 0, np.inf, 0.0), where=first.scales[name] > 0)
    [before], [after] = (release_each(policy, [table], draws=1, purpose="clusters") for table in (pair.first, pair.second))
    name, cluster = promise.columns[0], int(change.argmax())
    both = np.flatnonzero((before.cluster[name] == cluster) & (after.cluster[name] == cluster))
    stays = both[both >= pair.changed]
    return int(stays[0]) if len(stays) else pair.changed


def _landmarks(policy: Policy, name: str, noiseless: Sequence[Noiseless | None]) -> FloatArray:
    """Return the ends of the domain, and the centroids of both tables, exact and rounded to the grid."""
    grid = policy.noise_columns[name].exact_grid
    landmarks = [np.array([float(grid.lo), float(grid.hi)])]
    for part in noiseless:
        if part is not None:
            landmarks += [part.centroids[name], grid.restore(grid.quantise(part.centroids[name]).astype(np.float64))]
    return np.unique(np.concatenate(landmarks))


def _landmarks_of(policy: Policy, name: str, values: FloatArray) -> FloatArray:
    """Return the ends of the domain and every released value, or quantiles if there are many values."""
    grid = policy.noise_columns[name].exact_grid
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) > MOST_VALUES:
        distinct = np.quantile(distinct, np.linspace(0, 1, MOST_VALUES))
    return np.unique(np.append(distinct, [float(grid.lo), float(grid.hi)]))
