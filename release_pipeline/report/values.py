"""How values of masked columns stand on pages: numbers as figures, dates and times as such."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from release_pipeline.privacy.dates import Clock
from release_pipeline.privacy.figures import format_number
from release_pipeline.report.prose import is_number

_YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MOST_TICKS = 8


def format_value(value: float | None, clock: Clock | None) -> str:
    """A value of a column."""
    return format_number(value) if clock is None or not is_number(value) or value is None else clock.show(value)


def format_difference(value: float | None, clock: Clock | None) -> str:
    """A difference of two values."""
    return format_number(value) if clock is None or not is_number(value) else clock.name_span(format_number(value))


def list_moments(low: float, high: float, clock: Clock) -> Iterator[tuple[float, str]]:
    """Round moments from one to another, in units, with their texts: first days of years, or days, or what units there are."""
    first, last = clock.moment(low), clock.moment(high)
    span = last - first
    if span > timedelta(days=3 * 366):
        every = next((years for years in _YEARS if (last.year - first.year) / years <= _MOST_TICKS), _YEARS[-1])
        for year in range(-(-first.year // every) * every, last.year + 1, every):
            if year > 0:
                yield clock.count_to(datetime(year, 1, 1)), str(year)
        return
    if span > timedelta(days=3):
        days = max(round(span / timedelta(days=_MOST_TICKS)), 1)
        day = first.replace(hour=0, minute=0, second=0)
        for tick in (day + timedelta(days=passed) for passed in range(0, (last - day).days + 1, days)):
            yield clock.count_to(tick), f"{tick:%Y-%m-%d}"
        return
    step = max(round((high - low) / _MOST_TICKS), 1)
    for units in range(round(low), round(high) + 1, step):
        yield float(units), clock.show(units)
