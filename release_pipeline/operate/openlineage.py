"""OpenLineage run events of a release: jobs, tables, columns and the claim.

Which versions of the specification and its facets are written; `tests/fixtures/openlineage` has them, and a test compares.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from release_pipeline import __version__
from release_pipeline.pipeline.release import STAGES
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import to_json, view_epsilon
from release_pipeline.policy.kinds import GeneraliseColumn, NoiseColumn
from release_pipeline.policy.plans.plan import describe_claim
from release_pipeline.policy.values.formats import decimal_text
from release_pipeline.policy.values.periods import begin_of, end_of

PRODUCER = f"urn:release-pipeline:{__version__}"
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
CLAIM = "urn:release-pipeline:openlineage-claim:1"  # release_pipeline/schemas/openlineage-claim-1.json
FACETS = {  # the definition of a facet, and the version of its file
    "ColumnLineageDatasetFacet": "1-2-0",
    "DataQualityAssertionsDatasetFacet": "1-1-0",
    "DatasetVersionDatasetFacet": "1-0-1",
    "DocumentationJobFacet": "1-1-0",
    "ErrorMessageRunFacet": "1-0-1",
    "NominalTimeRunFacet": "1-0-1",
    "OwnershipJobFacet": "1-0-1",
    "ParentRunFacet": "1-2-0",
    "SchemaDatasetFacet": "1-2-0",
}


def make_facet(name: str, **content: Any) -> dict[str, Any]:
    """A facet of the specification."""
    url = f"https://openlineage.io/spec/facets/{FACETS[name]}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **content}


def make_claim(**content: Any) -> dict[str, Any]:
    """Ours: what a release claims."""
    return {"_producer": PRODUCER, "_schemaURL": CLAIM, **content}


# The columns of a release, as everybody may know them: type, what is done to each, where it comes
# from. Of the policy alone.


TYPES = {"number": "double", "whole number": "bigint", "text": "varchar", "date": "date", "moment": "timestamp"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a stage's table. `origins`: the columns of the stage before that it is made of; `sources`: those of the
    source; `passed`: the stages on the way."""

    name: str
    type: str
    words: str
    origins: tuple[str, ...]
    sources: tuple[str, ...]
    passed: tuple[str, ...]


def list_columns(policy: Policy) -> tuple[Column, ...]:
    """The released columns, in their order."""
    return tuple(_list_columns(policy))


def _list_columns(policy: Policy) -> Iterator[Column]:
    for name, column in policy.released_columns.items():
        passed = tuple(each for each in STAGES if each != "microaggregated" or name not in policy.kept_columns)
        yield Column(name, TYPES[column.released_as], describe_column(policy, name), (name,), (name,), passed)


def describe_column(policy: Policy, name: str) -> str:
    """What a column is, and what is done to it."""
    column = policy.columns[name]
    if policy.protect.is_synthetic:
        return f"{column.role}; synthetic: made of noisy counts of all columns"
    if isinstance(column, NoiseColumn):
        k = f", k = {policy.protect.k}" if policy.protect.k else ""
        if name not in policy.column_epsilon:
            return f"{column.role}; replaced by centroids of {policy.protect.method}{k}"
        swapped = f", then swapped within blocks of {policy.block_size} or more alike records" if policy.swap is not None else ""
        return f"{column.role}; noise by {policy.protect.method}{k}, {policy.unit} {policy.column_epsilon[name]}{swapped}"
    if isinstance(column, GeneraliseColumn):
        return f"{column.role}; made coarser: {column.hierarchy.words}"
    if name in policy.swapped_columns:
        return f"{column.role}; as it is, swapped within blocks of {policy.block_size} or more alike records"
    return f"{column.role}; released as it is"


# What OpenLineage events say beside the names of jobs and tables. Facts of the policy, and whether
# checks passed.


Facets: TypeAlias = dict[str, dict[str, Any]]
CLAIM_FACET = "releasePipeline_claim"


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
    facets: Facets = {CLAIM_FACET: _claim(policy, release)}
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
    columns = list_columns(policy)
    fields = [{"name": each.name, "type": each.type, "description": each.words} for each in columns]
    facets = {
        "schema": make_facet("SchemaDatasetFacet", fields=fields),
        "version": make_facet("DatasetVersionDatasetFacet", datasetVersion=version),
    }
    if stage in ("candidate", "published"):
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


# OpenLineage run events of a release's stages: a job for each stage of a policy, whose tables are
# named and never read.
#
# Written after the published specification 2-0-2 and its facets, in the versions that `spec` names;
# no library of theirs is needed (their integration asks for a Dagster of long ago). What may stand
# here is what may stand in Dagster's UI.


Type: TypeAlias = Literal["START", "COMPLETE", "FAIL", "ABORT"]
Event: TypeAlias = dict[str, Any]
BEFORE = {
    "ingested": "source",
    "validated": "ingested",
    "microaggregated": "validated",
    "masked": "microaggregated",
    "suppressed": "masked",
    "audited": "suppressed",
    "candidate": "suppressed",
    "published": "candidate",
}


@dataclass(frozen=True, slots=True)
class StageRun:
    """One attempt at one stage. `parent`: the run of Dagster that it is a step of; None for what a command did."""

    namespace: str
    policy: Policy
    partition: str
    stage: str
    id: str
    parent: str | None = None
    words: str = ""

    @property
    def source(self) -> str:
        """The table that the release is made of."""
        return self._table("source")

    def _table(self, stage: str) -> str:
        return f"{self.policy.population}.{self.policy.policy}.{stage}"

    def begin(self, moment: datetime) -> Event:
        """That it began."""
        return self._event("START", moment)

    def complete(self, moment: datetime, *, release: str, version: str, assertions: Sequence[Assertion] = ()) -> Event:
        """That it ended well, with what it made."""
        facets = list_table_facets(self.policy, self.stage, version=version, namespace=self.namespace, source=self.source)
        return self._event("COMPLETE", moment, release=release, made=facets, assertions=assertions)

    def fail(self, moment: datetime, words: str, *, again: bool = False) -> Event:
        """That it did not, in words that have no cell; `again`: it is tried again by itself. Which checks failed stays at the
        site."""
        return self._event("ABORT" if again else "FAIL", moment, error=words)

    def _event(
        self,
        kind: Type,
        moment: datetime,
        *,
        release: str = "",
        error: str | None = None,
        made: Mapping[str, Any] | None = None,
        assertions: Sequence[Assertion] = (),
    ) -> Event:
        said = release or f"{self.policy.policy}/{self.partition}"
        run_facets = list_run_facets(
            self.policy, self.partition, release=said, namespace=self.namespace, parent=self.parent, error=error
        )
        read: Event = {"namespace": self.namespace, "name": self._table(BEFORE[self.stage])}
        if assertions:
            read["inputFacets"] = {"dataQualityAssertions": make_assertions(assertions)}
        written: Event = {"namespace": self.namespace, "name": self._table(self.stage)}
        if made is not None:
            written["facets"] = dict(made)
        return {
            "eventType": kind,
            "eventTime": moment.isoformat(timespec="microseconds"),
            "producer": PRODUCER,
            "schemaURL": EVENT,
            "run": {"runId": self.id, "facets": run_facets},
            "job": {
                "namespace": self.namespace,
                "name": f"{self.policy.policy}.{self.stage}",
                "facets": list_job_facets(self.policy, self.words),
            },
            "inputs": [read],
            "outputs": [written],
        }


def name_run(*parts: str) -> str:
    """A run by what it is of: the same parts are the same run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))
