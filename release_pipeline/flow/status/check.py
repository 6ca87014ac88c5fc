"""What `check` tells of a policy file: its plan and the room that the ledger has for it, or all of its errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from release_pipeline.errors import PolicyInvalid
from release_pipeline.flow.site import find_site
from release_pipeline.flow.status.headroom import (
    ComingView,
    Headroom,
    HeadroomView,
    describe_coming,
    describe_headroom,
    read_headroom,
    view_coming,
    view_headroom,
)
from release_pipeline.policy import load_policy
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.load import check_name
from release_pipeline.policy.plan import check_rows, describe_plan, make_plan
from release_pipeline.policy.views import PlanView, view_plan


@dataclass(frozen=True, slots=True)
class Check:
    """A policy without errors: its plan, and the site whose ledger is asked, where there is one."""

    plan: Plan
    home: Path | None

    @property
    def headroom(self) -> Headroom | None:
        """What the ledger has for it, as of now; None where there is no site."""
        return None if self.home is None else read_headroom(find_site(self.home), self.plan.policy, rows=self.plan.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDocument(PlanView):
    """What `check --json` prints of a policy without errors."""

    FORMAT: ClassVar[str] = "release-pipeline/check/1"

    valid: Annotated[Literal[True], "it has no errors: the exit code is 0"] = True
    errors: Annotated[tuple[str, ...], "none"] = ()
    problems: Annotated[tuple[Fault, ...], "none"] = ()
    timetable: Annotated[tuple[ComingView, ...], "what is opened next, and when; empty without a timetable, or without a site"]
    ledger: Annotated[HeadroomView | None, "the ledger before and after; null where the policy lies in no site and none is named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidDocument:
    """What `check --json` prints of a policy with errors."""

    FORMAT: ClassVar[str] = "release-pipeline/check/1"

    valid: Annotated[Literal[False], "it has errors: the exit code is 1"] = False
    errors: Annotated[tuple[str, ...], "all of them, a line each, as people read them"]
    problems: Annotated[tuple[Fault, ...], "the same in parts"]


def check_policy(file: Path, *, rows: int | None, home: Path | None) -> Check:
    """The policy in `file`, checked and planned, and with `home` or the site that it lies in; raises `PolicyInvalid` with all of
    its errors."""
    policy = load_policy(file)
    if file.resolve().parent.name == "policies":
        check_name(policy, file)
    if rows is not None:
        check_rows(policy, rows)
    site = home or file.resolve().parent.parent
    return Check(make_plan(policy, rows=rows), site if (site / "populations.yaml").is_file() else None)


def describe_check(check: Check) -> Iterator[str]:
    """It in lines for a person. What is wrong with the site is told after the plan."""
    yield from describe_plan(check.plan)
    if check.home is not None:
        yield from (f"{'timetable':<12}{line}" for line in describe_coming(find_site(check.home), check.plan.policy))
    if (headroom := check.headroom) is not None:
        yield from (f"{'ledger':<12}{line}" for line in describe_headroom(headroom))


def view_check(check: Check) -> CheckDocument:
    """It for a script."""
    plan = view_plan(check.plan)
    parts = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    coming = () if check.home is None else tuple(view_coming(find_site(check.home), check.plan.policy))
    return CheckDocument(
        **parts, timetable=coming, ledger=None if (headroom := check.headroom) is None else view_headroom(headroom)
    )


def view_refusal(refused: PolicyInvalid) -> InvalidDocument:
    """The errors of a policy for a script."""
    faults = tuple(fault for fault in refused.faults if isinstance(fault, Fault))
    faults = faults or (Fault(refused.where, None, None, "", refused.what, refused.remedy),)
    return InvalidDocument(errors=refused.problems or (str(refused),), problems=faults)
