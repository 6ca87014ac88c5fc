"""The audit of claims: each promise of a policy against the worst that can be done to it, and what that proves.

A claim that holds is not refuted, however hard one tries; how near the proved figure comes to the claimed one says how hard the
attack was. One that is broken is refuted: the proved figure is above the claimed one, with a confidence of 99.9%.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.answers import make_answer_pairs, show_answers
from release_pipeline.claims.groups import NOBODY, count_blocks, count_intervals, count_links, count_smallest
from release_pipeline.claims.promises import Both, Event, Promise, choose_event, count_learnt, left_to_prove
from release_pipeline.claims.tables import ClassTable, Pair, make_classes, make_crowds, make_pairs
from release_pipeline.claims.trials import Floats, Ints, Noiseless, count_both, describe_noiseless, release_both, release_one
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
from release_pipeline.policy import Policy
from release_pipeline.policy.families import find_family

SLOWER = 50  # times fewer releases where values are swapped, each of which has many blocks
MOST_VALUES = 60  # of a record that are told apart
MANY_CELLS = 1_000  # of tables: from twice as many on there are fewer draws
LOSSES = ("epsilon", "rho", "share")  # what may be no larger than claimed
FEWER, LEAST_EXPLORED = 5, 30  # at the most so many times fewer draws of counts; and draws of each pair at the least
Shown: TypeAlias = Mapping[str, npt.NDArray[Any]]  # what was seen of one table, by the way of looking: a row for each draw
Watch: TypeAlias = Callable[[int, str], dict[str, Both]]  # so many draws, for this purpose


@dataclass(frozen=True, slots=True)
class Effort:
    """How many releases are drawn: of each table to find the worst pair, and of that to prove; of `classes`, of which a table has
    many; of each table in which groups are `counted`; and to prove of `counts` by value, each draw of which takes some fits."""

    explore: int
    prove: int
    classes: int
    counted: int
    counts: int


FULL = Effort(explore=600, prove=25_000, classes=800_000, counted=20, counts=10_000)
QUICK = Effort(explore=120, prove=2_000, classes=40_000, counted=2, counts=600)
BRIEF = Effort(explore=30, prove=400, classes=4_000, counted=2, counts=200)  # of all methods: a hundred promises in a minute


@dataclass(frozen=True, slots=True)
class Finding:
    """What the audit of one promise found. `claimed` and `proved` are epsilons, or rhos, or shares of links, or of what is
    counted the least number that is promised, and the least that was seen; None where there was nothing to count."""

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
        """Whether nothing was found that breaks it."""
        if self.proved is None:
            return True
        return self.proved <= self.claimed if self.measure in LOSSES else self.proved >= self.claimed


def audit_promise(policy: Policy, promise: Promise, effort: Effort) -> Finding:
    """What was found of one promise."""
    match promise.covers:
        case "groups":
            classes = [made.table for made in make_classes(policy)] if policy.generalised_columns else []
            tables = [*make_crowds(policy), *classes]
            return _count(promise, count_smallest(policy, tables, promise.columns, draws=effort.counted))
        case "intervals":
            tables = [made.table for made in make_classes(policy)]
            return _count(promise, count_intervals(policy, tables, draws=effort.counted))
        case "blocks":
            return _count(promise, count_blocks(policy, make_crowds(policy), draws=effort.counted))
        case "links":
            low, links, view = count_links(policy, make_crowds(policy), draws=effort.prove // SLOWER)
            crowds = "made-up records of all declared values"
            return Finding(promise.words, promise.definition, "share", promise.most or 0.0, low, links, crowds, view)
        case "record":
            return _attack_records(policy, promise, effort)
        case _:
            return _attack_pairs(policy, promise, effort)


def _attack_pairs(policy: Policy, promise: Promise, effort: Effort) -> Finding:
    """Which of two neighbouring tables was released: of the pair that is told apart best."""
    if promise.covers == "tables":
        pairs = make_answer_pairs(policy, promise.columns)
        watches: list[Watch] = [partial(_watch_answers, policy, pair, promise.columns) for pair in pairs]
        return _tell_apart(promise, pairs, watches, *_count_answers(policy, promise.columns, effort))
    if promise.covers == "whole":
        whole = make_whole_pairs(policy)
        watches = [partial(_watch_whole, policy, pair) for pair in whole]
        return _tell_apart(promise, whole, watches, max(effort.counts // 40, LEAST_EXPLORED), effort.counts)
    pairs = make_pairs(policy, promise.columns)
    if find_family(policy.protect).publishes_counts:
        watches = [partial(_watch_counts, policy, pair, promise.columns) for pair in pairs]
        explored, proved = _count_counts(policy, effort)
    else:
        watches = [partial(_watch, policy, pair, _looks(policy, promise, pair)) for pair in pairs]
        explored, proved = effort.explore, effort.prove
    return _tell_apart(promise, pairs, watches, explored, proved)


def _tell_apart(promise: Promise, pairs: Sequence[Pair], watches: Sequence[Watch], explored: int, proved: int) -> Finding:
    """What is proved by the pair that some draws tell apart best."""

    def explore(number: int) -> float:
        return choose_event(watches[number](explored, f"explore {number}"), promise.prove)[1]

    worst = max(range(len(pairs)), key=explore)
    seen = watches[worst](proved, "prove")
    event, _ = choose_event(seen, promise.prove)
    return _prove(promise, event, seen[event.view], pairs[worst].words)


def _count_answers(policy: Policy, names: Sequence[str], effort: Effort) -> tuple[int, int]:
    """How many draws explore and prove of tables: fewer where there are many cells, of which one record changes a few."""
    cells = sum(policy.tabulations[name].shape.total for name in names)
    draws = effort.counts // min(max(cells // MANY_CELLS, 1), FEWER)
    return max(draws // 40, LEAST_EXPLORED), draws


def _count_counts(policy: Policy, effort: Effort) -> tuple[int, int]:
    """How many draws explore and prove where counts by value are drawn: fewer, to a point, where each is of many columns and
    parts, and there is a promise for every column."""
    columns = len(policy.noise_columns)
    promises = 1 if columns == 1 else columns + 1
    draws = effort.counts // min(columns * policy.parts * promises, FEWER)
    return max(draws // 40, LEAST_EXPLORED), draws


def _attack_records(policy: Policy, promise: Promise, effort: Effort) -> Finding:
    """Which of two records of a class a released one is: of the class that tells most."""
    draws = _count_classes(policy, effort)

    def explore(made: ClassTable) -> float:
        seen = _watch_records(policy, made, draws=draws // 20, purpose=f"explore {made.words}")
        return choose_event(seen, promise.prove)[1]

    worst = max(make_classes(policy), key=explore)
    seen = _watch_records(policy, worst, draws=draws, purpose="prove")
    event, _ = choose_event(seen, promise.prove)
    return _prove(promise, event, seen[event.view], f"a class of {worst.words}")


def _count_classes(policy: Policy, effort: Effort) -> int:
    """Fewer where parts are drawn, and so classes made, anew for every release."""
    return effort.classes if policy.parts == 1 else effort.classes // 10


def _prove(promise: Promise, event: Event, seen: Both, tables: str) -> Finding:
    left = left_to_prove(seen)
    claimed = promise.epsilon if promise.epsilon is not None else 0.0
    proved, draws = event.bound(left, promise.prove), 2 * len(left[0])
    return Finding(promise.words, promise.definition, promise.measure, claimed, proved, draws, tables, event.view)


def _count(promise: Promise, counted: tuple[int, int]) -> Finding:
    smallest, releases = counted
    return Finding(
        promise.words,
        promise.definition,
        "records",
        promise.least or 0,
        None if smallest == NOBODY else smallest,
        releases,
        "made-up records of all declared values",
        "counted",
    )


def _watch(policy: Policy, pair: Pair, looks: Mapping[str, Look], draws: int, purpose: str) -> dict[str, Both]:
    one, other = release_both(policy, pair.one, pair.other, draws=draws, purpose=purpose)
    return _number({view: look(one) for view, look in looks.items()}, {view: look(other) for view, look in looks.items()}, draws)


def _watch_counts(policy: Policy, pair: Pair, names: Sequence[str], draws: int, purpose: str) -> dict[str, Both]:
    """Of these columns' noisy counts, which are published: what is made of them tells no more, and is not drawn."""
    seen = count_both(policy, pair.one, pair.other, draws=draws, purpose=purpose)
    units = [_units(policy, table, names) for table in (pair.one, pair.other)]
    one, other = (show_counts(part, *units) for part in seen)
    return _number(one, other, draws)


