"""What `run` tells of the release that it took to its candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from release_pipeline.flow.evidence import load_evidence
from release_pipeline.flow.reviewing.page import REPORT
from release_pipeline.flow.same_people import warn_by_name
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.overview import Line, list_releases
from release_pipeline.store.registry import ReleaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument(Line):
    """What `run --json` prints: the release as `status` has it, and where its candidate is."""

    FORMAT: ClassVar[str] = "release-pipeline/run/1"

    served: Annotated[bool, "whether its noise had been drawn before: nothing was charged, and what is stored was served"]
    candidate: Annotated[str, "the frozen folder, in the vault"]
    report: Annotated[str, "the page for the reviewers, in that folder"]
    warnings: Annotated[tuple[str, ...], "what was noticed in the data, a sentence each: columns and counts, never a cell"]
    same_people: Annotated[
        tuple[str, ...], "warnings: other populations with the same people, which the ledger adds up separately, a sentence each"
    ]


def is_drawn(site: Site, release: ReleaseId) -> bool:
    """Whether a run of the release only serves what is stored."""
    return any(line.release == str(release) and line.state in ("drawn", "candidate") for line in list_releases(site)[0])


def tell_run(site: Site, release: ReleaseId, *, served: bool) -> RunDocument:
    """A release after its run."""
    [line] = [line for line in list_releases(site)[0] if line.release == str(release)]
    folder = site.candidate(str(release))
    parts = {field.name: getattr(line, field.name) for field in dataclasses.fields(line)}
    return RunDocument(
        **parts,
        served=served,
        candidate=str(folder),
        report=str(folder / REPORT),
        warnings=load_evidence(folder).warnings,
        same_people=tuple(warn_by_name(site, release.policy)),
    )


def describe_run(run: RunDocument) -> Iterator[str]:
    """It in lines for a person."""
    yield f"{run.release}: {run.state}, {run.rows or 0:,} rows, {run.claim}"
    yield run.candidate
    yield from (f"warning: {words}" for words in run.same_people)
