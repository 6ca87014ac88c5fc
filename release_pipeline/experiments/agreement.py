"""Whether a run agrees with the figures that were committed: key numbers, compared by what chance allows between two sets of
runs.

`key_figures.csv` holds the mean and the standard deviation over runs of what a quick run measures too, made by a full run with
another seed. Numbers above zero are compared by their logarithms. With R runs there and r here, means of the same law differ by
more than Student's quantile with R - 1 degrees of freedom times sd sqrt(1/R + 1/r) in two of a million comparisons; a method
whose scale is wrong by a third moves a squared error by more than half. What has no noise must be equal. Settings of a kind that
gives other figures in every run (`UNREPEATABLE`) are neither committed nor compared.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from math import sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from release_pipeline.experiments.runs import Results

FILE = Path(__file__).with_name("key_figures.csv")
DOUBT = 1e-6  # of one comparison, on each side
UNREPEATABLE = ("time",)  # kinds of settings
SAME = 1e-3  # relative, of what has no noise: scales come from powers of real numbers, which differ between processors


@dataclass(frozen=True, slots=True)
class Figure:
    """The mean and the deviation over runs of one measure in one setting; of logarithms if `scale` is log."""

    experiment: str
    setting: str
    measure: str
    scale: str
    runs: int
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Departure:
    """A figure that is not what was committed, and how far it may be from it at the most."""

    committed: Figure
    found: float
    allowed: float

    def __str__(self) -> str:
        figure = self.committed
        kind = "logarithm" if figure.scale == "log" else "mean"
        return (
            f"{figure.experiment}, {figure.setting}: {figure.measure} has {kind} {self.found:.6g}, committed is "
            f"{figure.mean:.6g}; "
            f"chance allows {self.allowed:.2g}"
        )


def summarise(experiment: str, results: Results) -> Iterator[Figure]:
    """Every measure of every setting that can be repeated."""
    for one in results.measured:
        if one.setting.kind in UNREPEATABLE:
            continue
        for measure in one.rows[0]:
            runs = one.runs(measure)
            scale = "log" if np.all(runs > 0) else "plain"
            numbers = _scaled(runs, scale)
            deviation = float(np.std(numbers, ddof=1)) if len(runs) > 1 else 0.0
            yield Figure(experiment, one.setting.key, measure, scale, len(runs), float(numbers.mean()), deviation)


def compare(experiment: str, results: Results, committed: Sequence[Figure]) -> tuple[int, list[Departure]]:
    """How many figures were compared, and those that chance does not explain."""
    found = {one.setting.key: one for one in results.measured if one.setting.kind not in UNREPEATABLE}
    compared, departures = 0, list[Departure]()
    for figure in committed:
        one = found.get(figure.setting)
        if figure.experiment != experiment or one is None:
            continue
        compared += 1
        runs = one.runs(figure.measure)
        mean = float(_scaled(runs, figure.scale).mean())
        allowed = _allow(figure, len(runs))
        if not abs(mean - figure.mean) <= allowed:
            departures.append(Departure(figure, mean, allowed))
    return compared, departures


def _allow(figure: Figure, runs: int) -> float:
    rounding = SAME if figure.scale == "log" else SAME * abs(figure.mean)
    if figure.deviation == 0:
        return rounding
    quantile = float(stdtrit(figure.runs - 1, 1 - DOUBT))
    return quantile * figure.deviation * sqrt(1 / figure.runs + 1 / runs) + rounding


def _scaled(runs: npt.NDArray[np.float64], scale: str) -> npt.NDArray[np.float64]:
    if scale == "plain":
        return runs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(runs)


def read_figures(file: Path = FILE) -> list[Figure]:
    """The committed figures."""
    with file.open(newline="", encoding="utf-8") as lines:
        _, *rows = csv.reader(lines)
    return [
        Figure(experiment, setting, measure, scale, int(runs), float(mean), float(deviation))
        for experiment, setting, measure, scale, runs, mean, deviation in rows
    ]


def write_figures(figures: Iterable[Figure], file: Path = FILE) -> None:
    """Commit figures, six digits of each."""
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(field.name for field in fields(Figure))
        for figure in figures:
            *words, mean, deviation = astuple(figure)
            writer.writerow([*words, f"{mean:.6g}", f"{deviation:.3g}"])
