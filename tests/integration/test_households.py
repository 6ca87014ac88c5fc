"""People and households with several records: what the claim says, and what it does not protect."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from release_pipeline.flow.publication.wording import describe_neighbours
from release_pipeline.policy import load_policy
from release_pipeline.policy.load import parse_policy
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.statements import state_claim
from release_pipeline.policy.views import view_plan
from release_pipeline.policy.words import not_covered_words
from release_pipeline.stages.checks import round_up
from tests.integration.sites import Row, TinySite, make_site, policy_text

HOUSEHOLDS, MOST = 600, 4
SURE = 1 - 1e-9  # of intervals around noise that no test knows
PARTS = {
    "person": f"{{column: person, unit: household, records_per_release: {MOST}}}",
    "protect": "{method: dp-cdf, epsilon: 2, k: 5}",
    "columns": """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: drop}
  sex:    {role: quasi, do: drop}
  income: {role: confidential, do: noise, domain: [0, 200], grid: 1, outside: clamp, why: known,
           missing: keep, codes: {-8: refused}}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, missing: {fill: 0}, why: known}""",
}
ZCDP = "dp-cdf, definition: zcdp, epsilon: 2, delta: 0.000001, k: 5"
CAP = "epsilon: 40, definition: dp, scope: column"


def make_households(count: int = HOUSEHOLDS, *, seed: int = 3) -> list[Row]:
    """Of one to four people, in any order; some of them lack something."""
    numbers = random.Random(seed)  # noqa: S311
    rows = [
        {
            "person": f"h{home:04}",
            "year": release,
            "town": "north",
            "sex": "0",
            "income": numbers.choice([str(numbers.randrange(201)), str(numbers.randrange(201)), "-8", ""]),
            "rent": numbers.choice([str(numbers.randrange(201) / 2), ""]),
            "name": "n",
            "remark": "r",
        }
        for release in ("1", "2")
        for home in range(count)
        for _ in range(numbers.choice([1, 1, 2, 2, 3, 4]))
    ]
    numbers.shuffle(rows)
    return rows


def of_first(rows: list[Row]) -> list[Row]:
    """Those of the first release."""
    return [row for row in rows if row["year"] == "1"]


def find_number(number: int, blob: bytes) -> list[bytes]:
    """Where a number stands by itself, with a comma for thousands or without."""
    shown = f"{number}|{number:,}".encode()
    return re.findall(rb"(?<![\w.,-])(?:%s)(?![\w.,]*\w)" % shown, blob)


def ingest(tiny: TinySite) -> dict[str, object]:
    """What the first two stages tell."""
    flow = tiny.flow()
    return {"ingested": flow.ingest().facts, "validated": (done := flow.validate()).facts, "refused": done.refusal}


def test_households_of_equal_size_are_said_to_be(tmp_path: Path) -> None:
    """What is not protected stands in plan, statement, card and note."""
    tiny = make_site(tmp_path / "site", rows=make_households(30), cap=CAP)
    tiny.write_policy(**PARTS)
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    assert policy.epsilon == 4 * 2 * 10**9
    plan = " ".join(" ".join(describe_plan(make_plan(policy))).split())
    assert "at most 4 records of a household in a release; how many records a household has is not protected" in plan
    assert "times 4 records per household" in plan
    assert view_plan(make_plan(policy)).record_count == "not protected"
    assert "it is for households of equal size, and how many records one has is not protected." in state_claim(policy)
    assert "replaced by another one with as many records" in describe_neighbours(policy)
    assert any(words.startswith("How many records a household has") for words in not_covered_words(policy))
    assert ingest(tiny)["ingested"] == {
        "rows": round_up(len(of_first(make_households(30)))),
        "columns_read": 3,
        "columns_in_source": 8,
    }


@pytest.mark.parametrize("method", ["laplace, epsilon: 2", "dp-um, epsilon: 2, k: 5", "dp-cdf, epsilon: 2", ZCDP])
def test_how_many_records_a_person_has_is_said_not_to_be_protected(method: str) -> None:
    """In plan, card and JSON of every method; the formal statement, which is about records, stays as it is."""
    columns = """
  person: {role: identifier, do: drop}
  income: {role: confidential, do: noise, domain: [0, 200], grid: 1, outside: clamp, why: known}"""
    drop, person = "[name, remark, town, sex, rent]", "{column: person, records_per_release: 3}"
    policy = parse_policy(policy_text(columns=columns, drop=drop, protect=f"{{method: {method}}}", person=person), name="people")
    plan = " ".join(" ".join(describe_plan(make_plan(policy))).split())
    assert "at most 3 records of a person in a release; how many records a person has is not protected" in plan
    assert view_plan(make_plan(policy)).record_count == "not protected"
    neighbours = describe_neighbours(policy)
    assert "one person is replaced by another one with as many records" in neighbours
    assert "how many records a person has is not protected" in neighbours
    assert any(words.startswith("How many records a person has") for words in not_covered_words(policy))
    assert "It holds as well for tables that differ in up to 3 records of one person." in state_claim(policy)


def test_rho_grows_with_the_square_of_the_records() -> None:
    """Sixteen times what one record costs, and the note says what it is for."""
    protect = f"{{method: {ZCDP}}}"
    policy = parse_policy(policy_text(**{**PARTS, "protect": protect}), name="people")
    assert policy.protect.charged is not None
    assert policy.epsilon == MOST**2 * policy.protect.charged.nano
    assert "times 4 squared records per household" in " ".join(" ".join(describe_plan(make_plan(policy))).split())
