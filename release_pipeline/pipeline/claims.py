"""The audit of claims: of some policies, in parallel, and kept for the dossier.

No data are read: tables are made from a policy's declarations. The findings about a policy of a site are in its vault, by the
policy's hash, and go into the dossiers of its releases.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from release_pipeline import __version__
from release_pipeline.claims.audit import BRIEF, FULL, QUICK, Effort, Finding, audit_promise
from release_pipeline.claims.promises import Promise, list_promises
from release_pipeline.formats import versions as formats
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Hash, Moment, to_json
from release_pipeline.store.files import make_private_folder, write_private_json
from release_pipeline.store.site import Site

CONFIDENCE = "99.9%"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Audited:
    """The findings about each policy, by its name."""

    findings: Mapping[str, Sequence[Finding]]
    quick: bool
    hashes: Mapping[str, str]

    @property
    def broken(self) -> list[Finding]:
        """Return the findings that break a claim."""
        return [finding for of_policy in self.findings.values() for finding in of_policy if not finding.holds]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim of a policy, and the result of attacking it."""

    promise: Annotated[str, "what is promised, in words"]
    definition: Annotated[Literal["dp", "zcdp", "idp", "k-epsilon", "k-anonymity"], "of the claim"]
    measure: Annotated[
        Literal["epsilon", "rho", "share", "records", "values"],
        "what `claimed` and `proved` are: losses, shares of links, or numbers",
    ]
    claimed: Annotated[float, "the most that the loss may be, or the fewest records that a group may have"]
    proved: Annotated[float | None, "a loss that the release has at the least, or the fewest seen; null: nothing to count"]
    holds: Annotated[bool, "whether nothing was found that breaks the promise"]
    draws: Annotated[int, "the releases, or of classes the records, that the figure was counted on"]
    tables: Annotated[str, "the made-up tables that showed most, in words"]
    view: Annotated[str, "what was looked at, in words"]


@dataclass(frozen=True, slots=True)
class AuditedView:
    """A policy whose claims were attacked."""

    name: Annotated[str, "of the policy"]
    hash: Annotated[Hash, "SHA-256 of its canonical form"]
    claims: Annotated[tuple[ClaimView, ...], "each promise of it"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsDocument:
    """The document that `audit-claims --json` prints, and that a dossier has."""

    FORMAT: ClassVar[str] = "release-pipeline/audit-claims/1"

    tool: Annotated[str, "what made it"]
    made: Annotated[Moment, "when"]
    quick: Annotated[bool, "whether it was made with --quick: fewer draws prove less"]
    confidence: Annotated[str, "of each `proved` loss"]
    holds: Annotated[bool, "whether no claim is broken: the exit code is 0"]
    policies: Annotated[tuple[AuditedView, ...], "each policy"]


def view_audit(audited: Audited) -> ClaimsDocument:
    """Return the findings, for a script."""
    return ClaimsDocument(
        tool=f"release-pipeline {__version__}",
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=audited.quick,
        confidence=CONFIDENCE,
        holds=not audited.broken,
        policies=tuple(
            AuditedView(name, audited.hashes[name], tuple(_view(finding) for finding in found))
            for name, found in audited.findings.items()
        ),
    )


def _view(finding: Finding) -> ClaimView:
    figures: dict[str, Any] = asdict(finding) | {"proved": None if finding.proved is None else round(finding.proved, 4)}
    return ClaimView(**figures, holds=finding.holds)


def audit_policies(
    policies: Mapping[str, Policy], *, quick: bool, jobs: int | None = None, progress: Progress = lambda _: None
) -> Audited:
    """Return the findings on every claim of these policies, so many at a time (default: one for each core); with one job, in this
    process. A quick audit of several policies draws least."""
    effort = FULL if not quick else QUICK if len(policies) == 1 else BRIEF
    work = [(name, policy, promise) for name, policy in policies.items() for promise in list_promises(policy)]
    done: dict[int, Finding] = {}
    for number, finding in _each(work, effort, jobs or os.cpu_count() or 1):
        done[number] = finding
        progress(f"{len(done)} of {len(work)}: {work[number][0]}: {finding.promise}")
    found: dict[str, list[Finding]] = {name: [] for name in policies}
    for number in sorted(done):
        found[work[number][0]].append(done[number])
    return Audited(found, quick, {name: policy.canonical_hash() for name, policy in policies.items()})


def _each(work: Sequence[tuple[str, Policy, Promise]], effort: Effort, jobs: int) -> Iterable[tuple[int, Finding]]:
    if jobs == 1 or len(work) == 1:
        yield from ((number, audit_promise(policy, promise, effort)) for number, (_, policy, promise) in enumerate(work))
        return
    with ProcessPoolExecutor(min(jobs, len(work)), mp_context=get_context("spawn")) as pool:
        begun = {pool.submit(audit_promise, policy, promise, effort): number for number, (_, policy, promise) in enumerate(work)}
        try:
            for future in as_completed(begun):
                yield begun[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def describe_audit(audited: Audited, *, draw: Callable[[Sequence[Sequence[str]]], Iterable[str]] | None = None) -> Iterable[str]:
    """Return the lines of a table in Markdown, a row for each claim; `draw` draws the table in another way."""
    head = ["policy", "what is promised", "claimed", f"proved ({CONFIDENCE})", "draws", "worst tables found", ""]
    rows = [
        [
            name,
            finding.promise,
            *_figures(finding),
            f"{finding.draws:,}",
            finding.tables,
            "holds" if finding.holds else "BROKEN",
        ]
        for name, found in audited.findings.items()
        for finding in found
    ]
    return draw([head, *rows]) if draw else (f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _figures(finding: Finding) -> tuple[str, str]:
    if finding.proved is None:
        return f"{finding.claimed:,.0f} {finding.measure} or more", "nothing to count"
    if finding.measure == "share":
        return f"{finding.claimed:.4g} of the links or less", f"at least {finding.proved:.4g}"
    if finding.measure not in ("epsilon", "rho"):
        return f"{finding.claimed:,.0f} {finding.measure} or more", f"{finding.proved:,.0f} at the least"
    return f"{finding.definition}, {finding.measure} {finding.claimed:.4g}", f"at least {finding.proved:.3f}"


def keep_audit(site: Site, policy: Policy, audited: Audited) -> Path:
    """Store the findings about a policy for the dossiers of its releases."""
    file = audit_file(site, policy.canonical_hash())
    make_private_folder(file.parent)
    write_private_json(file, to_json(view_audit(audited)))
    return file


def read_audit(site: Site, policy_hash: str) -> Mapping[str, Any] | None:
    """Return the last findings about the policy with this hash, if it was audited."""
    file = audit_file(site, policy_hash)
    return formats.AUDITED.read(json.loads(file.read_text(encoding="utf-8")), where=str(file)) if file.is_file() else None


def audit_file(site: Site, policy_hash: str) -> Path:
    """Return the file of these findings."""
    return site.vault / "claims" / f"{policy_hash}.json"
