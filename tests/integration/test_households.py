"""People and households with several records: what the claim says, and what it does not protect."""

from __future__ import annotations

import random

from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.validate import validate
from release_pipeline.policy.loading.load import parse_policy
from release_pipeline.policy.plans.plan import describe_plan, make_plan
from tests.integration.sites import Row, TinySite, policy_text

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


def check_records(tiny: TinySite) -> dict[str, object]:
    """What the first two stages tell."""
    flow = tiny.flow()
    return {"ingested": ingest(flow).facts, "validated": (done := validate(flow)).facts, "refused": done.refusal}


def test_rho_grows_with_the_square_of_the_records() -> None:
    """Sixteen times what one record costs, and the note says what it is for."""
    protect = "{method: dp-cdf, epsilon: 1, definition: zcdp, delta: 0.000001}"
    policy = parse_policy(policy_text(**{**PARTS, "protect": protect}), name="people")
    assert policy.protect.charged is not None
    assert policy.epsilon == MOST**2 * policy.protect.charged.nano
    assert "times 4 squared records per household" in " ".join(" ".join(describe_plan(make_plan(policy))).split())
