"""The last look at what is about to be published: every sentence, and that it says nothing of what the policy lets out."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.audit.package import check_released
from release_pipeline.policy import Policy, parse_policy

LOW, HIGH, BELOW = -10, 1000, 3
TOWNS, SEXES, REMARKS = ("north", "01"), (0, 1), ("yes", "no", "not asked")


def policy(*, below: int | None = BELOW, keep: bool = True, clamp: str = "yes", protect: str = "") -> Policy:
    """Two quasi-identifiers and an answer that are kept, two numbers with noise, a dropped column."""
    kept = """
  town:   {role: quasi, do: keep, values: [north, "01"], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  remark: {role: confidential, do: keep, values: ["yes", "no"], missing: {category: "no"}, why: needed}"""
    return parse_policy(
        f"""
policy: people
steward: ana
population: folk
source: {{path: people.csv}}
person: each-row
releases: once
protect: {protect or f"{{method: idp-cbls, epsilon: 2, k: 5, clamp: {clamp}}}"}
columns:
  person: {{role: identifier, do: drop}}{kept * keep}
  income: {{role: confidential, do: noise, domain: [{LOW}, {HIGH}], grid: 1, outside: fail, why: known}}
  rent:   {{role: confidential, do: noise, domain: [0, 0.5], grid: 0.1, outside: fail, why: known}}
{f"suppress: {{quasi_groups_below: {below}, at_most: 50%}}" if below else ""}
gates: {{min_rows: 20}}
""",
        name="people.yaml",
    )


def table(**columns: pa.Array) -> pa.Table:
    """Six records in two groups of three that may all be published; `columns` replaces some."""
    good = {
        "town": pa.array(["north"] * 3 + ["01"] * 3),
        "sex": pa.array([0] * 3 + [1] * 3, pa.int64()),
        "remark": pa.array(["yes", "no"] * 3),
        "income": pa.array([float(LOW), 0.0, 1.0, 2.0, 999.0, float(HIGH)]),
        "rent": pa.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
    }
    return pa.table({**good, **columns})


def test_nothing_is_said_of_what_may_be_published() -> None:
    """The edges of the domain are inside; blanks are groups of their own, and no category that is not declared."""
    assert list(check_released(table(), policy(), rows=6)) == []
    blank = table(town=pa.array([None] * 6, pa.string()), sex=pa.array([0] * 3 + [None] * 3, pa.int64()))
    assert list(check_released(blank, policy(), rows=6)) == []


def test_k_of_masked_values_is_looked_at_where_it_is_promised() -> None:
    """Both columns together; a method with noise promises none."""
    alike = {"income": pa.array([1.0] * 3 + [2.0] * 3), "rent": pa.array([0.1] * 3 + [0.2] * 3)}
    mdav = policy(protect="{method: mdav, k: 3}")
    assert list(check_released(table(**alike), mdav, rows=6)) == []
    apart = table(**alike | {"rent": pa.array([0.1] * 4 + [0.2] * 2)})
    assert list(check_released(apart, mdav, rows=6)) == ["There are groups of equal masked values below k 3."]
    assert list(check_released(apart, policy(), rows=6)) == []


def test_values_may_lie_anywhere_where_the_policy_says_so() -> None:
    """Outside the domain, and still no missing or infinite ones."""
    far = table(income=pa.array([-1e9, 0.0, 1.5, 2.0, 999.9, 1e9]))
    assert list(check_released(far, policy(), rows=6)) == ["Column income has values outside its domain."]
    assert list(check_released(far, policy(clamp="no"), rows=6)) == []
    for odd in (float("nan"), float("inf"), None):
        lacks = table(income=pa.array([odd, 0.0, 1.5, 2.0, 999.9, 1.0]))
        assert list(check_released(lacks, policy(clamp="no"), rows=6)) == [
            "Column income has values that are missing or infinite."
        ]


def test_other_columns() -> None:
    """One more, or turned round: one sentence, and the rest is not looked at."""
    more = table().append_column("person", pa.array(["p1"] * 6))
    for other in (more, table().select(["sex", "town", "remark", "income", "rent"])):
        assert list(check_released(other, policy(), rows=7)) == ["The data have other columns than the policy releases."]


@pytest.mark.parametrize("value", [LOW - 1e-9, HIGH + 1e-9, float("nan"), float("inf"), float("-inf"), None])
@pytest.mark.parametrize("place", [0, 5])
def test_a_number_outside_its_domain(value: float | None, place: int) -> None:
    """However little, and what is none; the sentence does not show it."""
    values: list[float | None] = [1.0] * 6
    values[place] = value
    found = list(check_released(table(income=pa.array(values, pa.float64())), policy(), rows=6))
    assert found == ["Column income has values outside its domain."]


RECORDS = st.lists(
    st.tuples(
        st.sampled_from([*TOWNS, None, "south"]),
        st.sampled_from([*SEXES, None, 7]),
        st.sampled_from([*REMARKS[:2], "perhaps"]),
        st.floats(LOW - 50, HIGH + 50),
        st.floats(0, 0.6),
    ),
    max_size=25,
)


@pytest.mark.slow
@given(RECORDS, st.integers(0, 25))
def test_agrees_with_the_rules_told_once_more(records: list[tuple[str | None, int | None, str, float, float]], rows: int) -> None:
    """On any table, record by record in plain Python; and no sentence has a cell in it."""
    towns, sexes, remarks, incomes, rents = zip(*records, strict=True) if records else ((), (), (), (), ())
    made = pa.table(
        {
            "town": pa.array(towns, pa.string()),
            "sex": pa.array(sexes, pa.int64()),
            "remark": pa.array(remarks, pa.string()),
            "income": pa.array(incomes, pa.float64()),
            "rent": pa.array(rents, pa.float64()),
        }
    )
    wanted: list[str] = []
    if len(records) != rows:
        wanted.append(f"The data have {len(records)} records, and {rows} were recorded.")
    if any(not LOW <= income <= HIGH for income in incomes):
        wanted.append("Column income has values outside its domain.")
    elif any(not float(income).is_integer() for income in incomes):
        wanted.append("Column income has values off its grid.")
    if any(not 0 <= rent <= 0.5 for rent in rents):
        wanted.append("Column rent has values outside its domain.")
    elif any(round(rent, 1) != rent for rent in rents):
        wanted.append("Column rent has values off its grid.")
    wanted += ["Column town has values that are not declared."] * ("south" in towns)
    wanted += ["Column sex has values that are not declared."] * (7 in sexes)
    wanted += ["Column remark has values that are not declared."] * ("perhaps" in remarks)
    if any(count < BELOW for count in Counter(zip(towns, sexes, strict=True)).values()):
        wanted.append("There are groups of released quasi-identifiers below 3.")
    assert list(check_released(made, policy(), rows=rows)) == wanted
