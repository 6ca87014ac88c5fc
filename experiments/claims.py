"""Policies of every method, scope and option that a claim depends on, and the audit of all their claims, as docs/measured.md has
it: `python -m experiments.claims`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from release_pipeline.mechanisms.catalogue import find_method, list_methods
from release_pipeline.mechanisms.catalogue.spec import SAME
from release_pipeline.pipeline.claims import audit_policies, describe_audit
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import parse_policy

K = 3
WIDTH = 1000  # of every domain: so many grid steps that rounding a noise scale up costs hardly any of epsilon
_NOISE = f"role: confidential, do: noise, domain: [0, {WIDTH}], grid: 1, outside: clamp, missing: fail, why: made up"
_ATOMS = ", atoms: [0, 500]"
_REASONS = ", codes: {-8: refused, .a: left}"
_SWAPPED = "ill: {role: confidential, do: swap, values: [a, b, c, d], why: made up}"
_GROUPED = f"g: {{role: quasi, do: generalise, hierarchy: {{groups: [{', '.join(f'g{number}' for number in range(64))}]}}}}"
_AGES = "age: {role: quasi, do: generalise, hierarchy: {domain: [0, 100], grid: 1, outside: clamp}, why: made up}"
_SITE = "site: {role: quasi, do: keep, values: [1, 2, 3, 4], why: made up}"
_UNSEEN = "site: {role: quasi, do: drop, values: [1, 2, 3, 4]}"
_TOTALS = "by: site, sum: a"
_REGIONS = "{column: site, groups: {west: [1, 2], east: [3, 4]}}"
_COARSE = "by: [{column: site, groups: {west: [1, 2], east: [3, 4]}, levels: [1]}]"
_SYNTHETIC = (
    f"a: {{role: confidential, do: synthesise, domain: [0, {WIDTH}], grid: 1, outside: clamp, missing: keep, why: made up}}"
)
_LISTED = "c: {role: quasi, do: synthesise, values: [x, y, z]}"
_OTHER = "d: {role: quasi, do: synthesise, values: [x, y]}"
_WHO = "who: {role: identifier, do: drop}"
_WEIGHT = "w: {role: weight, do: drop, domain: [1, 400], grid: 0.5, outside: clamp}"
_WEIGHTS = "w: {role: weight, do: keep, values: [1.5, 10, 400], why: made up}"
_STANDS_OUT = "{confidence: 70%, at_most: 100%}"


@dataclass(frozen=True, slots=True)
class _Case:
    """The parts of a policy that matter: `noise` columns with noise, and another column where one is needed."""

    protect: str
    noise: int = 1
    atoms: str = ""  # and other options of the noise columns
    other: str = ""
    suppress: str = ""
    person: str = "each-row"
    releases: str = "once"
    tables: str = ""


_MORE = {  # besides the plain cases of the methods that work column by column
    "laplace, two columns": _Case("method: laplace, epsilon: 4", noise=2),
    "dp-um, order not restored": _Case("method: dp-um, epsilon: 2, k: 3, consistency: none"),
    "dp-um, two records per person": _Case(
        "method: dp-um, epsilon: 1, k: 3", other=_WHO, person="{column: who, records_per_release: 2}"
    ),
    "dp-um, random parts": _Case("method: dp-um, epsilon: 2, k: 3, partitions: 2"),
    "dp-um, atoms": _Case("method: dp-um, epsilon: 2, k: 3", atoms=_ATOMS),
    "idp-ls, values anywhere": _Case("method: idp-ls, epsilon: 2, k: 3, clamp: no"),
    "idp-cbls, order not restored": _Case("method: idp-cbls, epsilon: 2, k: 5, consistency: none"),
    "idp-cbls, values anywhere": _Case("method: idp-cbls, epsilon: 2, k: 5, clamp: no"),
    "idp-cbls, atoms": _Case("method: idp-cbls, epsilon: 2, k: 3", atoms=_ATOMS),
    "idp-cbls, random parts": _Case("method: idp-cbls, epsilon: 2, k: 3, partitions: 2"),
    "idp-cbls, two columns": _Case("method: idp-cbls, epsilon: 4, k: 3", noise=2),
    "idp-cbls, small groups": _Case(
        "method: idp-cbls, epsilon: 2, k: 3", other=_SITE, suppress="{quasi_groups_below: 5, at_most: 100%}"
    ),
    "idp-cbls, swapped": _Case(
        "method: idp-cbls, epsilon: 2, k: 3, swap: {k: 5, within: kept}",
        other=f"{_SITE}\n  {_SWAPPED}",
        suppress="{quasi_groups_below: 5, at_most: 100%}",
    ),
    "dp-um, swapped, two records per person": _Case(
        "method: dp-um, epsilon: 1, k: 3, swap: {k: 3, within: kept}",
        other=_WHO,
        person="{column: who, records_per_release: 2}",
    ),
    "dp-um, by rho": _Case("method: dp-um, definition: zcdp, epsilon: 8, delta: 0.001, k: 3"),
    "dp-cdf, by rho": _Case("method: dp-cdf, definition: zcdp, epsilon: 8, delta: 0.001, k: 3"),
    "dp-cdf": _Case("method: dp-cdf, epsilon: 2, k: 3"),
    "dp-cdf, atoms": _Case("method: dp-cdf, epsilon: 2, k: 3", atoms=_ATOMS),
    "dp-cdf, records without a value": _Case("method: dp-cdf, epsilon: 2, k: 3", atoms=_REASONS),
    "dp-cdf, two records per person": _Case(
        "method: dp-cdf, epsilon: 1, k: 3", other=_WHO, person="{column: who, records_per_release: 2}"
    ),
    "dp-cdf, random parts": _Case("method: dp-cdf, epsilon: 2, k: 3, partitions: 2"),
    "dp-cdf, two columns": _Case("method: dp-cdf, epsilon: 4, k: 3", noise=2),
    "dp-mdav, corner, plain": _Case("method: dp-mdav, epsilon: 2, k: 3, order: corner"),
    "dp-mdav, corner, plain, two columns": _Case("method: dp-mdav, epsilon: 4, k: 3, order: corner", noise=2),
    "dp-mdav, hilbert, plain, two columns": _Case("method: dp-mdav, epsilon: 4, k: 3, order: hilbert", noise=2),
    "dp-mdav, corner, trimmed": _Case("method: dp-mdav, epsilon: 2, k: 3, order: corner, statistic: trimmed"),
    "dp-mdav, hilbert, trimmed, two columns": _Case(
        "method: dp-mdav, epsilon: 4, k: 3, order: hilbert, statistic: trimmed", noise=2
    ),
    "dp-mdav, centroid, plain": _Case("method: dp-mdav, epsilon: 4, k: 3, order: hilbert, scope: centroid", noise=2),
    "dp-mdav, centroid, trimmed": _Case(
        "method: dp-mdav, epsilon: 4, k: 3, order: corner, statistic: trimmed, scope: centroid", noise=2
    ),
    "tables": _Case(
        "method: dp-um, epsilon: 2, k: 3",
        other=_SITE,
        tables=f"heads: {{by: site, epsilon: 1}}, regions: {{{_COARSE}, epsilon: 1}}, totals: {{{_TOTALS}, epsilon: 1}}",
    ),
    "dp-table": _Case("method: dp-table, epsilon: 3", noise=0, other=f"{_SYNTHETIC}\n  {_LISTED}\n  {_OTHER}"),
    "dp-table, two records per person": _Case(
        "method: dp-table, epsilon: 2",
        noise=0,
        other=f"{_SYNTHETIC}\n  {_LISTED}\n  {_WHO}",
        person="{column: who, records_per_release: 2}",
    ),
    "dp-table, by rho": _Case(
        "method: dp-table, definition: zcdp, epsilon: 4, delta: 0.001", noise=0, other=f"{_SYNTHETIC}\n  {_LISTED}"
    ),
    "tables in levels": _Case(
        "method: dp-um, epsilon: 2, k: 3",
        other=_SITE,
        tables=f"heads: {{by: [{_REGIONS}], epsilon: 2}}, totals: {{by: [{_REGIONS}], sum: a, epsilon: 2}}",
    ),
    "tables, two records per person": _Case(
        "method: dp-um, epsilon: 1, k: 3",
        other=f"{_SITE}\n  {_WHO}",
        person="{column: who, records_per_release: 2}",
        tables=f"heads: {{by: site, epsilon: 0.5}}, totals: {{{_TOTALS}, epsilon: 0.5}}",
    ),
    "tables, by rho": _Case(
        "method: dp-um, definition: zcdp, epsilon: 8, delta: 0.001, k: 3",
        other=_SITE,
        tables=f"heads: {{by: site, rho: 0.5}}, totals: {{{_TOTALS}, rho: 0.5}}, pure: {{by: site, epsilon: 1}}",
    ),
    "tables, of those who have a value": _Case(
        "method: dp-cdf, epsilon: 2",
        atoms=_REASONS,
        other=_SITE,
        tables="valued: {by: site, having: a, epsilon: 1}, totals: {by: site, sum: a, epsilon: 1}",
    ),
    "tables, weighted": _Case(
        "method: dp-um, epsilon: 2, k: 3",
        other=f"{_SITE}\n  {_WEIGHT}",
        tables=f"heads: {{by: site, weight: w, epsilon: 1}}, totals: {{{_TOTALS}, weight: w, epsilon: 1}}",
    ),
    "tables, weighted, by rho": _Case(
        "method: dp-um, definition: zcdp, epsilon: 8, delta: 0.001, k: 3",
        other=f"{_SITE}\n  {_WEIGHTS}",
        tables=f"heads: {{by: site, weight: w, rho: 0.5}}, totals: {{{_TOTALS}, weight: w, rho: 0.5}}",
    ),
    "mdav": _Case("method: mdav, k: 3", noise=2),
    "mdav, small groups": _Case("method: mdav, k: 5", noise=2, other=_SITE, suppress="{quasi_groups_below: 3, at_most: 100%}"),
    "k-epsilon": _Case("method: k-epsilon, grouping: ola, epsilon: 2, k: 7", other=_GROUPED),
    "k-epsilon, two columns": _Case("method: k-epsilon, grouping: ola, epsilon: 2, k: 7", noise=2, other=_GROUPED),
    "k-epsilon, mondrian": _Case("method: k-epsilon, grouping: mondrian, epsilon: 2, k: 7", other=_AGES),
    "k-epsilon, confidence": _Case("method: k-epsilon, grouping: ola, epsilon: 2, k: 7", other=_GROUPED, suppress=_STANDS_OUT),
    "k-epsilon, mondrian, confidence": _Case(
        "method: k-epsilon, grouping: mondrian, epsilon: 2, k: 7", other=_AGES, suppress=_STANDS_OUT
    ),
    "k-epsilon, random parts": _Case("method: k-epsilon, grouping: ola, epsilon: 2, k: 7, partitions: 2", other=_GROUPED),
}


def list_suite() -> dict[str, Policy]:
    """Every policy of the suite by what it is: of each method that works column by column at every scope that claims something of
    its own, and what else there is."""
    return {name: _make(name, case) for name, case in {**dict(_list_plain()), **_MORE}.items()}


def _list_plain() -> Iterator[tuple[str, _Case]]:
    for method in list_methods("columns"):
        spec = find_method(method)
        protect = f"method: {method}, epsilon: 2" + (f", k: {max(spec.least_k, K)}" if spec.takes_k else "")
        for claim in spec.claims:
            if claim.scope == "column":
                yield method, _Case(protect)
            elif claim.lists is not SAME:  # or else it is the claim of scope column under another name
                yield f"{method}, {claim.scope}", _Case(f"{protect}, scope: {claim.scope}")


def _make(name: str, case: _Case) -> Policy:
    lines = [
        "policy: made-up",
        "steward: nobody",
        "population: nobody",
        "source: {path: none.csv}",
        f"person: {case.person}",
        f"releases: {case.releases}",
        f"protect: {{{case.protect}}}",
        "columns:",
        *(f"  {name}: {{{_NOISE}{case.atoms}}}" for name in ("a", "b")[: case.noise]),
    ]
    lines += [f"  {case.other}"] if case.other else []
    lines += [f"suppress: {case.suppress}"] if case.suppress else []
    lines += [f"tables: {{{case.tables}}}"] if case.tables else []
    return parse_policy("\n".join(lines) + "\n", name=name)


def main() -> int:
    """Attack every claim, and print the table; the exit code is 1 if a claim is broken."""
    audited = audit_policies(list_suite(), quick="--quick" in sys.argv[1:], progress=lambda step: print(step, file=sys.stderr))
    print("\n".join(describe_audit(audited)))
    return int(bool(audited.broken))


if __name__ == "__main__":
    sys.exit(main())
