"""Judges the checks of a release, family by family, with Great Expectations on a small table of counts. It never sees a cell.

DuckDB computes counts; a pandas table with one row per check goes to Great Expectations. Everything fails closed: a family
without a check, an expectation that raised and a result that is missing all count as failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol, cast

from release_pipeline.policy import Policy
from release_pipeline.stages.checks import FAMILIES, Check, families_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of one family: passed or not, how many checks there were, and a sentence for each that found something."""

    family: str
    passed: bool
    checks: tuple[Check, ...]
    messages: tuple[str, ...]


class Judge(Protocol):
    """What gives the verdict on each of these families of checks."""

    def __call__(self, checks: Sequence[Check], families: Iterable[str] = FAMILIES) -> list[Verdict]:
        """In the order of the families."""
        ...


def judge_counts(checks: Sequence[Check], families: Iterable[str] = FAMILIES) -> list[Verdict]:
    """The verdicts by plain comparison: no count above what is allowed, which is mostly 0, and every family must have a check."""
    return [_verdict(family, checks, not any(check.failed for check in checks if check.family == family)) for family in families]


def judge_expectations(checks: Sequence[Check], families: Iterable[str] = FAMILIES) -> list[Verdict]:
    """The verdicts of a suite of expectations on the table of counts; never more lenient than `judge_counts`."""
    successes = _validate(checks)
    return [
        _verdict(plain.family, checks, plain.passed and successes.get(plain.family) is True)
        for plain in judge_counts(checks, families)
    ]


def withhold(verdicts: Sequence[Verdict], policy: Policy) -> list[Verdict]:
    """The verdicts without a count: each failed family with what it asks, and the header's reasons, which are of no record."""

    def hide(verdict: Verdict) -> Verdict:
        is_open = verdict.passed or verdict.family == "schema"
        return verdict if is_open else replace(verdict, messages=(describe_failed(verdict.family, policy),))

    return [hide(verdict) for verdict in verdicts]


def describe_failed(family: str, policy: Policy) -> str:
    """That checks of a family failed, and what they ask."""
    return f"the checks '{family}' failed. They ask: {families_of(policy)[family]}"


def _verdict(family: str, checks: Sequence[Check], passed: bool) -> Verdict:
    mine = tuple(check for check in checks if check.family == family)
    messages = [check.message for check in mine if check.failed]
    if not mine:
        messages.append(f"nothing of the family {family} was checked.")
    elif not passed and not messages:
        messages.append(f"the family {family} could not be judged.")
    return Verdict(family, passed and bool(mine), mine, tuple(messages))


def load_great_expectations() -> Any:
    """It takes 3 s and 200 MB, so that it is loaded only where it is used; and without the Spark client, of which it would load
    all that is installed, with what is for tests alone."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # it would report its use to its makers
    if "great_expectations" in sys.modules:
        return import_module("great_expectations")
    with _hidden("pyspark"):
        return import_module("great_expectations")


@contextmanager
def _hidden(name: str) -> Generator[None]:
    """A package cannot be loaded meanwhile; what is loaded of it is not seen."""
    loaded = {known: module for known, module in sys.modules.items() if known.partition(".")[0] == name}
    for known in loaded:
        del sys.modules[known]
    sys.modules[name] = cast(Any, None)
    try:
        yield
    finally:
        del sys.modules[name]
        sys.modules.update(loaded)


def _validate(checks: Sequence[Check]) -> dict[str, bool]:
    """Family by family, whether its expectation came back and succeeded without raising. Results are matched by `meta`."""
    gx = load_great_expectations()
    import pandas as pd
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults, ProgressBarsConfig
    from great_expectations.expectations.row_conditions import Column

    expectations: Any = gx.expectations
    memory = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    config = DataContextConfig(store_backend_defaults=memory, analytics_enabled=False)
    context: Any = gx.get_context(project_config=config, mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    columns = ["family", "column", "fact", "count", "at_most"]
    frame = pd.DataFrame([(c.family, c.column, c.fact, c.count, c.at_most) for c in checks], columns=columns)
    batch = (
        context.data_sources.add_pandas("counts")
        .add_dataframe_asset("checks")
        .add_batch_definition_whole_dataframe("all")
        .get_batch(batch_parameters={"dataframe": frame})
    )
    suite: Any = gx.ExpectationSuite(name="release")
    suite.add_expectation(expectations.ExpectTableRowCountToEqual(value=len(checks), meta={"family": "all"}))
    suite.add_expectation(expectations.ExpectColumnValuesToNotBeNull(column="count", meta={"family": "all"}))
    suite.add_expectation(expectations.ExpectColumnValuesToBeBetween(column="count", min_value=0, meta={"family": "all"}))
    for family in dict.fromkeys(check.family for check in checks):
        suite.add_expectation(
            expectations.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="at_most",
                column_B="count",
                or_equal=True,
                ignore_row_if="neither",
                row_condition=Column("family") == family,
                meta={"family": family},
            )
        )
    found: dict[str, bool] = {}
    for result in batch.validate(suite, result_format="BOOLEAN_ONLY").results:
        family = result.expectation_config.meta["family"]
        raised = any("raised_exception" in str(key) and value for key, value in dict(result.exception_info or {}).items())
        found[family] = found.get(family, True) and bool(result.success) and not raised
    whole = found.pop("all", False)
    return {family: passed and whole for family, passed in found.items()}
