"""The noise of a typical value, from public facts only: how many records there are, and the declarations of columns."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np

from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.ledger.exposure import warn_of_same_people
from release_pipeline.ledger.states import Hold, describe_hold, read_hold
from release_pipeline.mechanisms.basis.figures import count_of, show_figure
from release_pipeline.mechanisms.columns.methods import mask_column
from release_pipeline.pipeline.cap import (
    Headroom,
    HeadroomView,
    describe_headroom,
    read_headroom,
    view_headroom,
)
from release_pipeline.pipeline.forecast import MemoryView, describe_memory, forecast_memory
from release_pipeline.pipeline.sources import HeaderLook, look_at_header
from release_pipeline.policy import load_policy
from release_pipeline.policy.documents import OPTIONAL, Fault
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.loading.load import check_name
from release_pipeline.policy.plans.plan import check_rows, describe_plan, make_plan
from release_pipeline.policy.plans.views import PlanView, view_plan
from release_pipeline.store.environment import machine_memory
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.site import find_site
from release_pipeline.targets.settings import read_targets

MOST_ROWS = 100_000  # that are simulated at most
DRAWS, SIMULATED = 3, 12  # of a column; of all columns, about
FINE = 4096  # points of a domain from which on widths count by their doublings
WIDTH = 110  # columns of a line for a person
SECRET = bytes(32)  # for noise that is never released: the same text every time


@dataclass(frozen=True, slots=True)
class TypicalView:
    """A masked column's noise, if its values were spread evenly over its domain."""

    column: Annotated[str, "its name"]
    records_times_epsilon: Annotated[float, "what decides which method fits: records times the column's epsilon"]
    noise: Annotated[
        float, "how far half of the released values are from the records' own, at the most, before any order is restored"
    ]
    share: Annotated[float, "that as a share of the domain"]
    rows: Annotated[int, "of how many records this was simulated"]


