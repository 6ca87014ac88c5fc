"""Sessions, tickets and wrong tokens, by a clock that goes on when it is told to."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from release_pipeline.apps.desk.backend import service as access
from release_pipeline.apps.desk.backend.service import IDLE_SECONDS, LASTS_SECONDS, MOST_WRONG, WRONG_SECONDS, Attempts, Sessions
from release_pipeline.apps.door import Refused


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_is_found_by_secret_and_place_together() -> None:
    """Neither alone, nor those of two."""
    known = Sessions(clock=Clock())
    (one, here), (two, there) = known.begin("ben", "t"), known.begin("cleo", "u")
    found = known.find(one, here)
    assert found is not None
    assert (found.person, found.token) == ("ben", "t")
    for secret, place in ((one, there), (two, here), (one, ""), ("", here), ("", ""), (here, one), ("é", "é"), (one, "\ud800")):
        assert known.find(secret, place) is None
    assert one not in repr(found)


@example([3000.0] * 12)
@given(st.lists(st.floats(1, IDLE_SECONDS * 1.5), max_size=20))
def test_a_session_lasts_as_long_as_it_is_used_and_no_longer_than_a_day(steps: list[float]) -> None:
    """Whatever the pauses are."""
    clock = Clock()
    known = Sessions(clock=clock)
    secret, place = known.begin("ben", "t")
    lasts = True
    for step in steps:
        clock.now += step
        lasts = lasts and step < IDLE_SECONDS and clock.now < LASTS_SECONDS
        assert (known.find(secret, place) is not None) is lasts


def test_nobody_throws_others_out() -> None:
    """Who logs in again and again ends their own oldest sessions."""
    known = Sessions(clock=Clock())
    cleo, first = known.begin("cleo", "t"), known.begin("ben", "t")
    later = [known.begin("ben", "t") for _ in range(access._MOST_SESSIONS)]  # pyright: ignore[reportPrivateUsage]
    assert known.find(*first) is None
    assert all(known.find(*one) is not None for one in [cleo, *later])


def test_wrong_tokens_are_counted_for_a_minute() -> None:
    """Then there are none."""
    clock = Clock()
    known = Attempts(clock=clock)
    for _ in range(MOST_WRONG):
        known.note()
    for _ in range(3):
        with pytest.raises(Refused) as refused:
            known.note()
        assert refused.value.status == 429
    clock.now += WRONG_SECONDS
    known.note()
