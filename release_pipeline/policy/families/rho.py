"""What is to be said of claims by rho, whatever the family."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from release_pipeline.policy.formats import decimal_text, name_some
from release_pipeline.policy.model import Policy


def warn_of_rho(policy: Policy, rows: int | None, *, times: int = 1) -> Iterator[str]:
    """Where a claim by rho says less than it seems, or buys nothing: a delta that a record may fall under, and noise that is
    larger than under eps-DP, the stronger definition, with the same epsilon. `times`: how many times more noise by rho a column
    bears (the variance of Gaussian noise over that of Laplace noise on a sum), before its released values are worse."""
    total = policy.protect.epsilon
    if policy.delta is None or total is None:
        return
    if rows is not None and policy.delta * rows * 10 > 1:
        yield (
            f"delta {decimal_text(policy.delta)} is more than a tenth of one over {rows:,} records: who publishes one record in "
            "clear keeps it, too. Use a smaller one."
        )
    pure = total.split([policy.protect.weights.get(name, Decimal(1)) for name in policy.column_epsilon])
    more = [
        name
        for (name, share), epsilon in zip(policy.column_epsilon.items(), pure, strict=True)
        if epsilon.fraction**2 > 4 * times * share.fraction  # sqrt(2) W / epsilon against W / sqrt(2 rho)
    ]
    if more:
        yield (
            f"under eps-DP, the stronger definition, the same epsilon would give less noise on {name_some(more)}: rho pays with "
            "many columns or releases. Remove definition and delta."
        )
