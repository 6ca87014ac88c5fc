"""How the internal report writes figures and names: three significant digits, thousands apart, and names kept from the text
around them, so that a name that is written from right to left turns no figure beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from release_pipeline.policy.formats import count_of
from release_pipeline.report.internal_view import ShareView
from release_pipeline.report.public import show_count

MISSING = "not available"
_DIGITS, _MOST_DIGITS = 3, 17  # 17 digits tell any two floats apart


class Name(str):
    """A name that a data owner chose: shown character by character, and set apart from the text around it."""

    __slots__ = ()
    is_name = True


Sentence = str | tuple[str, ...]  # pieces of a text; those that are names are a `Name`


def say_number(value: float | None, digits: int = _DIGITS) -> str:
    """A figure with so many significant digits; of one that has more before its point, all of these.

    >>> [say_number(value) for value in (0.12345, 12345.6, 0.5, -2e-7, 3e15, None, float("nan"), float("inf"))]
    ['0.123', '12,346', '0.5', '-2 × 10^-7', '3 × 10^15', 'not available', 'not available', 'infinite']
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    if value == 0:
        return "0"
    if digits <= int(power) < 12:
        return f"{value:,.0f}"
    if not -4 <= int(power) < 12:
        return f"{_strip(mantissa)} × 10^{int(power)}"
    return _strip(f"{float(f'{mantissa}e{power}'):,.{max(digits - 1 - int(power), 0)}f}")


def say_share(share: float | None, digits: int = _DIGITS) -> str:
    """A share in percent.

    >>> say_share(0.27123), say_share(0.0), say_share(None), say_share(1e-7)
    ('27.1%', '0%', 'not available', '1 × 10^-5%')
    """
    words = say_number(None if share is None else 100 * share, digits)
    return words if words == MISSING else f"{words}%"


def say_apart(value: float | None, limit: float) -> tuple[str, str]:
    """A figure and its limit, with as many digits as it takes to tell them apart.

    >>> say_apart(0.30004, 0.3), say_apart(0.5, 0.3), say_apart(0.3, 0.3)
    (('0.30004', '0.3'), ('0.5', '0.3'), ('0.3', '0.3'))
    """
    for digits in range(_DIGITS, _MOST_DIGITS):
        if say_number(value, digits) != say_number(limit, digits):
            return say_number(value, digits), say_number(limit, digits)
    return say_number(value), say_number(limit)


def say_range(low: float | None, high: float | None) -> str:
    """From where to where.

    >>> say_range(0.1, 0.25), say_range(None, 1.0)
    ('0.1 to 0.25', 'not available')
    """
    words = say_number(low), say_number(high)
    return MISSING if MISSING in words else " to ".join(words)


def say_interval(share: ShareView) -> str:
    """A share with its interval, where it has one.

    >>> say_interval(ShareView(0.27, 0.25, 0.29, 1000, 5638)), say_interval(ShareView(0.27, 0.27, 0.27, 9, 9))
    ('27% (25% to 29%)', '27%')
    """
    if not _has_interval(share):
        return say_share(share.value)
    return f"{say_share(share.value)} ({say_share(share.low)} to {say_share(share.high)})"


def say_tried(share: ShareView) -> str:
    """How many records were looked at, and what that costs.

    >>> say_tried(ShareView(0.27, 0.25, 0.29, 1000, 5638))
    '1,000 of 5,638 records tried, so plus or minus 2 percentage points'
    >>> say_tried(ShareView(0.27, 0.27, 0.27, 5638, 5638))
    'all 5,638 records tried'
    >>> say_tried(ShareView(0.27, 0.25, 0.29, 1000, None))
    'tried 1,000 times, so plus or minus 2 percentage points'
    >>> say_tried(ShareView(0.0, 0.0, 0.0, 1, None)), say_tried(ShareView(0.5, 0.49, 0.51, 1, 1))
    ('tried 1 time', 'all 1 record tried, so plus or minus 1 percentage point')
    """
    if share.among is None:
        words = f"tried {count_of(share.tried, 'time')}"
    elif share.tried >= share.among:
        words = f"all {count_of(share.among, 'record')} tried"
    else:
        words = f"{show_count(share.tried)} of {count_of(share.among, 'record')} tried"
    if not _has_interval(share):
        return words
    apart = say_number(100 * max(share.high - share.value, share.value - share.low))
    return f"{words}, so plus or minus {apart} percentage point{'' if apart == '1' else 's'}"


def list_names(names: Sequence[str], most: int = 6) -> tuple[str, ...]:
    """The first of these names in a row; of many, how many more there are.

    >>> list_names(["a", "b", "c"])
    ('a', ', ', 'b', ' and ', 'c')
    """
    shown = names if len(names) <= most else names[: most - 1]
    more = len(names) - len(shown)
    pieces: list[str] = []
    for number, name in enumerate(shown):
        last = number == len(shown) - 1 and not more
        pieces += [*([] if not number else [" and " if last else ", "]), Name(name)]
    return (*pieces, f" and {show_count(more)} more") if more else tuple(pieces)


def is_number(value: float | None) -> bool:
    """Whether a figure exists and is finite."""
    return value is not None and math.isfinite(value)


def _has_interval(share: ShareView) -> bool:
    return is_number(share.low) and is_number(share.high) and share.low < share.high


def _strip(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
