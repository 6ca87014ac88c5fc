"""The suite of standard expectations that a policy compiles into: readable for anyone who knows Great Expectations, and made
only from the policy, so that no cell can be in it.

Each expectation names the check whose count it judges. Where the library has no expectation there is a plain check: how a text is
read as a number, shares of all records, codes next to numbers, several records a person.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.sections import Person
from release_pipeline.policy.file.suite import OwnExpectation
from release_pipeline.policy.values.periods import ListReading, NumberReading, RuleReading
from release_pipeline.rows.checks import FAMILIES, OWN_SUITE, Check, count_least_records, families_of, say_records

NUMBER, MOMENT = "float64", "datetime64[us]"  # the names of these types in pandas


@dataclass(frozen=True, slots=True)
class Expected:
    """One standard expectation, and the check that it judges: its family, column and fact."""

    type: str
    kwargs: Mapping[str, Any]
    family: str
    column: str
    fact: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the key of its check."""
        return self.family, self.column, self.fact

    def to_json(self) -> dict[str, Any]:
        """Return it as the library reads and writes it."""
        meta = {"family": self.family, "column": self.column, "fact": self.fact}
        return {"type": self.type, "kwargs": dict(self.kwargs), "meta": meta}


def suite_to_json(policy: Policy) -> dict[str, Any]:
    """Return the suite as a file that Great Expectations loads: `gx.ExpectationSuite(**json)`."""
    return {"name": policy.policy, "expectations": [expected.to_json() for expected in compile_suite(policy)]}


def compile_suite(policy: Policy) -> Iterator[Expected]:
    """Yield the policy's requirements for the records of a release, as far as the library has an expectation for it."""
    declared = sorted(policy.declared)
    matched = {"column_set": declared, "exact_match": True}
    yield Expected("expect_table_columns_to_match_set", matched, "schema", "", "columns")
    for name in declared:
        yield _expect("column_to_exist", name, "schema", "absent")
    least = {"min_value": count_least_records(policy)}
    yield Expected("expect_table_row_count_to_be_between", least, "size", "", "records_too_few")
    for name, column in policy.columns.items():
        match column.reading:
            case NumberReading() as numbers:
                yield from _expect_numbers(name, numbers)
            case ListReading() as entries:
                yield from _expect_present(name, must_have=entries.filled is None)
                yield _expect("column_values_to_be_in_set", name, "categories", "undeclared", value_set=list(entries.values))
            case RuleReading() as entries:
                yield from _expect_present(name, must_have=entries.filled is None)
            case None:
                pass
    if isinstance(policy.person, Person):
        yield _expect("column_values_to_not_be_null", policy.person.column, "person_unit", "without_person")
        if policy.person.records_per_release == 1:
            yield _expect("column_values_to_be_unique", policy.person.column, "person_unit", "too_often")


def _expect(what: str, column: str, family: str, fact: str, **kwargs: Any) -> Expected:
    return Expected(f"expect_{what}", {"column": column, **kwargs}, family, column, fact)


def _expect_present(name: str, *, must_have: bool) -> Iterator[Expected]:
    if must_have:
        yield _expect("column_values_to_not_be_null", name, "missing", "missing")


def _expect_numbers(name: str, how: NumberReading) -> Iterator[Expected]:
    """Yield the expectations for numbers or dates. Codes may be anywhere, so that a column with codes has neither type nor
    range."""
    yield from _expect_present(name, must_have=how.must_have)
    if how.codes:
        return
    yield _expect("column_values_to_be_of_type", name, "types", "not_a_number", type_=MOMENT if how.clock else NUMBER)
    if how.outside == "fail":
        low, high = (float(bound) if how.clock is None else how.clock.show(float(bound)) for bound in (how.low, how.high))
        yield _expect("column_values_to_be_between", name, "domains", "outside", min_value=low, max_value=high)


