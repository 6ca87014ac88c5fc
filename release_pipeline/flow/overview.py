"""What `status` and the demo's table tell of a site: from the registry, and from the evidence of candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.candidate import candidate_hash, is_whole
from release_pipeline.flow.release import partitions
from release_pipeline.flow.reservation import open_account
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy, load_policy
from release_pipeline.policy.load import check_name
from release_pipeline.policy.loss import release_loss
from release_pipeline.policy.populations import load_populations
from release_pipeline.store.registry import Charge, ReleaseState, open_registry

SCOPE_WORDS = {"column": "for the column lists", "centroid": "for each centroid"}


@dataclass(frozen=True, slots=True)
class Line:
    """One release of the site: declared and not begun (`open`), or in the state that the registry has."""

    release: str
    state: str
    reason: str = ""
    rows: int | None = None
    claim: str = ""
    since: str = ""

    def to_json(self) -> dict[str, Any]:
        """The line for a script."""
        return {name: getattr(self, name) for name in self.__slots__}


def list_releases(site: Site) -> tuple[list[Line], list[str]]:
    """Every declared release and its state, and the policies that cannot be read, in words."""
    states = _states(site)
    lines: list[Line] = []
    broken: list[str] = []
    for file in site.policy_files():
        try:
            policy = check_name(load_policy(file), file)
        except ReleasePipelineError as error:
            broken.append(str(error))
            continue
        for partition in partitions(policy):
            mine = [state for state in states if (state.id.policy, state.id.release) == (policy.policy, partition)]
            lines += [_line(site, state) for state in mine] or [Line(f"{policy.policy}/{partition}", "open")]
    told = {line.release for line in lines}
    lines += [_line(site, state, " (its policy cannot be read)") for state in states if str(state.id) not in told]
    try:
        load_populations(site.populations_file)
    except ReleasePipelineError as error:
        broken.append(str(error))
    return lines, broken


def describe_status(site: Site) -> Iterator[str]:
    """The releases of a site in lines for a person."""
    lines, broken = list_releases(site)
    width = max([7, *(len(line.release) for line in lines)])
    yield f"{'release':<{width}}  {'state':<10}  {'rows':>9}  what"
    for line in lines:
        rows = "" if line.rows is None else f"{line.rows:,}"
        yield f"{line.release:<{width}}  {line.state:<10}  {rows:>9}  {line.reason or line.claim}".rstrip()
    for reason in broken:
        yield f"broken: {reason}"


def describe_ledger(site: Site, policy: Policy, *, rows: int | None) -> Iterator[str]:
    """What the population has spent, and what one more release of this policy with `rows` records would make of it."""
    if rows is None and policy.protect.scope == "centroid":
        yield "depends on the number of rows: name it with --rows"
        return
    charges: list[Charge] = []
    if site.registry.exists():
        with open_registry(site.registry) as registry:
            charges = registry.charges()
    account = open_account(site, policy, [charge for charge in charges if charge.population == policy.population])
    charged = [charge.id.release for charge in charges if charge.id.policy == policy.policy]
    if set(partitions(policy)) <= set(charged):
        yield (
            f"population {account.population} has spent {account.spent} of {account.limit} ({account.unit}); "
            "every release of this policy is charged already, and a rerun costs nothing"
        )
        return
    loss = release_loss(policy, records=rows or 0)
    verdict = "fits" if account.admits(loss) else "is refused"
    yield (
        f"population {account.population} has spent {account.spent} of {account.limit} ({account.unit}); "
        f"the next release {verdict}: {account.after(loss)} after it"
    )


def describe_candidates(site: Site) -> Iterator[str]:
    """A table of all candidates with figures of their evidence: internal, unless the data are public as the demo's."""
    states = [state for state in _states(site) if state.state == "candidate"]
    if not states:
        return
    evidence = {state.id: json.loads((site.candidate(str(state.id)) / "evidence.json").read_text()) for state in states}
    names = list(evidence[states[0].id]["columns"])
    head = "".join(f"{name:>9}" for name in names)
    yield f"{'':<14}{'':>7}  {'':<34}{'':>4}{'':>5}  {'error of each column':^{9 * len(names)}}"
    yield f"{'release':<14}{'rows':>7}  {'epsilon':<34}{'k':>4}{'k*':>5}  {head}{'linkage':>9}  state"
    for state in states:
        facts, audit = state.facts, evidence[state.id]["audit"]
        kind = "iDP" if facts["definition"] == "idp" else "DP"
        epsilon = f"{facts['epsilon']:g}, {kind}, {SCOPE_WORDS[facts['scope']]}"
        errors = "".join(f"{audit['error'][name]:>9.3f}" for name in names)
        yield (
            f"{state.id!s:<14}{facts['rows_out']:>7,}  {epsilon:<34}{facts['k']:>4}{facts['anonymity_k'] or '':>5}  {errors}"
            f"{audit['record_linkage_percent']:>8.1f}%  {state.state}"
        )


def _states(site: Site) -> list[ReleaseState]:
    if not site.registry.exists():
        return []
    with open_registry(site.registry) as registry:
        return registry.states()


def _line(site: Site, state: ReleaseState, remark: str = "") -> Line:
    shown, folder = state.state, site.candidate(str(state.id))
    if shown == "candidate" and not (folder.is_dir() and is_whole(folder) and candidate_hash(folder) == state.candidate_hash):
        shown, remark = "damaged", " (the candidate's folder is not what was frozen)"
    return Line(
        str(state.id), shown, state.reason, state.facts.get("rows_out"), str(state.facts.get("claim", "")) + remark, state.noted
    )
