"""How numbers and names are written in sentences, for all that people read; figures that are not exact: `privacy.figures`."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

SOME = 12


def decimal_text(value: Decimal) -> str:
    """A decimal as people write it: no exponent, no zeros at the end."""
    return format(value.normalize(), "f")


def name_some(names: Iterable[str]) -> str:
    """Names in a sentence, the first dozen if there are many."""
    listed = list(names)
    more = f" and {len(listed) - SOME} more" if len(listed) > SOME else ""
    return ", ".join(listed[:SOME]) + more
