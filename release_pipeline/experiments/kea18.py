"""KEA18's experiment on (k,epsilon)-anonymity: what epsilon does to the error, to linking, and to what must be suppressed.

The table is UCI Adult with a column of heights. Age, sex, race and marital status are generalised by OLA, for several k, with at
most 5% of the records suppressed; inside each class the height gets noise of scale diam / epsilon.

Adult has no heights, so they are made up: normal, by sex and age (`HEIGHTS`, in millimetres), drawn from the project's ChaCha20
stream of the known secret `SECRET`, and rounded to millimetres. They say nothing about anybody; only their spread within a class
matters here. Millimetres rather than centimetres, because equal numbers in a class hide each other: the finer grid is the harder
case for linking.

    python -m release_pipeline.experiments.kea18 ADULT.csv FOLDER

writes kea18.csv and kea18.svg; the hierarchies are read from `adult_hierarchies` beside ADULT.csv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from html import escape
from math import log10
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow.csv

from release_pipeline.errors import InvalidArgument, ReleasePipelineError, WrongUsage
from release_pipeline.privacy import Epsilon, Grid, Hierarchy
from release_pipeline.privacy.class_noise import (
    add_class_noise,
    class_scales,
    confidence_widths,
    expect_relative_errors,
    find_exposed,
    find_small_classes,
)
from release_pipeline.privacy.lattice import search_lattice
from release_pipeline.privacy.noise import noise_stream

QUASI = ("age", "sex", "race", "marital_status")
KS = (2, 5, 10, 20, 50, 100)
EPSILONS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50", "100")
SUPPRESSED_AT_MOST = Fraction(1, 20)
CONFIDENCE = Decimal("0.99")
RUNS = 5
SECRET = bytes(range(32))  # the figures are the same in every run; a release never has a known secret

DOMAIN, STEP = (1000, 2500), 1  # millimetres
HEIGHTS = {  # sex: (the first age of the band, mean), and the standard deviation of all bands
    "Male": (((0, 1770), (30, 1765), (50, 1750), (70, 1725)), 72),
    "Female": (((0, 1635), (30, 1630), (50, 1615), (70, 1590)), 66),
}

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Point:
    """One k and epsilon. Shares are of 1, not percent; what is measured is a mean over runs.

    `classes` have `records`; `chance` is the linking risk of a guess, classes / records. `expected_error` is the closed form,
    before numbers are moved back into the domain, `measured_error` what a reader gets, after. `linking` is over all records in
    classes, `linking_left` over those that the confidence boxes leave; `exposed` and `left_too_small` are what these suppress.
    """

    k: int
    epsilon: float
    classes: int
    records: int
    chance: float
    expected_error: float
    measured_error: float
    linking: float
    linking_left: float
    exposed: float
    left_too_small: float

    @property
    def suppressed(self) -> float:
        """All that confidence-based k-anonymity suppresses after the noise, a share of all records."""
        return self.exposed + self.left_too_small


@dataclass(frozen=True, slots=True)
class Experiment:
    """All points, by k and then by epsilon, both rising."""

    points: tuple[Point, ...]

    def of(self, k: int) -> tuple[Point, ...]:
        """The points of one k."""
        return tuple(point for point in self.points if point.k == k)

    @property
    def ks(self) -> tuple[int, ...]:
        """Every k."""
        return tuple(dict.fromkeys(point.k for point in self.points))

    @property
    def csv(self) -> str:
        """A row for each point."""
        rows = [",".join(f"{number:.6g}" for number in astuple(point)) for point in self.points]
        return "\n".join((",".join(field.name for field in fields(Point)), *rows, ""))


def run(
    adult: Path,
    *,
    ks: Sequence[int] = KS,
    epsilons: Sequence[str] = EPSILONS,
    runs: int = RUNS,
    secret: bytes = SECRET,
    progress: Callable[[str], object] | None = None,
) -> Experiment:
    """Every k with every epsilon on the file `adult`, with the hierarchies that lie in `adult_hierarchies` beside it."""
    table = pyarrow.csv.read_csv(adult)
    hierarchies = [read_hierarchy(adult.parent / "adult_hierarchies" / f"{name}.csv") for name in QUASI]
    codes = np.column_stack([h.encode(table.column(name).to_numpy()) for name, h in zip(QUASI, hierarchies, strict=True)])
    heights = draw_heights(table.column("age").to_numpy(), table.column("sex").to_numpy(zero_copy_only=False))
    points: list[Point] = []
    for k in sorted(ks):
        if progress:
            progress(f"k = {k}")
        group = search_lattice(codes, hierarchies, k, SUPPRESSED_AT_MOST).group
        points += [measure(heights, group, k, epsilon, runs, secret) for epsilon in sorted(map(Epsilon.of, epsilons))]
    return Experiment(tuple(points))


def read_hierarchy(file: Path) -> Hierarchy:
    """A hierarchy from its CSV, which has a header."""
    with file.open(newline="", encoding="utf-8") as rows:
        return Hierarchy.of([tuple(row) for row in csv.reader(rows)][1:])


def draw_heights(age: npt.NDArray[np.int64], sex: npt.NDArray[np.object_]) -> npt.NDArray[np.float64]:
    """Made-up heights in whole millimetres; the same for the same ages and sexes."""
    mean, deviation = np.zeros(len(age)), np.zeros(len(age))
    for which, (bands, spread) in HEIGHTS.items():
        mine = sex == which
        starts, means = zip(*bands, strict=True)
        mean[mine] = np.array(means)[np.searchsorted(starts, age[mine], side="right") - 1]
        deviation[mine] = spread
    words = np.empty(len(age), dtype=np.uint64)
    noise_stream(SECRET, "kea18", "heights").words(0, 0, words)
    normal = NormalDist()
    drawn = np.array([normal.inv_cdf((word + 0.5) / 2**52) for word in (words >> np.uint64(12)).tolist()])
    return np.clip(np.rint(mean + deviation * drawn), *DOMAIN)


def measure(heights: npt.NDArray[np.float64], group: Ints, k: int, epsilon: Epsilon, runs: int, secret: bytes) -> Point:
    """One point: noise on the heights of these classes (-1: suppressed by the grouping), `runs` times."""
    grid = Grid.declare(DOMAIN, STEP)
    q, kept = grid.quantise(heights), group >= 0
    scale = class_scales(q, group, epsilon)
    by_class, count = expect_relative_errors(heights, group, scale, STEP)
    widths = confidence_widths([scale], CONFIDENCE)
    found = np.zeros((runs, 5))
    for number in range(runs):
        noisy = add_class_noise(q, group, scale, grid, secret=secret, context=("kea18", k, epsilon.nano, number))
        exposed = find_exposed(q[:, None], noisy[:, None], group, widths, k)
        small = find_small_classes(group, kept & ~exposed, k=k)
        linked = link(q, noisy, group)
        left = kept & ~exposed & ~small
        error = np.abs(noisy - q) * STEP / heights
        found[number] = (
            error[kept].mean(), linked[kept].mean(), linked[left].mean() if left.any() else 0, exposed.mean(), small.mean()
        )  # fmt: skip
    classes, records = len(scale), int(np.count_nonzero(kept))
    expected = float(np.sum(by_class * count) / count.sum())
    return Point(k, float(epsilon), classes, records, classes / records, expected, *found.mean(axis=0).tolist())


def link(original: Ints, released: Ints, group: Ints) -> npt.NDArray[np.float64]:
    """For each record 1/|G| if its own original is among the nearest originals G of its class, else 0; exactly, for one column.

    The measure of `privacy.risk.record_linkage`, of every record instead of a sample. With d = |y - x| the own original is among
    the nearest if no original of the class lies strictly between y - d and y + d, and G are those at these two ends.
    """
    apart = 4 * (int(max(np.abs(original).max(), np.abs(released).max())) + 1)
    known = np.sort(group * apart + original)

    def count_below(numbers: Ints, side: str) -> Ints:
        return np.searchsorted(known, group * apart + numbers, side="right" if side == "closed" else "left")

    distance = np.abs(released - original)
    low, high = released - distance, released + distance
    between = count_below(high, "open") - count_below(low, "closed")
    at_ends = count_below(high, "closed") - count_below(low, "open")
    return np.where((group >= 0) & (between <= 0), 1 / np.maximum(at_ends, 1), 0.0)


_LEFT, _TOP, _WIDE, _HIGH, _ROOM = 74, 92, 300, 300, 92  # a panel, and the room between two
_SIZE = (_LEFT + 3 * _WIDE + 2 * _ROOM + 26, _TOP + _HIGH + 138)
_COLOURS = ("#d1495b", "#c87512", "#7d8c12", "#1f9d77", "#2f7fd1", "#8a63d2")
_MARKS = (
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0", "m-3-3h6v6h-6z", "m0-4l3.6 6.4h-7.2z", "m0-4l4 4l-4 4l-4-4z", "m0 4l3.6-6.4h-7.2z",
    "m-3.4-3.4l6.8 6.8m0-6.8l-6.8 6.8",
)  # fmt: skip
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1a1a1a}.title{font-size:19px;font-weight:600}.head{font-weight:600;font-size:14px}"
    ".small{font-size:12px;fill:#444}.page{fill:#fafaf8}.frame{fill:none;stroke:#777}.rule{stroke:#ddd}.limit{stroke:#444;"
    "stroke-dasharray:6 4}.line{fill:none;stroke-width:1.8}.chance{stroke-dasharray:1 4}"
    "@media(prefers-color-scheme:dark){text{fill:#e8e8e6}.small{fill:#bbb}.page{fill:#16181d}.frame{stroke:#888}.rule{stroke:#33373f}"
    ".limit{stroke:#bbb}}"
)


@dataclass(frozen=True, slots=True)
class _Panel:
    """A square with two logarithmic axes: `low` and `high` are the powers of ten at the ends. A share of 0 lies on the floor."""

    left: int
    title: str
    unit: str
    low: int
    high: int
    epsilons: tuple[float, float]
    floor: str = ""

    def x(self, epsilon: float) -> float:
        start, end = map(log10, self.epsilons)
        return self.left + _WIDE * (log10(epsilon) - start) / (end - start if end > start else 1)

    def y(self, value: float) -> float:
        place = (log10(value) if value > 0 else self.low) - self.low
        return _TOP + _HIGH * (1 - min(max(place / (self.high - self.low), 0), 1))

    def line(self, points: Sequence[Point], value: Callable[[Point], float], number: int) -> str:
        path = "L".join(f"{self.x(point.epsilon):.1f} {self.y(value(point)):.1f}" for point in points)
        return f'<path class="line" stroke="{_COLOURS[number]}" d="M{path}"/>'

    def marks(self, points: Sequence[Point], value: Callable[[Point], float], number: int) -> str:
        path = "".join(
            f"M{self.x(point.epsilon):.1f} {self.y(value(point)):.1f}{_MARKS[number]}" for point in points if value(point) > 0
        )
        return f'<path fill="{_COLOURS[number]}" stroke="{_COLOURS[number]}" d="{path}"/>' if path else ""

    def limit(self, value: float, words: str) -> list[str]:
        y = self.y(value)
        return [
            f'<path class="limit" d="M{self.left} {y:.1f}h{_WIDE}"/>',
            f'<text class="small" x="{self.left + 6}" y="{y - 5:.1f}">{escape(words)}</text>',
        ]

    def axes(self) -> list[str]:
        right, bottom, parts = self.left + _WIDE, _TOP + _HIGH, list[str]()
        for power in range(self.low, self.high + 1):
            y, text = self.y(10.0**power), self.floor if self.floor and power == self.low else _tell(power, self.unit)
            parts.append(f'<path class="rule" d="M{self.left} {y:.1f}h{_WIDE}"/>')
            parts.append(f'<text class="small" x="{self.left - 7}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        for power in range(round(log10(self.epsilons[0])), round(log10(self.epsilons[1])) + 1):
            x = self.x(10.0**power)
            parts.append(f'<path class="rule" d="M{x:.1f} {_TOP}v{_HIGH}"/>')
            parts.append(f'<text class="small" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10.0**power:g}</text>')
        parts.append(f'<rect class="frame" x="{self.left}" y="{_TOP}" width="{_WIDE}" height="{_HIGH}"/>')
        parts.append(f'<text class="head" x="{self.left}" y="{_TOP - 14}">{escape(self.title)}</text>')
        parts.append(f'<text x="{(self.left + right) / 2:g}" y="{bottom + 40}" text-anchor="middle">epsilon</text>')
        return parts


def draw(experiment: Experiment) -> str:
    """The three trends as SVG, one line for each k, for light and dark pages."""
    if len(experiment.ks) > len(_COLOURS):
        raise InvalidArgument(f"more than {len(_COLOURS)} lines cannot be told apart.", remedy="Draw fewer k.")
    epsilons = [point.epsilon for point in experiment.points]
    ends = (min(epsilons), max(epsilons))
    lefts = [_LEFT + number * (_WIDE + _ROOM) for number in range(3)]
    error = _Panel(lefts[0], "relative error of a height", "", -3, 2, ends)
    linking = _Panel(lefts[1], "linking risk, of all records", "%", -2, 2, ends)
    suppressed = _Panel(lefts[2], f"suppressed by {CONFIDENCE:.0%} confidence", "%", -4, 2, ends, floor="none")
    parts = [*error.axes(), *linking.axes(), *suppressed.axes(), *linking.limit(5, "5%"), *suppressed.limit(2, "2%")]
    for number, k in enumerate(experiment.ks):
        points, colour = experiment.of(k), _COLOURS[number]
        parts.append(error.line(points, lambda point: point.expected_error, number))
        parts.append(error.marks(points, lambda point: point.measured_error, number))
        chance = f"M{linking.left} {linking.y(100 * points[0].chance):.1f}h{_WIDE}"
        parts.append(f'<path class="chance" stroke="{colour}" d="{chance}"/>')
        for panel, value in ((linking, _percent_linked), (suppressed, _percent_suppressed)):
            parts += [panel.line(points, value, number), panel.marks(points, value, number)]
        x, y = _LEFT + 96 * number, _TOP + _HIGH + 74
        parts.append(f'<path class="line" stroke="{colour}" d="M{x} {y - 4}h26"/>')
        parts.append(f'<path fill="{colour}" stroke="{colour}" d="M{x + 13} {y - 4}{_MARKS[number]}"/>')
        parts.append(f'<text x="{x + 33}" y="{y}">k = {k}</text>')
    wide, high = _SIZE
    notes = (
        "Left: lines are the closed form, marks what was measured after moving numbers back into the domain of 1 to 2.5 m.",
        "Middle: dotted, a guess within the class. Right: records that stand out, and classes left with fewer than k.",
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">',
            "<title>(k,epsilon)-anonymity on Adult with made-up heights: error, linking and suppression by epsilon</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{wide}" height="{high}"/>',
            '<text class="title" x="20" y="36">(k,epsilon)-anonymity on Adult with made-up heights</text>',
            *parts,
            *(f'<text class="small" x="20" y="{high - 40 + 18 * line}">{escape(note)}</text>' for line, note in enumerate(notes)),
            "</svg>\n",
        )
    )


def _tell(power: int, unit: str) -> str:
    return f"{10.0**power:g}{unit}"


def _percent_linked(point: Point) -> float:
    return 100 * point.linking


def _percent_suppressed(point: Point) -> float:
    return 100 * point.suppressed


def main(arguments: Sequence[str]) -> None:
    """Run the experiment on the first file, and write its figures and picture into the second."""
    if len(arguments) != 2:
        raise WrongUsage("two paths are needed: Adult's CSV and the folder for the results.")
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    experiment = run(Path(arguments[0]), progress=print)
    (folder / "kea18.csv").write_text(experiment.csv, encoding="utf-8")
    (folder / "kea18.svg").write_text(draw(experiment), encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ReleasePipelineError as error:
        sys.exit(str(error))
