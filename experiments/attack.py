"""What somebody who sees a whole masked table can tell about one record: three attacks, on claims that hold and on ones that do
not cover them.

The attacker knows two neighbouring tables, D and D', the method and the noise scales (those of D in both: iDP freezes them, and
those of eps-DP are public), and sees one release: every row in a random order, so all values, which rows share one, and which
values of several columns occur together. Was it made from D or from D'? What is attacked is what the project's own code released.

`vectors`    dp-mdav, a claim for the whole table. The exact likelihood ratio of what was seen: a release is the multiset of its
             noisy vectors, so that it sums over all ways in which the clusters could have given them; a larger last cluster is
             told apart. No ratio may be above epsilon, and no event may be more than e^epsilon times likelier from D. The pair of
             tables is the worst that climbing finds, one number changed at a time. With the noise of scope `centroid` instead,
             the same attack breaks the claim. (Values are not moved back into the domain, so that the attacker sees more.)
`patterns`   rank clusters, a claim for each column's list. In D two columns rank all records alike, so that the records of a
             cluster share both values: of each pair of values there is a multiple of k. In D' one record's first value went from
             the lowest to the highest, and every cluster of that column lies across two of the other. No noise hides it.
`scales`     iDP, whose claim has the noise scales fixed at the actual data. A cluster that no single change can move has scale 0,
             and its value stands in the rows exactly. In D such a cluster is there, in D' it is not: with scales calculated
             anew from D', noise as wide as the domain takes the value away. So the attacker counts the rows that have it. With
             the scales of D in both tables there is nothing to count: that is the clause which the claim rests on.

What is said of probabilities is by Clopper and Pearson, with a confidence of 99.9% for both together. Where the event has to be
chosen, half of the secrets choose it, and the other half count it.

`python -m experiments.attack` prints the figures of docs/measured.md, in a few minutes, the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
from math import inf, log
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from experiments.papers.reporting import write_rows
from release_pipeline.mechanisms import Epsilon, Grid, noise_stream
from release_pipeline.mechanisms.basis.samples import bound_share
from release_pipeline.mechanisms.columns.methods import Statistics, add_noise, compute_statistics
from release_pipeline.mechanisms.noise import SECRET_BYTES, shuffled_positions
from release_pipeline.mechanisms.vectors.vectors import Insensitive, Order, Statistic, VectorScope, compute_vectors

SECRETS = 4000
DOUBT = 0.001  # of both bounds together
WIDTHS = (31, 31)
STEPS = 1500
ROWS, K, DOMAIN = 600, 5, 10**6  # of the patterns
FEW, FEW_SECRETS = 40, 1000  # of the scales: what is proved there grows with the logarithm of the number of secrets, without end
Individual: TypeAlias = Literal["idp-ls", "idp-cbls", "dp-mdav"]  # with trimmed sums, for dp-mdav

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """What can be released of two neighbouring tables: of each noise column the exact statistics, with the scales of the first
    table in both, unless they were calculated anew."""

    one: tuple[Statistics, ...]
    other: tuple[Statistics, ...]

    @property
    def loss(self) -> float:
        """The sum of |change| / scale over clusters and columns: what a reader learns at the most who knows each cluster."""
        total = 0.0
        for mine, its in zip(self.one, self.other, strict=True):
            change = np.abs(mine.statistic - its.statistic)
            if np.any(change[mine.scale == 0]):
                return inf
            total += float((change / np.maximum(mine.scale, 1)).sum())
        return total


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. `claimed`: epsilon in all; `worst`: the largest |log ratio| that was seen, None where there is none to compute.

    `right`: the share of guesses that were right, 1/2 being chance; `proved`: an epsilon that the release must have at the least.
    """

    name: str
    claim: str
    claimed: float
    secrets: int
    worst: float | None
    right: float
    proved: float


