"""What a policy's noise leaves of the shares of records at declared atoms, as far as declared facts tell it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.model import Policy
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.consistency import SHARE, reach_of_atoms
from release_pipeline.privacy.methods import rule_of

SHOWN = 12
WAY_OUT = "Use idp-cbls or idp-ls at scope column, a larger epsilon or a coarser grid."


def list_atoms(column: NoiseColumn) -> str:
    """The atoms of a column in a sentence, the first dozen if there are many."""
    shown = ", ".join(map(column.say, column.atoms[:SHOWN]))
    return f"{shown} and {len(column.atoms) - SHOWN} more" if len(column.atoms) > SHOWN else shown


def keeps_atoms(policy: Policy) -> bool:
    """Whether clusters of equal values have no noise: then what lies at an atom stays there, whatever is restored."""
    return policy.claim.keeps_atoms


def describe_kept_atoms(policy: Policy) -> str:
    """What becomes of the atoms of a column when order is restored."""
    if policy.consistency == "none":
        return ": no order is restored that could move them"
    if keeps_atoms(policy):
        return ": clusters that are exactly there stay there when order is restored; noise can bring others"
    return ": blocks that the noise does not let tell from them are put there when order is restored"


def warn_of_atoms(policy: Policy, rows: int | None) -> Iterator[str]:
    """Where the share of records at an atom may differ by more than two points of 100, and why; a sentence for each column.

    idp-cbls, and idp-ls at scope column. A cluster of equal values has no noise. Of the records at an atom those in full clusters
    stay; the others stand in the clusters at both ends of the heap, with k - 1 of them in the first, and in the last k - 1, or
    2 k - 2 where it is the last of all: 3 (k - 1) at the most.

    dp-um with order restored: `reach_of_atoms`. Otherwise every cluster (with laplace every record) has noise of its own, and a
    value at an atom stays there if that is rounded to nothing.
    """
    for name, column in policy.noise_columns.items():
        if not column.atoms:
            continue
        lost = _warn(policy, column, policy.column_epsilon[name], rows)
        if lost:
            yield f"{name}: {lost}"


def _warn(policy: Policy, column: NoiseColumn, epsilon: Epsilon, rows: int | None) -> str:
    k, part = policy.protect.k or 1, None if rows is None else rows // policy.parts
    rule, width = rule_of(policy.claim), column.exact_grid.width
    if not keeps_atoms(policy) and policy.consistency == "none":
        stay = _rounded_to_nothing(rule.least(width, epsilon), k, clamps=policy.clamps)
        many = f"{'about' if rule.is_public else 'at most'} {stay:.1%}"
        what = "record" if policy.method.by_record else "cluster"
        return (
            f"every {what} has noise of its own, which leaves {many} of those at an atom there. {WAY_OUT}"
            if stay < 1 - SHARE
            else ""
        )
    if part is None:
        return (
            "what is left of the shares at atoms depends on the number of rows. Declare gates.min_rows, or name it with --rows."
        )
    if keeps_atoms(policy):
        edge = 3 * (k - 1) / max(part, 1)
        return (
            f"up to {min(edge, 1.0):.1%} of the records can stand at an atom in clusters that other values share, and leave it "
            f"(for {part:,} rows{_of_part(policy)}). Use a smaller k, or more rows."
            if edge > SHARE
            else ""
        )
    reach = reach_of_atoms(rule.least(width, epsilon), k, max(part // k, 1))
    if reach < 0.5:
        return ""
    distance = f"{decimal_text(Decimal(f'{reach * float(column.grid):.2g}'))} {column.noise_unit}".rstrip()
    return (
        f"values nearer than about {distance} to an atom cannot be told from it under this noise, and may be counted there or "
        f"leave it (for {part:,} rows{_of_part(policy)}). {WAY_OUT}"
    )


def _of_part(policy: Policy) -> str:
    return " in a part" if policy.parts > 1 else ""


def _rounded_to_nothing(scale: int, k: int, *, clamps: bool) -> float:
    """P[|Z| < k/2] of the discrete Laplace; of Z = 0 where values stay where the noise put them."""
    most = (k - 1) // 2 if clamps else 0
    return 1 - 2 * math.exp(-(most + 1) / scale) / (1 + math.exp(-1 / scale))
