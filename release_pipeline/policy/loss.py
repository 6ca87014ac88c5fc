"""What a release may cost at most: a bound from public facts, for each definition and scope. Never an exact loss."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from release_pipeline.policy.model import Policy, ProtectClasses
from release_pipeline.policy.populations import Population
from release_pipeline.privacy.budget import format_nano

LOSSES = ("dp_centroid", "dp_column", "dp_table", "idp_centroid", "idp_column", "idp_table")

_ONE_AND_LN_2 = Fraction("1.693147180559945309418")  # rounded up: losses are exact integers, never below the bound


@dataclass(frozen=True, slots=True)
class Loss:
    """Nano-epsilon for each definition and scope; None is infinity."""

    dp_centroid: int | None
    dp_column: int | None
    dp_table: int | None
    idp_centroid: int | None
    idp_column: int | None
    idp_table: int | None

    def of(self, definition: str, scope: str) -> int | None:
        """The bound for one definition and scope."""
        return getattr(self, f"{definition}_{scope}")


def release_loss(policy: Policy, *, records: int) -> Loss:
    """The bound of one release of `policy` with `records` records: the number of records is public.

    A DP release fills both definitions (every eps-DP release is also eps-iDP); an iDP release leaves DP infinite. At scope
    `centroid` of the iDP methods the column costs more (methods.md section 2): idp-ls at most 1 + ln 2 times, idp-cbls the
    number of clusters times. (k,epsilon)-anonymity bounds neither: it does not compose, and a cap counts its releases.
    """
    protect = policy.protect
    if isinstance(protect, ProtectClasses):
        return Loss(None, None, None, None, None, None)
    nano = protect.epsilon.nano * policy.records_per_person
    table = nano if table_is_covered(policy) else None
    if policy.definition == "dp":
        return Loss(nano, nano, table, nano, nano, table)
    return Loss(None, None, None, nano, column_bound(policy, nano, records=records), None)


def column_bound(policy: Policy, nano: int, *, records: int) -> int:
    """The public bound on a column's whole list for an iDP release of `nano`."""
    protect = policy.protect
    if protect.scope == "column":
        return nano
    if protect.method == "idp-ls":
        return math.ceil(nano * _ONE_AND_LN_2)
    return nano * max(records // (protect.k or 1), 1)


def depends_on_records(policy: Policy) -> bool:
    """Whether the bound grows with the number of records."""
    return policy.protect.scope == "centroid" and policy.protect.method == "idp-cbls"


def table_is_covered(policy: Policy) -> bool:
    """Only `laplace` with nothing else kept: its rows leave shuffled and share no value pattern (methods.md section 2)."""
    return policy.protect.method == "laplace" and not policy.kept_columns


def sum_series(policy: Policy, losses: Iterable[Loss]) -> int | None:
    """What releases of a policy lose together in its own definition and scope, in nano-epsilon; None is infinity."""
    if policy.definition == "k-epsilon":
        return None
    parts = [loss.of(policy.definition, policy.protect.scope) for loss in losses]
    return None if None in parts else sum(part or 0 for part in parts)


@dataclass(frozen=True, slots=True)
class Account:
    """A population's cap beside what is charged to it, in the cap's own definition and scope."""

    population: str
    cap: Population
    charged: tuple[Loss, ...]

    @property
    def unit(self) -> str:
        """What is counted."""
        if self.cap.cap.epsilon is None:
            return "releases"
        return f"epsilon, {'DP' if self.cap.cap.definition == 'dp' else 'iDP'}, {self.cap.cap.scope}"

    @property
    def total(self) -> int | None:
        """What is charged so far, in nano-epsilon or releases; None is infinity."""
        return self.sum_of(self.charged)

    @property
    def most(self) -> int:
        """The cap, in nano-epsilon or releases."""
        cap = self.cap.cap
        return cap.epsilon.nano if cap.epsilon is not None else cap.releases or 0

    @property
    def spent(self) -> str:
        """What is charged so far."""
        return self.words(self.total)

    @property
    def limit(self) -> str:
        """The cap."""
        return self.words(self.most)

    @property
    def left(self) -> str:
        """What may still be charged."""
        return self.words(self.remaining)

    @property
    def remaining(self) -> int:
        """What may still be charged, in nano-epsilon or releases."""
        return 0 if self.total is None else max(self.most - self.total, 0)

    def after(self, loss: Loss) -> str:
        """What would be charged with this loss too."""
        return self.words(self.sum_of((*self.charged, loss)))

    def admits(self, *losses: Loss) -> bool:
        """Whether these losses fit under the cap together; an infinite one never does."""
        total = self.sum_of((*self.charged, *losses))
        return total is not None and total <= self.most

    def of(self, loss: Loss) -> int | None:
        """What a loss counts here: nano-epsilon, or one release; None is infinity."""
        cap = self.cap.cap
        return 1 if cap.epsilon is None else loss.of(cap.definition or "dp", cap.scope or "column")

    def sum_of(self, losses: Iterable[Loss]) -> int | None:
        """The exact sum of several losses; None is infinity."""
        parts = [self.of(loss) for loss in losses]
        return None if None in parts else sum(part or 0 for part in parts)

    def words(self, amount: int | None) -> str:
        """An amount in the cap's unit."""
        if amount is None:
            return "infinity"
        return str(amount) if self.cap.cap.epsilon is None else format_nano(amount)
