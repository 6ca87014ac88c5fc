"""Series that are held: from `held` to `resumed` nothing of the policy is opened or charged, whoever asks.

Both are events of the registry, with who and why. Nobody signs them: who holds spends nothing, and who resumes only lets go on
what policy, caps and approvals allow anyway. What was charged before goes on to its candidate, is reviewed and published as ever.
"""

from __future__ import annotations

from collections.abc import Iterable

from release_pipeline.errors import Held, WrongUsage
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import HELD, RESUMED, Hold, read_state
from release_pipeline.flow.texts import check_line, check_name
from release_pipeline.store.registry import Event, Registry, ReleaseId


def find_hold(events: Iterable[Event], policy: str) -> Hold | None:
    """The hold of a policy's series, if it is held."""
    return read_state(events).holds.get(policy)


def check_not_held(registry: Registry, release: ReleaseId) -> None:
    """Refuse to open or charge a release of a series that is held: in the transaction that would do so."""
    if (hold := find_hold(registry.events, release.policy)) is not None:
        raise Held(
            f"{hold.words.rstrip('.')}. Nothing is opened or charged meanwhile.",
            where=str(release),
            remedy=f"`release-pipeline resume {release.policy} --why REASON` lets it go on.",
        )


def hold_series(site: Site, policy: str, *, why: str, by: str) -> Hold:
    """Hold the series of a policy; its file may be broken, for that is a reason to."""
    why, by = _check(why, by)
    with site.open_registry() as registry:
        _check_known(site, registry, policy)
        if (hold := find_hold(registry.events, policy)) is not None:
            raise WrongUsage(
                f"{hold.words.rstrip('.')}.", where=policy, remedy=f"It stays so until `release-pipeline resume {policy}`."
            )
        event = registry.add(HELD, policy=policy, why=why, by=by)
        return Hold(policy, event.noted, by, why)


def resume_series(site: Site, policy: str, *, why: str, by: str) -> Hold:
    """Let the series of a policy go on; gives the hold that ends."""
    why, by = _check(why, by)
    with site.open_registry() as registry:
        hold = find_hold(registry.events, policy)
        if hold is None:
            _check_known(site, registry, policy)
            raise WrongUsage("the series is not held.", where=policy, remedy="`release-pipeline status` says which are.")
        registry.add(RESUMED, policy=policy, why=why, by=by)
        return hold


def _check(why: str, by: str) -> tuple[str, str]:
    """The reason and the name, if both are there and can be printed."""
    if not (why := check_line(why)):
        raise WrongUsage("it needs its reason.", where="--why", remedy="It stays in the registry.")
    return why, check_name(by, remedy="Name who holds or resumes.")


def _check_known(site: Site, registry: Registry, policy: str) -> None:
    """Refuse what is no policy of the site and never was."""
    names = [file.stem for file in site.policy_files()]
    if policy not in names and policy not in read_state(registry.events).policies:
        known = ", ".join(names) or "none"
        raise WrongUsage(f"this site has no policy '{policy}'.", where=str(site.home / "policies"), remedy=f"There are: {known}.")
