"""The largest loss of a release: a bound from public facts, for each definition and scope. Never an exact loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import epsilon_of, format_nano, rho_of_pure
from release_pipeline.mechanisms.catalogue import find_definition
from release_pipeline.policy.families import find_family
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.loading.populations import Population
from release_pipeline.policy.values.formats import decimal_text

LOSSES = (
    *("dp_centroid", "dp_column", "dp_table", "idp_centroid", "idp_column", "idp_table"),
    *("zcdp_centroid", "zcdp_column", "zcdp_table"),
)
UNBOUNDED = "infinity"  # the text for an amount of None


@dataclass(frozen=True, slots=True)
class Loss:
    """Nano-epsilon for each definition and scope, nano-rho for zcdp; None is infinity."""

    dp_centroid: int | None
    dp_column: int | None
    dp_table: int | None
    idp_centroid: int | None
    idp_column: int | None
    idp_table: int | None
    zcdp_centroid: int | None = None
    zcdp_column: int | None = None
    zcdp_table: int | None = None

    @classmethod
    def read(cls, noted: Mapping[str, int | None]) -> Loss:
        """Return the loss in a noted mapping."""
        return cls(**{name: noted[name] for name in LOSSES})

    def of(self, definition: str, scope: str) -> int | None:
        """Return the bound for one definition and scope."""
        return getattr(self, f"{definition}_{scope}")

    def plus(self, other: Loss) -> Loss:
        """Return the loss of both releases together."""
        return Loss(**{name: _add(getattr(self, name), getattr(other, name)) for name in LOSSES})


def _add(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def release_loss(policy: Policy, *, records: int) -> Loss:
    """Return the bound of one release of `policy` with `records` records: its rows plus its tables. Both are made from the same
    records with separate noise, and their losses add up in every definition and at every scope."""
    rows = rows_loss(policy, records=records)
    return rows.plus(tables_loss(policy)) if policy.tables and policy.adds_up else rows


def tables_loss(policy: Policy) -> Loss:
    """Return what the tables next to the rows lose together: eps-DP is eps-iDP and (eps^2 / 2)-zCDP, table by table; noise by rho
    has no bound by epsilon without delta. A table has no scopes: it is seen as a whole."""
    records = policy.records_per_person
    pure = [table.in_epsilon(records) for table in policy.tables.values()]
    epsilon = None if None in pure else sum(part or 0 for part in pure)
    rho = sum(table.in_rho(records) for table in policy.tables.values())
    return Loss(*[epsilon] * 6, *[rho] * 3)


def rows_loss(policy: Policy, *, records: int) -> Loss:
    """Return the bound of the rows of one release of `policy` with `records` records: the number of records is public.

    A DP release fills all three definitions: every eps-DP release is also eps-iDP, and (eps^2 / 2)-zCDP, column by column if each
    column has separate noise. An iDP release leaves DP and zCDP infinite, a release by rho leaves DP and iDP infinite. At scope
    `centroid` of the iDP methods and of dp-mdav the column costs more (methods.md section 2): `wider_bound`. (k,epsilon)-
    anonymity and k-anonymity bound neither: they do not compose, and a cap counts releases.
    """
    nano = policy.rows_epsilon
    if nano is None or not policy.adds_up:
        return Loss(None, None, None, None, None, None)
    column = wider_bound(policy, nano, records=records)
    table = column if policy.covers_table else None
    match policy.definition:
        case "dp":
            rho = _sum_in_rho(policy) if column == nano else None
            wide = _in_rho(column) if rho is None else rho
            return Loss(
                *(nano, column, table, nano, column, table),
                zcdp_centroid=_in_rho(nano) if rho is None else rho,
                zcdp_column=wide,
                zcdp_table=None if table is None else wide,
            )
        case "zcdp":
            return Loss(*(None, None, None, None, None, None), zcdp_centroid=nano, zcdp_column=column, zcdp_table=table)
        case "idp":
            return Loss(None, None, None, nano, column, table)
        case _:
            raise InvalidArgument(f"nothing says how {policy.claim.definition.short} is charged.", where="definition")


def _sum_in_rho(policy: Policy) -> int | None:
    """Return what an eps-DP release costs in rho, if its columns are masked one by one: the sum of eps_a^2 / 2 over them, eps_a
    being that of a person with all of their records. None if they are masked together."""
    if policy.method.family not in ("columns", "by-value"):
        return None
    return sum(rho_of_pure(share.nano * policy.records_per_person) for share in policy.column_epsilon.values())


def _in_rho(nano: int | None) -> int | None:
    """Return eps-DP in rho; infinity stays infinity."""
    return None if nano is None else rho_of_pure(nano)


def next_loss(policy: Policy, rows: int | None) -> Loss:
    """Return the bound of a release that is not charged yet: with so many records, or the fewest that the policy accepts."""
    return release_loss(policy, records=(policy.gates.min_rows or 0) if rows is None else rows)


def wider_bound(policy: Policy, nano: int, *, records: int) -> int:
    """Return the public bound on the whole list of a column's values, for a release of `nano`; for dp-mdav it also covers the
    lists of all columns and which rows share values, which is everything visible if nothing else is released."""
    return find_family(policy.protect).bound_lists(policy, nano, records=records)


def depends_on_records(policy: Policy) -> bool:
    """Return whether the bound grows with the number of records."""
    return policy.claim.lists.counts


def sum_series(policy: Policy, losses: Iterable[Loss]) -> int | None:
    """Return what releases of a policy lose together in its own definition and scope, in nano-epsilon; None is infinity."""
    if not policy.adds_up:
        return None
    parts = [loss.of(policy.definition, policy.protect.scope) for loss in losses]
    return None if None in parts else sum(part or 0 for part in parts)


@dataclass(frozen=True, slots=True)
class Account:
    """A population's cap, with what is charged to it and to its people's earlier populations (`carries`), in the cap's own
    definition and scope."""

    population: str
    cap: Population
    charged: tuple[Loss, ...]
    carries: tuple[str, ...] = ()

    @property
    def basis(self) -> str:
        """Return what is added up: the unit and, if people bring charges with them, from where. If it changes, the sum is
        computed again."""
        return f"{self.unit}; with {' + '.join(self.carries)}" if self.carries else self.unit

    @property
    def unit(self) -> str:
        """Return the unit that is counted."""
        cap = self.cap.cap
        if cap.releases is not None:
            return "releases"
        return f"{'rho' if cap.rho is not None else 'epsilon'}, {find_definition(cap.definition or 'dp').short}, {cap.scope}"

    @property
    def total(self) -> int | None:
        """Return what is charged so far, in nano-epsilon or releases; None is infinity."""
        return self.sum_of(self.charged)

    def plus(self, *losses: Loss) -> Account:
        """Return the account with these losses charged too."""
        return replace(self, charged=(*self.charged, *losses))

    @property
    def most(self) -> int:
        """Return the cap, in nano-epsilon or releases."""
        cap = self.cap.cap
        amount = cap.rho if cap.rho is not None else cap.epsilon
        return amount.nano if amount is not None else cap.releases or 0

    @property
    def at_delta(self) -> str:
        """Return the cap and the spent amount as an epsilon, if the cap names a delta; else an empty text."""
        cap = self.cap.cap
        if cap.delta is None or cap.epsilon is None:
            return ""
        spent = UNBOUNDED if self.total is None else format_nano(epsilon_of(self.total, cap.delta))
        return f"epsilon {spent} of {cap.epsilon} at delta {decimal_text(cap.delta)}"

    @property
    def spent(self) -> str:
        """Return what is charged so far, as text."""
        return self.format(self.total)

    @property
    def limit(self) -> str:
        """Return the cap as text."""
        return self.format(self.most)

    @property
    def left(self) -> str:
        """Return what may still be charged, as text."""
        return self.format(self.remaining)

    @property
    def remaining(self) -> int:
        """Return what may still be charged, in nano-epsilon or releases."""
        return 0 if self.total is None else max(self.most - self.total, 0)

    def after(self, loss: Loss) -> str:
        """Return what would be charged with this loss too, as text."""
        return self.plus(loss).spent

    def admits(self, *losses: Loss) -> bool:
        """Return whether these losses fit under the cap together; an infinite one never does."""
        total = self.plus(*losses).total
        return total is not None and total <= self.most

    def of(self, loss: Loss) -> int | None:
        """Return what a loss counts here: nano-epsilon, or releases; None is infinity."""
        cap = self.cap.cap
        return 1 if cap.releases is not None else loss.of(cap.definition or "dp", cap.scope or "column")

    def sum_of(self, losses: Iterable[Loss]) -> int | None:
        """Return the exact sum of several losses; None is infinity."""
        parts = [self.of(loss) for loss in losses]
        return None if None in parts else sum(part or 0 for part in parts)

    def format(self, amount: int | None) -> str:
        """Return an amount in the cap's unit, as text."""
        is_count = self.cap.cap.releases is not None and amount is not None
        return str(amount) if is_count else format_amount(amount)


def format_amount(amount: int | None) -> str:
    """Return nano-epsilon as text; None is infinity."""
    return UNBOUNDED if amount is None else format_nano(amount)
