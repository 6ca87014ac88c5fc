"""Judges whether a GraphQL request may reach Dagster: by the fields that its document asks for, and never by its text.

Dagster's webserver runs mutations sent by GET and looks at neither Origin nor Host. It therefore has no port: its application
runs inside the process of the door, which judges each request by this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any

from dagster_graphql.schema import create_schema
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    parse,
    visit,
)
from graphql.execution.values import get_argument_values, get_variable_values

from release_pipeline.apps.door import Refused


class Role(Enum):
    """The rights of a person at the door."""

    VIEW = "view"
    OPERATE = "operate"


# Mutations are an allow-list: what a later version of Dagster adds is refused until somebody decides.
# `tests/unit/dagster_app/test_judge.py` checks that every mutation of Dagster is named, on one side or the other.


LONGEST = 1 << 20  # bytes of a request
_TOKENS = 20_000
_CONFIG, _TAGS, _PRESET = "runConfigData", ("tags", "extraTags"), "preset"
# The config of runs from the command line that are executed again, as Dagster's UI writes it. Texts are compared, not parsed:
# another parser of YAML could find something else in them.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_NO_CONFIG = ("", "{}", "loggers:\n  console:\n    config:\n      log_level: CRITICAL")


def _names(*lines: str) -> frozenset[str]:
    return frozenset(name for line in lines for name in line.split())


MUTATIONS = _names(  # for `operate`: actions that a stage judges again, or that can be undone in the UI
    "launchPipelineExecution launchRun launchMultipleRuns launchPipelineReexecution launchRunReexecution",
    "launchPartitionBackfill resumePartitionBackfill reexecutePartitionBackfill cancelPartitionBackfill",
    "terminatePipelineExecution terminateRun terminateRuns",
    "startSchedule stopRunningSchedule resetSchedule scheduleDryRun startSensor stopSensor resetSensor sensorDryRun",
    "addDynamicPartition reloadRepositoryLocation reloadWorkspace __typename",
)
HIDDEN = {("Instance", "info")}  # dagster.yaml with any password that somebody wrote into it
EVALUATED = ("DryRunInstigationTick", "evaluationResult")  # a field of queries that runs the tick, and a tick opens releases
TAGS = _names(  # the permitted tags of runs: other launchers take a container's settings, and `watch` a process, from tags
    "dagster/partition dagster/partition_set dagster/asset_partition_range_start dagster/asset_partition_range_end",
    "dagster/backfill dagster/from_ui dagster/step_selection dagster/solid_selection dagster/is_resume_retry",
    "dagster/parent_run_id dagster/root_run_id dagster/run_metrics .dagster/repository",
)


def judge_post(body: bytes, role: Role) -> bytes:
    """Return the body that Dagster gets for a POST: one query, or one mutation of `operate`. Raises for anything else."""
    return json.dumps(_judge(_read(body), role, kinds=("query", "mutation"))).encode()


def judge_message(text: str, role: Role) -> str:
    """Return the message that Dagster gets for a message of a websocket: a subscription, or one that keeps the connection."""
    message = _read(text)
    kind, name = message.get("type"), message.get("id")
    if name is not None and not isinstance(name, str | int):
        raise Refused(400, "this message has no name that the door can read.")
    if kind == "start":
        asked = _judge(message.get("payload"), role, kinds=("subscription",))
        return json.dumps({"type": kind, "id": name, "payload": asked})
    if kind in ("connection_init", "connection_terminate", "stop"):
        return json.dumps({"type": kind, "id": name})
    raise Refused(400, "the door carries subscriptions alone here.")


def name_of(text: str) -> str | int | None:
    """Return the name that a message of a websocket gives its subscription, if any."""
    try:
        name = _read(text).get("id")
    except Refused:
        return None
    return name if isinstance(name, str | int) else None


def _read(text: bytes | str) -> dict[str, Any]:
    """Return the JSON object in a text. An array of several requests is refused: Dagster does not take it."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(400, "this is no JSON.") from None
    if not isinstance(request, dict):
        raise Refused(400, "one request at a time: this is no JSON object.")
    return request


