"""OpenLineage run events of a release's stages: a job for each stage of a policy, whose tables are named and never read.

Written after the published specification 2-0-2 and its facets, in the versions that `spec` names; no library of theirs is needed
(their integration asks for a Dagster of long ago). What may stand here is what may stand in Dagster's UI.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from release_pipeline.flow.openlineage.facets import (
    Assertion,
    list_job_facets,
    list_run_facets,
    list_table_facets,
    make_assertions,
)
from release_pipeline.flow.openlineage.spec import EVENT, PRODUCER
from release_pipeline.policy import Policy

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
