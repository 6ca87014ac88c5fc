"""Columns of dates and times in the analyst's hands."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

from release_pipeline.analyst import Interval, Moments, read_facts, simulate
from release_pipeline.analyst.means import tell_moments
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.dates import Clock
from tests.unit.analyst.cards import make_card, make_facts, noise

CARD = make_card(make_facts("dp-um", noise("came"), rows=400, clamped=True, on_grid=True, consistency="isotonic"))
CARD["columns"][0] |= {"type": "date", "domain": ["2000-01-01", "2019-12-31"], "grid": "1 day", "atoms": ["2010-01-01"]}
DAYS = np.arange("2001-01-01", "2002-02-05", dtype="datetime64[D]")


def test_a_card_is_read_in_units() -> None:
    """From the first of the domain on."""
    column = read_facts(CARD).columns["came"]
    assert column.grid is not None
    assert (column.grid.width, column.number_text("2000-02-01")) == (7304, "31")
    changed = {**CARD, "columns": [{**CARD["columns"][0], "atoms": ["1999-01-01"]}]}
    with pytest.raises(InvalidArgument, match="outside the domain"):
        read_facts(changed)


@pytest.mark.parametrize("written", ["days", "texts", "dates"])
def test_a_made_up_table_is_released_alike(written: str) -> None:
    """However dates are given, they come out as days of the domain; numbers are none."""
    table = {"days": DAYS, "texts": np.datetime_as_string(DAYS), "dates": np.array(DAYS.tolist(), dtype=object)}[written]
    made = simulate({"came": table}, read_facts(CARD), secret=b"d" * 32)
    assert made.data["came"].dtype == "datetime64[D]"
    assert (made.data["came"] == simulate({"came": DAYS}, read_facts(CARD), secret=b"d" * 32).data["came"]).all()
    assert made.data["came"].min() >= np.datetime64("2000-01-01")
    with pytest.raises(InvalidArgument, match="something else stands there"):
        simulate({"came": np.arange(400)}, read_facts(CARD))


def test_ends_of_intervals_go_outwards() -> None:
    """To whole units, so that they cover what they said."""
    interval = Interval(10.4, 9.7, 11.2, 0.95, "law", "so")
    assert tell_moments(interval, Clock.read("2020-01-01", "day")) == Moments(
        date(2020, 1, 11), date(2020, 1, 10), date(2020, 1, 13), 0.95, "law", "so"
    )
    assert tell_moments(interval, Clock.read("2020-01-01", "hour")).high == datetime(2020, 1, 1, 12)
