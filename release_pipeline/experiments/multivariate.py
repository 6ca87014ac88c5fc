"""What clusters of several columns at once are worth beside each other, and what random parts of the records cost.

On the reference tables census and wine (methods.md section 6: columns, domain [0, 1.5 max], grid half of the data's resolution),
and on a made-up one:

    alone    clusters by mdav, by corner and along a Hilbert curve, linear and log, without noise: what grouping alone costs
    noisy    dp-mdav: the paper's claim for each centroid (KDP13), and the claims for the whole table, eps-DP and eps-iDP
    parted   every method on 100,000 made-up records in 1, 2, 10 and 100 random parts (PRS20), by the way that a release goes

The error of a column is the mean of (x - y)^2 over its variance; 1 is no better than publishing the mean. Over columns there are
mean and median; 100 times the mean of clusters without noise is 100 SSE / SST. With noise it is the median over known secrets,
the same in every run; a release never has a known one. Which records clusters have does not depend on the secret, but for equal
ones, so that one set of clusters serves all secrets.

MDAV appears without noise alone: one changed record can change all of its clusters, by many records each, and no noise that is as
large as what one record can do to a cluster bounds that.

    python -m release_pipeline.experiments.multivariate DATA [--page docs/multivariate.md] [--quick]

reads census.csv and wine_white.csv in the folder DATA, prints the tables, and rewrites them in the page, between its two marks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.experiments.measuring.masking import average, cluster_records
from release_pipeline.experiments.tables import KEY, MADE_UP, MADE_UP_RECORDS, Source, find_data, make_up, read_source
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.methods import add_noise
from release_pipeline.privacy.vectors import (
    Insensitive,
    Order,
    Statistic,
    Transform,
    VectorScope,
    compute_vectors,
)
from release_pipeline.stages.compared import read_tables
from release_pipeline.stages.strategies import RECORD, find_strategy

TABLES = ("census", "wine")
KS = (20, 50, 100, 200, 400)
EPSILONS = ("0.1", "1", "10")
SECRETS, PARTED_SECRETS = 20, 3
ORDERS: dict[str, tuple[Order, Transform]] = {
    "corner": ("corner", "linear"),
    "corner, log": ("corner", "log"),
    "hilbert": ("hilbert", "linear"),
    "hilbert, log": ("hilbert", "log"),
}
NOISY_ORDERS = ("corner", "hilbert", "hilbert, log")
CLAIMS: dict[str, tuple[Statistic, VectorScope]] = {
    "centroid, DP": ("plain", "centroid"),
    "table, DP": ("plain", "table"),
    "table, iDP": ("trimmed", "table"),
}
PARTS = (1, 2, 10, 100)

_RANK = (  # method, and what else the policy says
    ("laplace", "method: laplace"),
    ("dp-um", "method: dp-um, k: 25, consistency: none"),
    ("dp-um, isotonic", "method: dp-um, k: 25"),
    ("idp-ls", "method: idp-ls, k: 25, scope: column, consistency: none"),
    ("idp-ls, isotonic", "method: idp-ls, k: 25, scope: column"),
    ("idp-cbls", "method: idp-cbls, k: 25, scope: column, consistency: none"),
    ("idp-cbls, isotonic", "method: idp-cbls, k: 25, scope: column"),
)
_TOGETHER = tuple(
    (
        f"dp-mdav, {order}, {'DP' if statistic == 'plain' else 'iDP'}, k = {k}",
        f"method: dp-mdav, k: {k}, order: {order}, statistic: {statistic}, scope: table",
    )
    for k in (25, 400)
    for order in ("corner", "hilbert")
    for statistic in ("plain", "trimmed")
)
METHODS = dict((*_RANK, *_TOGETHER))
CLUSTERS = {  # the methods whose clusters are shown without noise, too
    "rank clusters": f"{METHODS['dp-um']}, epsilon: 1",
    **{
        f"{order}, k = {k}": f"method: dp-mdav, k: {k}, order: {order}, statistic: plain, scope: table, epsilon: 1"
        for k in (25, 400)
        for order in ("corner", "hilbert")
    },
    "mdav, k = 25": "method: mdav, k: 25",
    "mdav, k = 400": "method: mdav, k: 400",
}

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"

Numbers = npt.NDArray[np.float64]
Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Alone:
    """What clusters cost without noise."""

    source: str
    k: int
    clusters: str
    mean: float
    median: float


@dataclass(frozen=True, slots=True)
class Noisy:
    """What dp-mdav costs; `order` is a name of `ORDERS`, `claim` one of `CLAIMS`. Medians over secrets."""

    source: str
    k: int
    epsilon: str
    order: str
    claim: str
    mean: float
    median: float


@dataclass(frozen=True, slots=True)
class PartitionedPoint:
    """What a method costs in so many random parts, mean over columns; without `epsilon` what its clusters cost without noise.
    Median over secrets."""

    method: str
    epsilon: str | None
    parts: int
    mean: float


@dataclass(frozen=True, slots=True)
class Experiment:
    """All figures, in the order in which they were asked for."""

    alone: tuple[Alone, ...]
    noisy: tuple[Noisy, ...]
    partitioned: tuple[PartitionedPoint, ...]

    @property
    def markdown(self) -> str:
        """The tables of the page."""
        parts: list[str] = []
        for source in dict.fromkeys(point.source for point in self.alone):
            parts += [f"### {source}, without noise", _alone_table([point for point in self.alone if point.source == source])]
        for source in dict.fromkeys(point.source for point in self.noisy):
            parts += [f"### {source}, with noise", _noisy_table([point for point in self.noisy if point.source == source])]
        if without := [point for point in self.partitioned if point.epsilon is None]:
            parts += ["### Random parts, without noise", _partitioned_table(without)]
        if with_noise := [point for point in self.partitioned if point.epsilon is not None]:
            parts += ["### Random parts, with noise", _partitioned_table(with_noise)]
        return "\n\n".join(parts) + "\n"


def run(
    data: Path,
    *,
    ks: Sequence[int] = KS,
    epsilons: Sequence[str] = EPSILONS,
    secrets: int = SECRETS,
    parts: Sequence[int] = PARTS,
    records: int = MADE_UP_RECORDS,
    parted_secrets: int = PARTED_SECRETS,
    progress: Progress = lambda _: None,
) -> Experiment:
    """Everything, on census.csv and wine_white.csv in the folder `data` and on a made-up table of so many records."""
    data = find_data(data, TABLES)
    alone: list[Alone] = []
    noisy: list[Noisy] = []
    for name in TABLES:
        source = read_source(data, name)
        for k in ks:
            progress(f"{name}, k = {k}")
            alone += [measure_alone(source, k, clusters) for clusters in ("mdav", *ORDERS)]
            noisy += [
                measure_noisy(source, k, epsilon, order, claim, secrets=secrets)
                for epsilon in epsilons
                for claim in CLAIMS
                for order in NOISY_ORDERS
            ]
    made_up = make_up(records)
    partitioned: list[PartitionedPoint] = []
    for clusters in CLUSTERS:
        progress(f"parts, {clusters}, without noise")
        partitioned += [measure_partitioned(made_up, clusters, None, count, secrets=parted_secrets) for count in parts]
    for method in METHODS:
        progress(f"parts, {method}")
        partitioned += [
            measure_partitioned(made_up, method, epsilon, count, secrets=parted_secrets)
            for epsilon in epsilons
            for count in parts
        ]
    return Experiment(tuple(alone), tuple(noisy), tuple(partitioned))


def measure_alone(source: Source, k: int, clusters: str) -> Alone:
    """Centroids of mdav's clusters, or of those along an order."""
    order, transform = ("mdav", "linear") if clusters == "mdav" else ORDERS[clusters]
    cluster = cluster_records(source, order, k, transform)
    mean, median = source.measure(average(source, [cluster] * len(source.grids)))
    return Alone(source.name, k, clusters, mean, median)