def attack_vectors(
    order: Order,
    statistic: Statistic,
    *,
    epsilon: str = "3",
    rows: int = 13,
    k: int = 3,
    noise: VectorScope = "table",
    secrets: int = SECRETS,
    seed: int = 1,
    steps: int = STEPS,
) -> Attack:
    """dp-mdav with a claim of `epsilon` for the whole table, with the noise of scope `noise`."""
    pair = find_pair(order, statistic, epsilon=epsilon, rows=rows, k=k, noise=noise, seed=seed, steps=steps)
    ratios = np.empty((2, secrets))
    for side, exact in enumerate((pair.one, pair.other)):
        for number in range(secrets):
            seen = read_vectors(release(exact, secret=_secret(2 * number + side), clamp=False), k)
            ratios[side, number] = log_likelihood(seen, pair.one) - log_likelihood(seen, pair.other)
    half = secrets // 2
    threshold = max(np.quantile(ratios, np.linspace(0, 0.99, 34)), key=lambda least: _prove(ratios[:, :half] > least))
    right = ((ratios[0] > 0).mean() + (ratios[1] <= 0).mean()) / 2
    return Attack(
        f"dp-mdav, {order}, {statistic} sums, noise of scope {noise}",
        "whole table" if noise == "table" else "each centroid",
        float(Epsilon.of(epsilon)),
        secrets,
        float(np.abs(ratios).max()),
        float(right),
        _prove(ratios[:, half:] > threshold),
    )


def attack_patterns(
    method: str, *, epsilon: str = "0.1", consistency: str | None = None, rows: int = ROWS, k: int = K, secrets: int = SECRETS
) -> Attack:
    """Two columns under a claim of `epsilon` for each column's list, or, for dp-mdav, of twice that for the whole table."""
    table = np.linspace(0, DOMAIN, rows).round().astype(np.int64)[:, None].repeat(2, axis=1)
    changed = table.copy()
    changed[0, 0] = DOMAIN
    both = Epsilon(2 * Epsilon.of(epsilon).nano)
    pair = _pair_of(table, changed, lambda rows: _compute(rows, method, epsilon=both, k=k, consistency=consistency))
    found = np.array(
        [
            [shows_pattern(release(exact, secret=_secret(2 * number + side)), k) for number in range(secrets)]
            for side, exact in enumerate((pair.one, pair.other))
        ]
    )
    words = "each column's list" if method != "dp-mdav" else "whole table"
    kind = f", {pair.one[0].consistency}" if method != "dp-mdav" else ""
    right = (found[0].mean() + (~found[1]).mean()) / 2
    return Attack(f"{method}{kind}", words, float(both), secrets, None, float(right), _prove(found))


def attack_scales(method: Individual, *, anew: bool, epsilon: str = "0.01", k: int = K, secrets: int = FEW_SECRETS) -> Attack:
    """40 people, and two neighbouring tables that differ in how many of them are in clusters without noise. `epsilon` is claimed
    of all columns together; scales are those of the first table in both, or calculated `anew` from each."""
    value, lower, columns = DOMAIN // 2, DOMAIN // 4, 2 if method == "dp-mdav" else 1
    one, other = [value] * FEW, [value] * (FEW - 1) + [DOMAIN]
    if method == "idp-ls":  # a change moves a plain sum where the next cluster begins higher, or the one before ends lower
        half = FEW // 2
        one, other = [lower] * (half - 1) + [value] * half + [DOMAIN], [lower] * half + [value] * half
    table, changed = (np.repeat(np.array(people)[:, None], columns, axis=1) for people in (one, other))
    budget = Epsilon.of(epsilon)
    pair = _pair_of(
        table,
        changed,
        lambda rows: _compute(rows, method, epsilon=budget, k=k, consistency="none", statistic="trimmed"),
        anew=anew,
    )
    first = pair.one[0]
    exact = int(first.size[(first.scale == 0) & (first.statistic == value * first.size)].sum())
    found = np.array(
        [
            [
                int(np.all(release(part, secret=_secret(2 * number + side)) == value, axis=1).sum()) >= exact
                for number in range(secrets)
            ]
            for side, part in enumerate((pair.one, pair.other))
        ]
    )
    return Attack(
        f"{method}{', trimmed sums' if method == 'dp-mdav' else ''}, scales {'calculated anew' if anew else 'fixed at the data'}",
        "whole table" if method == "dp-mdav" else "each column's list",
        float(budget),
        secrets,
        None,
        float((found[0].mean() + (~found[1]).mean()) / 2),
        _prove(found),
    )