# Judges the checks of a release, family by family: Great Expectations decides where it has a
# standard expectation, a plain comparison of the count decides where it has none, and no check is
# judged by both.
#
# DuckDB counts. The library gets these counts as the metrics that its expectations ask for, and an
# empty table with the columns and types of the source: no cell reaches it. Everything fails closed:
# a family without a check, an expectation that raised, and one that nothing was counted for.


ONLY_WHETHER = {"result_format": "BOOLEAN_ONLY"}
COUNTED = {"result_format": "BASIC", "partial_unexpected_count": 0}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a family: whether it passed, its checks, and a sentence for each that failed."""

    family: str
    passed: bool
    checks: tuple[Check, ...]
    messages: tuple[str, ...]


@cache
def load_great_expectations() -> Any:
    """Return the library, with its reports to its makers off and its log, which quotes cells, silent. The first import takes
    seconds and 200 MB, so that only a judge makes it. Its imports warn about other libraries, and no reader of our logs can act
    on that."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL + 1)
    spark_home = os.environ.setdefault("SPARK_HOME", os.devnull)  # its import of a Spark client ends the program without one
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module("great_expectations.execution_engine")
            return import_module("great_expectations")
    finally:
        if spark_home == os.devnull:
            del os.environ["SPARK_HOME"]


def judge_suite(checks: Sequence[Check], policy: Policy, *, records: int, columns: Sequence[str]) -> list[Check]:
    """Return the checks, with the judgement of the policy's suite for those that it has an expectation for. `columns`: the header
    of the source."""
    suite = list(compile_suite(policy))
    counts = {(check.family, check.column, check.fact): check.count for check in checks}
    types = dict.fromkeys([*columns, *policy.derive], "object")  # derived columns are judged as the source's are
    types |= {name: dtype for name, dtype in _list_types(suite, counts) if name in types}
    passed = _judge(suite, counts, records, columns, types)
    judged = [_take(check, passed) for check in checks]
    if not any(check.failed for check in judged):  # else the reason may be that the column could not be counted
        judged += [
            Check(expected.family, expected.column, expected.fact, 1, f"{expected.type} of {expected.fact} was not judged.")
            for expected in suite
            if expected.key not in counts
        ]
    return judged


def _list_types(suite: Sequence[Expected], counts: Mapping[tuple[str, str, str], int]) -> Iterator[tuple[str, str]]:
    """Yield the columns that can be read as numbers or moments, because every entry can."""
    for expected in suite:
        if "type_" in expected.kwargs and counts.get(expected.key) == 0:
            yield expected.column, str(expected.kwargs["type_"])


def _take(check: Check, passed: Mapping[tuple[str, str, str], bool]) -> Check:
    """Return the check with the judgement of its expectation; the columns of the source have one for all of them."""
    word = passed.get((check.family, check.column, check.fact), passed.get((check.family, "", check.fact)))
    if word is None:
        return check
    if not word and not check.count and check.message:
        return replace(check, passed=False, message=f"{check.fact} of {check.column or 'the table'} could not be judged.")
    return replace(check, passed=word)


