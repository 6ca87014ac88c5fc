"""The candidates of a site in a table, with figures of their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from release_pipeline.flow.evidence import AuditFigures, MapFigures, load_evidence
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseStatus, list_statuses
from release_pipeline.privacy.catalogue import find_definition
from release_pipeline.report.internal_view import ShareView
from release_pipeline.sentences import STATUS


def describe_candidates(site: Site) -> Iterator[str]:
    """A table of all candidates with figures of their evidence: internal, unless the data are public as the demo's."""
    states = _list_candidates(site)
    if not states:
        return
    evidence = {state.id: load_evidence(site.candidate(str(state.id))) for state in states}
    names = list(evidence[states[0].id].columns)
    wide = max(14, *(len(str(state.id)) + 1 for state in states))
    head = "".join(f"{name:>9}" for name in names)
    yield f"{'':<{wide}}{'':>7}  {'':<34}{'':>4}{'':>5}  {'error of each column':^{9 * len(names)}}"
    yield f"{'release':<{wide}}{'rows':>7}  {'epsilon':<34}{'k':>4}{'k*':>5}  {head}{'linkage':>9}  state"
    for state in states:
        facts, audit = state.facts, evidence[state.id].figures_of(MapFigures)
        epsilon = _describe_epsilon(facts)
        linked = audit.record_linkage
        linkage = "" if linked is None else f"{100 * linked.value:.1f}%"
        errors = "".join(f"{audit.error[name]:>9.3f}" for name in names)
        yield (
            f"{state.id!s:<{wide}}{facts['rows_out']:>7,}  {epsilon:<34}{facts['k']:>4}{facts['anonymity_k'] or '':>5}  {errors}"
            f"{linkage:>9}  {state.state}"
        )


def describe_synthetic(site: Site) -> Iterator[str]:
    """The same where rows are synthetic: how far tables of two and three columns are off, and what nearest rows tell of people."""
    states = _list_candidates(site)
    if not states:
        return
    wide = max(14, *(len(str(state.id)) + 1 for state in states))
    words = {state.id: _describe_epsilon(state.facts) for state in states}
    long = max(map(len, words.values()))
    yield f"{'':<{wide}}{'':>7}  {'':<{long}}  {'tables off by':^15}  {'a row just like':^17}  {'nearest row is right':^20}"
    yield (
        f"{'release':<{wide}}{'rows':>7}  {'epsilon':<{long}}  {'pairs':>7}{'triples':>8}  {'people':>8}{'strangers':>9}"
        f"  {'people':>9}{'strangers':>11}  state"
    )
    for state in states:
        audit = load_evidence(site.candidate(str(state.id))).figures_of(AuditFigures)
        kept, near = audit.structure, audit.nearest
        off = "" if kept is None else f"{_figure(kept.pairs):>7}{_figure(kept.triples):>8}"
        equal = claimed = ""
        if near is not None:
            equal = f"{_share(near.equal):>8}{_share(near.strangers_equal):>9}"
            if near.overall is not None:
                claimed = f"{_share(near.overall.people):>9}{_share(near.overall.strangers):>11}"
        yield (
            f"{state.id!s:<{wide}}{state.facts['rows_out']:>7,}  {words[state.id]:<{long}}  {off:<15}  {equal:<17}  {claimed:<20}"
            f"  {state.state}"
        )


def _list_candidates(site: Site) -> list[ReleaseStatus]:
    return [status for _, status in sorted(list_statuses(site).items()) if status.candidate_hash is not None]


def _describe_epsilon(facts: Mapping[str, Any]) -> str:
    """What a release claims, short."""
    tag = find_definition(facts["definition"]).tag
    if facts.get("epsilon") is None:
        return STATUS("candidate.no_epsilon", definition=tag)
    scope = STATUS.read_section("scope")[facts["scope"]]
    at = STATUS("candidate.at_delta", delta=facts["delta"]) if facts.get("delta") else ""
    return STATUS("candidate.epsilon", epsilon=f"{facts['epsilon']}{at}", definition=tag, scope=scope)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _share(share: ShareView | None) -> str:
    return "" if share is None else f"{100 * share.value:.1f}%"
