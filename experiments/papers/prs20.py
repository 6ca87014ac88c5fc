"""PRS20: what random parts of the records cost together, what one of them costs by itself, and what they do to errors.

Records are drawn at random into parts over the **slots** of a frozen table, by a keyed permutation of their numbers, and each
part is masked on its own with noise of its own. *Together*: a replaced record stays in the part of its slot, so that neighbours
differ in one part, and all parts cost as much as the dearest one, under replace-one. *Alone*: a part whose members nobody knows
costs less than epsilon (amplification), and this holds for **eps-DP only**. *Errors*: parts have fewer records, so that their
clusters are less alike.

- `one part`: formulas. `bbg18` is what a part alone is charged for eps-DP methods, ln(1 + beta (e^eps - 1)), `prs20` the same by
  PRS20's Theorem 2.
- `neighbours`: small tables of 8 or 14 records in two parts, values 0 to 6, every record replaced by every value, epsilon 1:
  `worst` is the worst loss, `greatest` the greatest exact loss of a part, `sum` those of both added up. With the split `slots`
  parts stay as they are; with `identity` a replaced person may change part, as where a hash of the identity makes parts.
- `counterexample`: two neighbours whose parts are by a hash, k 3, noise of scale 6 on each cluster's sum.
- `membership`: one part of 3 of 30 records, published with epsilon 1, k 3, domain 0 to 2; exact densities. One record is 2, in
  the neighbour 0, all `others` are equal; `probability` and `neighbour` are of a noisy sum so far `beyond` that of the others.
  With all others 1 `idp-ls` has scale 1 for three of them and 2 for a sample with the one of value 2 (Prop. 8); `dp-um` has 2
  always.
- `error`, `clusters`: 100,000 made-up records in four skewed, correlated columns, epsilon split equally over them. `dp-um` is
  eps-DP, `idp-ls` and `idp-cbls` are **eps-iDP**, with k 25 for the list of each column (`scope: column`). `dp-mdav` is eps-DP
  for the whole table with k 400. `loss` is the greatest of the parts' losses by the accountant, `sum_of_losses` these added up.
  `clusters` have no noise, and no epsilon.

A list of noisy sums with discrete Laplace noise of scales t_j has P[sums] / P'[sums] at most exp(sum_j |S_j - S'_j| / t_j), and
reaches it where every noisy sum lies beyond both of its centres. So the worst loss of two neighbours is exactly that sum. The
scales are those of the first of the two, frozen, as the definition of iDP has it; for `dp-um` they are public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from experiments.papers.masking import (
    KNOWN,
    Rank,
    add_losses,
    average,
    cluster_records,
    prepare_columns,
    release,
)
from experiments.papers.reporting import OURS, Chapter, Claim, divide, pick, show, write_rows, write_table
from experiments.papers.runs import Setting
from experiments.papers.tables import MADE_UP_RECORDS, Numbers, Source, make_up
from release_pipeline.mechanisms import Epsilon, Grid
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.clusters.rank import cut_ranks, draw_parts, rank_clusters
from release_pipeline.mechanisms.columns.methods import Statistics, compute_statistics
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.mechanisms.vectors.vectors import Insensitive, Order, compute_vectors

PARTS = (1, 2, 5, 10, 20, 50, 100)
RANK = {  # of k 25, scope column
    "dp-um": ("dp-um", "none"),
    "dp-um, isotonic": ("dp-um", "isotonic"),
    "idp-ls": ("idp-ls", "none"),
    "idp-ls, isotonic": ("idp-ls", "isotonic"),
    "idp-cbls": ("idp-cbls", "none"),
    "idp-cbls, isotonic": ("idp-cbls", "isotonic"),
}
VECTORS = {"dp-mdav, corner": "corner", "dp-mdav, hilbert": "hilbert"}  # of k 400, plain sums, scope table
K, VECTOR_K = 25, 400
CLUSTERS = {
    "rank, k 25": ("rank", 25),
    "corner, k 25": ("corner", 25),
    "hilbert, k 25": ("hilbert", 25),
    "mdav, k 25": ("mdav", 25),
    "mdav, k 400": ("mdav", 400),
}
ERROR_EPSILONS = ("1", "10")
RUNS, QUICK_RUNS, QUICK_PARTS = 10, 3, (1, 10)

EPSILONS = ("0.1", "0.5", "1", "2", "4", "8")
SHARES = (1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 900, 990)  # thousandths of the records

WIDTH, LEAST = 6, 3  # of the small tables: the domain is 0 to 6, k is 3
PART_SIZES = {1: 4, 2: 7}  # clusters of a part: its records, so many that one more or less leaves the number of clusters
SMALL_METHODS = ("dp-um", "idp-ls", "idp-cbls")
NEIGHBOUR_RUNS = 20
HASHED = {  # what part A loses and part B gains: one person of this value, another of that one
    "one cluster in each part": (((6, 6, 6, 6), 6), ((0, 0, 0, 0), 6)),
    "two clusters in each part": (((0, 0, 0, 6, 6, 6, 6), 0), ((0, 0, 6, 6, 6, 6, 6), 0)),
}
SAMPLED, DRAWN, TOP = 30, 3, 2  # records of the example on membership, how many a part has, the end of the domain
EXAMPLES = (("dp-um", 0), ("dp-um", 1), ("idp-ls", 1))  # the method, and the value of all other records
BEYOND = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25)


NEEDS: tuple[str, ...] = ()  # of the reference tables
EXACT, ROUNDED = 1e-9, 2e-9  # of a sum of fractions as a floating-point number; a charge is rounded up to nano-epsilon


def list_settings(*, quick: bool) -> list[Setting]:
    """Formulas, small tables, and the made-up table in all numbers of parts."""
    runs = QUICK_RUNS if quick else RUNS
    theory = [
        *(Setting.of("one part", 1, epsilon=epsilon, thousandths=share) for epsilon in EPSILONS for share in SHARES),
    ]
    small = [
        *(
            Setting.of("neighbours", QUICK_RUNS if quick else NEIGHBOUR_RUNS, split=split, method=method, clusters=clusters)
            for split, methods in (("slots", SMALL_METHODS), ("identity", SMALL_METHODS[:1]))
            for method in methods
            for clusters in PART_SIZES
        ),
        *(Setting.of("counterexample", 1, example=example) for example in HASHED),
        *(
            Setting.of("membership", 1, method=method, others=others, beyond=beyond)
            for method, others in EXAMPLES
            for beyond in BEYOND
        ),
    ]
    errors = [
        Setting.of("error", runs, method=method, epsilon=epsilon, parts=parts)
        for method in (*RANK, *VECTORS)
        for epsilon in (ERROR_EPSILONS[:1] if quick else ERROR_EPSILONS)
        for parts in (QUICK_PARTS if quick else PARTS)
    ]
    clusters = [
        Setting.of("clusters", runs, clusters=name, parts=parts)
        for name in CLUSTERS
        for parts in ((100,) if quick and name.startswith("mdav") else QUICK_PARTS if quick else PARTS)  # compiles where large
    ]
    return [*theory, *small, *clusters, *errors]


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """One setting in all of its runs. Nothing of it needs the reference data."""
    match setting.kind:
        case "one part":
            return [compare_bounds(setting.text("epsilon"), Fraction(setting.number("thousandths"), 1000))]
        case "neighbours":
            return [_try_neighbours(setting, number) for number in range(len(secrets))]
        case "counterexample":
            return [{"loss": find_hash_loss(setting.text("example"))}]
        case "membership":
            return [find_membership(setting.text("method"), setting.number("others"), setting.number("beyond"))]
        case "clusters":
            return [_measure_clusters(setting, secret) for secret in secrets]
        case _:
            return [_measure_error(setting, secret) for secret in secrets]


# formulas


def compare_bounds(epsilon: str, share: Fraction) -> dict[str, float]:
    """What one part costs that has this share of the records."""
    beta, grown = float(share), math.exp(float(epsilon))
    bound = math.nan if share == 1 else math.log((grown * beta + 1 - beta) / (1 - beta))
    return {"bbg18": amplify(float(epsilon), share), "prs20": bound}


def amplify(epsilon: float, share: Fraction) -> float:
    """BBG18: what an eps-DP mechanism costs on a random share of the records, ln(1 + beta (e^eps - 1))."""
    return math.log1p(float(share) * math.expm1(epsilon))


# small tables, all neighbours


def _try_neighbours(setting: Setting, number: int) -> dict[str, float]:
    """The worst loss over all records and all that may replace them, of the table and parts of this number: the same whatever the
    seed, for nothing of it is noise."""
    method, size = setting.text("method"), PART_SIZES[setting.number("clusters")]
    words = np.empty(2 * size, dtype=np.uint64)
    noise_stream(KNOWN, "prs20", "small table", setting.key, number).words(0, 0, words)
    values = (words % np.uint64(WIDTH + 1)).astype(np.int64)
    part = draw_parts(2 * size, 2, noise_stream(KNOWN, "prs20", "small parts", setting.key, number))
    lists = [values[part == of] for of in range(2)]
    exact = [_mask_small(one, method) for one in lists]
    losses = [one.loss["column"] for one in exact]
    worst = max(
        find_loss(lists, neighbour, method, [one.scale for one in exact])
        for neighbour in list_neighbours(lists, moves=setting.text("split") == "identity")
    )
    return {"worst": worst, "greatest": max(losses), "sum": sum(losses)}


def list_neighbours(lists: Sequence[IntArray], *, moves: bool) -> Iterator[list[IntArray]]:
    """Every table in which one record is replaced: in its own part, or in any if it `moves` where its identity says."""
    for left, values in enumerate(lists):
        for place in range(len(values)):
            for joined in range(len(lists)) if moves else (left,):
                for value in range(WIDTH + 1):
                    neighbour = [np.delete(one, place) if number == left else one for number, one in enumerate(lists)]
                    neighbour[joined] = np.append(neighbour[joined], value)
                    yield neighbour


def find_loss(one: Sequence[IntArray], other: Sequence[IntArray], method: str, scales: Sequence[IntArray]) -> float:
    """The largest log-ratio of the joint densities of the noisy sums of all parts, with these scales in both."""
    total = Fraction(0)
    for mine, theirs, scale in zip(one, other, scales, strict=True):
        moved = np.abs(sum_up(mine, method) - sum_up(theirs, method))
        if np.any(moved[scale == 0]):
            return math.inf
        total += sum((Fraction(int(by), int(t)) for by, t in zip(moved, scale, strict=True) if t), Fraction(0))
    return float(total)


def sum_up(values: IntArray, method: str) -> IntArray:
    """The (trimmed) sums of the rank clusters, by their definition."""
    ordered = np.sort(values)
    found: list[int] = []
    for start, size in zip(*cut_ranks(len(values), LEAST), strict=True):
        cluster = ordered[start : start + size].tolist()
        found.append(sum([cluster[1], *cluster[1:-1], cluster[-2]]) if method == "idp-cbls" else sum(cluster))
    return np.array(found)


def find_hash_loss(example: str) -> float:
    """The loss of a neighbour in an example of `HASHED`, for `dp-um` with epsilon 1: one person leaves part A, one enters B."""
    (a, left), (b, joined) = HASHED[example]
    stay = list(a)
    stay.remove(left)
    before = [np.array(a), np.array(b)]
    after = [np.array(stay), np.array([*b, joined])]
    return find_loss(before, after, "dp-um", [_mask_small(one, "dp-um").scale for one in before])


def _mask_small(values: IntArray, method: str, *, top: int = WIDTH, scope: str = "column") -> Statistics:
    return compute_statistics(
        values,
        grid=Grid.declare((0, top), 1),
        method=method,
        epsilon="1",
        k=LEAST,
        scope=scope,
        consistency="none",
        secret=KNOWN,
        context=("prs20",),
    )


# one part, seen by itself


def find_membership(method: str, others: int, beyond: int) -> dict[str, float]:
    """One part of 3 of 30 records, published with epsilon 1: the probability of a noisy sum that lies so far beyond that of
    three other records, in two neighbours, and the log of their ratio.

    One record has the greatest value of the domain, in the neighbour the least; all others are equal. So there are two kinds of
    samples, and the probabilities are sums of two discrete Laplace densities, each with the scale of its own sample. The scales
    are those of the first table in both.
    """
    share = float(_share())
    without, within = _sample(method, others, others), _sample(method, others, TOP)
    instead = _sample(method, others, 0)
    place = int(without.statistic[0]) + beyond
    apart = (1 - share) * _density(place, int(without.statistic[0]), int(without.scale[0]))
    scale = int(within.scale[0])
    one, other = (apart + share * _density(place, int(part.statistic[0]), scale) for part in (within, instead))
    charged = amplify(1.0, _share())
    return {"probability": one, "neighbour": other, "log_ratio": math.log(one / other), "charged": charged}


def _share() -> Fraction:
    return Fraction(DRAWN, SAMPLED)


def _sample(method: str, others: int, value: int) -> Statistics:
    """The sample of two other records and this one: one cluster, which is all that there is to see."""
    return _mask_small(np.array([*[others] * (DRAWN - 1), value]), method, top=TOP, scope="centroid")


def _density(place: int, centre: int, scale: int) -> float:
    """Discrete Laplace: tanh(1/(2t)) exp(-|z|/t)."""
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(place - centre) / scale)


# the made-up table


def _measure_error(setting: Setting, secret: bytes) -> dict[str, float]:
    source, context = make_up(MADE_UP_RECORDS), ("prs20", setting.key)
    released, losses = np.empty_like(source.values), list[float]()
    for number, rows in enumerate(split_rows(len(released), setting.number("parts"), secret)):
        part = Source(source.name, source.values[rows], source.grids)
        columns, loss = _prepare(part, setting, (*context, "part", number))
        released[rows] = release(columns, secret, (*context, "part", number))
        losses.append(loss)
    return {"error": source.measure(released)[0], "loss": max(losses), "sum_of_losses": sum(losses)}


def split_rows(records: int, parts: int, secret: bytes) -> list[np.ndarray]:
    """The rows of each random part; the same parts for all methods in a run."""
    part = draw_parts(records, parts, noise_stream(secret, "prs20", "parts", parts))
    return np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part))[:-1])


def _prepare(part: Source, setting: Setting, context: tuple[str | int, ...]) -> tuple[list[Statistics], float]:
    """The exact part of each column, and the accountant's figure for all that a reader sees of this part: for the rank methods
    the exact losses of the columns, added up; for dp-mdav its bound."""
    name, epsilon = setting.text("method"), setting.text("epsilon")
    if name in RANK:
        method, consistency = RANK[name]
        columns = prepare_columns(part, Rank(method, K, epsilon, "column", consistency), context)
        return columns, add_losses(columns)
    count = len(part.grids)
    order = cast(Order, VECTORS[name])
    spec = Insensitive(tuple(Epsilon.of(epsilon).split([1] * count)), VECTOR_K, order, "plain", "table")
    columns = compute_vectors(part.units, grids=part.grids, spec=spec, secret=KNOWN, context=context)
    return columns, columns[0].loss["table"]


def _measure_clusters(setting: Setting, secret: bytes) -> dict[str, float]:
    source = make_up(MADE_UP_RECORDS)
    released = np.empty_like(source.values)
    for rows in split_rows(len(released), setting.number("parts"), secret):
        released[rows] = _average_part(
            Source(source.name, source.values[rows], source.grids), *CLUSTERS[setting.text("clusters")]
        )
    return {"error": source.measure(released)[0]}


def _average_part(part: Source, how: str, k: int) -> Numbers:
    """The exact centroid of the cluster of each record."""
    if how == "rank":
        return average(part, [rank_clusters(column, k).astype(np.int64) for column in part.units.T])
    return average(part, [cluster_records(part, how, k)] * len(part.grids))


def report(tables: Mapping[str, pd.DataFrame]) -> Chapter:
    """What is said of it."""
    slots, moved = (pick(tables["neighbours"], split=split) for split in ("slots", "identity"))
    one, example = tables["one part"], tables["counterexample"]["loss"]
    members, error, clusters = tables["membership"], tables["error"], tables["clusters"]["error"]
    ratio = (members["log_ratio"] / members["charged"]).abs().groupby(level=["method", "others"]).max()
    isotonic = error.index.get_level_values("method").str.contains("isotonic")
    losses = error["loss"] / error.index.get_level_values("epsilon").astype(float)
    ranks = error["error"][error.index.get_level_values("method").isin(RANK)]
    by_mdav = error["error"][error.index.get_level_values("method").isin(VECTORS)]
    return Chapter(
        "PRS20: random parts",
        [
            Claim("All parts together cost as much as the dearest of them, not their sum: eps, whatever the dates (parallel "
                  "composition).", "PRS20", slots["worst"] / slots["greatest"], 1 - EXACT, 1 + EXACT,
                  "The worst loss over all neighbours over the greatest loss of a part"),
            Claim("On 100,000 records no part loses more than epsilon.", OURS, losses[~isotonic], -inf, 1 + EXACT,
                  "The greatest of the parts over epsilon, by the accountant, of its own definition each"),
            Claim("Parts by a hash of the identity cost more than eps: a replaced person may change part.", OURS, moved["worst"],
                  1 + EXACT, note="The worst loss over all neighbours, dp-um with epsilon 1"),
            Claim("Such parts cost 2 eps at the most.", OURS, example, -inf, 2 + EXACT,
                  "The loss of the counterexamples, dp-um with epsilon 1",
                  "It holds where each part has one cluster. In a longer list one that leaves or joins shifts every cluster "
                  "after it, by up to twice the width of the domain in all: 2 eps in each of two parts."),
            Claim("By formula, for eps-DP methods: PRS20's Theorem 2 charges a part alone more than ln(1 + beta (e^eps - 1)) "
                  "(BBG18), everywhere.", "PRS20 Theorem 2; BBG18", (one["prs20"] / one["bbg18"]).dropna(),
                  note="Theorem 2 over BBG18"),
            Claim("Amplification holds for dp-um: no sum of one part tells more than the amplified charge.", "BBG18",
                  pick(ratio, method="dp-um"), -inf, 1 + ROUNDED, "The largest log-ratio over the charge"),
            Claim("Amplification fails for iDP: the sample's scale reveals membership.", OURS, pick(ratio, method="idp-ls"),
                  note="The largest log-ratio of idp-ls over the charge; far out only the sample with the wider noise is likely"),
            Claim("Random parts of 1,000 rows raise MDAV's SSE about tenfold at n = 100,000.", OURS,
                  divide(pick(clusters, clusters=("mdav, k 25",)), "parts", 100, 1), 5, 20, "SSE in 100 parts over that in one"),
            Claim("Rank methods hardly notice random parts of 1,000 rows.", OURS, divide(ranks, "parts", 100, 1), -inf, 1.5,
                  "The error in 100 parts over that in one",
                  "It holds where noise is most of the error; isotonic means have fewer clusters to smooth together."),
            Claim("dp-mdav for the whole table gains by parts: fewer clusters can change.", OURS, divide(by_mdav, "parts", 1, 10),
                  note="The error in one part over that in ten; a larger k does the same without parts"),
        ],
        {
            "A hash of the identity: two neighbours": write_rows(
                ["", "values", "the neighbour", "loss, epsilon 1"],
                [[name, f"A {a}; B {b}", f"{left} leaves A, {joined} enters B", show(pick(example, example=name).iloc[0])]
                 for name, ((a, left), (b, joined)) in HASHED.items()],
            ),
            "Amplification and iDP: two neighbours": write_table(pick(members, beyond=(0, 2, 5, 10, 15, 25))),
            "What one part of the records costs by formula, epsilon 1": write_table(pick(one, epsilon="1")),
            "Errors and losses by number of parts": "\n\n".join([
                write_table(clusters, "parts"), write_table(error["error"], "parts"), write_table(error["loss"], "parts")]),
        },
        ("A hash of the identity: two neighbours",),
    )  # fmt: skip