def measure_noisy(source: Source, k: int, epsilon: str, order: str, claim: str, *, secrets: int = SECRETS) -> Noisy:
    """dp-mdav, with epsilon split equally over the columns, for secrets 0, 1, ..."""
    (which, transform), (statistic, scope), count = ORDERS[order], CLAIMS[claim], len(source.grids)
    spec = Insensitive(Epsilon.of(epsilon).split([1] * count), k, which, statistic, scope, (transform,) * count)
    exact = compute_vectors(source.units, grids=source.grids, spec=spec, secret=KEY, context=(source.name,))
    found: list[tuple[float, float]] = []
    for number in range(secrets):
        released = [
            add_noise(part, secret=_secret(number), context=(source.name, place))[part.cluster]
            for place, part in enumerate(exact)
        ]
        found.append(source.measure(np.stack(released, axis=1)))
    mean, median = np.median(np.array(found), axis=0).tolist()
    return Noisy(source.name, k, epsilon, order, claim, mean, median)


def measure_partitioned(
    source: Source, method: str, epsilon: str | None, parts: int, *, secrets: int = PARTED_SECRETS
) -> PartitionedPoint:
    """A method of `METHODS` on the made-up table in random parts, or clusters of `CLUSTERS` without noise: what the way of its
    policy makes, compared record by record."""
    policy = _policy(CLUSTERS[method] if epsilon is None else f"{METHODS[method]}, epsilon: {epsilon}", parts, len(source.values))
    records = pa.table({name: pa.array(values) for name, values in zip(MADE_UP, source.values.T, strict=True)})
    found = [_mask(policy, source, records, _secret(number), noise=epsilon is not None) for number in range(secrets)]
    return PartitionedPoint(method, epsilon, parts, float(np.median(found)))


