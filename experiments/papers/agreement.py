"""Whether a run agrees with the figures that were committed: key numbers, within what chance allows between two sets of runs.

`key_figures.csv` holds the mean and the standard deviation over runs of what a quick run measures too, made by a full run with
another seed. Numbers above zero are compared by their logarithms. With R runs there and r here, the difference of two means of
the same law is compared with sd sqrt(1/R + 1/r): by itself, against Student's law with R - 1 degrees of freedom, and together
with those of all settings that differ only in numbers (k, epsilon, alpha): their sum over the square root of how many they are
has a standard deviation of sqrt((R-1)/(R-3)), and a method whose scale is wrong moves them all to one side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from experiments.papers.runs import Measured, Setting

FILE = Path(__file__).with_name("key_figures.csv")
DOUBT = 1e-6  # of one comparison, on each side
LEAST_TOGETHER, TOGETHER = 4, 6.0  # settings, and standard deviations
PLAIN = ("linkage", "above", "not_above")  # shares, of which a run may have none: no logarithms
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
    """What is not as it was committed: of which settings, and by how much."""

    settings: str
    measure: str
    words: str

    def __str__(self) -> str:
        return f"{self.settings}, {self.measure}: {self.words}"


def summarise(experiment: str, measured: Sequence[Measured]) -> Iterator[Figure]:
    """Every measure of every setting."""
    for one in measured:
        for measure in one.rows[0]:
            runs = one.runs(measure)
            scale = "log" if np.all(runs > 0) and measure not in PLAIN else "plain"
            numbers = _scaled(runs, scale)
            deviation = float(np.std(numbers, ddof=1)) if np.ptp(runs) > 0 else 0.0  # of equal numbers it need not come out as 0
            yield Figure(experiment, one.setting.key, measure, scale, len(runs), float(numbers.mean()), deviation)


def compare(experiment: str, measured: Sequence[Measured], committed: Sequence[Figure]) -> tuple[int, list[Departure]]:
    """How many figures were compared, and what chance does not explain."""
    found = {one.setting.key: one for one in measured}
    compared, departures = 0, list[Departure]()
    together: dict[tuple[str, str], list[float]] = {}
    for figure in committed:
        one = found.get(figure.setting)
        if figure.experiment != experiment or one is None:
            continue
        compared += 1
        runs = one.runs(figure.measure)
        mean = float(_scaled(runs, figure.scale).mean())
        rounding = SAME if figure.scale == "log" else SAME * abs(figure.mean)
        spread = figure.deviation * sqrt(1 / figure.runs + 1 / len(runs))
        allowed = rounding + (float(stdtrit(figure.runs - 1, 1 - DOUBT)) * spread if spread else 0)
        if not abs(mean - figure.mean) <= allowed:
            kind = "the logarithm's mean" if figure.scale == "log" else "the mean"
            words = f"{kind} is {mean:.6g} and was {figure.mean:.6g}; chance allows {allowed:.2g} between them"
            departures.append(Departure(f"{experiment}, {figure.setting}", figure.measure, words))
        if spread and figure.runs > 3:
            group = f"{experiment}, {one.setting.kind}: {_name_texts(one.setting)}"
            far = (mean - figure.mean) / spread / sqrt((figure.runs - 1) / (figure.runs - 3))
            together.setdefault((group, figure.measure), []).append(far)
    for (group, measure), far in together.items():
        total = sum(far) / sqrt(len(far))
        if len(far) >= LEAST_TOGETHER and not abs(total) <= TOGETHER:
            side = "larger" if total > 0 else "smaller"
            words = f"{side} than it was in {len(far)} settings together, by {abs(total):.1f} standard deviations"
            departures.append(Departure(group, measure, words))
    return compared, departures


def _name_texts(setting: Setting) -> str:
    """The fields that are no numbers."""
    return ", ".join(f"{name} {value}" for name, value in setting.fields if not str(value).replace(".", "").isdigit())


def _scaled(runs: npt.NDArray[np.float64], scale: str) -> npt.NDArray[np.float64]:
    if scale == "plain":
        return runs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(runs)


def read_figures(file: Path = FILE) -> list[Figure]:
    """The committed figures."""
    return [Figure(*row) for row in pd.read_csv(file, dtype={"setting": str}).itertuples(index=False, name=None)]


def write_figures(figures: Iterable[Figure], file: Path = FILE) -> None:
    """Commit figures, six digits of each."""
    pd.DataFrame(list(figures)).to_csv(file, index=False, float_format="%.6g")
