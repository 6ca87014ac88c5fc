"""The policies of the golden set: every method and every kind of column, over small made-up tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from tests.integration.sites import PARTS, Row, make_rows

NAMES = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}"""
KEPT = """
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed, labels: {east: the east}}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}"""
LABELS = ", labels: {east: the east}"  # which Stata cannot hold of a text
DROPPED = """
  town:   {role: quasi, do: drop}
  sex:    {role: quasi, do: drop}"""
INCOME = "\n  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}"
RENT = "\n  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"
TWO = NAMES + KEPT + INCOME + RENT
MASKED = NAMES + DROPPED + INCOME + RENT
ATOMS = INCOME.replace("outside: fail", "outside: clamp, atoms: [0, 500]")
FILLED = RENT.replace("outside: clamp", "outside: clamp, missing: {fill: 50}")
CODED = """
  income: {role: confidential, do: noise, domain: [0, 200], grid: 1, outside: clamp, why: known,
           missing: keep, codes: {-8: refused}}"""
DATED = """
  income: {role: confidential, do: noise, domain: [2000-01-01, 2019-12-31], grid: 1 day, outside: clamp, why: known,
           codes: {9999-12-31: open}, missing: keep, atoms: [2010-01-01]}"""
PERIODS = "day, month, quarter, year, decade"
CLASSES = f"""
  person: {{role: identifier, do: drop}}
  age:    {{role: quasi, do: generalise, hierarchy: {{intervals: [5, 10, 50], domain: [0, 99], grid: 1, outside: fail}},
           why: a human age}}
  zip:    {{role: quasi, do: generalise, hierarchy: {{prefixes: [5, 3, 1], of: digits}}}}
  born:   {{role: quasi, do: generalise, hierarchy: {{dates: [{PERIODS}], first: 1900-01-01, last: 2020-12-31}}}}
  town:   {{role: quasi, do: generalise, hierarchy: {{groups: {{coast: [north, south, unknown], inland: [east]}}}},
           missing: {{category: unknown}}}}
  income: {{role: quasi, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}}
  rent:   {{role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}}
  illness: {{role: confidential, do: keep, values: [none, cold, "NA"], why: needed}}"""
CLASS_HEADER = ("person", "year", "age", "zip", "born", "town", "income", "rent", "illness", "remark")
BY_REGION = "{column: town, groups: {coast: [north, south], inland: [east]}}"
SYNTHETIC = f"""{NAMES}
  town:   {{role: quasi, do: synthesise, values: [north, south, east]}}
  sex:    {{role: quasi, do: synthesise, values: [0, 1], codes: {{8: refused, 9: refused}}}}
  income: {{role: confidential, do: synthesise, domain: [0, 1000], grid: 1, outside: fail, missing: keep, why: known}}
  rent:   {{role: confidential, do: synthesise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}}"""
WEIGHTED = """
  person: {role: identifier, do: drop}
  w:      {role: weight, do: WEIGHT}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}"""
KEPT_WEIGHTS = WEIGHTED.replace("WEIGHT", "keep, values: [1.5, 10, 40], why: design weights")
WEIGHT_HEADER = ("person", "year", "town", "sex", "income", "rent", "name", "remark", "w")
ZCDP = "epsilon: 200, delta: 0.000001, definition: zcdp, scope: column"
IDP, DP, TABLE = (
    f"epsilon: 200, definition: {name}, scope: {scope}" for name, scope in (("idp", "column"), ("dp", "column"), ("dp", "table"))
)
EVERYTHING = "{formats: [parquet, csv, dta, sav]}"


@dataclass(frozen=True)
class Case:
    """One policy, the table that it is of, and its population's cap."""

    parts: dict[str, str]
    cap: str
    rows: Callable[[], Sequence[Row]] = field(default=lambda: make_rows(60, releases=["1"]))
    header: Sequence[str] = tuple(make_rows(1)[0])


