"""Which release comes next and when it is due: from the policy, the clock, and what was opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.calendar import Upcoming, list_upcoming, longest_wait
from release_pipeline.policy.cron import Cron
from release_pipeline.policy.periods import KINDS, Every, begin_of, end_of, name_period, next_period

MONTHLY = "0 6 1 * *"
SECOND = timedelta(seconds=1)


def find_next(policy: Policy, opened: Mapping[str, datetime], **when: Any) -> Upcoming | None:
    """The first of those that come."""
    return next(list_upcoming(policy, opened, **when), None)


def policy_of(releases: str) -> Policy:
    """A policy with these releases."""
    column = "" if releases == "once" else ", release_column: year"
    return parse_policy(
        f"policy: people\nsteward: ana\npopulation: people\nsource: {{path: people.csv{column}}}\nreleases: {releases}\n"
        "person: each-row\nprotect: {method: laplace, epsilon: 1}\n"
        "columns:\n  a: {role: confidential, do: noise, domain: [0, 9], grid: 1, outside: clamp, why: known}\n",
        name="people.yaml",
    )


def at(*parts: int) -> datetime:
    """A moment in UTC."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def upcoming(
    releases: str,
    opened: Mapping[str, datetime] | None = None,
    *,
    charged: Collection[str] = (),
    seen: datetime | None = None,
    now: datetime,
) -> tuple:
    """The next release and when it is due; nothing if there is none."""
    found = find_next(policy_of(releases), opened or {}, charged=charged, seen=seen, now=now)
    return () if found is None else (found.release, found.due)


NOW = at(2026, 3, 15, 12)
LISTED = '["b", "a", "c"]'
TIMED = f'{{list: ["b", "a", "c"], cron: "{MONTHLY}"}}'


# lists


@pytest.mark.parametrize(
    ("opened", "expected"),
    [
        ([], "b"),
        (["b"], "a"),
        (["a"], "b"),
        (["b", "c"], "a"),
        (["a", "b"], "c"),
        (["b", "a", "c"], None),
        (["elsewhere"], "b"),
        (["b", "elsewhere", "a"], "c"),
    ],
)
def test_the_first_of_the_list_that_was_not_opened_is_next(opened: list[str], expected: str | None) -> None:
    """In the order of the file, by hand opened ones left out, and nothing when all are; with a timetable or without."""
    moments = dict.fromkeys(opened, at(2026, 3, 1))
    for releases in (LISTED, TIMED):
        found = find_next(policy_of(releases), moments, seen=at(2026, 2, 1), now=NOW)
        assert (None if found is None else found.release) == expected


def test_a_list_without_a_timetable_is_never_due() -> None:
    """And so never late; a policy that is released once likewise."""
    for releases, name in ((LISTED, "b"), ("once", "once")):
        found = find_next(policy_of(releases), {}, seen=at(2020, 1, 1), now=NOW)
        assert found == Upcoming(name, None)
        assert not found.is_late(at(9000, 1, 1))
    assert find_next(policy_of("once"), {"once": NOW}, seen=None, now=NOW) is None


@pytest.mark.parametrize(
    ("opened", "seen", "due"),
    [
        ({}, at(2026, 2, 10), at(2026, 3, 1, 6)),  # since the policy was seen
        ({}, at(2026, 3, 1, 5, 59, 59), at(2026, 3, 1, 6)),
        ({}, at(2026, 3, 1, 6), at(2026, 4, 1, 6)),  # at the very minute: that firing is the one it was seen by
        ({}, None, at(2026, 4, 1, 6)),  # never seen: now
        ({"b": at(2026, 1, 10)}, at(2026, 1, 1), at(2026, 2, 1, 6)),  # since the one before it was opened
        ({"b": at(2026, 3, 1, 6, 0, 1)}, at(2026, 1, 1), at(2026, 4, 1, 6)),
        ({"b": at(2026, 1, 10)}, at(2026, 2, 20), at(2026, 3, 1, 6)),  # seen anew since
        ({"b": at(2026, 2, 10), "c": at(2026, 1, 1)}, at(2026, 1, 1), at(2026, 3, 1, 6)),  # the last one counts
        ({"elsewhere": at(2026, 3, 10)}, at(2026, 1, 10), at(2026, 2, 1, 6)),  # no release of the list
        ({"b": at(2026, 3, 20)}, at(2026, 1, 1), at(2026, 4, 1, 6)),  # the clock was set back: not before the next one
    ],
)
def test_a_list_with_a_timetable_is_due_at_the_next_firing(
    opened: dict[str, datetime], seen: datetime | None, due: datetime
) -> None:
    """After the one before was opened or the policy was seen, whichever is later."""
    assert upcoming(TIMED, opened, seen=seen, now=NOW)[1] == due


