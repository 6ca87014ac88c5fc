"""The candidates of a site in a table, with figures of their evidence."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.flow.evidence import MapFigures, load_evidence
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import list_statuses
from release_pipeline.privacy.catalogue import find_definition
from release_pipeline.sentences import STATUS


def describe_candidates(site: Site) -> Iterator[str]:
    """A table of all candidates with figures of their evidence: internal, unless the data are public as the demo's."""
    statuses = sorted(list_statuses(site).items())
    states = [status for _, status in statuses if status.candidate_hash is not None]
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
        tag = find_definition(facts["definition"]).tag
        epsilon = STATUS("candidate.no_epsilon", definition=tag)
        if facts.get("epsilon") is not None:
            scope = STATUS.read_section("scope")[facts["scope"]]
            at = STATUS("candidate.at_delta", delta=facts["delta"]) if facts.get("delta") else ""
            epsilon = STATUS("candidate.epsilon", epsilon=f"{facts['epsilon']}{at}", definition=tag, scope=scope)
        linked = audit.record_linkage
        linkage = "" if linked is None else f"{100 * linked.value:.1f}%"
        errors = "".join(f"{audit.error[name]:>9.3f}" for name in names)
        yield (
            f"{state.id!s:<{wide}}{facts['rows_out']:>7,}  {epsilon:<34}{facts['k']:>4}{facts['anonymity_k'] or '':>5}  {errors}"
            f"{linkage:>9}  {state.state}"
        )
