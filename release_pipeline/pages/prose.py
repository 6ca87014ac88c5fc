"""Figures and names in the internal report: three significant digits, thousands apart, and names kept from the text
around them, so that a name that is written from right to left turns no figure next to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from release_pipeline.formats.attack_views import ShareView
from release_pipeline.mechanisms.basis.dates import Clock
from release_pipeline.mechanisms.basis.figures import count_things, format_count, format_number, format_share
from release_pipeline.sentences import FIGURES, REVIEWERS


class Name(str):
    """A name that a data owner chose: shown character by character, and set apart from the text around it."""

    __slots__ = ()
    is_name = True


Sentence = str | tuple[str, ...]  # pieces of a text; those that are names are a `Name`


def review(key: str, /, **values: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return a sentence for the reviewers in pieces, so that the names in it stay names.

    >>> review("distributions.largest", gap="0.1", column=Name("a{b}"))
    ('The largest gap is 0.1 in ', 'a{b}', '.')
    """
    return _fill(REVIEWERS.sentences[key], **values)


def _fill(sentence: str, **values: str | tuple[str, ...]) -> tuple[str, ...]:
    marks = {name: f"\0{number}\0" for number, name in enumerate(values)}
    given = list(values.values())
    pieces = [""]
    for number, part in enumerate(sentence.format_map(marks).split("\0")):
        value = given[int(part)] if number % 2 else part
        for piece in (value,) if isinstance(value, str) else value:
            if isinstance(piece, Name) or isinstance(pieces[-1], Name):
                pieces.append(piece)
            else:
                pieces[-1] += piece
    return tuple(piece for piece in pieces if piece or isinstance(piece, Name))


def list_heads(key: str) -> tuple[str, ...]:
    """Return the heads of a table, which the catalogue has in one line."""
    return tuple(REVIEWERS(key).split(" | "))


def format_interval(share: ShareView) -> str:
    """Return a share with its interval, where it has one.

    >>> format_interval(ShareView(0.27, 0.25, 0.29, 1000, 5638)), format_interval(ShareView(0.27, 0.27, 0.27, 9, 9))
    ('27% (25% to 29%)', '27%')
    """
    if not _has_interval(share):
        return format_share(share.value)
    value, low, high = (format_share(part) for part in (share.value, share.low, share.high))
    return REVIEWERS("tried.interval", value=value, low=low, high=high)


def format_tried(share: ShareView) -> str:
    """Return how many records were tried, and the resulting margin of error.

    >>> format_tried(ShareView(0.27, 0.25, 0.29, 1000, 5638))
    '1,000 of 5,638 records tried, so plus or minus 2 percentage points'
    >>> format_tried(ShareView(0.27, 0.27, 0.27, 5638, 5638))
    'all 5,638 records tried'
    >>> format_tried(ShareView(0.27, 0.25, 0.29, 1000, None))
    'tried 1,000 times, so plus or minus 2 percentage points'
    >>> format_tried(ShareView(0.0, 0.0, 0.0, 1, None)), format_tried(ShareView(0.5, 0.49, 0.51, 1, 1))
    ('tried 1 time', 'all 1 record tried, so plus or minus 1 percentage point')
    """
    if share.among is None:
        tried = REVIEWERS("tried.times", times=count_things(share.tried, "time"))
    elif share.tried >= share.among:
        tried = REVIEWERS("tried.all", records=count_things(share.among, "record"))
    else:
        tried = REVIEWERS("tried.some", tried=format_count(share.tried), records=count_things(share.among, "record"))
    if not _has_interval(share):
        return tried
    apart = format_number(100 * max(share.high - share.value, share.value - share.low))
    return REVIEWERS("tried.by_one", words=tried) if apart == "1" else REVIEWERS("tried.by", words=tried, apart=apart)


def list_names(names: Sequence[str], most: int = 6) -> tuple[str, ...]:
    """Return the first of these names in a row; of many, how many more there are.

    >>> list_names(["a", "b", "c"])
    ('a', ', ', 'b', ' and ', 'c')
    """
    shown = names if len(names) <= most else names[: most - 1]
    more, phrases = len(names) - len(shown), FIGURES.read_phrases("list")
    pieces: tuple[str, ...] = ()
    for number, name in enumerate(shown):
        if not number:
            pieces = (Name(name),)
            continue
        is_last = number == len(shown) - 1 and not more
        pieces = _fill(phrases["last" if is_last else "comma"], names=pieces, name=Name(name))
    return _fill(phrases["more"], names=pieces, more=format_count(more)) if more else pieces


def is_number(value: float | None) -> bool:
    """Return whether a figure exists and is finite."""
    return value is not None and math.isfinite(value)


def _has_interval(share: ShareView) -> bool:
    return is_number(share.low) and is_number(share.high) and share.low < share.high


# Values of masked columns on pages: numbers as figures, dates and times as such.


_YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MOST_TICKS = 8


def format_value(value: float | None, clock: Clock | None) -> str:
    """Return a value of a column as a text."""
    return format_number(value) if clock is None or not is_number(value) or value is None else clock.show(value)


def format_difference(value: float | None, clock: Clock | None) -> str:
    """Return a difference of two values as a text."""
    return format_number(value) if clock is None or not is_number(value) else clock.name_span(format_number(value))


def list_moments(low: float, high: float, clock: Clock) -> Iterator[tuple[float, str]]:
    """Yield round moments from one to another, in units, with their texts: first days of years, or days, or smaller units."""
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
