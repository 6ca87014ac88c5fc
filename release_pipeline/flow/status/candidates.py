"""The candidates of a site in a table, with figures of their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from release_pipeline.flow.evidence import AuditFigures, load_evidence
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseStatus, list_statuses
from release_pipeline.privacy.catalogue import find_definition
from release_pipeline.report.internal_view import RungView, ShareView
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
    errors, linkage = "error of each column", "linked, knowing"
    yield f"{'':<{wide}}{'':>7}  {'':<34}{'':>4}{'':>5}  {errors:^{9 * len(names)}}  {linkage:^28}"
    rungs = "".join(f"{known:>7}" for known in ("kept", "+1", "+2", "all"))
    yield f"{'release':<{wide}}{'rows':>7}  {'epsilon':<34}{'k':>4}{'k*':>5}  {head}  {rungs}  state"
    for state in states:
        facts, audit = state.facts, evidence[state.id].figures_of(AuditFigures)
        epsilon = _describe_epsilon(facts)
        errors = "".join(f"{audit.error[name]:>9.3f}" for name in names)
        yield (
            f"{state.id!s:<{wide}}{facts['rows_out']:>7,}  {epsilon:<34}{facts['k']:>4}{facts['anonymity_k'] or '':>5}  {errors}"
            f"  {_list_rungs(audit.linkage_ladder)}  {state.state}"
        )


def _list_rungs(ladder: Sequence[RungView]) -> str:
    """What someone links who knows the kept columns, one masked column too, two, and all: empty where a rung is missing."""
    lower = {rung.masked: rung for rung in ladder[:-1]}
    found = [*(lower.get(masked) for masked in range(3)), ladder[-1] if ladder else None]
    return "".join(f"{'' if rung is None else f'{100 * rung.linked.value:.1f}%':>7}" for rung in found)


def describe_synthetic(site: Site) -> Iterator[str]:
    """The same where rows are synthetic: how far tables of two and three columns are off, beside records drawn anew, and what the
    nearest rows tell of people that they were made of and of strangers."""
    states = _list_candidates(site)
    if not states:
        return
    wide = max(14, *(len(str(state.id)) + 1 for state in states))
    epsilons = {state.id: _describe_epsilon(state.facts) for state in states}
    long = max(map(len, epsilons.values()))
    blank = f"{'':<{wide}}{'':>7}  {'':<{long}}"
    yield f"{blank}  {'tables off by (drawn anew)':^30}  {'a row just like':^18}  {'nearest row is right':^18}"
    yield (
        f"{'release':<{wide}}{'rows':>7}  {'epsilon':<{long}}  {'pairs':>15}{'triples':>15}  {'people':>8}{'strangers':>10}"
        f"  {'people':>8}{'strangers':>10}  state"
    )
    for state in states:
        audit = load_evidence(site.candidate(str(state.id))).figures_of(AuditFigures)
        kept, near = audit.structure, audit.nearest
        overall = near.overall if near is not None else None
        off = ((kept.pairs, kept.pairs_by_chance), (kept.triples, kept.triples_by_chance)) if kept is not None else ()
        equal = (near.equal, near.strangers_equal) if near is not None else ()
        right = (overall.people, overall.strangers) if overall is not None else ()
        yield (
            f"{state.id!s:<{wide}}{state.facts['rows_out']:>7,}  {epsilons[state.id]:<{long}}"
            f"  {''.join(f'{_beside(*both):>15}' for both in off):>30}  {_both(equal):>18}  {_both(right):>18}  {state.state}"
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
    return STATUS("candidate.epsilon", epsilon=f"{_shorten(facts['epsilon'])}{at}", definition=tag, scope=scope)


def _shorten(epsilon: float | str) -> str:
    """Without the billionths by which a rho is rounded down to fit the epsilon that is declared."""
    nano = Decimal(str(epsilon))
    short = nano.quantize(Decimal("0.000001"), rounding=ROUND_CEILING).normalize()
    return f"{short:f}"


def _beside(value: float | None, chance: float | None) -> str:
    return "" if value is None or chance is None else f"{value:.3f} ({chance:.3f})"


def _both(shares: Sequence[ShareView | None]) -> str:
    """Of people and of strangers."""
    found = ["" if share is None else f"{100 * share.value:.1f}%" for share in shares]
    return "".join(f"{words:>{wide}}" for words, wide in zip(found, (8, 10), strict=False))
