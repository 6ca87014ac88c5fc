"""Codes and blanks of generalised columns: a label of their own, in no interval and no group, until everything is one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.errors import DataRefused
from release_pipeline.masking.grouping import make_classes
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.options import KEpsilonOptions
from tests.integration.sites import policy_text

OLA = "{method: k-epsilon, grouping: ola, k: 4, epsilon: 2}"
COLUMNS = """
  person: {role: identifier, do: drop}
  name:   {role: quasi, do: generalise, hierarchy: {prefixes: [3, 1], of: digits}, codes: {999: refused}, missing: keep}
  town:   {role: quasi, do: generalise, hierarchy: {groups: {coast: [north, south], inland: [east]}}, codes: {"-8": refused},
           missing: keep}
  income: {role: quasi, do: generalise, why: known, codes: {-8: refused, .a: left}, missing: {category: not told},
           hierarchy: {intervals: [10, 50], domain: [0, 99], grid: 1, outside: clamp}}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
PARTS = {
    "protect": OLA,
    "columns": COLUMNS,
    "drop": "[remark, sex]",
    "suppress": "{grouping_at_most: 20%, at_most: 30%}",
    "gates": "{min_rows: 20, clamped_at_most: 10%}",
}
INCOME = {"-8": "refused", "-8.0": "refused", ".a": "left", "": "not told"}


def parse(**changes: str) -> Policy:
    """The policy, each key replaced by its value in the columns."""
    columns = COLUMNS
    for old, new in changes.items():
        assert old in columns
        columns = columns.replace(old, new)
    return parse_policy(policy_text(**{**PARTS, "columns": columns}), name="people.yaml")


_ENTRY = st.sampled_from(["5", "7", "12", "55", "83", "-8", ".a", ""])


@settings(max_examples=25, deadline=None)
@given(entries=st.lists(st.tuples(_ENTRY, st.sampled_from(["north", "south", "east", "-8", ""])), min_size=8, max_size=30))
def test_a_class_has_k_records_and_no_reason_is_in_an_interval(entries: list[tuple[str, str]]) -> None:
    """By brute force over the classes: what a label stands for is what records of it have, whatever the data."""
    policy = parse()
    assert isinstance(policy.protect, KEpsilonOptions)
    typed, _ = _type(policy, entries)
    try:
        found = make_classes(
            policy, policy.protect, lambda _, names: typed.select(list(names or typed.column_names)), lambda _: None
        )
    except DataRefused:
        return
    for number in range(int(found.group.max()) + 1):
        members = np.flatnonzero(found.group == number)
        assert len(members) >= 4
        income, town = found.labels["income"][number], found.labels["town"][number]
        for place in members:
            raw_income, raw_town = entries[place]
            if raw_income in INCOME:
                assert income in (INCOME[raw_income], "*")
            else:
                ends = [int(end) for end in income.split("-")] if income != "*" else [0, 99]
                assert ends[0] <= int(raw_income) <= ends[-1]
            group = {"-8": "refused", "": "blank"}.get(raw_town)
            coarser = {"north": "coast", "south": "coast", "east": "inland"}
            assert town in ({group, "*"} if group else {raw_town, coarser[raw_town], "*"})


def test_replacing_a_record_replaces_its_entry_alone() -> None:
    """What a code becomes is a function of it."""
    policy, entries = parse(), [("7", "north"), ("-8", "-8"), ("", ""), (".a", "east")]
    before, numbers = _type(policy, entries)
    for place in range(len(entries)):
        changed = [*entries]
        changed[place] = ("83", "south")
        after, _ = _type(policy, changed)
        for name in ("income", "town"):
            differ = [a != b for a, b in zip(before[name].to_pylist(), after[name].to_pylist(), strict=True)]
            assert sum(differ) == 1
            assert differ[place]
    assert numbers == [7.0, 100.0, 102.0, 101.0]


def _type(policy: Policy, entries: list[tuple[str, str]]) -> tuple[pa.Table, list[float]]:
    """The records as methods get them, and the numbers of the first column."""
    import duckdb

    from release_pipeline.pipeline.reading import typed_column
    from release_pipeline.store.raw import RawTable, create_macros

    with duckdb.connect() as connection:
        create_macros(connection)
        connection.execute("CREATE TABLE raw (income VARCHAR, town VARCHAR, name VARCHAR, rent VARCHAR)")
        connection.executemany("INSERT INTO raw VALUES (?, ?, '101', '5')", [list(entry) for entry in entries])
        raw = RawTable(connection, "test")
        table = pa.table({name: typed_column(policy, name, raw) for name in policy.released_columns})
    return table, table["income"].to_pylist()
