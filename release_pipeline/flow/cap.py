"""Whether a release may begin: its series not held, its policy and caps approved where the site asks for that, and room."""

from __future__ import annotations

from collections.abc import Sequence

from release_pipeline.errors import OverCap
from release_pipeline.flow.accepted import check_accepted
from release_pipeline.flow.holds import check_not_held
from release_pipeline.flow.lineage import check_lineage, check_population, open_population
from release_pipeline.flow.policies import Caps, read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.approvals import check_may_run
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import Account, Loss, depends_on_records, next_loss
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.registry import Registry, ReleaseId

NEEDS_RELEASES = "Nothing bounds this definition over releases: its population needs a cap like {releases: 1}."


def check_cap(
    site: Site,
    registry: Registry,
    policy: Policy,
    release: ReleaseId,
    *,
    caps: Caps | None = None,
    records: int | None = None,
) -> tuple[Account, Loss]:
    """The account of the policy's population, and the loss of a release that it has room for; raises in words otherwise.

    Without `records`, with the fewest that the policy lets through: to refuse early what the charge would refuse. `caps`: those
    that something else was proved under (default: as they are now).
    """
    check_accepted(registry.events)
    check_not_held(registry, release)
    caps = read_caps(site) if caps is None else caps
    check_may_run(site, registry, policy, caps)
    charges = list_charges(registry)
    check_lineage(caps, charges)
    account = open_account(caps, policy, charges)
    check_population(caps, policy.population, release, charges)
    loss = next_loss(policy, records)
    if not account.admits(loss):
        raise refuse_loss(account, loss, policy, release, at_least=records is None and depends_on_records(policy))
    return account, loss


def refuse_loss(account: Account, loss: Loss, policy: Policy, release: ReleaseId, *, at_least: bool = False) -> OverCap:
    """The refusal of a release that its population has no room for."""
    reason = f"{explain_infinity(policy, account)} " if account.of(loss) is None else ""
    return OverCap(
        f"the ledger refuses: {account.population} has {account.left} left of {account.limit} ({account.unit}; "
        f"{account.spent} is spent), and this release would take {'at least ' * at_least}{account.words(account.of(loss))}.",
        where=str(release),
        remedy=f"{reason}The cap is the privacy officer's: populations.yaml.",
    )


def explain_infinity(policy: Policy, account: Account) -> str:
    """Why nothing fits under the cap of a population, and what would."""
    if not policy.adds_up:
        return NEEDS_RELEASES
    kept = " or fewer kept columns" if policy.kept_columns and account.cap.cap.scope == "table" else ""
    return f"Nothing bounds this policy in {account.unit}: it needs a cap in its own definition and scope, another method{kept}."


def open_account(caps: Caps, policy: Policy, charges: Sequence[Charge]) -> Account:
    """The account of the policy's population with what these charges say of it and its ancestors."""
    return open_population(caps, policy.population, charges)
