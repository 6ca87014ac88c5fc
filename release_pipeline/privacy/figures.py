"""How figures are written for people, everywhere: in plans, cards, pages and the analyst's kit."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal

MISSING = "not available"
DIGITS = 3
LEAST_SHARE = 0.0001  # that is told as a number
_MOST_DIGITS = 17  # 17 digits tell any two floats apart


def show_figure(number: float) -> str:
    """A figure that is not exact, with as many digits as it is good for.

    >>> [show_figure(number) for number in (0.12345, 999.4, 999.7, -999.7, 28699.2)]
    ['0.123', '999', '1,000', '-1,000', '28,699']
    """
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def show_share(share: float) -> str:
    """A share that is not exact, in percent: what is there is never told as nothing, nor what is not all as all.

    >>> [show_share(share) for share in (0.0, 0.00004, 0.0002, 0.745, 0.99999, 1.0)]
    ['0%', 'less than 0.01%', '0.02%', '74.5%', 'more than 99.9%', '100%']
    """
    if 0 < share < LEAST_SHARE:
        return "less than 0.01%"
    if 0.999 < share < 1:
        return "more than 99.9%"
    return f"{100 * share:.{2 if share < 0.01 else 1}f}".rstrip("0").rstrip(".") + "%" if share else "0%"


def format_count(number: int) -> str:
    """A count with its thousands apart.

    >>> format_count(20190)
    '20,190'
    """
    return f"{number:,}"


def count_of(number: int, what: str) -> str:
    """A number of things in words.

    >>> count_of(1, "release"), count_of(2000, "release")
    ('1 release', '2,000 releases')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def percent(share: Decimal) -> str:
    """A declared share as people write it.

    >>> percent(Decimal("0.05"))
    '5%'
    """
    return f"{float(share * 100):g}%"


def is_instant(text: str) -> bool:
    """Whether a text is a moment with its zone, as RFC 3339 writes it."""
    try:
        return "T" in text and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def format_moment(text: str) -> str:
    """A moment as people write it; any other text as it is.

    >>> format_moment("2026-11-20T16:39:15+00:00")
    '2026-11-20 16:39 UTC'
    """
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if is_instant(text) else text


def format_number(value: float | None, digits: int = DIGITS) -> str:
    """A measured figure with so many significant digits; of one that has more before its point, all of these.

    >>> [format_number(value) for value in (0.12345, 12345.6, 999.7, 0.5, -2e-7, 3e15, None, float("nan"), float("inf"))]
    ['0.123', '12,346', '1,000', '0.5', '-2 × 10^-7', '3 × 10^15', 'not available', 'not available', 'infinite']
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


def format_share(share: float | None, digits: int = DIGITS) -> str:
    """A measured share in percent.

    >>> format_share(0.27123), format_share(0.0), format_share(None), format_share(1e-7)
    ('27.1%', '0%', 'not available', '1 × 10^-5%')
    """
    words = format_number(None if share is None else 100 * share, digits)
    return words if words == MISSING else f"{words}%"


def format_apart(value: float | None, limit: float) -> tuple[str, str]:
    """A figure and its limit, with as many digits as it takes to tell them apart.

    >>> format_apart(0.30004, 0.3), format_apart(0.5, 0.3), format_apart(0.3, 0.3)
    (('0.30004', '0.3'), ('0.5', '0.3'), ('0.3', '0.3'))
    """
    for digits in range(DIGITS, _MOST_DIGITS):
        if format_number(value, digits) != format_number(limit, digits):
            return format_number(value, digits), format_number(limit, digits)
    return format_number(value), format_number(limit)


def format_range(low: float | None, high: float | None) -> str:
    """From where to where.

    >>> format_range(0.1, 0.25), format_range(None, 1.0)
    ('0.1 to 0.25', 'not available')
    """
    words = format_number(low), format_number(high)
    return MISSING if MISSING in words else " to ".join(words)


def _strip(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
