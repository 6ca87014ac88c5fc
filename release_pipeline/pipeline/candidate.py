"""The seventh stage: the frozen folder that people sign: data, evidence, and a hash over all of it."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from release_pipeline import __version__
from release_pipeline.audit.package import spell_out
from release_pipeline.errors import GateFailed
from release_pipeline.formats.evidence import load_evidence
from release_pipeline.formats.package import (
    BLOCKS_FILE,
    COUNTS_FILE,
    PAIRS_FILE,
    file_of,
    render_cells,
    render_counts,
    render_table,
    render_tables,
)
from release_pipeline.formats.passed_stages import Audited, Masked, Microaggregated, Suppressed, Validated
from release_pipeline.ledger.facts import PublicFacts, claimed_nano, describe_bound
from release_pipeline.ledger.looks import note_looks
from release_pipeline.ledger.policies import open_population, read_caps
from release_pipeline.masking import BLOCKS, CELLS, COUNTS, PAIRS, count_blocks
from release_pipeline.masking.tables import TABLES
from release_pipeline.pipeline.checkpoints import check_records, read_checkpoint
from release_pipeline.pipeline.context import StageContext, StageResult
from release_pipeline.pipeline.gates import show_refusal
from release_pipeline.pipeline.in_place import stored_table
from release_pipeline.pipeline.reading import refuse
from release_pipeline.pipeline.tables import SLICE, Slices, write_data
from release_pipeline.policy import Policy
from release_pipeline.policy.plans.loss import sum_series
from release_pipeline.policy.plans.plan import describe_claim
from release_pipeline.policy.values.formats import decimal_text
from release_pipeline.report.page import AFTER_CHARGE, REPORT, render_report
from release_pipeline.rows.checks import check_roles
from release_pipeline.rows.validate import suite_to_json
from release_pipeline.store.files import make_private_folder, sync, write_sums
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.vault import ReleaseWorkspace


def freeze_candidate(context: StageContext) -> StageResult:
    """The candidate: a frozen folder with a hash over all of it. Refused unless every gate, re-read here, has passed."""
    policy = context.policy
    with context.open_workspace() as workspace:
        audited = read_checkpoint(context, workspace, Audited)
        suppressed = read_checkpoint(context, workspace, Suppressed, check=True)
        validated = read_checkpoint(context, workspace, Validated)
        clusters = read_checkpoint(context, workspace, Microaggregated)
        check_records(context, workspace, clusters, are_read=False)
        failed = dict.fromkeys(gate.refusal for gate in audited.judged if not gate.passed)
        table = stored_table(workspace, suppressed.table, list(policy.released_columns))
        refuse(str(context.id), check_roles(list(table.column_names), policy))
        facts = collect_public_facts(context, records=validated.records, rows_out=table.num_rows, suppressed=suppressed)
        facts |= clusters.facts
        masked = read_checkpoint(context, workspace, Masked, check=True, read=dict.fromkeys(BESIDE))
        beside = render_beside(policy, workspace, masked.tables)
        if BLOCKS in masked.tables:
            facts["together"] = count_blocks(workspace.read(BLOCKS))

        def spell_slices() -> Iterator[pa.Table]:
            slices = workspace.slices(suppressed.table, table.column_names, rows=SLICE)
            return map(partial(spell_out, policy=policy), slices)

        evidence = collect_evidence(context, facts, validated, clusters, audited)
        if failed:
            shown = show_refusal(context, evidence, AFTER_CHARGE)
            going_on = "The release is charged; another try is a revision, charged anew."
            context.block(f"{' '.join(failed)} {shown} {going_on}", code=GateFailed.code)
        context.check_frozen()
        folder = context.site.candidate(str(context.id))
        digest = freeze(folder, spell_slices, policy.publish.formats, evidence, beside, policy)  # in the workspace: one at a time
    context.probe.reached("the candidate's folder is in its place")
    facts["candidate_hash"] = digest
    context.record_candidate(digest, facts)
    context.probe.reached("the candidate is noted")
    return StageResult("candidate", digest, facts)


def collect_public_facts(context: StageContext, *, records: int, rows_out: int, suppressed: Suppressed) -> dict[str, Any]:
    """What is recorded of the candidate for everybody: from declared facts, counts of rows and the ledger."""
    policy, charges = context.policy, _list_charges_until(context.site, context.id)
    account = open_population(read_caps(context.site), policy.population, charges)
    claimed = claimed_nano(policy, charges[-1])
    series = sum_series(policy, [charge.loss for charge in charges if charge.id.policy == policy.policy])
    facts = PublicFacts(
        release=str(context.id),
        claim=describe_claim(policy),
        definition=policy.definition,
        scope=policy.protect.scope,
        method=policy.protect.method,
        epsilon=None if claimed is None else policy.in_epsilon(claimed),
        k=policy.protect.k,
        anonymity_k=suppressed.anonymity_k,
        column_bound=describe_bound(policy, charges[-1], "column"),
        table_bound=describe_bound(policy, charges[-1], "table"),
        series_epsilon=None if series is None else policy.in_epsilon(series),
        population_spent=f"{account.spent} of {account.limit} ({account.unit})",
        policy_hash=context.policy_hash,
        rows_in=records,
        rows_out=rows_out,
        cells_blanked=suppressed.cells_blanked,
        delta=None if policy.delta is None else decimal_text(policy.delta),
        rho=None if policy.delta is None else claimed,
        series_rho=None if policy.delta is None else series,
        looks=len(context.list_looks()),
    )
    return facts.to_json()


def _list_charges_until(site: Site, release: ReleaseId) -> list[Charge]:
    """Every charge up to that of a release: the ledger as it was then, so that a retry says the same."""
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
    return charges[: 1 + [charge.id for charge in charges].index(release)]


BESIDE = (COUNTS, CELLS, PAIRS, BLOCKS, TABLES)  # tables of the vault that are published next to the data
_NOTHING_BESIDE: Mapping[str, str] = {}


def freeze(
    folder: Path,
    table: Slices,
    formats: Sequence[str],
    evidence: Mapping[str, Any],
    beside: Mapping[str, str] = _NOTHING_BESIDE,
    policy: Policy | None = None,
) -> str:
    """Write the candidate into `folder`, whole or not at all, and return its hash. The same content gives the same bytes. By the
    `policy` files say what their columns are, and reviewers get a page, made of the evidence as it was written.

    What was there of the same release before is replaced, and stays there if that fails. One at a time for one folder: the
    caller sees to it.
    """
    make_private_folder(folder.parent)
    for left in folder.parent.glob(f".{folder.name}.*"):  # of an attempt that was killed
        if left.name != f".{folder.name}.before":
            shutil.rmtree(left)
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    partial.mkdir(mode=0o700)
    try:
        for form in formats:
            write_data(partial, table, form, policy)
        (partial / "evidence.json").write_text(json.dumps(evidence, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        for name, text in beside.items():
            (partial / name).write_text(text, encoding="utf-8")
        if policy is not None:
            (partial / REPORT).write_text(render_report(policy, load_evidence(partial)), encoding="utf-8")
        digest = write_sums(partial)
        for file in partial.iterdir():
            file.chmod(0o600)
            sync(file)
        _put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return digest


def _put_in_place(partial: Path, folder: Path) -> None:
    before = folder.with_name(f".{folder.name}.before")
    if before.exists() and not folder.exists():  # an earlier attempt stopped between the two renames
        before.rename(folder)
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    try:
        partial.replace(folder)
    except BaseException:
        if before.exists():
            before.rename(folder)
        raise
    sync(folder.parent)
    shutil.rmtree(before, ignore_errors=True)


def render_beside(policy: Policy, workspace: ReleaseWorkspace, tables: Collection[str]) -> dict[str, str]:
    """The files that are published next to the data, of those of `BESIDE` that were measured."""
    files: dict[str, str] = {}
    if COUNTS in tables:
        files[COUNTS_FILE] = render_counts(workspace.read(COUNTS).to_pylist(), policy.noise_columns)
    if CELLS in tables:
        files[COUNTS_FILE] = render_cells(workspace.read(CELLS).to_pylist(), policy.noise_columns | policy.listed_columns)
    for name, file in ((PAIRS, PAIRS_FILE), (BLOCKS, BLOCKS_FILE)):
        if name in tables:
            counted = workspace.read(name)
            files[file] = render_tables(counted.column_names, counted.to_pylist())
    if TABLES in tables:
        cells = workspace.read(TABLES)
        files |= {file_of(name): render_table(tabulation, cells) for name, tabulation in policy.tabulations.items()}
    return files


def collect_evidence(
    context: StageContext, facts: Mapping[str, Any], validated: Validated, clusters: Microaggregated, audited: Audited
) -> dict[str, Any]:
    """What the candidate's folder says of itself, for the people who sign it."""
    policy = context.policy
    noisy = "the cluster sums" if policy.protect.makes_clusters else "single values"
    return {
        "confidential": "internal figures: exact losses, scales and errors describe the data and must not be published",
        "salt": context.site.keyed_hash(f"salt of the evidence of {context.id}".encode()),  # no hash of it can be guessed at
        "tool": f"release-pipeline {__version__}",
        "release": str(context.id),
        "policy": json.loads(policy.canonical_json()),
        "facts": facts,
        "consistency": policy.consistency,
        "units": f"scales are of {noisy}, in the column's unit; errors are mean squares over the variance, both of values as "
        "the method saw them; clamping is the share of records outside the domain, and the mean square of how far they were "
        "moved over the variance of the values as they came",
        "columns": clusters.columns,
        "clamping": validated.clamping,
        "audit": audited.internal,
        "gates": audited.gates,
        "budget": audited.budget,
        "checks_passed": validated.checks,
        "expectation_suite": suite_to_json(policy),
        "warnings": validated.warnings,
        "criteria": audited.criteria,
        "own_suite": validated.suite,
        "looks": note_looks(context.list_looks()),
    }


# What the reviewers' page says next to the release itself: the budget of its population.


def collect_context(site: Site, policy: Policy, release: ReleaseId) -> dict[str, Any]:
    """The budget as it was with the release's own charge. Asked once, when the release is audited first, and kept; no clock is in
    it."""
    charges = _list_charges_until(site, release)
    account = open_population(read_caps(site), policy.population, charges)
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