def make_class_rows() -> list[Row]:
    """People with ages, places and dates that hierarchies make coarser; one town in five is missing."""
    numbers = random.Random(0)  # noqa: S311
    return [
        {
            "person": f"p{i:04}",
            "year": "1",
            "age": str(numbers.randrange(20, 60)),
            "zip": numbers.choice(["10115", "10117", "10999", "20095", "20099"]),
            "born": f"{numbers.randrange(1960, 2000)}-{numbers.randrange(1, 13):02}-{numbers.randrange(1, 29):02}",
            "town": numbers.choice(["north", "south", "east", "east", ""]),
            "income": str(numbers.randrange(0, 1001)),
            "rent": str(numbers.randrange(0, 201) / 2),
            "illness": numbers.choice(["none", "cold", "NA"]),
            "remark": f"remark{i}",
        }
        for i in range(120)
    ]


def make_household_rows() -> list[Row]:
    """Households of one to four people; some values are refused or missing."""
    numbers = random.Random(3)  # noqa: S311
    return [
        {
            "person": f"h{home:04}",
            "year": "1",
            "town": "north",
            "sex": str(numbers.randrange(2)),
            "income": numbers.choice([str(numbers.randrange(201)), str(numbers.randrange(201)), "-8", ""]),
            "rent": numbers.choice([str(numbers.randrange(201) / 2), ""]),
            "name": "n",
            "remark": "r",
        }
        for home in range(100)
        for _ in range(numbers.choice([1, 1, 2, 2, 3, 4]))
    ]