DAYS = st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC))


@given(st.dictionaries(st.sampled_from("bac"), DAYS, max_size=2), st.none() | DAYS)
def test_due_is_the_first_firing_after_everything_that_was(opened: dict[str, datetime], seen: datetime | None) -> None:
    """No release is due before the one before it was opened, and none is put off by a firing. What is dated in the future, by a
    clock that was ahead, lets nothing be due at once."""
    found = find_next(policy_of(TIMED), opened, seen=seen, now=NOW)
    assert found is not None
    assert found.due is not None
    dates = [seen or NOW, *opened.values()]
    assert found.due > max(min(date, NOW) for date in dates)
    cron = Cron.parse(MONTHLY)
    assert cron.next_after(found.due - SECOND) == found.due
    if max(dates) <= NOW:
        assert cron.next_after(max(dates)) == found.due


def test_late_is_after_the_due_moment_alone() -> None:
    """Neither before nor at it."""
    one = Upcoming("a", NOW)
    assert [one.is_late(NOW + offset) for offset in (-SECOND, timedelta(0), SECOND)] == [False, False, True]


def test_a_missed_tick_of_a_list_leaves_the_release_due_since_then() -> None:
    """Months without a daemon: one release is late, since its first firing; the one after it waits for the next firing."""
    seen = at(2026, 1, 10)
    assert upcoming(TIMED, seen=seen, now=at(2026, 6, 15)) == ("b", at(2026, 2, 1, 6))
    assert upcoming(TIMED, {"b": at(2026, 6, 15)}, seen=seen, now=at(2026, 6, 15)) == ("a", at(2026, 7, 1, 6))


# periods


def test_the_first_period_is_the_one_in_which_the_policy_was_seen() -> None:
    """Seen in March: March, and nothing that had ended before. Late or not, it stays that one until it is opened."""
    releases = f'{{every: month, cron: "{MONTHLY}"}}'
    for now in (at(2026, 3, 15), at(2026, 4, 1, 6), at(2026, 8, 15)):
        assert upcoming(releases, seen=at(2026, 3, 15), now=now) == ("2026-03", at(2026, 4, 1, 6))
    assert upcoming(releases, now=at(2026, 3, 15)) == ("2026-03", at(2026, 4, 1, 6))
    assert upcoming(releases, seen=at(2026, 3, 31, 23, 59, 59), now=NOW) == ("2026-03", at(2026, 4, 1, 6))
    assert upcoming(releases, seen=at(2026, 4, 1), now=NOW) == ("2026-04", at(2026, 5, 1, 6))


def test_a_timetable_that_fires_daily_opens_no_quarter_that_had_ended_before() -> None:
    """A policy that is noted on a day in May, looked at every minute: the second quarter, once it has ended; not the first."""
    for cron in ("* * * * *", "0 6 * * *"):
        name, due = upcoming(f'{{every: quarter, cron: "{cron}"}}', seen=at(2026, 5, 20), now=at(2026, 5, 21))
        assert (name, due) == ("2026-Q2", Cron.parse(cron).next_after(at(2026, 7, 1) - SECOND))


