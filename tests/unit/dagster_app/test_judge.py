"""Which GraphQL the door lets through: by what a document asks for, in whatever way it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster
import pytest
from dagster_graphql.schema import create_schema

from release_pipeline.apps.dagster.judge import MUTATIONS, Role, judge_message, judge_post
from release_pipeline.apps.door import Refused

CANARY = "kanarie"
SELECTOR = '{repositoryLocationName: "a", repositoryName: "b", jobName: "c"}'
LAUNCH = "mutation M($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename } }"


def judge(query: str, variables: Any = None, *, role: Role = Role.OPERATE, **more: Any) -> dict[str, Any]:
    """What Dagster gets."""
    return json.loads(judge_post(json.dumps({"query": query, "variables": variables, **more}).encode(), role))


def params(**more: Any) -> dict[str, Any]:
    """The variables of a launch."""
    return {"p": {"selector": {"repositoryLocationName": "a", "repositoryName": "b", "jobName": "c"}, **more}}


def is_locked() -> bool:
    """Whether this is the version of Dagster that requirements.lock has: in others names may be missing, and none may be new."""
    lock = Path(__file__).resolve().parents[3] / "requirements.lock"
    return f"\ndagster=={dagster.__version__} " in lock.read_text()


NOBODY = {
    "deletePipelineRun",
    "deleteRun",
    "wipeAssets",
    "deleteDynamicPartitions",
    "reportRunlessAssetEvents",
    "reportAssetCheckEvaluations",
    "shutdownRepositoryLocation",
    "setSensorCursor",
    "setAutoMaterializePaused",
    "setConcurrencyLimit",
    "deleteConcurrencyLimit",
    "freeConcurrencySlotsForRun",
    "freeConcurrencySlots",
    "setAppManagedComponent",
    "deleteAppManagedComponent",
    "refreshComponentState",
    "logTelemetry",
    "setNuxSeen",
}


def test_every_mutation_is_decided_on() -> None:
    """A later version of Dagster that adds one fails here until somebody says who may ask for it."""
    schema = create_schema().graphql_schema
    assert schema.mutation_type is not None
    fields = {*schema.mutation_type.fields, "__typename"}
    decided = MUTATIONS | NOBODY
    assert fields == decided if is_locked() else fields <= decided
    assert not NOBODY & MUTATIONS


@pytest.mark.parametrize(
    "config",
    [
        {"resources": {"site": {"config": {"home": CANARY}}}},
        "# kanarie\nops: {}",
        "{}\n---\nops: {}",
        "&a [*a]",
        True,
        {"loggers": {"console": {"config": {"log_level": {"env": CANARY}}}}},
    ],
)
def test_config_is_refused_however_it_is_written(config: Any) -> None:
    """By a variable of any depth, in the document, under an alias, in a fragment that nobody uses, and in a query."""
    written = json.dumps(config) if not isinstance(config, dict) else "{ops: 1}"
    part = "mutation { version: launchRun(executionParams: {selector: %s, runConfigData: %s}) { __typename } }"
    fragment = "fragment F on Mutation { launchRun(executionParams: {selector: %s, runConfigData: %s}) { __typename } }"
    asked = 'query Q($c: RunConfigData) { executionPlanOrError(pipeline: {pipelineName: "a", repositoryName: "b", '
    asked += 'repositoryLocationName: "c"}, mode: "default", runConfigData: $c) { __typename } }'
    for query, variables in (
        (LAUNCH, params(runConfigData=config)),
        (
            f"mutation M($c: RunConfigData) {{ launchRun(executionParams: {{selector: {SELECTOR}, "
            "runConfigData: $c}) { __typename } }",
            {"c": config},
        ),
        (part % (SELECTOR, written), None),
        ("mutation { reloadWorkspace { __typename } } " + fragment % (SELECTOR, written), None),
        (
            "mutation M($p: [ExecutionParams!]!) { launchMultipleRuns(executionParamsList: $p) { __typename } }",
            {"p": [params()["p"], params(runConfigData=config)["p"]]},
        ),
        (asked, {"c": config}),
    ):
        with pytest.raises(Refused, match="run config is refused") as refused:
            judge(query, variables)
        assert CANARY not in refused.value.words


def test_tags_and_presets_that_mean_something_elsewhere_are_refused() -> None:
    """A partition may be named; settings of a container, and the process that a run claims to be, may not."""
    fine = {"tags": [{"key": "dagster/partition", "value": "1"}]}
    assert judge(LAUNCH, params(executionMetadata=fine))
    for key in ("dagster-k8s/config", "release-pipeline/process", "anything"):
        with pytest.raises(Refused, match="tag"):
            judge(LAUNCH, params(executionMetadata={"tags": [{"key": key, "value": "1"}]}))
        again = "mutation M($p: ReexecutionParams) { launchRunReexecution(reexecutionParams: $p) { __typename } }"
        with pytest.raises(Refused, match="tag"):
            judge(again, {"p": {"parentRunId": "x", "strategy": "ALL_STEPS", "extraTags": [{"key": key, "value": "1"}]}})
    with pytest.raises(Refused, match="preset"):
        judge(LAUNCH, params(preset="p"))


def test_view_changes_nothing() -> None:
    """No mutation at all, those that nobody may ask for included."""
    for name in MUTATIONS | NOBODY:
        with pytest.raises(Refused, match=r"your role is 'view'"):
            judge(f"mutation {{ {name} {{ __typename }} }}", role=Role.VIEW)


@pytest.mark.parametrize(
    "query",
    [
        'mutation { deleteRun(runId: "x") { __typename } }',
        'mutation { version: deleteRun(runId: "x") { __typename } }',
        'mutation { reloadWorkspace { __typename } ... { deleteRun(runId: "x") { __typename } } }',
        "mutation { ...F } fragment F on Mutation { setNuxSeen }",
        "{ instance { info } }",
        "{ instance { i: info } }",
        "query { ...F } fragment F on Mutation { reloadWorkspace { __typename } }",
        "query Q($s: ScheduleSelector!) { scheduleOrError(scheduleSelector: $s) { ... on Schedule { futureTicks { results "
        "{ evaluationResult { __typename } } } } } }",
    ],
)
def test_what_nobody_may_ask_for_is_refused_to_all(query: str) -> None:
    """By any way into the document: an alias, a fragment; and a query that runs a tick is no query."""
    variables = {"s": {"repositoryName": "a", "repositoryLocationName": "b", "scheduleName": "c"}} if "$s" in query else None
    with pytest.raises(Refused):
        judge(query, variables)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'[{"query": "{version}"}]',
        b"{}",
        b'{"query": "query A {version} query B {version}"}',
        b'{"query": "{version} type T { a: Int }"}',
        b'{"query": "subscription { locationStateChangeEvents { __typename } }"}',
        b'{"query": "{nothing}"}',
        b"[" * 100_000,
        b'{"query": "' + b"{a" * 30_000 + b'"}',
        b'{"query": "{' + b"version " * 30_000 + b'}"}',
        b"\xff",
    ],
    ids=lambda body: body[:30],
)
def test_what_is_no_single_request_is_refused(body: bytes) -> None:
    """Batches, several operations, what is nested or long beyond any use: in words, and quickly."""
    with pytest.raises(Refused):
        judge_post(body, Role.OPERATE)


def test_words_repeat_no_value() -> None:
    """Dagster's own would: of a variable of the wrong type, and of a text that does not parse."""
    for query, variables in ((LAUNCH, {"p": CANARY}), (f"{{ {CANARY} }}", None), (f"{{ version {CANARY}", None)):
        with pytest.raises(Refused) as refused:
            judge(query, variables)
        assert CANARY not in refused.value.words


def test_websockets_carry_subscriptions_alone() -> None:
    """For both roles; messages of no known kind are not passed on."""
    query = "subscription { locationStateChangeEvents { __typename } }"
    told = json.loads(judge_message(json.dumps({"type": "start", "id": "1", "payload": {"query": query}, "x": 1}), Role.VIEW))
    assert told == {"type": "start", "id": "1", "payload": {"query": query, "variables": None, "operationName": None}}
    assert json.loads(judge_message('{"type": "connection_init", "payload": {"a": 1}}', Role.VIEW)) == {
        "type": "connection_init",
        "id": None,
    }
    for message in (
        {"type": "start", "payload": {"query": "{version}"}},
        {"type": "start", "payload": None},
        {"type": "other"},
        {},
    ):
        with pytest.raises(Refused):
            judge_message(json.dumps(message), Role.OPERATE)
