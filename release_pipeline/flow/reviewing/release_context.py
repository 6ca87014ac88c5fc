"""What the reviewers' page says beside the release itself: the candidates before it, and the budget."""

from __future__ import annotations

from statistics import median
from typing import Any

from release_pipeline.flow.cap import open_account
from release_pipeline.flow.evidence import MapFigures, load_evidence
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseStatus, read_statuses
from release_pipeline.flow.sums import is_whole
from release_pipeline.policy import Policy
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.registry import ReleaseId


def collect_context(site: Site, policy: Policy, release: ReleaseId) -> dict[str, Any]:
    """What the page says beside the release itself: the candidates of the policy that were charged before it and are there now,
    and the budget as it was with its own charge. Asked once, when the release is audited first, and kept; no clock is in it.
    """
    with site.open_registry(read_only=True) as registry:
        statuses, charges = read_statuses(registry.events), list_charges(registry)
    charges = charges[: 1 + next(place for place, charge in enumerate(charges) if charge.id == release)]
    account = open_account(read_caps(site), policy, charges)
    mine = [charge for charge in charges if charge.population in (policy.population, *account.carries)]
    steps = [{"release": str(charge.id), "amount": account.of(charge.loss)} for charge in mine]
    return {
        "predecessors": [
            point
            for charge in charges[:-1]
            if charge.id.policy == release.policy and (point := _place_on_map(site, statuses.get(charge.id))) is not None
        ],
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


def _place_on_map(site: Site, known: ReleaseStatus | None) -> dict[str, Any] | None:
    """Error and linkage of an earlier candidate that is still what was frozen; None without one."""
    if known is None or known.candidate_hash is None:
        return None
    folder = site.candidate(str(known.id))
    if not is_whole(folder, known.candidate_hash):
        return None
    figures = load_evidence(folder).figures_of(MapFigures)
    if figures.record_linkage is None:
        return None
    return {"release": str(known.id), "error": median(figures.error.values()), "linkage": figures.record_linkage.value}
