"""A steward's own suite: standard expectations in a file that Great Expectations wrote or reads, `expectations: FILE.json`. Its
content is a part of the policy and of its hash, so that whoever approves the policy approves the suite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

from pydantic import Field

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.declared import Frozen
from release_pipeline.policy.hierarchies import Read
from release_pipeline.policy.text import Problem

MOST = 200  # expectations of a suite
OF_COLUMNS = ("column", "column_A", "column_B", "column_list")  # arguments that name columns whose entries are looked at
OF_CONDITIONS = ("row_condition", "condition_parser")
OF_IDENTIFIERS = {  # what may be expected of an identifier: nothing that is of the entry of a single person
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
        """The arguments as the library takes them."""
        return cast(dict[str, Any], json.loads(self.kwargs))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose entries it looks at; none where it is about the table."""
        return tuple(_list_columns(self.arguments))


def expand_suite(raw: dict[str, Any], read: Read, problems: list[Problem]) -> dict[str, Any]:
    """The policy with the content of its suite in the place of the file's name; what is wrong goes to `problems`."""
    if "expectations" not in raw:
        return raw
    found: list[dict[str, str]] = []
    name = raw["expectations"]
    try:
        for number, expectation in enumerate(_read_suite(name, read), start=1):
            for what, remedy in _list_faults(expectation, raw):
                problems.append((("expectations",), f"expectation {number} of {name}: {what}", remedy))
            kwargs = json.dumps(expectation["kwargs"], sort_keys=True, ensure_ascii=False)
            found.append({"type": expectation["type"], "kwargs": kwargs})
    except ReleasePipelineError as error:
        problems.append((("expectations",), f"{error.what.rstrip('.')}.", error.remedy))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        what = f"{str(name)[:200]!r} is no suite of Great Expectations."
        remedy = 'Name a JSON file below the folder of the policy, with {"expectations": [{"type": ..., "kwargs": {...}}]}.'
        problems.append((("expectations",), what, remedy))
    return {**raw, "expectations": found}


def _read_suite(name: Any, read: Read) -> list[dict[str, Any]]:
    suite = json.loads(read(name))["expectations"]
    if not isinstance(suite, list) or not 0 < len(cast(list[Any], suite)) <= MOST:
        raise ReleasePipelineError(f"a suite has at least one expectation and at most {MOST}.")
    return cast(list[dict[str, Any]], suite)


def _list_faults(expectation: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a release could not go by: conditions, milder severities, and columns that the policy does not read."""
    kwargs, declared = cast(dict[str, Any], expectation["kwargs"]), cast(dict[str, Any], raw.get("columns") or {})
    if any(kwargs.get(name) for name in OF_CONDITIONS):
        yield "conditions on rows are not taken.", "Write a rule under 'expect', with when or only_when."
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
