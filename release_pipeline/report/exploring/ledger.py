"""What the ledger says of settings that were tried, and amounts as a page writes them."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from release_pipeline.policy.formats import decimal_text
from release_pipeline.privacy.figures import count_of
from release_pipeline.report.exploring.measures import Plain
from release_pipeline.sentences import EXPLORE

_AMOUNT_DIGITS, _LONG_AMOUNT = 4, re.compile(r"(?<![\d.])\d+\.\d{7,}(?!\d)")  # of rho, and of the epsilon that it is


def round_amounts(text: str, *, up: bool = True) -> str:
    """A text whose amounts of seven decimals and more have four significant digits. A rho is that of a declared epsilon, rounded
    down, so that both have as many as the ledger counts; rounded up they are true still, and what is left is rounded down.

    >>> round_amounts("rho 0.184912345, which is epsilon 2.999999995 at delta 0.000001")
    'rho 0.185, which is epsilon 3 at delta 0.000001'
    >>> round_amounts("0.184912345", up=False)
    '0.1849'
    """

    def rounded(found: re.Match[str]) -> str:
        value = Decimal(found[0])
        unit = Decimal(1).scaleb(value.adjusted() - _AMOUNT_DIGITS + 1)
        return decimal_text(value.quantize(unit, rounding=ROUND_CEILING if up else ROUND_FLOOR)) if value else found[0]

    return _LONG_AMOUNT.sub(rounded, text)


def is_refused(ledger: Plain | None) -> bool:
    """Whether the ledger would refuse a release."""
    return ledger is not None and (bool(ledger["needs"]) or (ledger["next"] is not None and not ledger["next"]["fits"]))


def _say_missing(ledger: Plain) -> tuple[str, str]:
    """What a release takes, and what is left, which is less."""
    return round_amounts(ledger["next"]["amount"]), round_amounts(ledger["remaining"], up=False)


def tell_ledger(ledger: Plain | None) -> list[str]:
    """What is spent, what is spent after a release, and how many of those that are planned fit."""
    if ledger is None:
        return [EXPLORE("ledger.none")]
    spent = EXPLORE(
        "ledger.spent", population=ledger["population"], spent=ledger["spent"], cap=ledger["cap"], unit=ledger["unit"]
    )
    if ledger["rows_needed"]:
        return [spent, EXPLORE("ledger.rows")]
    first, ahead = ledger["next"], len(ledger["ahead"])
    if first is None:
        return [spent, EXPLORE("ledger.charged")]
    if first["fits"]:
        told = [spent, EXPLORE("ledger.fits", amount=round_amounts(first["amount"]), after=round_amounts(first["after"]))]
    else:
        amount, remaining = _say_missing(ledger)
        told = [spent, EXPLORE("ledger.refused", amount=amount, remaining=remaining)]
    if ledger["needs"]:
        told.append(ledger["needs"])
    elif ahead > 1 and ledger["fitting"] is not None:
        releases = count_of(ahead, "release")
        fit_all = ledger["fitting"] == ahead
        told.append(
            EXPLORE("ledger.all", ahead=releases)
            if fit_all
            else EXPLORE("ledger.some", ahead=releases, fitting=ledger["fitting"])
        )
    return told


def tell_ledger_shortly(ledger: Plain | None) -> tuple[str, float | None]:
    """The same in a cell of the table, and what that is sorted by: how many fit."""
    if ledger is None:
        return EXPLORE("ledger.short_none"), None
    if ledger["rows_needed"]:
        return EXPLORE("ledger.short_rows"), None
    first = ledger["next"]
    if first is None:
        return EXPLORE("ledger.short_charged"), None
    if not first["fits"]:
        amount, remaining = _say_missing(ledger)
        return EXPLORE("ledger.short_refused", amount=amount, remaining=remaining), 0.0
    fitting, ahead = ledger["fitting"], len(ledger["ahead"])
    words = EXPLORE("ledger.short_fits", after=round_amounts(first["after"]), cap=ledger["cap"], fitting=fitting, ahead=ahead)
    return words, float(fitting or 0)
