"""A release that is charged ends, whatever its records are like; and one that is far out hides no risk of the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.errors import GateFailed
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.store.files import Probe
from tests.integration.sites import HEADER, PARTS, Row, TinySite, make_rows, make_site

CLAMPED = PARTS["columns"].replace("outside: fail", "outside: clamp")
WEIGHTED = CLAMPED + "\n  w: {role: weight, do: noise, domain: [0, 50], grid: 0.5, outside: clamp, why: design weights}"
CODED = CLAMPED.replace("values: [0, 1], why", "values: [0, 1], codes: {-9: not asked}, missing: keep, why")
DATES = """
  person: {role: identifier, do: drop}
  town:  {role: quasi, do: keep, values: [north, south, east], why: needed}
  came:  {role: confidential, do: noise, domain: [1990-01-01, 9999-12-31], grid: 1 day, outside: clamp, why: register}
  left:  {role: confidential, do: noise, domain: [1990-01-01, 9999-12-31], grid: 1 day, outside: clamp, why: register}
  spell: {role: confidential, do: noise, domain: [0, 5000], grid: 1, outside: clamp, why: register}"""
CATEGORIES = """
  person: {role: identifier, do: drop}
  town: {role: quasi, do: synthesise, values: [north, south, east], why: needed}
  sex:  {role: quasi, do: synthesise, values: [0, 1], why: needed}"""
SECRET = bytes(range(32))
GATES = "{min_rows: 20, clamped_at_most: 100%}"
LAPLACE = "{method: laplace, epsilon: 2}"


def make(home: Path, change: Callable[[list[Row]], None], *, rows: int = 60, **parts: str) -> TinySite:
    """A site whose first release has records that were changed."""
    found = [dict(row) for row in make_rows(rows, releases=["1"])]
    change(found)
    tiny = make_site(home, cap="releases: 5", **{"gates": GATES, "releases": '["1"]', **parts})
    tiny.write_rows(found, header=tuple(found[0]) if set(found[0]) - set(HEADER) else HEADER)
    return tiny


def far_out(*values: str) -> Callable[[list[Row]], None]:
    """Some incomes that no domain has."""

    def change(rows: list[Row]) -> None:
        for row, value in zip(rows[1::7], values, strict=False):
            row["income"] = value

    return change


def weighted(value: str) -> Callable[[list[Row]], None]:
    """A weight for everybody, one of them odd, of somebody who is alone."""

    def change(rows: list[Row]) -> None:
        for place, row in enumerate(rows):
            row["w"] = ("1.5", "10", "40")[place % 3]
            row["town"] = "south" if place == 4 else "north"
        rows[4]["w"] = value

    return change


def hardly_asked(rows: list[Row]) -> None:
    """Nearly nobody has a sex."""
    for place, row in enumerate(rows):
        row["sex"] = {3: "0", 7: "1"}.get(place, "-9")


def at_the_end(rows: list[Row]) -> None:
    """Dates shortly before the last that there is, and some that are not."""
    for place, row in enumerate(rows):
        row["came"], row["left"] = f"9998-{place % 12 + 1:02}-01", f"9999-12-{place % 31 + 1:02}"


def in_order(rows: list[Row]) -> None:
    """Who came in a month left in another."""
    for place, row in enumerate(rows):
        row["came"], row["left"] = f"20{place % 20 + 10}-{place % 12 + 1:02}-01", f"2035-01-{place % 28 + 1:02}"


DATED = {"columns": DATES, "drop": "[sex, income, rent, name, remark]", "derive": "{spell: {between: [came, left], unit: day}}"}
CASES: dict[str, tuple[Callable[[list[Row]], None], dict[str, str]]] = {
    "two numbers whose sum is none": (far_out("1.7e308", "1.7e308"), {"columns": CLAMPED}),
    "numbers that no forest takes": (far_out("1e39"), {"columns": CLAMPED, "audit": "{predict: {rent: {above: 50}}}"}),
    "a negative weight": (weighted("-1"), {"columns": WEIGHTED, "protect": LAPLACE}),
    "somebody alone with a huge weight": (weighted("1e15"), {"columns": WEIGHTED, "protect": LAPLACE}),
    "reasons in all of the first cells of Stata": (
        hardly_asked,
        {"columns": CODED, "protect": LAPLACE, "publish": "{formats: [csv, dta, sav]}"},
    ),
    "dates at the end of the calendar": (at_the_end, {**DATED, "protect": LAPLACE}),
    "what lies between two dates, beside both": (in_order, {**DATED, "protect": LAPLACE}),
    "categories alone": (
        lambda _: None,
        {
            "columns": CATEGORIES,
            "protect": "{method: dp-table, epsilon: 8}",
            "drop": "[income, rent, name, remark]",
            "gates": "{min_rows: 100}",
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_ends_as_a_candidate(case: str, tmp_path: Path) -> None:
    """With figures that can be read, and no number in the evidence that is none."""
    change, parts = CASES[case]
    tiny = make(tmp_path / "site", change, rows=200, **parts)
    assert run_release(tiny.flow()).stage == "candidate"
    assert len(tiny.charges()) == 1
    json.loads((tiny.folder() / "evidence.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} in the evidence"))


def test_suppression_of_everybody_is_refused_before_the_charge(tmp_path: Path) -> None:
    """Kept columns alone make the groups, so that it is known; whatever share may go."""
    tiny = make(tmp_path / "site", lambda _: None, rows=40, suppress="{quasi_groups_below: 50, at_most: 100%}")
    with pytest.raises(GateFailed, match="number of records that suppression leaves"):
        run_release(tiny.flow())
    assert tiny.charges() == []


def figures(tiny: TinySite) -> dict[str, Any]:
    """What the audit found: with a key and a secret that are always the same, so that attacks are."""
    tiny.fix_key(SECRET)
    run_release(open_release(tiny.site, "people", "1", probe=Probe(new_secret=lambda: SECRET)))
    return json.loads((tiny.folder() / "evidence.json").read_text())["audit"]


NEARLY_EXACT = {"columns": CLAMPED, "protect": "{method: idp-cbls, epsilon: 100, k: 5}"}


@pytest.mark.slow
def test_one_value_far_out_hides_nobody(tmp_path: Path) -> None:
    """The domain is public: it is clamped by whoever links or infers, as it was by the method."""
    clean = figures(make(tmp_path / "clean", lambda _: None, rows=1_000, **NEARLY_EXACT))
    spoilt = figures(make(tmp_path / "spoilt", far_out("9999999"), rows=1_000, **NEARLY_EXACT))
    assert clean["record_linkage"]["value"] > 0.7
    assert spoilt["record_linkage"]["value"] > clean["record_linkage"]["value"] - 0.1
    risks = [found["inference"]["income"]["risk"]["value"] for found in (clean, spoilt)]
    assert risks[0] > 0.3
    assert risks[1] > risks[0] - 0.12
