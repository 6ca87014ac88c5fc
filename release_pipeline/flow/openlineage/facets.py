"""What OpenLineage events say beside the names of jobs and tables. Facts of the policy, and whether checks passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from release_pipeline.flow.openlineage.spec import make_claim, make_facet
from release_pipeline.flow.origins import ENDS, Column, list_columns
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import to_json, view_epsilon
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.periods import begin_of, end_of
from release_pipeline.policy.words import describe_claim

Facets: TypeAlias = dict[str, dict[str, Any]]
CLAIM = "releasePipeline_claim"


@dataclass(frozen=True, slots=True)
class Assertion:
    """A family of checks: whether it passed, and of how many it is. What they counted stays at the site."""

    family: str
    passed: bool
    words: str
    checks: int


def list_job_facets(policy: Policy, words: str) -> Facets:
    """What a job does, and whose it is."""
    owners = [{"name": f"steward:{policy.steward}", "type": "STEWARD"}]
    return {
        "documentation": make_facet("DocumentationJobFacet", description=words, contentType="text/plain"),
        "ownership": make_facet("OwnershipJobFacet", owners=owners),
    }


def list_run_facets(
    policy: Policy, partition: str, *, release: str, namespace: str, parent: str | None, error: str | None
) -> Facets:
    """What a release claims, the period that it is of, the run that it is a stage of, and how it failed if it did."""
    facets: Facets = {CLAIM: _claim(policy, release)}
    if policy.every:
        begin, end = begin_of(policy.every, partition).isoformat(), end_of(policy.every, partition).isoformat()
        facets["nominalTime"] = make_facet("NominalTimeRunFacet", nominalStartTime=begin, nominalEndTime=end)
    if parent is not None:
        job = {"namespace": namespace, "name": policy.policy}
        facets["parent"] = make_facet("ParentRunFacet", run={"runId": parent}, job=job)
    if error is not None:
        facets["errorMessage"] = make_facet("ErrorMessageRunFacet", message=error, programmingLanguage="PYTHON")
    return facets


def _claim(policy: Policy, release: str) -> dict[str, Any]:
    epsilon = view_epsilon(policy)
    return make_claim(
        release=release,
        policy=policy.policy,
        policyHash=policy.canonical_hash(),
        population=policy.population,
        method=policy.protect.method,
        definition=policy.definition,
        scope=policy.protect.scope,
        epsilon=None if epsilon is None else epsilon.total,
        delta=None if policy.delta is None else decimal_text(policy.delta),
        rho=None if epsilon is None else to_json(epsilon).get("rho"),
        k=policy.protect.k,
        words=describe_claim(policy),
    )


def list_table_facets(policy: Policy, stage: str, *, version: str, namespace: str, source: str) -> Facets:
    """The columns of what a stage made, and of a release where each comes from."""
    columns = list_columns(policy, stage)
    fields = [{"name": each.name, "type": each.type, "description": each.words} for each in columns]
    facets = {
        "schema": make_facet("SchemaDatasetFacet", fields=fields),
        "version": make_facet("DatasetVersionDatasetFacet", datasetVersion=version),
    }
    if stage in ENDS:
        made_of = {each.name: {"inputFields": _inputs(policy, each, namespace, source)} for each in columns}
        facets["columnLineage"] = make_facet("ColumnLineageDatasetFacet", fields=made_of)
    return facets


def _inputs(policy: Policy, column: Column, namespace: str, source: str) -> list[dict[str, Any]]:
    """The columns of the source that a released one comes from, and what was done."""
    is_kept = column.name in policy.kept_columns and column.name not in policy.swapped_columns
    done = {
        "type": "DIRECT",
        "subtype": "IDENTITY" if is_kept else "TRANSFORMATION",
        "description": column.words,
        "masking": not is_kept,
    }
    return [{"namespace": namespace, "name": source, "field": name, "transformations": [done]} for name in column.sources]


def make_assertions(assertions: Sequence[Assertion]) -> dict[str, Any]:
    """The checks of a table, a family each."""
    told = [
        {
            "assertion": each.family,
            "success": each.passed,
            "severity": "error",
            "description": each.words,
            "params": {"checks": each.checks},
        }
        for each in assertions
    ]
    return make_facet("DataQualityAssertionsDatasetFacet", assertions=told)