def _mask(policy: Policy, source: Source, records: pa.Table, secret: bytes, *, noise: bool) -> float:
    made = {"records": records}
    read = read_tables(made)
    strategy, context = find_strategy(policy), ("multivariate",)
    made |= strategy.group(read, secret=secret, context=context, progress=lambda _: None).tables
    if not noise:
        statistics = made["statistics"]
        none: Any = pa.array(np.zeros(statistics.num_rows, dtype=np.int64))
        made["statistics"] = statistics.set_column(statistics.column_names.index("scale"), "scale", none)
    made |= strategy.measure(read, secret=secret, context=context, progress=lambda _: None)
    masked = strategy.mask(read, secret=secret, context=context, progress=lambda _: None)
    released = np.empty_like(source.values)
    released[masked.column(RECORD).to_numpy()] = np.stack([masked.column(name).to_numpy() for name in MADE_UP], axis=1)
    return source.measure(released)[0]


def _policy(protect: str, parts: int, records: int) -> Policy:
    lines = [
        "policy: multivariate",
        "steward: nobody",
        "population: made-up-people",
        "source: {path: made-up.csv}",
        "person: each-row",
        "releases: once",
        f"protect: {{{protect}{f', partitions: {parts}' if parts > 1 else ''}}}",
        "columns:",
        *(
            f"  {name}: {{role: confidential, do: noise, domain: [0, {top}], grid: 1, outside: clamp, why: made up}}"
            for name, (*_, top) in MADE_UP.items()
        ),
        f"gates: {{min_rows: {records}}}",
    ]
    return parse_policy("\n".join(lines) + "\n", name="multivariate")


def _secret(number: int) -> bytes:
    return number.to_bytes(32, "big")


def show(number: float) -> str:
    """Three digits, never as a power of ten.

    >>> show(5913.2), show(97.66), show(0.4748), show(0.00147)
    ('5910', '97.7', '0.475', '0.00147')
    """
    if number <= 0:
        return f"{number:g}"
    digits = 2 - floor(log10(number))
    return f"{round(number, digits):.{max(digits, 0)}f}"


def _alone_table(points: Sequence[Alone]) -> str:
    kinds = list(dict.fromkeys(point.clusters for point in points))
    cells = {(point.k, point.clusters): f"{show(point.mean)} / {show(point.median)}" for point in points}
    rows = [[str(k), *(cells[k, kind] for kind in kinds)] for k in dict.fromkeys(point.k for point in points)]
    return _table(["k", *kinds], rows)


def _noisy_table(points: Sequence[Noisy]) -> str:
    kinds = list(dict.fromkeys((point.claim, point.order) for point in points))
    cells = {(point.epsilon, point.k, point.claim, point.order): f"{show(point.mean)} / {show(point.median)}" for point in points}
    rows = [
        [epsilon, str(k), *(cells[epsilon, k, *kind] for kind in kinds)]
        for epsilon in dict.fromkeys(point.epsilon for point in points)
        for k in dict.fromkeys(point.k for point in points)
    ]
    return _table(["epsilon", "k", *(f"{claim}: {order}" for claim, order in kinds)], rows)


def _partitioned_table(points: Sequence[PartitionedPoint]) -> str:
    counts = list(dict.fromkeys(point.parts for point in points))
    cells = {(point.method, point.epsilon, point.parts): show(point.mean) for point in points}
    rows = [
        [method, *([] if epsilon is None else [epsilon]), *(cells[method, epsilon, count] for count in counts)]
        for method, epsilon in dict.fromkeys((point.method, point.epsilon) for point in points)
    ]
    first = ["clusters"] if points[0].epsilon is None else ["method", "epsilon"]
    return _table([*first, *(f"{count} part{'s' if count > 1 else ''}" for count in counts)], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def rewrite(page: str, tables: str) -> str:
    """The page with these tables between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InvalidArgument(f"the page has no place for the tables, between {BEGIN} and {END}.", where="page")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment, print the tables, and write them into a page if one is named."""
    parser = argparse.ArgumentParser(prog="python -m release_pipeline.experiments.multivariate")
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with census.csv and wine_white.csv")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--page", type=Path, help="rewrite the tables in this page")
    target.add_argument("--quick", action="store_true", help="one k, few secrets and records: shows that it runs")
    options = parser.parse_args(arguments)
    if options.page is not None:
        rewrite(options.page.read_text(encoding="utf-8"), "")  # before minutes of measuring, not after

    def report(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    quick: dict[str, Any] = {"ks": (100,), "secrets": 2, "parts": (1, 10), "records": 10_000, "parted_secrets": 1}
    found = run(options.data, **(quick if options.quick else {}), progress=report)
    print(found.markdown, end="")
    if options.page is not None:
        options.page.write_text(rewrite(options.page.read_text(encoding="utf-8"), found.markdown), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except ReleasePipelineError as error:
        sys.exit(str(error))
