"""Counts by value against sums by rank, drawn and judged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from release_pipeline.experiments.measuring.by_value import KIND
from release_pipeline.experiments.reporting.claims import Cases, Finding, list_names, show, table
from release_pipeline.experiments.reporting.pictures import Panel, Picture, Series
from release_pipeline.experiments.runs import Results

STATED = {
    ("1.5", "1"): {"census": 6.0, "wine": 5.5},
    ("1.5", "0.1"): {"census": 2.5, "wine": 2.5},
    ("10", "1"): {"census": 10.0, "wine": 10.0},
}
SAME = 0.9  # not worse than dp-um, in the mean over runs


def draw(results: Results) -> Iterator[Picture]:
    """The error of each column by k."""
    for name in results.values(KIND, "table", alpha="1.5", epsilon="1"):
        columns = results.values(KIND, "column", table=name)
        panels = [
            Panel(
                column,
                "k",
                "error",
                [
                    Series(method, ks, [_runs(results, name, column, "1.5", "1", method, k) for k in ks], look=look)
                    for method, look in (("dp-um", 1), ("dp-cdf", 6))
                    for ks in [results.values(KIND, "k", table=name, column=column, alpha="1.5", epsilon="1", method=method)]
                ],
                log_x=True,
                level=(1, "the mean alone"),
            )
            for column in columns
        ]
        yield Picture(
            f"ours-by-value-{name}",
            f"Error of each column of {name} at epsilon 1 of its own: counts by value and sums by rank (DP)",
            panels,
        )


def judge(results: Results) -> Iterator[Finding]:
    """What this project states of dp-cdf."""
    for (alpha, epsilon), stated in STATED.items():
        if not results.of(KIND, alpha=alpha, epsilon=epsilon):
            continue
        cases, words = Cases(), list[str]()
        for name, least in stated.items():
            ratios = _ratios(results, name, alpha, epsilon)
            middle = float(np.exp(np.mean(np.log(list(ratios.values())))))
            cases.add(name, np.array([middle / least]))
            many = sum(ratio >= 3 for ratio in ratios.values())
            least_most = f"{show(min(ratios.values()))} to {show(max(ratios.values()))}"
            words.append(f"{name} {show(middle)} ({least_most}; 3 or more in {many} of {len(ratios)} columns)")
        said = " and ".join(f"{show(least)} on {name}" for name, least in stated.items())
        yield Finding(
            f"Counts by value have less error than isotonic dp-um at its best k, under the same definition: at epsilon {epsilon} "
            f"and a domain of {alpha} max by {said}.",
            "this project",
            cases.verdict,
            "The error of dp-um over that of dp-cdf (k 1), means over runs, geometric mean over columns: " + "; ".join(words),
            f"The figures were stated by a prototype, of means over few runs. Less on {list_names(cases.failed)}."
            if cases.failed
            else "",
            cases.share,
        )
    cases = Cases(least=SAME)
    for name, alpha, epsilon in product(*(results.values(KIND, field) for field in ("table", "alpha", "epsilon"))):
        for column, ratio in _ratios(results, name, alpha, epsilon).items():
            cases.add(f"{name}, {column}, {alpha} max, epsilon {epsilon}", np.array([ratio]))
    yield cases.find(
        "In no column have they more than a ninth more error.",
        "this project",
        more="The same ratio, column by column.",
        why=f"Not in: {list_names(cases.failed)}.",
    )
    cases = Cases(most=1.13)
    for name, column, epsilon in product(*(results.values(KIND, field, alpha="1.5") for field in ("table", "column", "epsilon"))):
        if results.of(KIND, table=name, column=column, alpha="1.5", epsilon=epsilon, method="dp-cdf", k=5):
            one, five = (_mean(results, name, column, "1.5", epsilon, "dp-cdf", k) for k in (1, 5))
            cases.add(f"{name}, {column}, epsilon {epsilon}", np.array([five / one]))
    if cases.ratios:
        yield cases.find(
            "k = 5 costs up to 13%.",
            "this project",
            more="The error with k 5 over that with k 1; both have noise of their own.",
            why=f"More in: {list_names(cases.failed)}.",
        )


def report(results: Results) -> Iterator[tuple[str, str]]:
    """Each column, at the k that suits each method best."""
    for alpha, epsilon in product(results.values(KIND, "alpha"), results.values(KIND, "epsilon")):
        rows = [
            [name, column, f"{show(theirs)} (k {best:,})", show(mine), show(theirs / mine)]
            for name in results.values(KIND, "table", alpha=alpha, epsilon=epsilon)
            for column in results.values(KIND, "column", table=name)
            for best, theirs in [_best(results, name, column, alpha, epsilon)]
            for mine in [_mean(results, name, column, alpha, epsilon, "dp-cdf", 1)]
        ]
        title = f"Error by column at epsilon {epsilon} of its own and a domain of {alpha} max: dp-um at its best k, and dp-cdf"
        yield title, table(["table", "column", "dp-um, isotonic", "dp-cdf", "times less"], rows)


def _ratios(results: Results, name: str, alpha: str, epsilon: str) -> dict[str, float]:
    return {
        column: _best(results, name, column, alpha, epsilon)[1] / _mean(results, name, column, alpha, epsilon, "dp-cdf", 1)
        for column in results.values(KIND, "column", table=name)
    }


def _best(results: Results, name: str, column: str, alpha: str, epsilon: str) -> tuple[int, float]:
    """The k of dp-um with the least error, and that."""
    ks = results.values(KIND, "k", table=name, column=column, alpha=alpha, epsilon=epsilon, method="dp-um")
    return min(((k, _mean(results, name, column, alpha, epsilon, "dp-um", k)) for k in ks), key=lambda found: found[1])


def _mean(results: Results, name: str, column: str, alpha: str, epsilon: str, method: str, k: int) -> float:
    return float(_runs(results, name, column, alpha, epsilon, method, k).mean())


def _runs(results: Results, name: str, column: str, alpha: str, epsilon: str, method: str, k: int) -> np.ndarray:
    return results.runs(KIND, "error", table=name, column=column, alpha=alpha, method=method, k=k, epsilon=epsilon)