def _watch_answers(policy: Policy, pair: Pair, names: Sequence[str], draws: int, purpose: str) -> dict[str, Both]:
    """Of the cells of these tables beside the rows."""
    return _number(*show_answers(policy, names, pair, draws=draws, purpose=purpose), draws)


def _watch_whole(policy: Policy, pair: Pair, draws: int, purpose: str) -> dict[str, Both]:
    """Of all noisy counts of a whole table: what rows are made of."""
    return _number(*show_whole(policy, pair, draws=draws, purpose=purpose), draws)


def _units(policy: Policy, table: pa.Table, names: Sequence[str]) -> dict[str, Ints]:
    return {name: policy.noise_columns[name].coded_grid.quantise(table.column(name).to_numpy()) for name in names}


def _number(one: Shown, other: Shown, draws: int) -> dict[str, Both]:
    """By number what can be learnt from; a way of looking that one table never has shows nothing there."""
    nothing = np.zeros(draws, dtype=np.int64)
    views = dict.fromkeys([*one, *other])
    numbered = {view: number_shown((one.get(view, nothing), other.get(view, nothing))) for view in views}
    found = {view: both for view, both in numbered.items() if both is not None}
    return found or {"nothing that is seen often enough": (nothing, nothing)}


def _watch_records(policy: Policy, made: ClassTable, *, draws: int, purpose: str) -> dict[str, Both]:
    """What each kind of record of the class shows, for every two kinds that agree in what is kept: equal records are of one
    kind."""
    releases = max(draws // made.copies, 8)
    seen = release_one(policy, made.table, draws=releases, purpose=purpose)
    names = list(policy.noise_columns)
    size = len(made.units)
    values = np.stack([seen.values[name].reshape(-1, size) for name in names], axis=2)
    learnt = values[: count_learnt(len(values))]
    marks = [_landmarks_of(policy, name, learnt[:, :, place]) for place, name in enumerate(names)]
    kinds = np.unique(made.units, axis=0, return_index=True)[1]
    codes = {int(place): number_records(values[:, place], marks) for place in kinds}
    places = sorted(codes)
    return {
        f"records {one + 1} and {other + 1}": (codes[one], codes[other])
        for number, one in enumerate(places)
        for other in places[number + 1 :]
    }


def _looks(policy: Policy, promise: Promise, pair: Pair) -> dict[str, Look]:
    noiseless = describe_noiseless(policy, pair.one), describe_noiseless(policy, pair.other)
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
    """A record of the cluster whose centroid changes most for its noise, and that is not replaced itself."""
    one, other = noiseless
    if one is None or other is None:
        return pair.changed
    change = np.zeros(len(one.size))
    for name in promise.columns:
        apart = np.abs(one.centroids[name] - other.centroids[name])
        change += np.divide(apart, one.scales[name], out=np.where(apart > 0, np.inf, 0.0), where=one.scales[name] > 0)
    members = [release_one(policy, table, draws=1, purpose="clusters").cluster for table in (pair.one, pair.other)]
    name, cluster = promise.columns[0], int(change.argmax())
    both = np.flatnonzero((members[0][name] == cluster) & (members[1][name] == cluster))
    stays = both[both >= pair.changed]
    return int(stays[0]) if len(stays) else pair.changed


def _landmarks(policy: Policy, name: str, noiseless: Sequence[Noiseless | None]) -> Floats:
    """The ends of the domain, and the centroids of both tables as they are and on the grid."""
    grid = policy.noise_columns[name].exact_grid
    found = [np.array([float(grid.lo), float(grid.hi)])]
    for part in noiseless:
        if part is not None:
            found += [part.centroids[name], grid.restore(grid.quantise(part.centroids[name]).astype(np.float64))]
    return np.unique(np.concatenate(found))


def _landmarks_of(policy: Policy, name: str, values: Floats) -> Floats:
    """The ends of the domain and every released value, or where they are many, quantiles of them."""
    grid = policy.noise_columns[name].exact_grid
    known = np.unique(values[~np.isnan(values)])
    if len(known) > MOST_VALUES:
        known = np.unique(np.quantile(known, np.linspace(0, 1, MOST_VALUES)))
    return np.unique(np.concatenate([np.array([float(grid.lo), float(grid.hi)]), known]))