def test_a_series_begins_where_the_policy_says() -> None:
    """With what had ended before it was seen, too: due at the first firing after it was, all of it, and then in order, each after
    its end. A first one that is still to come is waited for."""
    releases = f'{{every: month, first: 2025-12, cron: "{MONTHLY}"}}'
    policy, seen = policy_of(releases), at(2026, 2, 10)
    found = islice(list_upcoming(policy, {}, seen=seen, now=at(2026, 2, 11)), 4)
    assert [(one.release, one.due) for one in found] == [
        ("2025-12", at(2026, 3, 1, 6)),
        ("2026-01", at(2026, 3, 1, 6)),
        ("2026-02", at(2026, 3, 1, 6)),
        ("2026-03", at(2026, 4, 1, 6)),
    ]
    later = f'{{every: month, first: 2027-01, cron: "{MONTHLY}"}}'
    assert upcoming(later, seen=seen, now=NOW) == ("2027-01", at(2027, 2, 1, 6))
    assert upcoming(later, {"2026-02": NOW}, charged=["2026-02"], seen=seen, now=NOW) == ("2027-01", at(2027, 2, 1, 6))


def test_nothing_before_a_charged_release_comes_by_itself() -> None:
    """What a person charged out of turn ends what lies before it, and the next one says what was left out; what was charged
    before the series' beginning plays no part, nor does what was opened and not charged."""
    policy, moment = policy_of(f'{{every: quarter, first: 2025-Q1, cron: "{MONTHLY}"}}'), at(2026, 5, 1)
    opened = dict.fromkeys(["2025-Q2", "2026-Q1"], moment)

    def first(charged: Collection[str]) -> tuple[str, tuple[str, ...]]:
        found = find_next(policy, opened, charged=charged, seen=moment, now=moment)
        assert found is not None
        return found.release, found.left_out

    assert first([]) == ("2025-Q1", ())
    assert first(["2025-Q2"]) == ("2025-Q3", ("2025-Q1",))
    assert first(["2025-Q2", "2026-Q1"]) == first(["2026-Q1"]) == ("2026-Q2", ("2025-Q1", "2025-Q3", "2025-Q4"))
    assert first(["2024-Q4", "2019", "2025-01", "elsewhere"]) == ("2025-Q1", ())
    second = list(islice(list_upcoming(policy, opened, charged=["2026-Q1"], seen=moment, now=moment), 3))
    assert [one.left_out for one in second[1:]] == [(), ()]


def test_the_releases_of_a_list_come_one_after_the_other() -> None:
    """The next one is due; those after it not before the firings that follow, from now on where it is late: they are not late."""
    found = list(list_upcoming(policy_of(TIMED), {"b": at(2026, 1, 5)}, seen=at(2026, 1, 1), now=NOW))
    assert found == [Upcoming("a", at(2026, 2, 1, 6)), Upcoming("c", at(2026, 4, 1, 6), earliest=True)]
    found = list(list_upcoming(policy_of(TIMED), {}, seen=at(2026, 3, 2), now=NOW))
    assert [one.due for one in found] == [at(2026, 4, 1, 6), at(2026, 5, 1, 6), at(2026, 6, 1, 6)]
    assert [one.is_late(at(2030, 1, 1)) for one in found] == [True, False, False]
    assert [one.due for one in list_upcoming(policy_of(LISTED), {}, seen=None, now=NOW)] == [None, None, None]


@pytest.mark.parametrize(
    ("releases", "days"),
    [
        (f'{{every: month, cron: "{MONTHLY}"}}', 31),
        ('{every: month, cron: "* * * * *"}', 31),
        ('{every: quarter, cron: "* * * * *"}', 92),
        ('{every: quarter, cron: "0 6 * * *"}', 92),
        ('{every: year, cron: "0 6 2 1 *"}', 366),
        ('{every: year, cron: "0 0 29 2 *"}', 366 + 3 * 365),
        ('{every: day, cron: "* * * * *"}', 1),
        ('{every: day, cron: "0 6 * * mon"}', 7),
        (TIMED, None),
        (LISTED, None),
    ],
)
def test_the_longest_wait_is_between_two_periods(releases: str, days: int | None) -> None:
    """By the period where the timetable fires oftener, by the timetable where it fires more seldom; a list ends, and has none."""
    assert longest_wait(policy_of(releases)) == (None if days is None else timedelta(days=days))