def make_person_rows() -> list[Row]:
    """Two records of every person in one release."""
    return [row for i, row in enumerate(make_rows(60)) for row in [{**row, "year": "1", "sex": str(i // 60)}]]


def make_dated_rows() -> list[Row]:
    """People whose income is a date: one in ten is open, one in twelve missing."""
    rows, numbers = make_rows(150, releases=["1"]), random.Random(5)  # noqa: S311
    for i, row in enumerate(rows):
        row["income"] = (date(2000, 1, 1) + timedelta(numbers.randrange(7_300))).isoformat()
        if i % 10 == 0:
            row["income"] = "9999-12-31"
        if i % 12 == 1:
            row["income"] = ""
    return rows


def make_gaps() -> list[Row]:
    """People of whom some have no rent."""
    return [{**row, "rent": "" if i % 9 == 4 else row["rent"]} for i, row in enumerate(make_rows(60, releases=["1"]))]


def make_weighted_rows() -> list[Row]:
    """A sample: who has more stands for fewer."""
    numbers = random.Random(2)  # noqa: S311
    rows = make_rows(150, releases=["1"])
    for row in rows:
        row["w"] = numbers.choice(("1.5", "10", "40")[: 1 + (int(row["income"]) < 600) + (int(row["income"]) < 300)])
    return rows


def make_swapped_rows() -> list[Row]:
    """People with one of three letters."""
    numbers = random.Random(1)  # noqa: S311
    return [{**row, "name": numbers.choice("abc")} for row in make_rows(150, releases=["1"])]


def _case(protect: str, columns: str, cap: str, rows: Callable[[], Sequence[Row]] | None = None, **parts: str) -> Case:
    header = parts.pop("header", "").split() or Case.header
    told = {"protect": f"{{{protect}}}", "columns": columns, **parts}
    return Case(told, cap, header=header) if rows is None else Case(told, cap, rows, header)


CASES: dict[str, Case] = {
    "laplace": _case("method: laplace, epsilon: 20", TWO, DP),
    "dp-um": _case(
        "method: dp-um, epsilon: 4, k: 5", NAMES + KEPT.replace(LABELS, "") + ATOMS + FILLED, DP, make_gaps, publish=EVERYTHING
    ),
    "dp-um-two-records": _case(
        "method: dp-um, epsilon: 4, k: 5, consistency: none",
        TWO,
        DP,
        make_person_rows,
        person="{column: person, records_per_release: 2}",
    ),
    "idp-ls": _case("method: idp-ls, epsilon: 4, k: 5, clamp: no", NAMES + DROPPED + INCOME + RENT.replace("clamp", "fail"), IDP),
    "idp-cbls": _case(
        "method: idp-cbls, epsilon: 4, k: 5",
        TWO,
        IDP,
        suppress="{quasi_groups_below: 5, at_most: 20%}",
        gates="{min_rows: 20, differencing_below: 10, expected_error: {income: 0.9}}",
        audit="{groups: [town], predict: {income: {above: 300}}}",
    ),
    "idp-cbls-parts": _case("method: idp-cbls, epsilon: 4, k: 3, partitions: 2, consistency: isotonic", TWO, IDP),
    "dp-um-zcdp": _case("method: dp-um, definition: zcdp, epsilon: 4, delta: 0.000001, k: 5", TWO, ZCDP),
    "dp-cdf": _case("method: dp-cdf, epsilon: 8, k: 5", NAMES + KEPT + ATOMS + RENT, DP),
    "dp-cdf-dates": _case(
        "method: dp-cdf, epsilon: 8, k: 5",
        NAMES + KEPT + DATED + RENT,
        DP,
        make_dated_rows,
        tables="{rents: {by: sex, sum: rent, epsilon: 4}, towns: {by: [town, sex], epsilon: 4}}",
    ),
    "dp-cdf-unseen": _case(
        "method: dp-cdf, epsilon: 8, k: 5",
        NAMES
        + "\n  town:   {role: quasi, do: drop, values: [north, south, east]}"
        + "\n  sex:    {role: quasi, do: drop}"
        + INCOME
        + RENT,
        DP,
        tables=f"{{towns: {{by: [{BY_REGION}], epsilon: 4}}}}",
    ),
    "dp-cdf-households": _case(
        "method: dp-cdf, definition: zcdp, epsilon: 8, delta: 0.000001, k: 5",
        NAMES + DROPPED + CODED + FILLED.replace("fill: 50", "fill: 0"),
        ZCDP,
        make_household_rows,
        person="{column: person, unit: household, records_per_release: 4}",
    ),
    "dp-cdf-swapped": _case(
        "method: dp-cdf, epsilon: 8, k: 5, swap: {k: 10, within: kept}",
        TWO + "\n  name:   {role: confidential, do: swap, values: [a, b, c], why: needed}",
        DP,
        make_swapped_rows,
        drop="",
        suppress="{quasi_groups_below: 10, at_most: 50%}",
        gates="{min_rows: 20, linkage: 10%, differencing_below: 0}",
    ),
    "dp-mdav": _case("method: dp-mdav, epsilon: 8, k: 10, order: hilbert, statistic: plain, scope: centroid", MASKED, TABLE),
    "dp-mdav-trimmed": _case(
        "method: dp-mdav, epsilon: 8, k: 10, order: corner, statistic: trimmed, scope: table",
        MASKED,
        TABLE.replace("definition: dp", "definition: idp"),
    ),
    "mdav": _case("method: mdav, k: 5", MASKED, "releases: 2"),
    "k-epsilon-ola": _case(
        "method: k-epsilon, grouping: ola, k: 4, epsilon: 2",
        CLASSES,
        "releases: 2",
        make_class_rows,
        drop="[remark]",
        suppress="{grouping_at_most: 20%, confidence: 70%, at_most: 100%}",
        gates="{min_rows: 20, differencing_below: 0}",
        header=" ".join(CLASS_HEADER),
    ),
    "k-epsilon-mondrian": _case(
        "method: k-epsilon, grouping: mondrian, k: 4, epsilon: 2, weights: {income: 3, rent: 1}",
        CLASSES.replace("intervals: [5, 10, 50], ", ""),
        "releases: 2",
        make_class_rows,
        drop="[remark]",
        suppress="{confidence: 70%, at_most: 100%}",
        gates="{min_rows: 20, differencing_below: 0}",
        header=" ".join(CLASS_HEADER),
    ),
    "dp-table": _case(
        "method: dp-table, epsilon: 20",
        SYNTHETIC,
        TABLE,
        lambda: make_rows(300, releases=["1"]),
        gates="{min_rows: 200}",
    ),
    "weights": _case(
        "method: dp-cdf, epsilon: 8, k: 3",
        KEPT_WEIGHTS,
        DP,
        make_weighted_rows,
        drop="[name, remark, rent]",
        audit="{groups: [town]}",
        header=" ".join(WEIGHT_HEADER),
    ),
}
LIFE = Case({"releases": PARTS["releases"]}, IDP, lambda: make_rows(60), Case.header)  # waves, a correction, a retraction
