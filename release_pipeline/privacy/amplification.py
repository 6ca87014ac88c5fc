"""What a random choice of records saves, for eps-DP methods only (methods.md section 5).

A mechanism that is eps-DP is run on a random share beta of the records, and nobody learns which. One record is in the sample with
probability beta, so that the whole is eps'-DP with a smaller eps'. It fails for iDP: the scale read off the sample reveals who is
in it. And it fails as soon as it can be seen who is in the sample.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.budget import NANO

_EXACT = Context(prec=60)


def amplified(nano: int, share: Fraction) -> int:
    """eps' = ln(1 + beta (e^eps - 1)) in nano-epsilon, rounded up: BBG18, for samples of fixed size without replacement under
    replace-one neighbours, and tight. eps itself where the share is 1.

    Written as eps + ln(beta + (1 - beta) e^(-eps)), so that no large eps overflows.

    >>> amplified(10**9, Fraction(1, 10)), amplified(10**9, Fraction(1))
    (158565079, 1000000000)
    """
    _check(share)
    if share == 1 or nano == 0:
        return nano
    beta = _EXACT.divide(Decimal(share.numerator), Decimal(share.denominator))  # never in the context of the thread
    epsilon = _EXACT.scaleb(Decimal(nano), -9)
    rest = _EXACT.multiply(_EXACT.subtract(Decimal(1), beta), _EXACT.exp(_EXACT.minus(epsilon)))
    found = _EXACT.multiply(_EXACT.add(epsilon, _EXACT.ln(_EXACT.add(beta, rest))), Decimal(NANO))
    guarded = _EXACT.add(found, Decimal("1e-20"))  # 60 digits are right to far less: never rounded below the bound
    return min(nano, int(guarded.to_integral_value(rounding=ROUND_CEILING)))


def prs20_bound(nano: int, share: Fraction) -> float | None:
    """PRS20 Theorem 2: ln((e^eps beta + 1 - beta) / (1 - beta)); None where beta is 1. For people to compare: `amplified` is
    less."""
    _check(share)
    if share == 1:
        return None
    epsilon, beta = nano / NANO, float(share)
    return epsilon + math.log((beta + (1 - beta) * math.exp(-epsilon)) / (1 - beta))


def _check(share: Fraction) -> None:
    if not 0 < share <= 1:
        raise InvalidArgument("the share of the records is not above 0 and at most 1.", where="share")