def find_typical(plan: Plan) -> tuple[TypicalView, ...]:
    """Return the typical noise of every column; nothing where the number of records is unknown, or columns are not masked
    separately."""
    policy = plan.policy
    if plan.rows is None or policy.method.family not in ("columns", "by-value") or policy.parts > 1 or policy.delta is not None:
        return ()
    rows, shares = min(plan.rows, MOST_ROWS), policy.column_epsilon
    alike: dict[tuple[object, ...], list[str]] = {}
    for name, column in policy.noise_columns.items():
        alike.setdefault(_tell_apart(policy, name, column), []).append(name)
    draws = min(max(SIMULATED // max(len(alike), 1), 1), DRAWS)
    of_domain: dict[str, float] = {}
    for names in alike.values():
        column = policy.noise_columns[names[0]]
        share = find_noise(policy, names[0], column, rows, draws=draws) / float(column.domain[1] - column.domain[0])
        of_domain |= dict.fromkeys(names, share)
    noise = {name: of_domain[name] * float(one.domain[1] - one.domain[0]) for name, one in policy.noise_columns.items()}
    return tuple(
        TypicalView(
            name,
            float(plan.rows * shares[name].fraction),
            float(f"{noise[name]:.3g}"),
            float(f"{noise[name] / float(column.domain[1] - column.domain[0]):.3g}"),
            rows,
        )
        for name, column in policy.noise_columns.items()
    )


def _tell_apart(policy: Policy, name: str, column: NoiseColumn) -> tuple[object, ...]:
    """Return what the noise of a column depends on, as a share of its domain: columns that have this in common are simulated
    once. All scales are in proportion to the width, and cells are halves of halves of it, so that widths count by their
    doublings, except for those of few points, where noise is rounded to one of these."""
    width = column.exact_grid.width
    within = tuple(round(place / width, 3) for place in column.exact_atoms)
    size = width.bit_length() if width >= FINE else -width
    return (size, policy.column_epsilon[name].nano, within, len(column.reasons))


def find_noise(policy: Policy, name: str, column: NoiseColumn, rows: int, *, draws: int = DRAWS) -> float:
    """Return the median distance of a released value from the record's own, if the values of so many records were spread evenly
    over the domain: no record is read. This is before an order is restored, which needs slow imports."""
    low, high = map(float, column.domain)
    values = column.exact_grid.snap(low + (np.arange(rows) + 0.5) / rows * (high - low))
    by_value = policy.method.family == "by-value"
    away: list[float] = []
    for draw in range(draws):
        masked = mask_column(
            values,
            domain=column.domain,
            grid=column.grid,
            method=policy.protect.method,
            epsilon=policy.column_epsilon[name],
            k=policy.protect.k,
            scope=policy.protect.scope,
            consistency=None if by_value else "none",
            atoms=column.atoms,
            clamp=policy.clamps,
            secret=SECRET,
            context=(name, draw),
        )
        away.append(float(np.median(np.abs(masked.values - values))))
    return float(np.mean(away))


def restores_order(policy: Policy) -> bool:
    """Return whether restoring the order of released values brings them nearer."""
    return policy.method.family == "columns" and policy.consistency == "isotonic"


def describe_typical(plan: Plan) -> Iterator[str]:
    """Yield a line for each column."""
    for typical in find_typical(plan):
        column = plan.policy.noise_columns[typical.column]
        of = f" (simulated with {count_of(typical.rows, 'record')})" if plan.rows is not None and typical.rows < plan.rows else ""
        unit = f" {column.noise_unit}" if column.noise_unit else ""
        restored = " before their order is restored" if restores_order(plan.policy) else ""
        near = f"{show_figure(typical.noise)}{unit} of the record's own ({typical.share:.2%} of the domain)"
        yield (
            f"{typical.column}: records times epsilon {typical.records_times_epsilon:,.0f}; half of the released values would be "
            f"within {near} if values lay evenly over it{of}{restored}"
        )


# The result of `check` for a policy file: its plan and the room that the ledger has for it, or all of its errors.


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a run would be refused now."""

    by: Annotated[Literal["source", "ledger"], "source: it is not there, unreadable or has other columns; ledger: no room"]
    words: Annotated[str, "what is wrong, where, and what to do"]


@dataclass(frozen=True, slots=True)
class Check:
    """A policy without errors: its plan, and the site whose ledger is asked, where there is one."""

    plan: Plan
    home: Path | None
    header: HeaderLook | None = None  # None where it was not asked for

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Return why a run would be refused now: by the source's header, and by the ledger."""
        headroom = self.headroom
        by_source = [] if self.header is None else [Refusal("source", fault) for fault in self.header.faults]
        by_ledger = [] if headroom is None or not headroom.refusal else [Refusal("ledger", headroom.refusal)]
        return (*by_source, *by_ledger)

    @property
    def held(self) -> Hold | None:
        """Return the hold of the policy's series, if it is held."""
        return None if self.home is None else read_hold(find_site(self.home), self.plan.policy.policy)

    @property
    def same_people(self) -> tuple[str, ...]:
        """Return warnings of populations with the same people, whose charges do not count in its own."""
        return () if self.home is None else tuple(warn_of_same_people(find_site(self.home), self.plan.policy))

    @property
    def headroom(self) -> Headroom | None:
        """Return the ledger's room for it, as of now; None where there is no site."""
        return None if self.home is None else read_headroom(find_site(self.home), self.plan.policy, rows=self.plan.rows)

    @property
    def memory(self) -> MemoryView | None:
        """Return the memory that a run needs; None where the number of rows is unknown."""
        rows = self.plan.rows
        allowed = machine_memory() if self.home is None else find_site(self.home).memory
        return None if rows is None else forecast_memory(self.plan.policy, rows, allowed=allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDocument(PlanView):
    """The document that `check --json` prints for a policy without errors."""

    FORMAT: ClassVar[str] = "release-pipeline/check/1"

    valid: Annotated[Literal[True], "it has no errors: the exit code is 0, unless there are refusals"] = True
    errors: Annotated[tuple[str, ...], "none"] = ()
    problems: Annotated[tuple[Fault, ...], "none"] = ()
    typical: Annotated[tuple[TypicalView, ...] | None, "what noise a typical value would have, by public facts alone"] = (
        dataclasses.field(default=None, metadata=OPTIONAL)
    )
    memory: Annotated[MemoryView | None, "what a run needs and may take; null where the rows are not known"] = dataclasses.field(
        default=None, metadata=OPTIONAL
    )
    held: Annotated[Hold | None, "who held the series, and why; null where it goes on, or the policy lies in no site"]
    ledger: Annotated[HeadroomView | None, "the ledger before and after; null where the policy lies in no site and none is named"]
    same_people: Annotated[
        tuple[str, ...], "warnings: other populations with the same people, which the ledger adds up separately, a sentence each"
    ]
    header_read: Annotated[bool, "whether the source's header was read"]
    refusals: Annotated[tuple[Refusal, ...], "why a run would be refused now: the exit code is 1 where there is any"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidDocument:
    """The document that `check --json` prints for a policy with errors."""

    FORMAT: ClassVar[str] = "release-pipeline/check/1"

    valid: Annotated[Literal[False], "it has errors: the exit code is 1"] = False
    errors: Annotated[tuple[str, ...], "all of them, a line each, as people read them"]
    problems: Annotated[tuple[Fault, ...], "the same in parts"]


def check_policy(file: Path, *, rows: int | None, home: Path | None, header: bool = False, everywhere: bool = False) -> Check:
    """Return the policy in `file`, checked and planned, and with `home` or the site that it is in; raises `PolicyInvalid` with
    all of its errors. With `header` that of its source is read where it is a file here, or `everywhere`."""
    policy = load_policy(file)
    if file.resolve().parent.name == "policies":
        check_name(policy, file)
    if rows is not None:
        check_rows(policy, rows)
    folder = home or file.resolve().parent.parent
    if not (folder / "populations.yaml").is_file():
        if everywhere:
            what = "the policy lies in no site, and its source is a site's."
            raise WrongUsage(what, where=str(file), remedy="Name the site with --home.")
        return plan_policy(policy, rows=rows, home=None)
    site = find_site(folder)
    read_targets(site)  # a package without a valid target is no plan
    check = plan_policy(policy, rows=rows, home=folder)
    return dataclasses.replace(check, header=look_at_header(site, policy, everywhere=everywhere)) if header else check


def plan_policy(policy: Policy, *, rows: int | None, home: Path | None) -> Check:
    """Return a policy without errors, planned: for so many rows, or as many as its last release had at the site `home`."""
    if rows is None and home is not None and (last := _find_last(home, policy)) is not None:
        return Check(make_plan(policy, rows=last.records, rows_from=f"as {last.id} had"), home)
    return Check(make_plan(policy, rows=rows), home)


def _find_last(home: Path, policy: Policy) -> Charge | None:
    """Return the last charged release of the policy: its number of records is public."""
    site = find_site(home)
    if not site.has_registry:
        return None
    with site.open_registry(read_only=True) as registry:
        mine = [charge for charge in list_charges(registry) if charge.id.policy == policy.policy]
    return mine[-1] if mine else None


def describe_check(check: Check) -> Iterator[str]:
    """Yield the check in lines for a person. Faults of the site follow the plan."""
    yield from describe_plan(check.plan)
    if check.header is not None and not check.header.faults:
        yield f"{'header':<12}{f'not read: {check.header.unread}' if check.header.unread else 'has all declared columns'}"
    if check.plan.rows is not None:
        yield f"{'rows':<12}{check.plan.rows:,}, {check.plan.rows_from}"
    for words in describe_typical(check.plan):
        yield from textwrap.wrap(words, WIDTH, initial_indent=f"{'typical':<12}", subsequent_indent=" " * 12)
    if (memory := check.memory) is not None and check.plan.rows is not None:
        yield f"{'memory':<12}{describe_memory(memory, check.plan.rows)}"
    if (hold := check.held) is not None:
        yield f"{'held':<12}{describe_hold(hold)}"
    if (headroom := check.headroom) is not None:
        yield from (f"{'ledger':<12}{line}" for line in describe_headroom(headroom))


def describe_obstacles(same_people: Iterable[str], refusals: Iterable[Refusal]) -> Iterator[str]:
    """Yield warnings of the same people elsewhere, and why a run would be refused, in lines for a person."""
    lines = [("warning", words) for words in same_people] + [("refused", refusal.words) for refusal in refusals]
    for label, words in lines:
        yield from textwrap.wrap(words, WIDTH, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)


def view_check(check: Check) -> CheckDocument:
    """Return the document that `check --json` prints."""
    plan = view_plan(check.plan)
    parts = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    headroom = check.headroom
    return CheckDocument(
        **parts,
        typical=find_typical(check.plan) or None,
        memory=check.memory,
        held=check.held,
        ledger=None if headroom is None else view_headroom(headroom),
        same_people=check.same_people,
        header_read=check.header is not None and not check.header.unread,
        refusals=check.refusals,
    )


def view_refusal(refused: PolicyInvalid) -> InvalidDocument:
    """Return the errors of a policy for a script."""
    faults = tuple(fault for fault in refused.faults if isinstance(fault, Fault))
    faults = faults or (Fault(refused.where, None, None, "", refused.what, refused.remedy),)
    return InvalidDocument(errors=refused.problems or (str(refused),), problems=faults)
