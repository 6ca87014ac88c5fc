"""What `check` tells of a policy file: its plan and the room that the ledger has for it, or all of its errors."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.flow.forecast import MemoryView, describe_memory, forecast_memory
from release_pipeline.flow.publication.targets import read_targets
from release_pipeline.flow.same_people import warn_of_same_people
from release_pipeline.flow.site import find_site
from release_pipeline.flow.sources import HeaderLook, look_at_header
from release_pipeline.flow.status.headroom import (
    Headroom,
    HeadroomView,
    describe_headroom,
    read_headroom,
    view_headroom,
)
from release_pipeline.flow.status.prospects import Prospects, describe_prospects, read_prospects
from release_pipeline.flow.status.typical import TypicalView, describe_typical, find_typical
from release_pipeline.policy import load_policy
from release_pipeline.policy.documents import OPTIONAL, Fault
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.load import check_name
from release_pipeline.policy.measured import describe_measured
from release_pipeline.policy.model import Policy
from release_pipeline.policy.plan import check_rows, describe_plan, make_plan
from release_pipeline.policy.views import PlanView, view_plan
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.memory import machine_memory


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a run would be refused now."""

    by: Annotated[Literal["source", "ledger"], "source: it is not there, unreadable or has other columns; ledger: no room"]
    words: Annotated[str, "what is wrong, where, and what to do"]


@dataclass(frozen=True, slots=True)
class Check:
    """A policy without errors: its plan, and the site whose ledger is asked, where there is one."""

    plan: Plan
    home: Path | None
    header: HeaderLook | None = None  # None where nobody asked for it

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why a run would be refused now: by the source's header, and by the ledger."""
        headroom = self.headroom
        by_source = [] if self.header is None else [Refusal("source", fault) for fault in self.header.faults]
        by_ledger = [] if headroom is None or not headroom.refusal else [Refusal("ledger", headroom.refusal)]
        return (*by_source, *by_ledger)

    @property
    def same_people(self) -> tuple[str, ...]:
        """Warnings of populations with the same people, whose charges do not count in its own."""
        return () if self.home is None else tuple(warn_of_same_people(find_site(self.home), self.plan.policy))

    @property
    def headroom(self) -> Headroom | None:
        """What the ledger has for it, as of now; None where there is no site."""
        return None if self.home is None else read_headroom(find_site(self.home), self.plan.policy, rows=self.plan.rows)

    @property
    def memory(self) -> MemoryView | None:
        """What a run needs; None where it is not known of how many rows."""
        rows = self.plan.rows
        allowed = machine_memory() if self.home is None else find_site(self.home).memory
        return None if rows is None else forecast_memory(self.plan.policy, rows, allowed=allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDocument(PlanView):
    """What `check --json` prints of a policy without errors."""

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
    series: Annotated[Prospects | None, "whether it is held, and what its next ticks charge; null where it lies in no site"]
    ledger: Annotated[HeadroomView | None, "the ledger before and after; null where the policy lies in no site and none is named"]
    same_people: Annotated[
        tuple[str, ...], "warnings: other populations with the same people, which the ledger adds up separately, a sentence each"
    ]
    header_read: Annotated[bool, "whether the source's header was read"]
    refusals: Annotated[tuple[Refusal, ...], "why a run would be refused now: the exit code is 1 where there is any"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidDocument:
    """What `check --json` prints of a policy with errors."""

    FORMAT: ClassVar[str] = "release-pipeline/check/1"

    valid: Annotated[Literal[False], "it has errors: the exit code is 1"] = False
    errors: Annotated[tuple[str, ...], "all of them, a line each, as people read them"]
    problems: Annotated[tuple[Fault, ...], "the same in parts"]


def check_policy(file: Path, *, rows: int | None, home: Path | None, header: bool = False, everywhere: bool = False) -> Check:
    """The policy in `file`, checked and planned, and with `home` or the site that it lies in; raises `PolicyInvalid` with all of
    its errors. With `header` that of its source is read where it is a file here, or `everywhere`."""
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
    read_targets(site)  # a package that could go nowhere is no plan
    check = plan_policy(policy, rows=rows, home=folder)
    return dataclasses.replace(check, header=look_at_header(site, policy, everywhere=everywhere)) if header else check


def plan_policy(policy: Policy, *, rows: int | None, home: Path | None) -> Check:
    """A policy without errors, planned: for so many rows, or as many as its last release had at the site `home`."""
    if rows is None and home is not None and (last := _find_last(home, policy)) is not None:
        return Check(make_plan(policy, rows=last.records, rows_from=f"as {last.id} had"), home)
    return Check(make_plan(policy, rows=rows), home)


def _find_last(home: Path, policy: Policy) -> Charge | None:
    """The last release of the policy that was charged: how many records it had is public."""
    site = find_site(home)
    if not site.has_registry:
        return None
    with site.open_registry(read_only=True) as registry:
        mine = [charge for charge in list_charges(registry) if charge.id.policy == policy.policy]
    return mine[-1] if mine else None


def describe_check(check: Check, *, width: int = 110) -> Iterator[str]:
    """It in lines for a person. What is wrong with the site is told after the plan."""
    yield from describe_plan(check.plan, width=width)
    if check.header is not None and not check.header.faults:
        yield f"{'header':<12}{f'not read: {check.header.unread}' if check.header.unread else 'has all declared columns'}"
    if check.plan.rows is not None:
        yield f"{'rows':<12}{check.plan.rows:,}, {check.plan.rows_from}"
    for words in describe_typical(check.plan):
        yield from textwrap.wrap(words, width, initial_indent=f"{'typical':<12}", subsequent_indent=" " * 12)
    for words in describe_measured(check.plan.policy, check.plan.rows):
        yield from textwrap.wrap(words, width, initial_indent=f"{'measured':<12}", subsequent_indent=" " * 12)
    if (memory := check.memory) is not None and check.plan.rows is not None:
        yield f"{'memory':<12}{describe_memory(memory, check.plan.rows)}"
    if check.home is not None:
        ahead = read_prospects(find_site(check.home), check.plan.policy, rows=check.plan.rows)
        yield from (f"{'held' if ahead.held else 'ticks':<12}{line}" for line in describe_prospects(ahead))
    if (headroom := check.headroom) is not None:
        yield from (f"{'ledger':<12}{line}" for line in describe_headroom(headroom))


def describe_obstacles(same_people: Iterable[str], refusals: Iterable[Refusal], *, width: int = 110) -> Iterator[str]:
    """Warnings of the same people elsewhere, and why a run would be refused, in lines for a person."""
    lines = [("warning", words) for words in same_people] + [("refused", refusal.words) for refusal in refusals]
    for label, words in lines:
        yield from textwrap.wrap(words, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)


def view_check(check: Check) -> CheckDocument:
    """It for a script."""
    plan, policy = view_plan(check.plan), check.plan.policy
    parts = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    home, headroom = check.home, check.headroom
    return CheckDocument(
        **parts,
        typical=find_typical(check.plan) or None,
        memory=check.memory,
        series=None if home is None else read_prospects(find_site(home), policy, rows=check.plan.rows),
        ledger=None if headroom is None else view_headroom(headroom),
        same_people=check.same_people,
        header_read=check.header is not None and not check.header.unread,
        refusals=check.refusals,
    )


def view_refusal(refused: PolicyInvalid) -> InvalidDocument:
    """The errors of a policy for a script."""
    faults = tuple(fault for fault in refused.faults if isinstance(fault, Fault))
    faults = faults or (Fault(refused.where, None, None, "", refused.what, refused.remedy),)
    return InvalidDocument(errors=refused.problems or (str(refused),), problems=faults)
