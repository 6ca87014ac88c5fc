"""Columns of dates and times in the analyst's hands."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from release_pipeline.analyst import Interval, Moments, read_facts
from release_pipeline.analyst.means import tell_moments
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.dates import Clock
from tests.unit.analyst.cards import make_card, make_facts, noise

CARD = make_card(make_facts("dp-um", noise("came"), rows=400, clamped=True, on_grid=True, consistency="isotonic"))
CARD["columns"][0] |= {"type": "date", "domain": ["2000-01-01", "2019-12-31"], "grid": "1 day", "atoms": ["2010-01-01"]}


def test_a_card_is_read_in_units() -> None:
    """From the first of the domain on."""
    column = read_facts(CARD).columns["came"]
    assert column.grid is not None
    assert (column.grid.width, column.number_text("2000-02-01")) == (7304, "31")
    changed = {**CARD, "columns": [{**CARD["columns"][0], "atoms": ["1999-01-01"]}]}
    with pytest.raises(InvalidArgument, match="outside the domain"):
        read_facts(changed)


def test_ends_of_intervals_go_outwards() -> None:
    """To whole units, so that they cover what they said."""
    interval = Interval(10.4, 9.7, 11.2, 0.95, "law", "so")
    assert tell_moments(interval, Clock.read("2020-01-01", "day")) == Moments(
        date(2020, 1, 11), date(2020, 1, 10), date(2020, 1, 13), 0.95, "law", "so"
    )
    assert tell_moments(interval, Clock.read("2020-01-01", "hour")).high == datetime(2020, 1, 1, 12)
