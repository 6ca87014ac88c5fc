"""Money with two decimals and shares in percent: what is released has the digits of the grid, in every file."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.flow.mask import mask_table
from release_pipeline.flow.tables import write_table
from release_pipeline.policy import load_policy
from release_pipeline.privacy import Grid
from tests.integration.sites import make_rows, make_site

COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: drop}
  sex:    {role: quasi, do: drop}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 0.01, outside: clamp, why: euros and cents}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.1, outside: clamp, why: percent}"""


@settings(max_examples=60, deadline=None)
@given(
    step=st.sampled_from(["0.01", "0.1", "0.05", "0.001", "0.25"]),
    low=st.integers(-10_000_000, 10_000_000),
    units=st.lists(st.integers(0, 10**11), min_size=1, max_size=40),
)
def test_a_point_of_the_grid_is_written_exactly(
    tmp_path_factory: pytest.TempPathFactory, step: str, low: int, units: list[int]
) -> None:
    """As the decimal that it is: no 0.30000000000000004, whatever the domain."""
    grid = Grid.declare((Decimal(low), Decimal(low) + 10**11 * Decimal(step)), step)
    file = tmp_path_factory.mktemp("grid") / "data.csv"
    write_table(file, pa.table({"money": grid.restore(np.array(units, dtype=np.float64))}), format="csv")
    cells = file.read_text().splitlines()[1:]
    assert [Fraction(Decimal(cell)) for cell in cells] == [grid.lo + unit * grid.step for unit in units]


@pytest.mark.parametrize(
    "protect",
    [
        "{method: dp-um, epsilon: 2, k: 5}",
        "{method: dp-cdf, epsilon: 4, k: 5}",
    ],
)
def test_released_money_has_two_decimals(tmp_path: Path, protect: str) -> None:
    """At most, by every method that moves values to their grid."""
    rows = [{**row, "income": f"{int(row['income'])}.{place % 100:02}"} for place, row in enumerate(make_rows(200))]
    tiny = make_site(tmp_path / "site", rows=rows, columns=COLUMNS, protect=protect)
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    write_table(tmp_path / "out.csv", mask_table(policy, tiny.home / "people.csv", release="1").table, format="csv")
    cells = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert all(
        re.fullmatch(r"[0-9]+(\.[0-9]{1,2})?", income) and re.fullmatch(r"[0-9]+(\.[0-9])?", rent) for income, rent in cells
    )
    assert any("." in income for income, _ in cells)
