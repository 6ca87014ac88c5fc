"""Telling the lineage of a step, where site.yaml asks for it: kept here, sent by the sensor `tell`. No step waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from release_pipeline.apps.dagster.names import SiteResource
from release_pipeline.apps.dagster.operations import Refused
from release_pipeline.errors import GateFailed, ReleasePipelineError
from release_pipeline.operate.alerts.outbox import keep_event
from release_pipeline.operate.alerts.settings import LineageSettings, read_lineage
from release_pipeline.operate.openlineage import Assertion, Event, StageRun, name_run
from release_pipeline.pipeline.context import StageResult
from release_pipeline.policy import Policy
from release_pipeline.publish.publish import describe_published
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site

REFUSED = "The release was refused. `release-pipeline status` at its site says why."
MADE = "The package in releases/, made of the approved candidate."


class Emitter:
    """The events of one attempt at one stage; of none where nobody asks, or before it began."""

    def __init__(self, context: dg.AssetExecutionContext, site: SiteResource, stage: str, words: str) -> None:
        self._context, self._site, self._stage, self._words = context, site, stage, words
        self._run: StageRun | None = None
        self._ended = False
        self.assertions: Sequence[Assertion] = ()

    def begin(self, policy: Policy) -> None:
        """It begins, under this policy: that of the release, whatever the definitions were made of."""
        with self._in_peace():
            settings = read_lineage(self._site.open())
            if settings is not None:
                run, partition = self._context.run.run_id, self._context.partition_key
                name = name_run(run, self._stage, str(self._context.op_execution_context.retry_number))
                words = {"parent": run, "words": self._words}
                self._run = StageRun(settings.namespace, policy, partition, self._stage, name, **words)
                self._keep(self._run.begin(datetime.now(UTC)))

    def complete(self, result: StageResult, release: ReleaseId) -> None:
        """It ended well, with this."""
        self._ended = True
        with self._in_peace():
            if self._run is not None:
                now = datetime.now(UTC)
                self._keep(self._run.complete(now, release=str(release), version=result.version, assertions=self.assertions))

    def fail(self, error: BaseException) -> None:
        """It did not."""
        with self._in_peace():
            if self._run is not None and not self._ended:
                again = isinstance(error, dg.RetryRequested)
                self._keep(self._run.fail(datetime.now(UTC), describe_error(error), again=again))

    def refuse(self) -> None:
        """It ended, and the release is refused."""
        self.fail(Refused())

    def _keep(self, event: Event) -> None:
        keep_event(self._site.open(), event)

    @contextmanager
    def _in_peace(self) -> Iterator[None]:
        """Whatever goes wrong with lineage is a warning, and nothing of the step."""
        try:
            yield
        except Exception as error:
            words = error.in_full if isinstance(error, ReleasePipelineError) else f"{type(error).__name__}."
            self._context.log.warning(f"The lineage of this step could not be kept: {words}")


@contextmanager
def emitting(context: dg.AssetExecutionContext, site: SiteResource, stage: str, words: str) -> Iterator[Emitter]:
    """In the block the stage is at work; it says itself that it began and that it is complete, and is failed where the block is
    left otherwise."""
    emitter = Emitter(context, site, stage, words)
    try:
        yield emitter
    except GeneratorExit:
        raise
    except BaseException as error:
        emitter.fail(error)
        raise


def describe_error(error: BaseException) -> str:
    """How a step failed, in our words: not why a release was refused, which may reveal something of a record; of an error that is
    not ours only the type, for its text may quote cells."""
    if isinstance(error, Refused | GateFailed):
        return REFUSED
    if isinstance(error, dg.RetryRequested):
        return "Another process was working with the database; it is tried again."
    if isinstance(error, dg.Failure):
        return error.description or "It failed."
    return str(error) if isinstance(error, ReleasePipelineError) else f"{type(error).__name__}."


def emit_published(site: Site, release: ReleaseId) -> None:
    """The same of a package that was published by command: it was made before, so both events are of now. Never raises."""
    with suppress(Exception):
        settings: LineageSettings | None = read_lineage(site)
        if settings is None:
            return
        made, policy = describe_published(site, release)
        run, now = _run_of(settings, policy, release, made), datetime.now(UTC)
        for event in (run.begin(now), run.complete(now, release=str(release), version=made.version)):
            keep_event(site, event)


def _run_of(settings: LineageSettings, policy: Policy, release: ReleaseId, made: Any) -> StageRun:
    name = name_run(str(release), "published", made.version)
    return StageRun(settings.namespace, policy, release.release, "published", name, words=MADE)
