"""Numbers and names as sentences write them, for everything that people read; `mechanisms.basis.figures` has rounded figures."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

from release_pipeline.mechanisms.basis.figures import join_names
from release_pipeline.sentences import FIGURES, POLICY

SOME = 12
_EXACTLY = 100  # digits: more than any number of units of declared steps has


def decimal_text(value: Decimal) -> str:
    """Return a decimal as people write it: no exponent, no zeros at the end."""
    return format(value.normalize(), "f")


def exact_text(value: Fraction) -> str:
    """Return a fraction that is a decimal, as text.

    >>> exact_text(Fraction(-7, 4)), exact_text(Fraction(200))
    ('-1.75', '200')
    """
    with localcontext(prec=_EXACTLY):
        return format(Decimal(value.numerator) / Decimal(value.denominator), "f")


def find_near(name: str, known: Iterable[str], *, cutoff: float = 0.75) -> str | None:
    """Return the most similar known name; None if none is similar enough.

    >>> find_near("degre", ["age", "degree"]), find_near("income", ["age"])
    ('degree', None)
    """
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def ask_for_near(name: str, known: Iterable[str], otherwise: str, *, cutoff: float = 0.75) -> str:
    """Return the question whether another name was meant, or what to do `otherwise`."""
    near = find_near(name, known, cutoff=cutoff)
    return f"Did you mean '{near}'?" if near is not None else otherwise


def name_some(names: Iterable[str]) -> str:
    """Return names in a sentence, the first dozen if there are many."""
    listed = list(names)
    shown = join_names(listed[:SOME])
    more = len(listed) - SOME
    return FIGURES("list.more", names=shown, more=more) if more > 0 else shown


def say_unit(unit: str) -> str:
    """Return a readable unit, with definition and scope if a cap names them."""
    return join_names(POLICY.read_section("spent").get(part, say_scope(part)) for part in unit.split(", "))


def say_reason(reason: str) -> str:
    """Return a readable name for the records without a value for a reason, on pages; in files of counts: `cell_of_reason`."""
    return POLICY("reason.cell", reason=POLICY("reason.blank") if reason == "blank" else reason)


def name_reasons(reasons: Iterable[str]) -> str:
    """Return the reasons as they are in the data, with the meaning of the built-in ones."""
    known = POLICY.read_section("reason_in_data")
    return join_names(known.get(reason, reason) for reason in reasons)


def say_scope(scope: str) -> str:
    """Return a readable name of a claim's scope; any other name unchanged."""
    return POLICY.read_section("scope").get(scope, scope)
