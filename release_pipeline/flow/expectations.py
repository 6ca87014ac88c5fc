"""How many records break what the steward expects: each rule counted by the database, so that no cell leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from release_pipeline.policy import Policy
from release_pipeline.policy.expectation_rules import is_read_as_number
from release_pipeline.policy.expectations import Comparison, Condition, Expectation, Total, Unique
from release_pipeline.policy.sections import Person
from release_pipeline.store.raw import RawTable


def count_broken(policy: Policy, table: RawTable) -> dict[str, int]:
    """The number of records that break each rule, by its name; of rules about absent columns, which the header tells, nothing."""
    return {
        name: _count(rule, policy, table)
        for name, rule in policy.expect.items()
        if all(one in table.kinds for one in rule.columns)
    }


def read_delivered(policy: Policy, table: RawTable, name: str) -> Any:
    """A column as Great Expectations takes it: numbers where the policy reads numbers, else texts, as they were delivered. Empty
    slots are no records."""
    empty = table.empty_slots()
    kept = slice(None) if empty is None else np.flatnonzero(~empty)
    if is_read_as_number(policy.columns[name]):
        return table.numbers(name)[kept]
    return table.categories(name).to_pandas().iloc[kept]


def _count(rule: Expectation, policy: Policy, table: RawTable) -> int:
    match rule:
        case Comparison(compare=(earlier, sign, later)):
            return table.count_out_of_order(earlier, later, strictly=sign == "<", read_as=rule.read_as)
        case Total():
            steps = int(rule.within / rule.grid)
            return table.count_other_sums(rule.sum, rule.equals, step=float(rule.grid), tolerance=steps)
        case Unique():
            person = policy.person.column if isinstance(policy.person, Person) else None
            return table.count_repeated(rule.unique, person=person)
        case Condition():
            column, entries = rule.given
            return table.count_unmet(
                rule.subject,
                "missing" if rule.missing else "present" if rule.present else "listed",
                column,
                _as_read(policy, column, entries),
                listed=_as_read(policy, rule.subject, rule.listed or ()),
                only=rule.only_when is not None,
            )


def _as_read(policy: Policy, column: str, entries: Sequence[int | str]) -> list[float] | list[str]:
    """Entries as the column has them: numbers, or texts."""
    if is_read_as_number(policy.columns[column]):
        return [float(entry) for entry in entries]
    return [str(entry) for entry in entries]
