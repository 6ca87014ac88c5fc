"""Figures of settings that were tried: what can be shown upwards, and ranges in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from release_pipeline.privacy.figures import format_number, format_share, say_missing
from release_pipeline.report.charts.frontier import Measured
from release_pipeline.report.escaping import format_name
from release_pipeline.report.prose import is_number
from release_pipeline.sentences import EXPLORE

Plain = Mapping[str, Any]  # of a document, as a script reads it
Write = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Measure:
    """What may be shown upwards: its figures by setting, and these in words."""

    title: str
    unit: str
    figures: tuple[Measured, ...]
    words: tuple[str, ...]
    errors: bool = False


def list_measures(document: Plain) -> list[Measure]:
    """What can be shown upwards; what no setting has is no measure."""
    settings: Sequence[Plain] = document["settings"]
    error, off, linked = EXPLORE("measure.unit_error"), EXPLORE("measure.unit_correlation"), EXPLORE("measure.unit_linkage")

    def measure(title: str, unit: str, figures: Sequence[Any], write: Write = format_number) -> Measure:
        found = [_measured(figure) for figure in figures]
        words = tuple(_format_range(one, write) for one in found)
        return Measure(title, unit, tuple(found), words, errors=unit == error)

    measures = [
        measure(EXPLORE("measure.error"), error, [one["error"] for one in settings]),
        measure(EXPLORE("measure.mean_error"), error, [one["mean_error"] for one in settings]),
    ]
    for column in document["columns"]:
        name = column["name"]
        figures = [one["columns"][name]["error"] if name in one["columns"] else None for one in settings]
        measures.append(measure(EXPLORE("measure.column", column=format_name(name)), error, figures))
    measures += [
        measure(EXPLORE("measure.correlation"), off, [one["correlation"] for one in settings]),
        measure(EXPLORE("measure.worst_correlation"), off, [one["worst_correlation"] for one in settings]),
        measure(EXPLORE("measure.linkage"), linked, [one["linkage"] for one in settings], format_share),
    ]
    return [one for number, one in enumerate(measures) if not number or any(is_number(each.middle) for each in one.figures)]


def tell_missing(document: Plain, measure: Measure) -> str:
    """Which settings have no mark; empty where all have one."""
    pairs = zip(document["settings"], measure.figures, strict=True)
    lacking = [str(setting["number"]) for setting, figure in pairs if not is_number(figure.middle)]
    return EXPLORE("page.missing", settings=", ".join(lacking)) if lacking else ""


def _measured(figure: Any) -> Measured:
    """A range, or a figure without one."""
    if not isinstance(figure, Mapping):
        return Measured(figure, figure, figure)
    found: Plain = figure  # pyright: ignore[reportUnknownVariableType]
    return Measured(found["low"], found["middle"], found["high"])


def _format_range(one: Measured, write: Write) -> str:
    """A figure, and where 99 of 100 releases have it."""
    middle, low, high = write(one.middle), write(one.low), write(one.high)
    if is_number(one.middle) and one.low is None and one.high is None:
        return EXPLORE("range.few", middle=middle)
    if say_missing() in (middle, low, high) or low == high:
        return middle
    return EXPLORE("range.is", middle=middle, low=low, high=high)


def write_range(found: Any, write: Write = format_number) -> str:
    return _format_range(_measured(found), write)