@pytest.mark.parametrize(
    ("every", "cron", "opened", "expected"),
    [
        ("day", "0 6 * * *", "2024-02-28", ("2024-02-29", at(2024, 3, 1, 6))),
        ("day", "0 6 * * mon", "2026-02-27", ("2026-02-28", at(2026, 3, 2, 6))),  # a Saturday, at the next Monday
        ("week", "0 6 * * mon", "2020-W52", ("2020-W53", at(2021, 1, 4, 6))),
        ("week", "0 0 * * mon", "2026-W08", ("2026-W09", at(2026, 3, 2))),  # at the very moment of its end
        ("month", MONTHLY, "2026-01", ("2026-02", at(2026, 3, 1, 6))),
        ("month", MONTHLY, "2025-12", ("2026-01", at(2026, 2, 1, 6))),
        ("month", "0 0 1 * *", "2026-01", ("2026-02", at(2026, 3, 1))),
        ("month", "0 0 15 * *", "2026-01", ("2026-02", at(2026, 3, 15))),
        ("quarter", "0 0 1 * *", "2025-Q4", ("2026-Q1", at(2026, 4, 1))),
        ("year", "0 0 29 2 *", "2022", ("2023", at(2024, 2, 29))),
    ],
)
def test_the_next_period_is_due_at_the_first_firing_after_its_end(
    every: str, cron: str, opened: str, expected: tuple[str, datetime]
) -> None:
    """Also at its very end; when the one before was opened plays no part."""
    for moment in (at(2020, 1, 1), at(2030, 1, 1)):
        releases = f'{{every: {every}, first: "{opened}", cron: "{cron}"}}'
        seen = at(2019, 1, 1)
        assert upcoming(releases, {opened: moment}, seen=seen, now=NOW) == expected
        without = releases.replace(f'first: "{opened}", ', "")
        assert upcoming(without, {opened: moment}, seen=begin_of(every, opened), now=NOW) == expected  # type: ignore[arg-type]


def test_missed_ticks_leave_no_period_out() -> None:
    """Half a year without a daemon: the months are opened in order, each due since its own end."""
    releases = f'{{every: month, cron: "{MONTHLY}"}}'
    opened, now = {"2025-11": at(2025, 12, 1, 6)}, at(2026, 4, 20)
    found: list[tuple[str, datetime]] = []
    for _ in range(9):
        name, due = upcoming(releases, opened, seen=at(2025, 11, 5), now=now)
        if due <= now:
            found.append((name, due))
            opened[name] = now
    assert found == [
        ("2025-12", at(2026, 1, 1, 6)),
        ("2026-01", at(2026, 2, 1, 6)),
        ("2026-02", at(2026, 3, 1, 6)),
        ("2026-03", at(2026, 4, 1, 6)),
    ]


def test_a_gap_comes_before_what_follows_it() -> None:
    """A month that nobody opened, between two that were opened and not charged; and names of another kind are not counted."""
    releases = f'{{every: month, first: 2026-01, cron: "{MONTHLY}"}}'
    opened = dict.fromkeys(["2026-03", "2026-01", "2026-Q1", "2019", "once"], NOW)
    assert upcoming(releases, opened, seen=NOW, now=NOW)[0] == "2026-02"
    assert upcoming(releases, opened | {"2026-02": NOW}, seen=NOW, now=NOW)[0] == "2026-04"


@pytest.mark.slow
@given(
    st.sampled_from(KINDS),
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)),
    st.integers(0, 5),
    st.sampled_from([MONTHLY, "0 0 1 1 *", "30 7 * * mon", "* * * * *", "0 0 31 * *"]),
)
def test_a_period_is_never_due_before_its_end_and_follows_the_opened_ones(
    every: Every, moment: datetime, count: int, cron: str
) -> None:
    """Whatever the timetable: the one after the last opened without a gap, due at the first firing at or after its end."""
    names = [name_period(every, moment.replace(tzinfo=UTC))]
    for _ in range(count):
        names.append(next_period(every, names[-1]))
    policy = policy_of(f'{{every: {every}, cron: "{cron}"}}')
    found = find_next(policy, dict.fromkeys(names[:-1], NOW), seen=moment.replace(tzinfo=UTC), now=NOW)
    assert found is not None
    assert found.due is not None
    assert found.release == names[-1]
    assert found.due == Cron.parse(cron).next_after(end_of(every, names[-1]) - timedelta(microseconds=1))
    assert begin_of(every, found.release) < end_of(every, found.release) <= found.due
