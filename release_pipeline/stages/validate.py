"""Judges the checks of a release, family by family: Great Expectations decides where it has a standard expectation, a plain
comparison of the count decides where it has none, and no check is judged by both.

DuckDB counts. The library gets these counts as the metrics that its expectations ask for, and an empty table with the columns
and types of the source: no cell reaches it. Everything fails closed: a family without a check, an expectation that raised, and
one that nothing was counted for.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from release_pipeline.policy import Policy
from release_pipeline.stages.checks import FAMILIES, Check, families_of
from release_pipeline.stages.suite import Expected, compile_suite

ONLY_WHETHER = {"result_format": "BOOLEAN_ONLY"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a family passed, its checks, and a sentence for each that found something."""

    family: str
    passed: bool
    checks: tuple[Check, ...]
    messages: tuple[str, ...]


@cache
def load_great_expectations() -> Any:
    """The library, with its reports to its makers off. The first import takes seconds and 200 MB, so that only a judge makes it.
    What it imports warns of other libraries, which is nothing that a reader of our logs can act on."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("great_expectations.execution_engine")
        return import_module("great_expectations")


def judge_suite(checks: Sequence[Check], policy: Policy, *, records: int, columns: Sequence[str]) -> list[Check]:
    """The checks, those that an expectation of the policy's suite judges with its word. `columns`: the header of the source."""
    suite = compile_suite(policy)
    counts = {(check.family, check.column, check.fact): check.count for check in checks}
    types = dict.fromkeys(columns, "object")
    types |= {name: dtype for name, dtype in _list_types(suite, counts) if name in types}
    passed = _judge(suite, counts, records, types)
    judged = [_take(check, passed) for check in checks]
    if not any(check.failed for check in judged):  # else the reason may be that the column could not be counted
        judged += [
            Check(expected.family, expected.column, expected.fact, 1, f"{expected.type} of {expected.fact} was not judged.")
            for expected in suite
            if expected.key not in counts
        ]
    return judged


def _list_types(suite: Sequence[Expected], counts: Mapping[tuple[str, str, str], int]) -> Iterator[tuple[str, str]]:
    """The columns that can be read as numbers or moments, as their every entry can."""
    for expected in suite:
        if "type_" in expected.kwargs and counts.get(expected.key) == 0:
            yield expected.column, str(expected.kwargs["type_"])


def _take(check: Check, passed: Mapping[tuple[str, str, str], bool]) -> Check:
    """The check with the word of its expectation; the columns of the source have one for all of them."""
    word = passed.get((check.family, check.column, check.fact), passed.get((check.family, "", check.fact)))
    if word is None:
        return check
    if not word and not check.count and check.message:
        return replace(check, passed=False, message=f"{check.fact} of {check.column or 'the table'} could not be judged.")
    return replace(check, passed=word)


def _judge(
    suite: Sequence[Expected], counts: Mapping[tuple[str, str, str], int], records: int, types: Mapping[str, str]
) -> dict[tuple[str, str, str], bool]:
    """Whether each expectation that something was counted for holds, by its check."""
    gx = load_great_expectations()
    import pandas as pd
    from great_expectations.execution_engine import PandasExecutionEngine

    empty = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})
    header = {
        "table.columns": list(types),
        "table.column_types": [{"name": name, "type": dtype} for name, dtype in empty.dtypes.items()],
    }
    engine = PandasExecutionEngine(batch_data_dict={"empty": empty})
    passed: dict[tuple[str, str, str], bool] = {}
    for expected in suite:
        if expected.key not in counts:
            continue
        try:
            [expectation] = gx.ExpectationSuite(name="one", expectations=[expected.to_json()]).expectations
            asked = expectation.get_validation_dependencies(engine, ONLY_WHETHER).get_metric_configurations()
            metrics = {
                metric.id: header.get(metric.metric_name, _measure(metric.metric_name, expected, counts[expected.key], records))
                for metric in asked
            }
            result = expectation.metrics_validate(metrics, execution_engine=engine, runtime_configuration=ONLY_WHETHER)
            raised = bool((result.exception_info or {}).get("raised_exception"))
            passed[expected.key] = bool(result.success) and not raised
        except Exception:
            passed[expected.key] = False
    return passed


def _measure(metric: str, expected: Expected, count: int, records: int) -> int:
    """A metric of an expectation. What is missing counts as there, unless that is what is asked: the library lets a column of
    nothing else pass."""
    if metric == "table.row_count" or metric.endswith("filtered_row_count"):
        return records
    if metric == "column_values.nonnull.unexpected_count" and expected.type != "expect_column_values_to_not_be_null":
        return 0
    return count


def list_verdicts(checks: Sequence[Check], families: Iterable[str] = FAMILIES) -> list[Verdict]:
    """Family by family, in their order: passed where it has a check and none failed."""
    return [_list_verdict(family, [check for check in checks if check.family == family]) for family in families]


def _list_verdict(family: str, checks: Sequence[Check]) -> Verdict:
    messages = [check.message for check in checks if check.failed and check.message]
    passed = bool(checks) and not any(check.failed for check in checks)
    if not checks:
        messages = [f"nothing of the family {family} was checked."]
    elif not passed and not messages:
        messages = [f"the family {family} could not be judged."]
    return Verdict(family, passed, tuple(checks), tuple(messages))


def withhold(verdicts: Sequence[Verdict], policy: Policy) -> list[Verdict]:
    """The verdicts without a count: each failed family with what it asks, and the header's reasons, which are of no record."""

    def hide(verdict: Verdict) -> Verdict:
        is_open = verdict.passed or verdict.family == "schema"
        return verdict if is_open else replace(verdict, messages=(describe_failed(verdict.family, policy),))

    return [hide(verdict) for verdict in verdicts]


def describe_failed(family: str, policy: Policy) -> str:
    """That checks of a family failed, and what they ask."""
    return f"the checks '{family}' failed. They ask: {families_of(policy)[family]}"
