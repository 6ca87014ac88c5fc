"""Releases by period: names, beginnings and ends of days, weeks, months, quarters and years, in UTC."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from release_pipeline.policy.values.periods import PATTERN, Every, begin_of, end_of, name_period, next_period

TICK = timedelta(microseconds=1)
ANY_KIND = st.sampled_from(get_args(Every))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(2, 1, 2), datetime(9998, 10, 1), timezones=ZONES)


def at(*parts: int) -> datetime:
    """A moment in UTC."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


# each kind: the name of a period, when it begins and when it has ended
KNOWN: list[tuple[Every, str, datetime, datetime]] = [
    ("day", "2026-03-31", at(2026, 3, 31), at(2026, 4, 1)),
    ("day", "2024-02-29", at(2024, 2, 29), at(2024, 3, 1)),
    ("day", "1900-02-28", at(1900, 2, 28), at(1900, 3, 1)),
    ("day", "2025-12-31", at(2025, 12, 31), at(2026, 1, 1)),
    ("week", "2026-W01", at(2025, 12, 29), at(2026, 1, 5)),  # ISO: the week of the year's first Thursday
    ("week", "2020-W53", at(2020, 12, 28), at(2021, 1, 4)),
    ("week", "2024-W09", at(2024, 2, 26), at(2024, 3, 4)),
    ("month", "2024-02", at(2024, 2, 1), at(2024, 3, 1)),
    ("month", "2025-12", at(2025, 12, 1), at(2026, 1, 1)),
    ("quarter", "2024-Q1", at(2024, 1, 1), at(2024, 4, 1)),
    ("quarter", "2026-Q4", at(2026, 10, 1), at(2027, 1, 1)),
    ("year", "2024", at(2024, 1, 1), at(2025, 1, 1)),
]


@pytest.mark.parametrize(("every", "name", "begin", "end"), KNOWN)
def test_known_periods(every: Every, name: str, begin: datetime, end: datetime) -> None:
    """Its first and its last moment bear the name, the moments beside them do not; and the neighbours follow each other."""
    assert (begin_of(every, name), end_of(every, name)) == (begin, end)
    assert name_period(every, begin) == name_period(every, end - TICK) == name
    assert name_period(every, begin - TICK) != name != name_period(every, end)
    assert next_period(every, name) == name_period(every, end)


@given(ANY_KIND, MOMENTS)
@example("week", at(2021, 1, 3, 23, 59, 59))
@example("day", datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))))
def test_every_moment_lies_in_the_period_that_it_names(every: Every, moment: datetime) -> None:
    """begin <= moment < end, whatever the zone it is told in."""
    name = name_period(every, moment)
    begin, end = begin_of(every, name), end_of(every, name)
    assert begin <= moment < end
    assert (begin.utcoffset(), end.utcoffset()) == (timedelta(0), timedelta(0))
    assert name_period(every, begin) == name_period(every, end - TICK) == name


@given(ANY_KIND, MOMENTS)
def test_periods_follow_each_other_without_a_gap(every: Every, moment: datetime) -> None:
    """The next one begins when this one has ended; the one before it ended when it began."""
    name = name_period(every, moment)
    following = next_period(every, name)
    assert begin_of(every, following) == end_of(every, name)
    assert following != name
    ended = name_period(every, begin_of(every, name) - TICK)
    assert end_of(every, ended) == begin_of(every, name) <= moment
    assert next_period(every, ended) == name


@given(st.dates(date(2, 1, 1), date(9998, 12, 20)))
def test_names_are_those_of_other_calendars(day: date) -> None:
    """ISO's own text of the day, and its week and year of Thursday."""
    moment = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    thursday = day - timedelta(days=day.weekday() - 3)
    week = (thursday - date(thursday.year, 1, 1)).days // 7 + 1
    assert name_period("day", moment) == day.isoformat()
    assert name_period("week", moment) == f"{thursday.year:04}-W{week:02}"
    assert name_period("month", moment) == day.isoformat()[:7]
    assert name_period("quarter", moment) == f"{day.isoformat()[:4]}-Q{' 111222333444'[day.month]}"
    assert name_period("year", moment) == day.isoformat()[:4]


BROKEN: list[tuple[Every, str]] = [
    ("day", "2023-02-29"),
    ("day", "2026-13-01"),
    ("day", "0000-01-01"),
    ("day", "2026-01-01T00"),
    ("day", "2026-01-01\n"),
    ("day", "٢٠٢٦-٠١-٠١"),
    ("week", "2025-W53"),
    ("week", "2026-W54"),
    ("week", "2026-w09"),
    ("month", "2026-00"),
    ("quarter", "2026-Q1\n"),
    ("quarter", "2026-Q0"),
    ("quarter", "2026-Q5"),
    ("year", "-2026"),
    ("year", ""),
]


@pytest.mark.parametrize(("every", "name"), BROKEN)
def test_what_names_no_period_is_a_value_error_in_words(every: Every, name: str) -> None:
    """For every function that takes a name; the words have the kind."""
    for function in (begin_of, end_of, next_period):
        with pytest.raises(ValueError, match=every) as refused:
            function(every, name)
        assert "is not " in str(refused.value)


@given(ANY_KIND, st.data())
def test_any_text_of_the_form_is_a_period_or_a_value_error(every: Every, data: st.DataObject) -> None:
    """To the ends of what a calendar has (the years 1 to 9999), nothing else than a `ValueError` is raised."""
    name = data.draw(st.from_regex(PATTERN[every], fullmatch=True, alphabet=st.characters(codec="ascii")))
    with suppress(ValueError):
        assert begin_of(every, name) < end_of(every, name)
        assert name_period(every, begin_of(every, name)) == name
