"""The suite of standard expectations that a policy compiles into: readable by anybody who knows Great Expectations, and made of
the policy only, so that no cell can be in it.

Each expectation names the check whose count it judges. What the library has no expectation for stays a plain check: how a text is
read as a number, shares of all records, codes next to numbers, several records a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from release_pipeline.policy.model import Policy
from release_pipeline.policy.readings import ListReading, NumberReading, RuleReading
from release_pipeline.policy.sections import Person
from release_pipeline.stages.checks import count_least_records

NUMBER, MOMENT = "float64", "datetime64[us]"  # how pandas calls the types


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
        """That of the check."""
        return self.family, self.column, self.fact

    def to_json(self) -> dict[str, Any]:
        """As the library reads and writes it."""
        meta = {"family": self.family, "column": self.column, "fact": self.fact}
        return {"type": self.type, "kwargs": dict(self.kwargs), "meta": meta}


def compile_suite(policy: Policy) -> list[Expected]:
    """What the policy asks of the records of a release, as far as the library has an expectation for it."""
    return list(_compile(policy))


def suite_to_json(policy: Policy) -> dict[str, Any]:
    """The suite as a file that Great Expectations loads: `gx.ExpectationSuite(**json)`."""
    return {"name": policy.policy, "expectations": [expected.to_json() for expected in compile_suite(policy)]}


def _compile(policy: Policy) -> Iterator[Expected]:
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
        if policy.person.records == 1:
            yield _expect("column_values_to_be_unique", policy.person.column, "person_unit", "too_often")


def _expect(what: str, column: str, family: str, fact: str, **kwargs: Any) -> Expected:
    return Expected(f"expect_{what}", {"column": column, **kwargs}, family, column, fact)


def _expect_present(name: str, *, must_have: bool) -> Iterator[Expected]:
    if must_have:
        yield _expect("column_values_to_not_be_null", name, "missing", "missing")


def _expect_numbers(name: str, how: NumberReading) -> Iterator[Expected]:
    """Numbers, or dates. Codes may lie anywhere, so that a column with codes has neither type nor range."""
    yield from _expect_present(name, must_have=how.must_have)
    if how.codes:
        return
    yield _expect("column_values_to_be_of_type", name, "types", "not_a_number", type_=MOMENT if how.clock else NUMBER)
    if how.outside == "fail":
        low, high = (float(bound) if how.clock is None else how.clock.show(float(bound)) for bound in (how.low, how.high))
        yield _expect("column_values_to_be_between", name, "domains", "outside", min_value=low, max_value=high)
