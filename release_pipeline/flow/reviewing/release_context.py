"""What the reviewers' page says beside the release itself: the budget of its population."""

from __future__ import annotations

from typing import Any

from release_pipeline.flow.cap import open_account
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.registry import ReleaseId


def collect_context(site: Site, policy: Policy, release: ReleaseId) -> dict[str, Any]:
    """The budget as it was with the release's own charge. Asked once, when the release is audited first, and kept; no clock is in
    it."""
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
    charges = charges[: 1 + next(place for place, charge in enumerate(charges) if charge.id == release)]
    account = open_account(read_caps(site), policy, charges)
    mine = [charge for charge in charges if charge.population in (policy.population, *account.carries)]
    steps = [{"release": str(charge.id), "amount": account.of(charge.loss)} for charge in mine]
    return {
        "budget": {
            "name": account.population,
            "unit": account.unit,
            "in_releases": account.cap.cap.releases is not None,
            "cap": account.most,
            "spent": account.total,
            "remaining": account.remaining,
            "steps": steps,
        },
    }