def find_pair(
    order: Order, statistic: Statistic, *, epsilon: str, rows: int, k: int, noise: VectorScope, seed: int, steps: int = STEPS
) -> Pair:
    """The neighbouring tables of this size with the largest loss that climbing finds, one number changed at a time."""
    spec = Insensitive(Epsilon.of(epsilon).split([1] * len(WIDTHS)), k, order, statistic, noise)
    grids = [Grid.declare((0, width), 1) for width in WIDTHS]

    def compute(table: Ints) -> list[Statistics]:
        return compute_vectors(table, grids=grids, spec=spec, secret=_secret(0), context=())

    words = _draw_words(seed, 2 * (rows + 1) + 4 * steps)
    widths = np.array(WIDTHS, dtype=np.uint64)
    known = (words[: 2 * (rows + 1)].reshape(-1, 2) % (widths + 1)).astype(np.int64)  # the first row becomes the last one
    best = _pair_of(known[:-1], _swapped(known), compute)
    for row, column, kind, number in words[2 * (rows + 1) :].reshape(-1, 4).tolist():
        tried, width = known.copy(), WIDTHS[column % 2]
        tried[row % (rows + 1), column % 2] = (0, width, number % (width + 1))[kind % 3]
        pair = _pair_of(tried[:-1], _swapped(tried), compute)
        if pair.loss >= best.loss:
            known, best = tried, pair
    return best


def release(exact: Sequence[Statistics], *, secret: bytes, clamp: bool = True) -> Floats:
    """The rows that a reader gets: masked by the project's code, and shuffled."""
    columns = [add_noise(part, clamp=clamp, secret=secret, context=(place,))[part.cluster] for place, part in enumerate(exact)]
    order = shuffled_positions(len(columns[0]), noise_stream(secret, "shuffle"))
    return np.stack(columns, axis=1)[order]


