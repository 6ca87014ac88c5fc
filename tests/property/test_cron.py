"""Timetables against Dagster, which runs the same expressions, and against a scan of every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.policy.values.scalars import Cron

MINUTE = timedelta(minutes=1)
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


def croniter(text: str, moment: datetime) -> Any:
    """Dagster's own, at a moment."""
    from dagster._vendored import croniter as vendored

    return vendored.croniter(text, moment)


@settings(max_examples=100)
@given(CRONS, MOMENTS)
def test_firings_are_those_of_dagsters_croniter(cron: Cron, moment: datetime) -> None:
    """Over two centuries, whichever of the day fields are restricted."""
    assert cron.next_after(moment) == croniter(cron.text, moment).get_next(datetime)


@settings(max_examples=100)
@given(st.lists(st.integers(28, 31), min_size=1, max_size=2), st.lists(st.integers(1, 12), min_size=1, max_size=3), PARTS[4])
def test_refused_as_never_firing_when_dagster_finds_no_time(days: list[int], months: list[int], weekdays: str) -> None:
    """No more and no less."""
    text = f"0 0 {','.join(map(str, days))} {','.join(map(str, months))} {weekdays}"
    if _can_be_parsed(text):
        croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next(datetime)
    else:
        with pytest.raises(ValueError, match="failed to find next date"):
            croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next(datetime)


@settings(max_examples=100)
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
