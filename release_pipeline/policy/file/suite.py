"""A steward's own suite: standard expectations in a file that Great Expectations wrote or reads, `expectations: FILE.json`. Its
content is a part of the policy and of its hash, so anyone who approves the policy approves the suite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias, cast

from pydantic import Field

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.hierarchies import Read
from release_pipeline.policy.values.scalars import Frozen
from release_pipeline.policy.values.text import Problem

MOST = 200  # in a suite
OF_COLUMNS = ("column", "column_A", "column_B", "column_list")  # arguments that name columns whose entries are read
OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "IN", "NOT_IN")
EXAMPLE = 'Like {"type": "comparison", "column": {"name": "tenure"}, "operator": "==", "parameter": "owner"}.'
Compared: TypeAlias = tuple[str, tuple[str | int | float, ...]]  # a column of a condition, and the entries it is compared with
OF_IDENTIFIERS = {  # expectations allowed on an identifier: none that depends on the entry of a single person
    "expect_column_to_exist",
    "expect_column_values_to_be_unique",
    "expect_column_values_to_not_be_null",
    "expect_compound_columns_to_be_unique",
}


class OwnExpectation(Frozen):
    """One expectation of the suite: its type, and its arguments as JSON."""

    type: Annotated[str, Field(pattern=r"^expect_[a-z_]{1,100}$")]
    kwargs: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments as the library takes them."""
        return cast(dict[str, Any], json.loads(self.kwargs))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns whose entries it reads, including those of its condition; empty if it is about the table."""
        conditions = [name for name, _ in self.compared]
        return tuple(dict.fromkeys([*_list_columns(self.arguments), *conditions]))

    @property
    def compared(self) -> tuple[Compared, ...]:
        """Return the columns of its condition, and the entries that each is compared with."""
        return tuple(_read_condition(self.arguments.get("row_condition")))

    @property
    def calculated(self) -> tuple[str, ...]:
        """Return the columns that it calculates with or compares with numbers: entries that look like numbers are numbers
        there."""
        between = self.type.endswith("_to_be_between") and "length" not in self.type
        numeric = between or self.type in ("expect_column_pair_values_a_to_be_greater_than_b", "expect_multicolumn_sum_to_equal")
        compared = [name for name, entries in self.compared if any(not isinstance(entry, str) for entry in entries)]
        return (*(_list_columns(self.arguments) if numeric else ()), *compared)

    @property
    def reads(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns that it reads, and those that it reads as numbers: equal for expectations that can share a table."""
        return self.columns, self.calculated


def expand_suite(raw: dict[str, Any], read: Read, problems: list[Problem]) -> dict[str, Any]:
    """Return the policy with the content of its suite in place of the file's name; faults are added to `problems`."""
    if "expectations" not in raw:
        return raw
    expectations: list[dict[str, str]] = []
    name = raw["expectations"]
    try:
        for number, expectation in enumerate(_read_suite(name, read), start=1):
            for what, remedy in _list_faults(expectation, raw):
                problems.append((("expectations",), f"expectation {number} of {name}: {what}", remedy))
            kwargs = json.dumps(expectation["kwargs"], sort_keys=True, ensure_ascii=False)
            expectations.append({"type": expectation["type"], "kwargs": kwargs})
    except ReleasePipelineError as error:
        problems.append((("expectations",), f"{error.what.rstrip('.')}.", error.remedy))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        what = f"{str(name)[:200]!r} is no suite of Great Expectations."
        remedy = 'Name a JSON file below the folder of the policy, with {"expectations": [{"type": ..., "kwargs": {...}}]}.'
        problems.append((("expectations",), what, remedy))
    return {**raw, "expectations": expectations}


def _read_suite(name: Any, read: Read) -> list[dict[str, Any]]:
    suite = json.loads(read(name))["expectations"]
    if not isinstance(suite, list) or not 0 < len(cast(list[Any], suite)) <= MOST:
        raise ReleasePipelineError(f"a suite has at least one expectation and at most {MOST}.")
    return cast(list[dict[str, Any]], suite)


def _list_faults(expectation: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield faults that a release could not rely on: unsafe conditions, milder severities, and columns that the policy does not
    read."""
    kwargs, declared = cast(dict[str, Any], expectation["kwargs"]), cast(dict[str, Any], raw.get("columns") or {})
    yield from _list_faults_of_condition(kwargs, declared)
    if expectation.get("severity", "critical") != "critical":
        yield "each expectation stops a release.", "Leave 'severity' out, or say critical."
    for column in _list_columns(kwargs):
        if column not in declared:
            yield f"column '{column}' is not declared under columns.", "Add it there; with do: drop if it is not to be released."
        elif declared[column].get("role") == "identifier" and expectation["type"] not in OF_IDENTIFIERS:
            what = f"'{column}' is an identifier, and what its entries are like would tell of single people."
            yield what, "Expect only that they are there, or unique."


def _list_columns(kwargs: Mapping[str, Any]) -> Iterator[str]:
    for name in OF_COLUMNS:
        value = kwargs.get(name)
        yield from cast(list[str], value) if isinstance(value, list) else [] if value is None else [str(value)]


def _list_faults_of_condition(kwargs: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield faults of the condition on rows; its columns and entries must be declared, so that some record can meet it."""
    try:
        if kwargs.get("condition_parser"):
            raise ValueError
        compared = list(_read_condition(kwargs.get("row_condition")))
    except ValueError:
        yield "a condition on rows is an object as Great Expectations writes it, without a parser; a text could run.", EXAMPLE
        return
    for column, entries in compared:
        if column not in declared:
            yield f"column '{column}' is not declared under columns.", "Add it there; with do: drop if it is not to be released."
            continue
        if entries and declared[column].get("role") == "identifier":
            what = f"'{column}' is an identifier, and a condition on its entries would tell of single people."
            yield what, "Name a column with another role."
        listed, codes = declared[column].get("values"), declared[column].get("codes")
        known = {str(value) for part in (listed, codes) if isinstance(part, list | dict) for value in cast(Any, part)}
        for entry in entries if isinstance(listed, list) else ():
            if entry not in known:
                yield f"column '{column}' declares no entry {json.dumps(entry)}.", "Write one that it may have, as a text."


def _read_condition(condition: Any) -> Iterator[Compared]:
    """Yield the columns of a condition in the form in which Great Expectations writes its `Column(...)` objects. Raises
    ValueError for any other form: pandas runs a text as a program."""
    match condition:
        case None:
            return
        case {"type": "and" | "or", "conditions": [_, *_] as conditions, **more} if not more:
            for part in conditions:
                if part is None:
                    raise ValueError
                yield from _read_condition(part)
        case {"type": "nullity", "column": {"name": str(name), **other}, "is_null": bool(), **more} if not (more or other):
            yield _safe(name), ()
        case {
            "type": "comparison",
            "column": {"name": str(name), **other},
            "operator": operator,
            "parameter": entries,
            **more,
        } if (
            not (more or other)
            and operator in OPERATORS
            and entries != []
            and isinstance(entries, list) == operator.endswith("IN")
        ):
            yield _safe(name), tuple(map(_check_entry, cast(list[Any], entries) if isinstance(entries, list) else [entries]))
        case _:
            raise ValueError


def _check_entry(entry: Any) -> str | int | float:
    if isinstance(entry, bool) or not isinstance(entry, str | int | float):
        raise ValueError
    return _safe(entry) if isinstance(entry, str) else entry


def _safe(text: str) -> str:
    """Return the text, if nothing in it could end a quotation of pandas; raises otherwise."""
    if not text.isprintable() or set(text) & set('`"\\'):
        raise ValueError
    return text
