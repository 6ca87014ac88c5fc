"""Which method for which release, drawn and judged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from release_pipeline.experiments.measuring.choosing import KIND, MANY, METHODS
from release_pipeline.experiments.reporting.claims import Cases, Chapter, Finding, list_names, show, table
from release_pipeline.experiments.reporting.pictures import Panel, Picture, Series
from release_pipeline.experiments.runs import Measured, Results

WORDS = """\
Which method does best is decided by records times epsilon (n eps) of a column, and by what is asked of it. Here single columns
of census (9), wine (12) and adult (5), with 250, 1,000 and all of their records, were masked by every method that works on single
columns, at the same epsilon. laplace, dp-um and dp-cdf are **DP**; idp-ls and idp-cbls (scope column) are **iDP**, the weaker
promise, which no epsilon makes up for. k is 5 for dp-cdf, 25 for the iDP methods, and of dp-um what public facts suggest. 0 is
declared as an atom. At the end some columns share one epsilon: pure, and by rho at a delta (zCDP).

- *error*: the mean of (x - y)^2 over the variance; 1 is no better than publishing the mean.
- *KS*: the largest difference of the two distribution functions.
- *quantiles*: the mean difference of the quantiles from 1% to 99%, in standard deviations.
- *zeros*: by how much the share of zeros differs, of the two columns that have many.
- *mean*: how far means lie apart, in standard deviations."""

MEASURES = {"error": "error", "ks": "KS", "quantiles": "quantiles", "zeros": "share of zeros", "mean": "mean"}
BINS = (0, 30, 100, 300, 1000, 3000, 10**9)
NAMES = ("below 30", "30 to 100", "100 to 300", "300 to 1,000", "1,000 to 3,000", "3,000 or more")
MIDDLES = (10, 55, 170, 550, 1700, 10_000)  # where a bin is drawn
SMALLEST = 1e-4  # for an axis of logarithms
LOOKS = {"laplace": 4, "dp-um": 1, "idp-ls": 2, "idp-cbls": 0, "dp-cdf": 6}
ENOUGH = 2  # the bins from 100 on
LEAST_MANY, STATED = 12, 5.0  # columns, and how many times less error rho is said to have


def report(results: Results) -> Chapter:
    """The chapter of the page."""
    of_bins = {method: _by_bin(results, method) for method in METHODS}
    return Chapter(
        "Choosing: which method for which release",
        WORDS,
        tuple(_draw(of_bins)),
        (*_judge(results), *_judge_many(results)),
        (*_report_tables(of_bins), _report_many(results)),
    )


def _by_bin(results: Results, method: str) -> list[list[Measured]]:
    """The settings of a method, by records times epsilon."""
    found: list[list[Measured]] = [[] for _ in NAMES]
    for one in results.of(KIND, method=method):
        found[_bin_of(one)].append(one)
    return found


def _bin_of(one: Measured) -> int:
    return int(np.searchsorted(BINS, _strength(one), side="right")) - 1


def _strength(one: Measured) -> float:
    return float(one.runs("records_masked")[0]) * float(one.setting.text("epsilon"))


def _means(measured: list[Measured], measure: str) -> np.ndarray:
    """The mean over runs of each setting that the measure is about."""
    chosen = [one for one in measured if measure != "zeros" or _has_zeros(one)]
    return np.array([float(one.runs(measure).mean()) for one in chosen])


def _has_zeros(one: Measured) -> bool:
    return one.setting.text("column") in ("capital_gain", "capital_loss")  # 92 and 95% of them; others have next to none


def _draw(of_bins: dict[str, list[list[Measured]]]) -> Iterator[Picture]:
    panels: list[Panel] = []
    for measure, name in MEASURES.items():
        series: list[Series] = []
        for method, bins in of_bins.items():
            filled = [(x, means) for x, one in zip(MIDDLES, bins, strict=True) if len(means := _means(one, measure))]
            middles = [np.array([max(float(np.median(means)), SMALLEST)]) for _, means in filled]
            series.append(Series(method, [x for x, _ in filled], middles, look=LOOKS[method]))
        panels.append(Panel(name, "records times epsilon", f"{name}, median of columns", series, log_x=True))
    caption = "What is left of a column by records times epsilon, at the same epsilon: medians of columns, means over runs"
    yield Picture("choosing", caption, panels)


def _judge(results: Results) -> Iterator[Finding]:
    for rival, words in (("dp-um", "dp-um, under the same definition"), ("idp-cbls", "idp-cbls, under the weaker one")):
        cases, low = Cases(), list[float]()
        for one in results.of(KIND, method="dp-cdf"):
            others = {**dict(one.setting.fields), "method": rival}
            ratio = float(results.runs(KIND, "error", **others).mean()) / float(one.runs("error").mean())
            if _bin_of(one) >= ENOUGH:
                cases.add(one.setting.key.removeprefix(f"{KIND}: "), np.array([ratio]))
            else:
                low.append(ratio)
        middle = f" Below 100 it is {show(float(np.median(low)))} in the median." if low else ""
        geometric = float(np.exp(np.mean(np.log([float(ratios[0]) for ratios in cases.ratios.values()]))))
        yield cases.find(
            f"From n eps = 100 on dp-cdf has less error than {words}.",
            "this project",
            more=f"The error of {rival} over that of dp-cdf, means over runs; geometric mean {show(geometric)}.{middle}",
            why=f"Not in {len(cases.failed)} settings: {list_names(cases.failed, 4)}.",
        )


def _judge_many(results: Results) -> Iterator[Finding]:
    for count in results.values(MANY, "together"):
        if count >= LEAST_MANY:
            cases = Cases(least=STATED)
            for name in results.values(MANY, "table"):
                pure, by_rho = _many(results, name, count, "dp-um", "epsilon"), _many(results, name, count, "dp-cdf", "rho")
                cases.add(name, np.array([_geometric(pure / by_rho)]))
            yield cases.find(
                f"{count} columns that share epsilon 1 have five times less error by rho, at delta 0.000001, with dp-cdf than "
                "with pure dp-um at its best k.",
                "this project",
                more="The error of dp-um over that of dp-cdf by rho, geometric mean over columns of means over runs.",
                why=f"Less on {list_names(cases.failed)}.",
            )


def _many(results: Results, name: str, count: int, method: str, by: str) -> np.ndarray:
    """The error of each column, means over runs; of dp-um at the k that has the least."""
    columns = results.values(MANY, "column", table=name)
    return np.array(
        [
            min(
                float(one.runs("error").mean())
                for one in results.of(MANY, table=name, column=column, together=count, method=method, by=by)
            )
            for column in columns
        ]
    )


def _geometric(ratios: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def _report_many(results: Results) -> tuple[str, str]:
    cases = [
        (name, method, by)
        for name in results.values(MANY, "table")
        for method in ("dp-um", "dp-cdf")
        for by in ("epsilon", "rho")
    ]
    counts = results.values(MANY, "together")
    rows = [
        [name, method, by, *(show(_geometric(_many(results, name, count, method, by))) for count in counts)]
        for name, method, by in cases
    ]
    head = ["table", "method", "by", *(f"{count} columns" for count in counts)]
    title = "Error where columns share epsilon 1 (by rho: at delta 0.000001), geometric mean over columns; dp-um at its best k"
    return title, table(head, rows)


def _report_tables(of_bins: dict[str, list[list[Measured]]]) -> Iterator[tuple[str, str]]:
    for measure, name in MEASURES.items():
        rows = [
            [method, *(show(float(np.median(means))) if len(means := _means(one, measure)) else "" for one in bins)]
            for method, bins in of_bins.items()
        ]
        yield (
            f"{name[0].upper()}{name[1:]} by records times epsilon: median of columns, means over runs",
            table(["method", *NAMES], rows),
        )