def _judge(
    suite: Sequence[Expected],
    counts: Mapping[tuple[str, str, str], int],
    records: int,
    columns: Sequence[str],
    types: Mapping[str, str],
) -> dict[tuple[str, str, str], bool]:
    """Return whether each expectation with a count holds, by its check."""
    gx = load_great_expectations()
    import pandas as pd
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine

    empty = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})
    header: dict[str, Any] = {
        "table.columns": list(columns),
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
            passed[expected.key] = bool(result.success) and not _has_raised(result)
        except Exception:
            passed[expected.key] = False
    return passed


def _has_raised(result: Any) -> bool:
    """Return whether an expectation raised, as its result has it: by itself, or for each metric."""
    return "'raised_exception': True" in repr(result.exception_info)


def _measure(metric: str, expected: Expected, count: int, records: int) -> int:
    """Return a metric of an expectation. Missing entries count as present, unless they are the metric: the library lets a column
    pass that has nothing else."""
    if metric == "table.row_count" or metric.endswith("filtered_row_count"):
        return records
    if metric == "column_values.nonnull.unexpected_count" and expected.type != "expect_column_values_to_not_be_null":
        return 0
    return count


def judge_own_suite(
    suite: Sequence[OwnExpectation],
    read: Callable[..., Any],
    *,
    records: int,
    columns: Sequence[str],
    derived: Collection[str] = (),
) -> list[Check]:
    """Return a check for each expectation of a steward's own suite. `read` returns a column as it was delivered, by its name and
    `is_calculated_with`: the library sees the columns of one expectation at a time. We keep only whether the expectation holds,
    and how many records break it."""
    gx = load_great_expectations()
    import pandas as pd
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults, ProgressBarsConfig

    memory = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    config = DataContextConfig(store_backend_defaults=memory, analytics_enabled=False)
    context = gx.get_context(project_config=config, mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("records").add_dataframe_asset("records")
    definition = asset.add_batch_definition_whole_dataframe("all")
    checks: list[Check] = []
    frame, held = pd.DataFrame(), None
    for number, expectation in sorted(enumerate(suite, start=1), key=lambda numbered: numbered[1].reads):
        names = expectation.columns
        absent = [name for name in names if name not in columns and name not in derived]
        if expectation.reads != held and not absent:
            numbers = expectation.calculated
            frame = pd.DataFrame({name: read(name, is_calculated_with=name in numbers) for name in names})
            held = expectation.reads
            if not names:
                frame = pd.DataFrame(False, index=range(records), columns=list(columns))
        can_compare = not absent and all(
            pd.api.types.is_numeric_dtype(frame[name]) == isinstance(entry, int | float)
            for name, entries in expectation.compared
            for entry in entries
        )  # otherwise a condition that no record meets would let everything pass
        passed, count = _judge_own(gx, definition, frame, expectation) if can_compare else (False, None)
        subject = ", columns ".join(filter(None, (expectation.type, ", ".join(names))))
        about = f"expectation {number} of the suite ({subject})"
        if absent:
            message = f"{about}: column {absent[0]} is not in the source."
        elif count:
            message = f"{about}: {say_records(count)} break it. Correct the source, or the suite."
        else:
            message = f"{about}: it does not hold, or cannot be judged. Compare its arguments with the column."
        found = count if count is not None else int(not passed)
        checks.append(Check(OWN_SUITE, ", ".join(names), f"{number} {expectation.type}", found, message, passed=passed))
    return sorted(checks, key=lambda check: int(check.fact.partition(" ")[0]))


def _judge_own(gx: Any, definition: Any, frame: Any, expectation: OwnExpectation) -> tuple[bool, int | None]:
    """Return whether an expectation holds, and how many records break it where it counts them. All other parts of the library's
    result, its exceptions and warnings too, may quote a cell and stay here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = {"type": expectation.type, "kwargs": expectation.arguments}
            [expected] = gx.ExpectationSuite(name="own", expectations=[config]).expectations
            batch = definition.get_batch(batch_parameters={"dataframe": frame})
            result = batch.validate(expected, result_format=COUNTED)
        count = result.result.get("unexpected_count")
        return bool(result.success) and not _has_raised(result), count if isinstance(count, int) else None
    except Exception:
        return False, None


def list_verdicts(checks: Sequence[Check], families: Iterable[str] = FAMILIES) -> list[Verdict]:
    """Return the results by family, in their order: passed where it has a check and none failed."""
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
    """Return the results without counts: each failed family with its requirement, and the header's reasons, which are about no
    record."""

    def hide(verdict: Verdict) -> Verdict:
        is_open = verdict.passed or verdict.family == "schema"
        return verdict if is_open else replace(verdict, messages=(describe_failed(verdict.family, policy),))

    return [hide(verdict) for verdict in verdicts]


def describe_failed(family: str, policy: Policy) -> str:
    """Return the message that checks of a family failed, with their requirement."""
    return f"the checks '{family}' failed. They ask: {families_of(policy)[family]}"