def read_vectors(released: Floats, k: int) -> tuple[Ints, Ints | None]:
    """From the rows alone: the noisy sums of the clusters of k in no order, and of the last one if its size tells it apart."""
    vectors, counts = np.unique(released, axis=0, return_counts=True)
    size = k + len(released) % k  # of the last cluster
    last: Ints | None = None
    if size > k:
        place = int(np.flatnonzero(counts % k)[0])
        last = np.rint(vectors[place] * size).astype(np.int64)
        counts[place] -= size
    return np.rint(vectors.repeat(counts // k, axis=0) * k).astype(np.int64), last


def log_likelihood(seen: tuple[Ints, Ints | None], exact: Sequence[Statistics]) -> float:
    """The logarithm of the probability of what was seen, but for a factor that depends on the scales alone: the permanent of
    exp(-|seen - sum| / scale) over clusters and vectors."""
    sums = np.stack([part.statistic for part in exact], axis=1)
    scales = np.stack([part.scale for part in exact], axis=1)
    vectors, last = seen
    count = len(vectors)
    fits = _fit(vectors[:, None], sums[:count], scales[:count])  # of each vector to each cluster
    total = float(np.logaddexp.reduce(fits[np.arange(count), _ways(count)].sum(axis=1)))
    return total if last is None else total + float(_fit(last, sums[-1], scales[-1]))


def _fit(seen: Ints, sums: Ints, scales: Ints) -> Floats:
    apart = np.abs(seen - sums)
    fit = -(apart / np.maximum(scales, 1)).sum(axis=-1)
    return np.where(np.any((scales == 0) & (apart > 0), axis=-1), -inf, fit)


@cache
def _ways(count: int) -> npt.NDArray[np.intp]:
    """Every way to give so many vectors to as many clusters."""
    return np.array(list(permutations(range(count))), dtype=np.intp)


def shows_pattern(released: Floats, k: int) -> bool:
    """Whether of every pair of values there are a multiple of k rows."""
    _, counts = np.unique(released[:, 0] + 1j * released[:, 1], return_counts=True)
    return not np.any(counts % k)


def _prove(happened: npt.NDArray[np.bool_]) -> float:
    """An epsilon that the release must have at the least, for an event that happened so often under both tables."""
    of = happened.shape[1]
    lower, _ = bound_share(happened[0].sum(), of, DOUBT / 2)
    _, upper = bound_share(happened[1].sum(), of, DOUBT / 2)
    return log(float(lower) / float(upper)) if lower > upper else 0.0


def _pair_of(table: Ints, other: Ints, compute: Callable[[Ints], list[Statistics]], *, anew: bool = False) -> Pair:
    one, its = compute(table), compute(other)
    if anew:
        return Pair(tuple(one), tuple(its))
    return Pair(tuple(one), tuple(replace(part, scale=mine.scale) for mine, part in zip(one, its, strict=True)))


def _compute(
    rows: Ints, method: str, *, epsilon: Epsilon, k: int, consistency: str | None = None, statistic: Statistic = "plain"
) -> list[Statistics]:
    """The statistics of these columns, each from 0 to `DOMAIN` and with the same part of epsilon: under a claim for each column's
    list, or, for dp-mdav, for the whole table."""
    columns = rows.shape[1]
    grids, parts = [Grid.declare((0, DOMAIN), 1)] * columns, epsilon.split([1] * columns)
    if method == "dp-mdav":
        spec = Insensitive(parts, k, "hilbert", statistic, "table")
        return compute_vectors(rows, grids=grids, spec=spec, secret=_secret(0), context=())
    return [
        compute_statistics(
            rows[:, place],
            grid=grid,
            method=method,
            epsilon=part,
            k=k,
            scope="column",
            consistency=consistency,
            secret=_secret(0),
            context=(place,),
        )
        for place, (grid, part) in enumerate(zip(grids, parts, strict=True))
    ]


def _draw_words(seed: int, count: int) -> npt.NDArray[np.uint64]:
    words = np.empty(count, dtype=np.uint64)
    noise_stream(_secret(seed), "attack", "tables").words(0, 0, words)
    return words


def _swapped(known: Ints) -> Ints:
    return np.concatenate([known[-1:], known[1:-1]])


def _secret(number: int) -> bytes:
    return number.to_bytes(SECRET_BYTES, "big")


def run(secrets: int = SECRETS) -> list[Attack]:
    """Every attack of the table in docs/measured.md."""
    orders, statistics, scopes = get_args(Order), get_args(Statistic), get_args(VectorScope)[::-1]
    ways = product(scopes, orders, statistics)
    patterns = [*product(("dp-um", "idp-cbls"), ("isotonic", "none")), ("dp-mdav", None)]
    return [
        *(attack_vectors(order, statistic, noise=noise, secrets=secrets) for noise, order, statistic in ways),
        *(attack_patterns(method, consistency=kind, secrets=secrets) for method, kind in patterns),
        *(
            attack_scales(method, anew=anew, secrets=min(secrets, FEW_SECRETS))
            for anew in (False, True)
            for method in get_args(Individual)
        ),
    ]


def describe(attacks: Sequence[Attack]) -> str:
    """A table in Markdown, a row for each attack."""
    head = ["method", "claim", "claimed epsilon", "largest ratio seen", "right guesses", "epsilon, proved"]
    rows = [
        [
            attack.name,
            attack.claim,
            f"{attack.claimed:g}",
            "" if attack.worst is None else f"{attack.worst:.3f}",
            f"{100 * attack.right:.1f}% of {2 * attack.secrets:,}",
            f"at least {attack.proved:.2f}" if attack.proved > 0 else "none",
        ]
        for attack in attacks
    ]
    return write_rows(head, rows)


if __name__ == "__main__":
    print(describe(run()))
