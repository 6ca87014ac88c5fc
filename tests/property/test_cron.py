"""Timetables against Dagster, which runs the same expressions, and against a scan of every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.policy.cron import Cron

MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def items(low: int, high: int, names: dict[int, str]) -> st.SearchStrategy[str]:
    """One entry of a field: a star, a number or name, a range, a step."""

    def written(number: int) -> st.SearchStrategy[str]:
        forms = [str(number), f"{number:02}"]
        if number in names:
            forms += [names[number], names[number].upper()]
        return st.sampled_from(forms)

    numbers = st.integers(low, high)
    pairs = st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1])

    def ranges(pair: tuple[int, int]) -> st.SearchStrategy[str]:
        step = st.one_of(st.just(""), st.integers(1, pair[1] - pair[0]).map(lambda n: f"/{n}"))
        return st.tuples(written(pair[0]), written(pair[1]), step).map(lambda part: f"{part[0]}-{part[1]}{part[2]}")

    whole = st.sampled_from([f"{low}-{high}", "*/1", "*"])
    return st.one_of(numbers.flatmap(written), pairs.flatmap(ranges), st.integers(1, high - low).map(lambda n: f"*/{n}"), whole)


def entries(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """A field: often a star, else a list of up to three entries."""
    listed = st.lists(items(low, high, dict(enumerate(names, low))), min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), listed)


DAYS = st.one_of(entries(1, 31), st.sampled_from(["29", "30", "31", "29-31/2", "15,29", "1-31", "*/2"]))
PARTS = (entries(0, 59), entries(0, 23), DAYS, entries(1, 12, MONTHS), entries(0, 7, WEEKDAYS))
TEXTS = st.tuples(*PARTS).map(" ".join)


def _can_be_parsed(text: str) -> bool:
    try:
        Cron.parse(text)
    except ValueError as error:
        if " has no day of month " not in str(error):
            raise
        return False
    return True


CRONS = TEXTS.filter(_can_be_parsed).map(Cron.parse)
RANDOM = st.datetimes(datetime(1890, 1, 1), datetime(2110, 1, 1), timezones=st.just(UTC))
NEAR_LEAP_DAYS = st.builds(
    lambda year, minutes: datetime(year, 2, 29, tzinfo=UTC) + minutes * MINUTE,
    st.sampled_from([1896, 1904, 2000, 2024, 2028, 2096, 2104]),
    st.integers(-3000, 60000),
)
MOMENTS = st.one_of(RANDOM, NEAR_LEAP_DAYS, RANDOM.map(lambda moment: moment.replace(day=1, hour=0, minute=0, second=0)))
THIS_CENTURY = st.one_of(  # in whole seconds: those of Dagster's scheduler are floats
    st.integers(978_307_200, 3_786_912_000).map(lambda second: datetime.fromtimestamp(second, UTC)),
    NEAR_LEAP_DAYS.filter(lambda moment: 2001 < moment.year < 2097),
)


def croniter(text: str, moment: datetime) -> Any:
    """Dagster's own, at a moment."""
    from dagster._vendored import croniter as vendored

    return vendored.croniter(text, moment)


def first_of_dagster(text: str, moment: datetime) -> datetime:
    """The first time, not before the moment, that Dagster's scheduler has."""
    from dagster._utils.schedules import schedule_execution_time_iterator

    return next(iter(schedule_execution_time_iterator(moment.timestamp(), text, "UTC"))).astimezone(UTC)


@settings(max_examples=400)
@given(CRONS, MOMENTS)
def test_firings_are_those_of_dagsters_croniter(cron: Cron, moment: datetime) -> None:
    """Over two centuries, whichever of the day fields are restricted."""
    assert cron.next_after(moment) == croniter(cron.text, moment).get_next(datetime)


def assert_scheduled_alike(cron: Cron, moment: datetime) -> None:
    """Dagster accepts it, warns of nothing and has the same first time; what it gets wrong itself is left out."""
    from dagster._utils.schedules import has_out_of_range_cron_interval, is_valid_cron_schedule

    assert is_valid_cron_schedule(cron.text)
    assert not has_out_of_range_cron_interval(cron.text)
    after_a_leap_day = moment.month == 3 and cron.days & {29, 30, 31} and 28 not in cron.days
    if not (cron.text.endswith(" 29 2 *") or after_a_leap_day):
        assert first_of_dagster(cron.text, moment) == cron.next_after(moment - TICK)


@settings(max_examples=300)
@given(CRONS, THIS_CENTURY)
def test_firings_are_those_of_dagsters_scheduler(cron: Cron, moment: datetime) -> None:
    """It asks croniter, once back and once on."""
    assert_scheduled_alike(cron, moment)


