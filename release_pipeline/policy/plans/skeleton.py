"""The missing descriptions of the data, as lines to paste into a policy: every value is empty, and nothing is inferred. The label
that a file itself has is a comment (`proposed`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from release_pipeline.policy.file.about import LICENCES, About, find_unsaid, list_unlabelled
from release_pipeline.policy.file.model import Policy

# Each key as it is left for a person, and its meaning.
_NEEDED = {
    "title": ("", "in a few words, as a reader would look for them"),
    "description": ("", "what the data are, of whom, and how they came about"),
    "licence": ("", f"{', '.join(list(LICENCES)[:2])}, ..., or {{name: OUR TERMS, url: https://...}}"),
    "publisher": ("{name: }", "and url: https://..."),
    "contact": ("{email: }", "or url: https://...; name: who answers"),
}
_ASKED_FOR = {
    "contributors": ("[{name: , role: }]", "creator, collector, curator, funder or contributor; organisation, orcid"),
    "coverage": ("{places: [], first: , last: }", "times are years, quarters, months, weeks or days, the last included"),
    "sampling": ("", "who was asked, and how they were chosen"),
    "keywords": ("[]", "as catalogues list them"),
    "intended_use": ("", "what the data are made for"),
    "citation": ("", "made of creators, year, title and release where it is left out"),
}
DRAFT_AUDIENCE = "audience:  # public (dp-table, gates: {linkage: 10%}, or swap with k 10), internal, or {licensed: TERMS}"


def draft_about(proposed: Mapping[str, Sequence[str]] | None = None) -> Iterator[str]:
    """Yield the lines of an empty `about`: items that an officer requires, and as comments items that readers look for."""
    known = proposed or {}
    yield "about:"
    for key, (value, purpose) in _NEEDED.items():
        yield from (f"  # {line}" for line in known.get(key, ()))
        yield f"{f'  {key}: {value}'.rstrip():<24} # {purpose}"
    yield "  # What readers look for besides (`check` warns of what is left out)"
    for key, (value, purpose) in _ASKED_FOR.items():
        lines = known.get(key, ())
        yield from (f"  # {line}" for line in lines)
        if not lines:
            yield f"  # {f'{key}: {value}'.rstrip():<42} # {purpose}"


def draft_unsaid(policy: Policy) -> Iterator[str]:
    """Yield what a policy must state before it is approved, to paste and fill in; nothing if it states everything."""
    if not list(find_unsaid(policy.audience, policy.about, policy.columns)):
        return
    yield f"# What {policy.policy} does not say of its data: paste it into the policy, and fill in every value."
    if policy.audience is None:
        yield DRAFT_AUDIENCE
    if policy.about is None:
        yield from draft_about()
    if unlabelled := list_unlabelled(policy.columns):
        yield "# Each of these columns needs a label between its braces; it may have a unit, a description and a question:"
        yield "# columns:"
        yield from (f"#   {name}: {{..., label: }}" for name in unlabelled)


assert {*_NEEDED, *_ASKED_FOR} == set(About.model_fields)  # noqa: S101
