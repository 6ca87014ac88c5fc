"""Timetables: what is accepted, what is refused and how that is said, and when they fire."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from release_pipeline.policy.values.scalars import EXAMPLE, Cron


def at(text: str) -> datetime:
    """The moment, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment", "after"),
    [  # firings around a moment that is none itself
        ("0 6 1 * *", "2024-01-31T23:59:59.999999", "2024-02-01T06:00"),
        ("*/15 8-17 * * mon-fri", "2024-03-02T12:00", "2024-03-04T08:00"),
        ("0 0 31 * *", "2024-06-15", "2024-07-31"),
        ("0 0 1 jan,JUL *", "2024-06-15", "2024-07-01"),
        ("0 0 1 2-12/5 *", "2024-06-15", "2024-07-01"),
        ("0 12 * * 0", "2024-06-12", "2024-06-16T12:00"),
        ("0 12 * * Fri-7", "2024-06-12", "2024-06-14T12:00"),
        ("0 0 29 2 *", "2025-01-01", "2028-02-29"),
        ("0 0 29 2 *", "1900-03-01", "1904-02-29"),
        ("0 0 29 2 *", "2100-02-28T23:59", "2104-02-29"),
        ("0 0 30,31 2,4 *", "2024-03-15", "2024-04-30"),
    ],
)
def test_known_answers(text: str, moment: str, after: str) -> None:
    """The first firing after it, over the ends of days, months, years and centuries."""
    assert Cron.parse(text).next_after(at(moment)) == at(after)


def test_a_moment_without_its_zone_is_refused() -> None:
    """Nobody guesses the zone."""
    with pytest.raises(ValueError, match="a moment needs its time zone"):
        Cron.parse("0 6 1 * *").next_after(datetime(2024, 1, 1))


def test_at_the_end_of_the_calendar_there_is_no_firing() -> None:
    """An error that says so, and no endless search."""
    cron = Cron.parse("0 0 29 2 *")
    with pytest.raises(ValueError, match=r"'0 0 29 2 \*' fires no more before the end of the year 9999"):
        cron.next_after(at("9999-06-01"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "this has 0"),
        ("60 6 1 * *", "the minute '60' is out of range: this field takes 0 to 59,"),
        ("0 6 0-5 * *", "the day of month '0-5' is out of range"),
        ("0 6 1 * 8", "the day of week '8' is out of range: this field takes 0 to 7 or sun to sat"),
        (
            "0 6 * * fri-sun",
            "the day of week 'fri-sun' is a range that runs backwards: this field takes 0 to 7 or sun to sat (sun",
        ),
        ("5-5 6 1 * *", "the minute '5-5' is a range of one, which is written 5:"),
        ("*/0 * * * *", "the minute '*/0' has a step that is not between 1 and 59"),
        ("5/10 * * * *", "the minute '5/10' is a step without an end, unlike 5-59/10:"),
        ("*/99999 * * * *", "the minute '*/99999' cannot be read"),
        ("\u0661 * * * *", "the minute '\u0661' cannot be read"),
        ("1,,2 * * * *", "the minute '' cannot be read"),
        ("0 6 1 mon *", "the month 'mon' cannot be read"),
        ("0 6 L * *", "the day of month 'l' cannot be read"),
        ("0 0 30 2 *", "the month '2' has no day of month '30': it never fires"),
        ("0 0 31 4 mon", "the month '4' has no day of month '31': only its days of week could; its day of month must then be *"),
        (f"{'9' * 1000} * * * *", f"the minute '{'9' * 40}' cannot be read"),
    ],
)
def test_what_is_refused_and_how(text: str, words: str) -> None:
    """The message names the field and what it takes, and has an example."""
    with pytest.raises(ValueError) as caught:
        Cron.parse(text)
    assert words in str(caught.value)
    assert str(caught.value).endswith(EXAMPLE)
    assert len(str(caught.value)) < 300
