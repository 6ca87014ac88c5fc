"""What the papers of a policy's releases will have to go on, before there is one: the words that it states, those that nobody
stated yet, and what only a release can tell."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import list_statuses
from release_pipeline.policy.assessment import Assessment
from release_pipeline.policy.declared import Option
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.words import describe_claim
from release_pipeline.sentences import PAPERS


def describe_papers_to_come(site: Site, name: str) -> Iterator[str]:
    """What can be said before a release, from the policy as its file is now: of which releases papers can be written already, the
    claim, each statement of `assessment` or what to write there, and what must wait."""
    policy = site.policy(name)
    ready = [str(known.id) for known in list_statuses(site).values() if known.id.policy == name and known.candidate_hash]
    if ready:
        yield PAPERS("coming.ready", policy=name, releases=name_some(ready))
    else:
        yield PAPERS("coming.none", policy=name)
    yield PAPERS("coming.claim", claim=describe_claim(policy))
    if policy.about is None:
        yield PAPERS("coming.no_about")
    else:
        yield PAPERS("coming.about", words=policy.about.describe())
    stated = policy.assessment or Assessment()
    for part, field in Assessment.model_fields.items():
        words = getattr(stated, part)
        if words is not None:
            yield PAPERS("coming.stated", part=part, words=words)
        else:
            hint = next((one.hint for one in field.metadata if isinstance(one, Option)), "")
            yield PAPERS("coming.unstated", part=part, hint=hint or "")
    yield PAPERS("coming.not_yet")


def refuse_papers(site: Site, name: str) -> None:
    """A folder of papers of a policy is refused: what a paper says is of one release."""
    policy = site.policy(name).policy
    raise WrongUsage(
        "this is a policy, and papers are of a release of it that has a candidate.",
        where=policy,
        remedy=f"Name the release: {policy}/RELEASE. What its papers will have to go on: release-pipeline papers {policy}",
    )
