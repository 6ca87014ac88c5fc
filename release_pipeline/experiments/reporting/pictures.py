"""Pictures in one style: a method has the same colour, mark and line everywhere, and can be told apart without colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0b5fa5", "#d55e00", "#007a5a", "#8a3f8f", "#6b6b6b", "#b8860b", "#c2185b", "#2e2e2e")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 3)))
KNOWN = {"idp-cbls": 0, "dp-um": 1, "idp-ls": 2, "dp-mdav": 3, "laplace": 4, "mdav": 5, "dp-cdf": 6, "original": 7}
MAX_TICKS = 8  # of a logarithmic axis at the numbers themselves
WIDE, HIGH = 3.5, 2.9  # inches of one panel
LETTER, HANDLE = 0.085, 0.75  # inches of a letter in the legend, and of what stands before the words
SETTINGS: Any = {  # of Matplotlib
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e0",
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.hashsalt": "release-pipeline",
    "svg.fonttype": "none",
    "savefig.facecolor": "white",
}


@dataclass(frozen=True, slots=True)
class Series:
    """A line: at each x what was measured in all runs (rows: x; columns: runs). `name` says what it is; equal names, equal looks.
    `look` fixes its place in the style where the name is not a method's. A `thin` one has no marks and is not in the legend,
    where the line of the same name stands: the caption says what it is."""

    name: str
    x: Sequence[float]
    y: Sequence[np.ndarray]
    look: int | None = None
    thin: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. `level` is a horizontal line with its words, `level_left` or right. With `percent` shares are shown as
    percent. A logarithmic axis has no 0: it lies on the `floor`, a share below all others, without a mark and beside the word
    none. `bottom` is where the vertical axis begins."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = True
    level: tuple[float, str] | None = None
    level_left: bool = False
    percent: bool = False
    floor: float | None = None
    band: tuple[float, float] = (0, 1)  # the runs between these quantiles
    bottom: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """Panels side by side, `across` in a row, with what they show in words. `alike`: a row has one vertical axis."""

    name: str
    caption: str
    panels: Sequence[Panel]
    across: int = 3
    alike: bool = False

    def save(self, folder: Path) -> list[Path]:
        """Write it as SVG and as PNG, the same bytes for the same figures and the same version of Matplotlib."""
        import matplotlib as mpl

        with mpl.rc_context(SETTINGS):
            figure = self._draw()
            files = [folder / f"{self.name}.svg", folder / f"{self.name}.png"]
            figure.savefig(files[0], metadata={"Date": None, "Title": self.caption, "Creator": None})
            figure.savefig(files[1], dpi=130, metadata={"Software": None, "Title": self.caption})
        return files

    def _draw(self) -> Figure:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        across = min(self.across, len(self.panels))
        down = -(-len(self.panels) // across)
        figure = Figure(figsize=(WIDE * across, HIGH * down + 0.5), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06))
        axes = figure.subplots(down, across, squeeze=False, sharey="row" if self.alike else False)
        places: list[Axes] = list(axes.flat)
        looks = _choose_looks(self.panels)
        handles: dict[str, object] = {}
        for place, panel in zip(places, self.panels, strict=False):
            handles |= _draw_panel(place, panel, looks)
        for place in places[len(self.panels) :]:
            place.set_visible(False)
        if self.alike:
            for place in axes[:, 1:].flat:
                place.set_ylabel("")
        if len(handles) > 1:
            longest = max(map(len, handles))
            most = max(int(WIDE * across / (LETTER * longest + HANDLE)), 1)
            rows = -(-len(handles) // most)
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=-(-len(handles) // rows))
        return figure


def _draw_panel(place: Axes, panel: Panel, looks: dict[str, int]) -> dict[str, object]:
    handles: dict[str, object] = {}
    unit, floor = 100 if panel.percent else 1, panel.floor or -np.inf
    for series in panel.series:
        look = looks[series.name]
        middle, low, high = (
            np.array([unit * max(float(edge(runs)), floor) for runs in series.y])
            for edge in (np.mean, *(partial(np.quantile, q=share) for share in panel.band))
        )
        colour, dash = COLOURS[look % len(COLOURS)], DASHES[look % len(DASHES)]
        if series.thin:
            place.plot(series.x, middle, color=colour, linestyle=dash, linewidth=0.7)
        elif len(series.x) > 1:
            mark = MARKS[look % len(MARKS)] if len(series.x) < 40 else ""
            seen = (middle > unit * floor).tolist()
            (handles[series.name],) = place.plot(series.x, middle, color=colour, linestyle=dash, marker=mark, markevery=seen)
            place.fill_between(series.x, low, high, color=colour, alpha=0.15, linewidth=0)
        else:  # what has no k is a level
            handles[series.name] = place.axhline(middle[0], color=colour, linestyle=dash)
    if panel.level is not None:
        level, (x, side) = unit * panel.level[0], (0.02, "left") if panel.level_left else (0.99, "right")
        place.axhline(level, color="#2e2e2e", linewidth=0.9, linestyle=(0, (6, 4)))
        place.annotate(panel.level[1], (x, level), xycoords=("axes fraction", "data"), ha=side, va="bottom", fontsize=8)
    place.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    if panel.log_x:
        place.set_xscale("log")
        numbers = sorted({x for series in panel.series for x in series.x})
        if len(numbers) <= MAX_TICKS:
            place.set_xticks(numbers)
            place.set_xticks([], minor=True)
        place.xaxis.set_major_formatter(_format_number)
    if panel.log_y:
        place.set_yscale("log")
    if panel.percent:
        place.yaxis.set_major_formatter(partial(_format_share, none=1.001 * unit * floor))
        place.yaxis.set_minor_formatter(_format_nothing)
    if panel.bottom is not None:
        place.set_ylim(bottom=panel.bottom)
    return handles


def _format_number(x: float, _: int | None) -> str:
    return f"{x:g}"


def _format_share(y: float, _: int | None, *, none: float) -> str:
    return "none" if y <= none else f"{y:,.6g}%"


def _format_nothing(_y: float, _: int | None) -> str:
    return ""


def _choose_looks(panels: Sequence[Panel]) -> dict[str, int]:
    """Methods by name; everything else by its own wish, or the next look that is free."""
    looks: dict[str, int] = {}
    for series in (series for panel in panels for series in panel.series):
        if series.name not in looks:
            free = next(number for number in range(len(COLOURS) ** 2) if number not in looks.values())
            looks[series.name] = KNOWN.get(series.name.partition(" (")[0], free) if series.look is None else series.look
    return looks
