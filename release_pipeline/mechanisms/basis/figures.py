"""Figures as text for people, everywhere: in plans, cards, pages and the analyst's kit. Text for programs is never made here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from release_pipeline.sentences import FIGURES

DIGITS = 3
LEAST_SHARE = 0.0001  # the least share shown as a number
_MOST_DIGITS = 17  # any two floats differ in 17 digits


def show_figure(number: float) -> str:
    """Return a rounded figure, with as many digits as are meaningful.

    >>> [show_figure(number) for number in (0.12345, 999.4, 999.7, -999.7, 28699.2)]
    ['0.123', '999', '1,000', '-1,000', '28,699']
    """
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def show_share(share: float) -> str:
    """Return a rounded share in percent: a positive one is never shown as 0%, nor one below 1 as 100%.

    >>> [show_share(share) for share in (0.0, 0.00004, 0.0002, 0.745, 0.99999, 1.0)]
    ['0%', 'less than 0.01%', '0.02%', '74.5%', 'more than 99.9%', '100%']
    """
    if 0 < share < LEAST_SHARE:
        return FIGURES("share.little", share=_in_percent("0.01"))
    if 0.999 < share < 1:
        return FIGURES("share.nearly_all", share=_in_percent("99.9"))
    return _in_percent(f"{100 * share:.{2 if share < 0.01 else 1}f}".rstrip("0").rstrip(".") if share else "0")


def format_percent(share: float, places: int = 1) -> str:
    """Return a share in percent with so many decimal places.

    >>> format_percent(0.574), format_percent(0.0012, 2)
    ('57.4%', '0.12%')
    """
    return _in_percent(f"{100 * share:.{places}f}")


def format_count(number: int) -> str:
    """Return a count with separated thousands.

    >>> format_count(20190)
    '20,190'
    """
    return f"{number:,}"


def count_of(number: int, what: str) -> str:
    """Return a number of things as text, with a noun that is no key of the catalogue: `count_things` takes nouns from there.

    >>> count_of(1, "release"), count_of(2000, "release")
    ('1 release', '2,000 releases')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def count_things(number: int, what: str) -> str:
    """Return a number of things as text; the catalogue has the singular and the plural.

    >>> count_things(1, "record"), count_things(2000, "released_record")
    ('1 record', '2,000 released records')
    """
    words = FIGURES.read_phrases(f"things.{what}")
    return words["one" if number == 1 else "many"].format(number=format_count(number))


def say_span(number: str, unit: str) -> str:
    """Return an amount of time as text, given its number as text.

    >>> say_span("1", "day"), say_span("0.5", "hour")
    ('1 day', '0.5 hours')
    """
    return FIGURES.read_phrases("span")[f"{unit}.one" if number == "1" else f"{unit}.many"].format(number=number)


def percent(share: Decimal) -> str:
    """Return a declared share in percent.

    >>> percent(Decimal("0.05"))
    '5%'
    """
    return _in_percent(f"{float(share * 100):g}")


def join_names(names: Iterable[str], how: str = "comma") -> str:
    """Return texts joined in a row.

    >>> join_names(["a", "b", "c"]), join_names(["a", "b"], "or"), join_names(["a"]), join_names([])
    ('a, b, c', 'a or b', 'a', '')
    """
    first, *rest = list(names) or [""]
    for name in rest:
        first = FIGURES.read_phrases("list")[how].format(names=first, name=name)
    return first


def join_last(names: Sequence[str]) -> str:
    """Return texts joined with "and" before the last.

    >>> join_last(["a", "b", "c"]), join_last(["a"])
    ('a, b and c', 'a')
    """
    *others, last = names
    return join_names([join_names(others), last], "last") if others else last


def is_instant(text: str) -> bool:
    """Return whether a text is a moment with its zone, as RFC 3339 writes it."""
    try:
        return "T" in text and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def format_moment(text: str) -> str:
    """Return a moment as people write it; any other text unchanged.

    >>> format_moment("2026-11-20T16:39:15+00:00")
    '2026-11-20 16:39 UTC'
    """
    if not is_instant(text):
        return text
    year, month, day, hour, minute = datetime.fromisoformat(text).astimezone(UTC).strftime("%Y %m %d %H %M").split()
    return FIGURES("moment.full", year=year, month=month, day=day, hour=hour, minute=minute)


def format_number(value: float | None, digits: int = DIGITS) -> str:
    """Return a measured figure with so many significant digits; all digits before its point if there are more.

    >>> [format_number(value) for value in (0.12345, 12345.6, 999.7, 0.5, -2e-7, 3e15, None, float("nan"), float("inf"))]
    ['0.123', '12,346', '1,000', '0.5', '-2 × 10^-7', '3 × 10^15', 'not available', 'not available', 'infinite']
    """
    if value is None or math.isnan(value):
        return say_missing()
    if math.isinf(value):
        return FIGURES("figure.infinite") if value > 0 else FIGURES("figure.minus_infinite")
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    if value == 0:
        return "0"
    if digits <= int(power) < 12:
        return f"{value:,.0f}"
    if not -4 <= int(power) < 12:
        return FIGURES("figure.power", mantissa=_strip(mantissa), power=int(power))
    return _strip(f"{float(f'{mantissa}e{power}'):,.{max(digits - 1 - int(power), 0)}f}")


def format_most(share: float) -> str:
    """Return an upper bound of a share in percent, never below it.

    >>> format_most(0.1), format_most(1 / 3), format_most(0.496), format_most(1.0)
    ('10%', '33.4%', '49.6%', '100%')
    """
    return FIGURES("share.percent", number=_strip(f"{math.ceil(round(1000 * share, 6)) / 10:.1f}"))


def format_share(share: float | None, digits: int = DIGITS) -> str:
    """Return a measured share in percent.

    >>> format_share(0.27123), format_share(0.0), format_share(None), format_share(1e-7)
    ('27.1%', '0%', 'not available', '1 × 10^-5%')
    """
    words = format_number(None if share is None else 100 * share, digits)
    return words if words == say_missing() else FIGURES("share.percent", number=words)


def format_apart(value: float | None, limit: float) -> tuple[str, str]:
    """Return a figure and its limit, with as many digits as are needed to distinguish them.

    >>> format_apart(0.30004, 0.3), format_apart(0.5, 0.3), format_apart(0.3, 0.3)
    (('0.30004', '0.3'), ('0.5', '0.3'), ('0.3', '0.3'))
    """
    for digits in range(DIGITS, _MOST_DIGITS):
        if format_number(value, digits) != format_number(limit, digits):
            return format_number(value, digits), format_number(limit, digits)
    return format_number(value), format_number(limit)


def format_range(low: float | None, high: float | None) -> str:
    """Return a range from its ends.

    >>> format_range(0.1, 0.25), format_range(None, 1.0)
    ('0.1 to 0.25', 'not available')
    """
    words = format_number(low), format_number(high)
    return say_missing() if say_missing() in words else FIGURES("figure.range", low=words[0], high=words[1])


def say_missing() -> str:
    """Return the text for a missing figure."""
    return FIGURES("figure.missing")


def _in_percent(text: str) -> str:
    return FIGURES("share.percent", number=text)


def _strip(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
