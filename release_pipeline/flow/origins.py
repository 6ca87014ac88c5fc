"""The columns of a release, as everybody may know them: type, what is done to each, where it comes from. Of the policy alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from release_pipeline.flow.release import STAGES
from release_pipeline.policy import Policy
from release_pipeline.policy.derivations import list_leaves
from release_pipeline.policy.kinds import GeneraliseColumn, NoiseColumn, RecomputeColumn

TYPES = {"number": "double", "whole number": "bigint", "text": "varchar", "date": "date", "moment": "timestamp"}
ENDS = ("candidate", "published")  # from here on there are recomputed columns


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


def list_columns(policy: Policy, stage: str) -> tuple[Column, ...]:
    """Those of a stage, in their order."""
    return tuple(_list_columns(policy, stage))


def _list_columns(policy: Policy, stage: str) -> Iterator[Column]:
    for name, column in policy.released_columns.items():
        passed = tuple(each for each in STAGES if each != "microaggregated" or name not in policy.kept_columns)
        yield Column(name, TYPES[column.released_as], describe_column(policy, name), (name,), (name,), passed)
    if stage not in ENDS:
        return
    for name in policy.recomputed_columns:
        kind = TYPES["text" if policy.derive[name].is_text else "number"]
        leaves = tuple(list_leaves(policy.derive, policy.recomputed_columns, name))
        origins = leaves if stage == "candidate" else (name,)
        yield Column(name, kind, describe_column(policy, name), origins, leaves, ("candidate",))


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
    if isinstance(column, RecomputeColumn):
        return f"{column.role}; made of what is published: {'; '.join(policy.derive[name].preview())}"
    if isinstance(column, GeneraliseColumn):
        return f"{column.role}; made coarser: {column.hierarchy.words}"
    if name in policy.swapped_columns:
        return f"{column.role}; as it is, swapped within blocks of {policy.block_size} or more alike records"
    return f"{column.role}; released as it is"
