"""Which release comes next and when it is due: from the policy, the clock, and what was opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.plans.calendar import Upcoming, list_upcoming
from release_pipeline.policy.values.periods import Every, begin_of, end_of, name_period, next_period
from release_pipeline.policy.values.scalars import Cron

MONTHLY = "0 6 1 * *"


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


@pytest.mark.parametrize(
    ("opened", "expected"),
    [
        ([], "b"),
        (["b", "c"], "a"),
        (["b", "a", "c"], None),
        (["b", "elsewhere", "a"], "c"),
    ],
)
def test_the_first_of_the_list_that_was_not_opened_is_next(opened: list[str], expected: str | None) -> None:
    """In the order of the file, by hand opened ones left out, and nothing when all are; with a timetable or without."""
    moments = dict.fromkeys(opened, at(2026, 3, 1))
    for releases in (LISTED, TIMED):
        found = find_next(policy_of(releases), moments, seen=at(2026, 2, 1), now=NOW)
        assert (None if found is None else found.release) == expected


@pytest.mark.parametrize(
    ("opened", "seen", "due"),
    [
        ({}, at(2026, 3, 1, 5, 59, 59), at(2026, 3, 1, 6)),
        ({}, at(2026, 3, 1, 6), at(2026, 4, 1, 6)),  # at the very minute: that firing is the one it was seen by
        ({}, None, at(2026, 4, 1, 6)),  # never seen: now
        ({"b": at(2026, 3, 1, 6, 0, 1)}, at(2026, 1, 1), at(2026, 4, 1, 6)),
        ({"b": at(2026, 1, 10)}, at(2026, 2, 20), at(2026, 3, 1, 6)),  # seen anew since
    ],
)
def test_a_list_with_a_timetable_is_due_at_the_next_firing(
    opened: dict[str, datetime], seen: datetime | None, due: datetime
) -> None:
    """After the one before was opened or the policy was seen, whichever is later."""
    assert upcoming(TIMED, opened, seen=seen, now=NOW)[1] == due


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


@pytest.mark.parametrize(
    ("every", "cron", "opened", "expected"),
    [
        ("day", "0 6 * * *", "2024-02-28", ("2024-02-29", at(2024, 3, 1, 6))),
        ("week", "0 6 * * mon", "2020-W52", ("2020-W53", at(2021, 1, 4, 6))),
        ("month", "0 0 1 * *", "2026-01", ("2026-02", at(2026, 3, 1))),
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


@pytest.mark.slow
@given(
    st.sampled_from(get_args(Every)),
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