COMMON = [
    "{m} * * * *",
    "{m},{n} * * * *",
    "{m} {h} * * *",
    "{m} {h} * * {w}",
    "{m} {h} * * {w},0",
    "{m} {h} {d} * *",
    "*/{s} * * * *",
]


@settings(max_examples=200)
@given(st.sampled_from(COMMON), st.data())
def test_common_firings_are_those_of_dagsters_scheduler(form: str, data: st.DataObject) -> None:
    """Hourly, daily, weekly and monthly: Dagster does not ask croniter for these."""
    minute = st.integers(0, 59)
    text = form.format(
        m=data.draw(minute),
        n=data.draw(minute),
        h=data.draw(st.integers(0, 23)),
        w=data.draw(st.integers(0, 7)),
        d=data.draw(st.integers(1, 28)),
        s=data.draw(st.integers(1, 59)),
    )
    assert_scheduled_alike(Cron.parse(text), data.draw(THIS_CENTURY))


def test_dagster_loses_leap_days() -> None:
    """What the comparisons leave out. When this fails, Dagster has been repaired: compare there too.

    Its croniter takes every February for one of 28 days when it looks back from March, so after a leap day its scheduler raises.
    An expression that ends in " 29 2 *" is read as 28 February, a day later: asked on the eve, it has gone by.
    """
    monthly, yearly, named = (Cron.parse(f"0 6 {days} *") for days in ("29 *", "29 2", "29 feb"))
    leap_day, march, eve = (datetime(2028, *day, tzinfo=UTC) for day in ((2, 29, 6), (3, 10), (2, 28, 12)))
    assert yearly.next_after(eve) == named.next_after(eve) == leap_day
    assert croniter(monthly.text, march).get_prev(datetime) == datetime(2028, 1, 29, 6, tzinfo=UTC)
    with pytest.raises(Exception, match="Invariant failed"):
        first_of_dagster(monthly.text, march)
    assert first_of_dagster(yearly.text, eve) == datetime(2032, 2, 29, 6, tzinfo=UTC)
    assert first_of_dagster(named.text, eve) == leap_day


@settings(max_examples=300)
@given(st.lists(st.integers(28, 31), min_size=1, max_size=2), st.lists(st.integers(1, 12), min_size=1, max_size=3), PARTS[4])
def test_refused_as_never_firing_when_dagster_finds_no_time(days: list[int], months: list[int], weekdays: str) -> None:
    """No more and no less."""
    text = f"0 0 {','.join(map(str, days))} {','.join(map(str, months))} {weekdays}"
    if _can_be_parsed(text):
        croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next(datetime)
    else:
        with pytest.raises(ValueError, match="failed to find next date"):
            croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next(datetime)


@settings(max_examples=500)
@given(TEXTS, st.integers(0, 40), st.integers(0, 2), st.text("0123456789*,-/ #?LWHRa@+.sun\n", max_size=3), RANDOM)
def test_no_other_text_is_accepted_that_dagster_reads_otherwise(
    text: str, place: int, removed: int, added: str, moment: datetime
) -> None:
    """A valid expression with a typing error is refused, or still means the same to both."""
    try:
        cron = Cron.parse(text[:place] + added + text[place + removed :])
    except ValueError:
        return
    expanded, _ = croniter(cron.text, moment).expand(cron.text)
    whole: list[list[Any]] = [list(range(60)), list(range(24)), list(range(1, 32)), list(range(1, 13)), list(range(7))]
    read = [sorted(whole[i] if "*" in values else values) for i, values in enumerate(expanded)]
    assert read == [sorted(part) for part in (cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays)]
    assert cron.next_after(moment) == croniter(cron.text, moment).get_next(datetime)


def _fits(cron: Cron, minute: datetime) -> bool:
    by_month, by_week = minute.day in cron.days, (minute.weekday() + 1) % 7 in cron.weekdays
    fits_day = by_month or by_week if cron.either_day else by_month and by_week
    return minute.minute in cron.minutes and minute.hour in cron.hours and fits_day and minute.month in cron.months


@settings(max_examples=150)
@given(CRONS, MOMENTS)
def test_no_minute_is_forgotten(cron: Cron, moment: datetime) -> None:
    """A scan of three days finds the same firing, or none where there is none."""
    start, following = moment.replace(second=0, microsecond=0), cron.next_after(moment)
    horizon = 3 * 24 * 60
    found = next((minute for i in range(1, horizon) if _fits(cron, minute := start + i * MINUTE)), None)
    assert found == following if found else following >= start + horizon * MINUTE
