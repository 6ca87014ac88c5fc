"""Dates and times as whole numbers: there and back, against Python's own calendar."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.dates import UNITS, Clock, Unit

LENGTH = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1), "second": timedelta(seconds=1)}
DAYS = st.dates(date(1600, 1, 1), date(2400, 12, 31))


@settings(max_examples=200, deadline=None)
@given(first=DAYS, unit=st.sampled_from(UNITS), units=st.integers(-40_000, 40_000))
def test_a_number_is_the_moment_so_many_units_later(first: date, unit: Unit, units: int) -> None:
    """As a text, as a moment, and as a column; and every one of them back."""
    clock = Clock.read(first.isoformat(), unit)
    moment = datetime(first.year, first.month, first.day) + units * LENGTH[unit]
    text = moment.date().isoformat() if unit == "day" else moment.isoformat()
    assert clock.show(units) == clock.show(units + 0.4) == text
    assert clock.find(text) == units
    column = clock.restore(np.array([float(units), math.nan]))
    assert column[0] == np.datetime64(moment)
    assert np.isnat(column[1])
    assert clock.count(column)[0] == units
    assert math.isnan(clock.count(column)[1])
    assert clock.count(np.array([moment + LENGTH[unit] - timedelta(seconds=1)], dtype="datetime64[us]"))[0] == units
    assert clock.offset == (datetime(first.year, first.month, first.day) - datetime(1970, 1, 1)) // LENGTH[unit]


@pytest.mark.parametrize(
    "text", ["1990-02-30", "1990-1-1", "01/02/1990", "1990-01-01T25:00", "1990-01-01T10:00Z", "0000-01-01", ""]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    """In a policy; a zone too."""
    with pytest.raises(InvalidArgument, match="without a zone"):
        Clock.read("1990-01-01", "second").find(text)