def _judge(payload: Any, role: Role, *, kinds: Iterable[str]) -> dict[str, Any]:
    """Return the parts of the request that were judged, and no others: Dagster parses what the door has parsed."""
    if not isinstance(payload, dict):
        raise Refused(400, "this is no GraphQL request.")
    query, variables, name = (payload.get(part) for part in ("query", "variables", "operationName"))
    if not isinstance(query, str) or not isinstance(variables, dict | None) or not isinstance(name, str | None):
        raise Refused(400, "a GraphQL request has a text as its query, and an object as its variables.")
    try:
        document = parse(query, no_location=True, max_tokens=_TOKENS)
        operation = _only_operation(document.definitions)
        kind = operation.operation.value
        if kind not in kinds:
            raise Refused(403, f"a {kind} is not taken here.")
        if kind == "mutation" and role is not Role.OPERATE:
            raise Refused(403, "you may look, and change nothing: your role is 'view'.")
        schema = _schema()
        coerced = get_variable_values(schema, list(operation.variable_definitions or ()), variables or {}, max_errors=1)
        if isinstance(coerced, list):  # its words would repeat the values
            raise Refused(400, "the variables of this request do not have the types that Dagster asks for.")
        info = TypeInfo(schema)
        visit(document, TypeInfoVisitor(info, _Fields(info, kind, coerced)))
    except (GraphQLError, RecursionError):
        raise Refused(400, "this is no GraphQL that Dagster understands.") from None
    return {"query": query, "variables": variables, "operationName": name}


def _only_operation(definitions: Iterable[Any]) -> OperationDefinitionNode:
    """Return the only operation of a document. Several are refused: another part of the request would choose which one runs."""
    operations = [node for node in definitions if isinstance(node, OperationDefinitionNode)]
    if len(operations) != 1 or not all(
        isinstance(node, OperationDefinitionNode | FragmentDefinitionNode) for node in definitions
    ):
        raise Refused(400, "one operation at a time, with its fragments and nothing else.")
    return operations[0]


@cache
def _schema() -> GraphQLSchema:
    return create_schema().graphql_schema


class _Fields(Visitor):
    """Judges every field of a document, including those of unused fragments."""

    def __init__(self, info: TypeInfo, kind: str, variables: Mapping[str, Any]) -> None:
        super().__init__()
        self._info, self._kind, self._variables = info, kind, variables
        schema = _schema()
        roots = {"query": schema.query_type, "mutation": schema.mutation_type, "subscription": schema.subscription_type}
        self._roots = {known.name: root for root, known in roots.items() if known is not None}

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        parent, field = self._info.get_parent_type(), self._info.get_field_def()
        if parent is None or field is None:
            raise Refused(400, "this asks for something that Dagster does not have.")
        self._check_root(parent.name, node.name.value)
        path = (parent.name, node.name.value)
        if path in HIDDEN or (path == EVALUATED and self._kind != "mutation"):
            raise Refused(403, "this is not shown, or would be done and not only looked at.")
        _check_arguments(get_argument_values(field, node, dict(self._variables)), tagged=self._kind == "mutation")

    def _check_root(self, parent: str, name: str) -> None:
        root = self._roots.get(parent)
        if root is None:
            return
        if root != self._kind or (root == "mutation" and name not in MUTATIONS):
            raise Refused(403, f"this {root} is not among those that the door lets through.")


def _check_arguments(value: Any, *, tagged: bool) -> None:
    """Refuse run config, presets, and tags that a launcher of runs acts on, at any depth of the arguments."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name == _CONFIG:
                _check_config(part)
            elif name == _PRESET and part:
                raise Refused(403, "runs take no run config here, and so no preset.")
            elif name in _TAGS and tagged:
                _check_tags(part)
            else:
                _check_arguments(part, tagged=tagged)
    elif isinstance(value, list):
        for part in value:
            _check_arguments(part, tagged=tagged)


def _check_config(config: Any) -> None:
    known = config.strip() in _NO_CONFIG if isinstance(config, str) else not config or config == _QUIET
    if not known:
        raise Refused(403, "run config is refused: what a run does stands in the policies. Launch it without any.")


def _check_tags(tags: Any) -> None:
    for tag in tags or ():
        if tag["key"] not in TAGS:
            raise Refused(403, "a run can have no such tag here. Launch it without tags of your own.")
