"""What opens a release when nobody does, what it says when it does not, and what `status` tells of it meanwhile."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.ledger.policies import next_release
from release_pipeline.ledger.states import ReleaseStatus
from release_pipeline.operate import timetable
from release_pipeline.operate.overview import describe_status, list_releases
from release_pipeline.operate.timetable import ARRIVAL, TIMETABLE, Tick, arrival, record_policies, tick
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.approvals import NOT_APPROVED
from release_pipeline.trust.keys import PrivateKey
from tests.integration.clocks import set_registry_clock
from tests.integration.people import appoint
from tests.integration.sites import HEADER, TinySite, make_rows, make_site

LIST = '{list: ["1", "2"], cron: "0 6 1 * *"}'
EVERY = '{every: month, cron: "0 6 1 * *"}'
SEEN = datetime(2025, 3, 10, 12, tzinfo=UTC)
DUE = datetime(2025, 4, 1, 6, tzinfo=UTC)
AGAIN = datetime(2025, 5, 1, 6, tzinfo=UTC)
FIRST = {LIST: "1", EVERY: "2025-03"}
SECOND = {LIST: "2", EVERY: "2025-04"}
MINUTE = timedelta(minutes=1)


def never(_: ReleaseId) -> bool:
    """No run was ever begun."""
    return False


def always(_: ReleaseId) -> bool:
    """Every release that was opened is run."""
    return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock by which the registry dates its events, to be set by `moment`; a day in March."""
    return set_registry_clock(monkeypatch, SEEN)


def site_of(home: Path, releases: str, **parts: Any) -> TinySite:
    """A site with this timetable, whose source has both releases; the policy was seen in March."""
    rows = parts.pop("rows", make_rows(releases=[FIRST.get(releases, "1"), SECOND.get(releases, "2")]))
    tiny = make_site(home, rows=rows, releases=releases, **parts)
    record_policies(tiny.site)
    return tiny


@pytest.fixture(params=[LIST, EVERY], ids=["list", "every month"])
def releases(request: pytest.FixtureRequest) -> str:
    """The two kinds of timetable."""
    return request.param


@pytest.fixture
def tiny(clock: Any, tmp_path: Path, releases: str) -> TinySite:
    """A site whose first release is due on the first of April."""
    return site_of(tmp_path / "site", releases)


def opened(tiny: TinySite) -> list[str]:
    """What was opened, in order, once for each event."""
    return [str(event.release) for event in tiny.events() if event.kind == "opened"]


def on_time(tiny: TinySite, now: datetime, *, has_run: Callable[[ReleaseId], bool] = always) -> Tick:
    """A tick of the timetable."""
    return tick(tiny.site, "people", why=TIMETABLE, has_run=has_run, now=now)


def on_arrival(tiny: TinySite, now: datetime, *, has_run: Callable[[ReleaseId], bool] = always) -> Tick:
    """A tick because the source arrived."""
    return tick(tiny.site, "people", why=ARRIVAL, has_run=has_run, now=now)


def set_clock(clock: Any, moment: datetime) -> datetime:
    """Both the registry's clock and the moment of a tick."""
    clock.moment = moment
    return moment


# opening


def test_a_tick_opens_the_next_release_and_notes_it(tiny: TinySite, clock: Any, releases: str) -> None:
    """By its name and first revision, as an event with the reason and the time; nothing is charged, read or run."""
    now = set_clock(clock, DUE)
    expected = ReleaseId("people", FIRST[releases])
    assert on_time(tiny, now) == Tick(expected, TIMETABLE)
    event = tiny.events()[-1]
    assert (event.kind, event.release, event.content, event.moment) == ("opened", expected, {"why": TIMETABLE}, DUE)
    release_status = ReleaseStatus(expected, "open", since=DUE.isoformat(), why=TIMETABLE)
    assert tiny.statuses() == {expected: release_status}
    assert {file.name for file in tiny.site.vault.iterdir()} <= {"key", "registry.head", ".gitignore"}


QUARTERS = ["2024-Q3", "2024-Q4", "2025-Q1", "2025-Q2"]


def test_a_later_release_charged_while_the_source_is_looked_at_ends_the_tick(
    clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came next when the tick began does not any more: it is judged anew in the transaction that opens it."""
    releases = '{every: quarter, first: 2024-Q3, cron: "0 6 * * *"}'
    tiny = site_of(tmp_path / "site", releases, rows=make_rows(releases=QUARTERS))
    count = timetable.count_arrived

    def count_and_charge(*arguments: Any) -> int:
        tiny.charge("2024-Q4")
        return count(*arguments)

    monkeypatch.setattr(timetable, "count_arrived", count_and_charge)
    found = on_time(tiny, set_clock(clock, SEEN + timedelta(days=1)))
    assert found == Tick(reason="people/2024-Q3/r1 does not come next any more.")
    assert opened(tiny) == ["people/2024-Q4/r1"]


def test_a_series_begins_when_it_became_one(clock: Any, tmp_path: Path) -> None:
    """A policy that was known for long with a list, and then gets periods: it begins with the period of that day, not with what
    ended while it was a list; another `first` is due after the day it was noted, and further changes put nothing off."""
    tiny = site_of(tmp_path / "site", LIST)
    now = set_clock(clock, datetime(2026, 2, 10, tzinfo=UTC))
    for releases, expected in (
        (EVERY, ("2026-02", datetime(2026, 3, 1, 6, tzinfo=UTC))),
        (EVERY.replace("month", "month, first: 2025-11"), ("2025-11", datetime(2026, 4, 1, 6, tzinfo=UTC))),
        (
            EVERY.replace("month", "month, first: 2025-11").replace("0 6 1", "0 7 1"),
            ("2025-11", datetime(2026, 4, 1, 7, tzinfo=UTC)),
        ),
        (EVERY, ("2026-05", datetime(2026, 6, 1, 6, tzinfo=UTC))),
    ):
        tiny.write_policy(releases=releases)
        record_policies(tiny.site)
        upcoming = next_release(tiny.site.policy("people"), tiny.events(), now)
        assert upcoming is not None
        assert (upcoming.release, upcoming.due) == expected
        now = set_clock(clock, now + timedelta(days=30))


# saying why not


def break_policy(tiny: TinySite) -> None:
    """The policy has an error."""
    file = tiny.home / "policies" / "people.yaml"
    file.write_text(file.read_text() + "unknown: 1\n")


def few(count: int) -> Callable[[TinySite], None]:
    """So many records of the first release, and enough of the second."""

    def write(tiny: TinySite) -> None:
        tiny.write_rows([*make_rows(count, releases=["1", "2025-03"]), *make_rows(releases=["2", "2025-04"])])

    return write


TOO_FEW = r"^the source has too few records of release (1|2025-03) yet\.$"
REASONS: dict[str, tuple[Callable[[TinySite], Any], str]] = {
    "no record yet": (few(0), TOO_FEW),
    "one record": (few(1), TOO_FEW),
    "too few": (few(19), TOO_FEW),
    "over the cap": (
        lambda tiny: tiny.write_cap("epsilon: 1.9, definition: idp, scope: column"),
        r"^people/.*/r1: the ledger refuses: folk has 1\.9 left of 1\.9 .*this release would take 2\.",
    ),
    "infinite": (
        lambda tiny: tiny.write_cap("epsilon: 1000, definition: dp, scope: column"),
        r"^people/.*/r1: the ledger refuses: .*would take infinity",
    ),
    "unreadable policy": (break_policy, r"people\.yaml"),
    "no policy": (lambda tiny: (tiny.home / "policies" / "people.yaml").unlink(), "no policy 'people'"),
    "no populations": (lambda tiny: (tiny.home / "populations.yaml").unlink(), r"populations\.yaml"),
    "no population": (
        lambda tiny: (tiny.home / "populations.yaml").write_text("others: {cap: {releases: 1}}\n"),
        "'folk' is not",
    ),
    "no source": (lambda tiny: (tiny.home / "people.csv").unlink(), r"people\.csv: there is no such file"),
    "empty source": (lambda tiny: (tiny.home / "people.csv").write_text(""), r"people\.csv"),
    "no release column": (
        lambda tiny: tiny.write_rows(make_rows(), header=[name for name in HEADER if name != "year"]),
        r"column year|year",
    ),
    "registry changed": (lambda tiny: tiny.site.registry.unlink(), "Restore the registry"),
}


@pytest.mark.parametrize("case", REASONS)
def test_a_tick_that_opens_nothing_says_why(clock: Any, tmp_path: Path, case: str) -> None:
    """In words, without an exception, and nothing was opened; whether it is for the time or for the source."""
    spoil, reason = REASONS[case]
    tiny = site_of(tmp_path / "site", LIST)
    spoil(tiny)
    for ask in (on_time, on_arrival):
        found = ask(tiny, set_clock(clock, DUE))
        assert found.release is None
        assert re.search(reason, found.reason), found.reason
    if case != "registry changed":
        assert opened(tiny) == []


def test_no_source_is_read_under_a_policy_that_is_not_approved(clock: Any, tmp_path: Path, keys: dict[str, PrivateKey]) -> None:
    """Else a steward counts the records of any file: a reason says how many have the value that a release is called by."""
    tiny = site_of(tmp_path / "site", LIST)
    appoint(tiny, keys)
    text = (tiny.home / "policies" / "people.yaml").read_text()
    (tiny.home / "policies" / "people.yaml").write_text(text.replace("min_rows: 20", "min_rows: 21"))
    tiny.write_rows(make_rows(5))
    for found in (on_time(tiny, set_clock(clock, DUE)), on_arrival(tiny, DUE), look(tiny, [""])):
        assert NOT_APPROVED in found.reason
        assert "record" not in found.reason


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Another process has this database open."""
    program = "import duckdb, sys\nheld = duckdb.connect(sys.argv[1])\nprint('held', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            process.stdin.close()


# once


def test_what_was_opened_and_never_run_is_given_once_more(tiny: TinySite, clock: Any, releases: str) -> None:
    """Somebody stopped between the opening and the run: the same release again at every tick until it has a run, also when its
    time is over and by another way; it is opened once."""
    first = ReleaseId("people", FIRST[releases])
    on_time(tiny, set_clock(clock, DUE), has_run=never)
    for now, ask in ((DUE, on_time), (DUE + MINUTE, on_arrival), (AGAIN, on_time)):
        assert ask(tiny, set_clock(clock, now), has_run=never) == Tick(first, "it was opened before, and no run was begun")
    assert on_time(tiny, AGAIN, has_run=first.__eq__).release == ReleaseId("people", SECOND[releases])
    assert opened(tiny) == [str(first), f"people/{SECOND[releases]}/r1"]


def test_a_revision_that_was_opened_and_never_run_is_given_instead_of_what_it_replaces(clock: Any, tmp_path: Path) -> None:
    """The release that was given up is run no more."""
    tiny = site_of(tmp_path / "site", LIST)
    on_time(tiny, DUE)
    tiny.charge("1")
    revise_release(tiny.site, "people", "1", why="a correction")
    assert on_time(tiny, DUE, has_run=never).release == ReleaseId("people", "1", 2)


@pytest.mark.parametrize("back", [timedelta(minutes=1), timedelta(days=4000)])
def test_a_clock_set_back_opens_nothing_twice(tiny: TinySite, clock: Any, releases: str, back: timedelta) -> None:
    """The registry knows what was opened: by arrival the next release waits for its own time, a month for its end, and `status`
    tells of the clock when it is more than a minute."""
    on_time(tiny, set_clock(clock, DUE))
    earlier = set_clock(clock, DUE - back)
    assert on_arrival(tiny, earlier).release is None
    on_time(tiny, earlier)
    assert len(opened(tiny)) == len(set(opened(tiny)))
    assert opened(tiny)[0] == f"people/{FIRST[releases]}/r1"
    assert releases == LIST or len(opened(tiny)) == 1
    with tiny.site.open_registry() as registry:
        registry.add("policy", policy="people", hash="0", population="folk")
    sentences = [line for line in list_releases(tiny.site, now=earlier)[1] if "the clock was set back" in line]
    assert bool(sentences) == (back > MINUTE)


def test_a_release_opened_by_hand_in_between_is_left_to_the_hand(
    clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the source was looked at: not opened a second time."""
    tiny = site_of(tmp_path / "site", LIST)
    count = timetable.count_arrived

    def count_and_open(*arguments: Any) -> int:
        tiny.flow("1").check_may_begin()
        return count(*arguments)

    monkeypatch.setattr(timetable, "count_arrived", count_and_open)
    assert on_time(tiny, DUE) == Tick(reason="people/1/r1 was opened meanwhile.")
    assert opened(tiny) == ["people/1/r1"]


# arrival


def look(tiny: TinySite, cursors: list[str], *, has_run: Callable[[ReleaseId], bool] = always) -> Tick:
    """One look of the sensor, with what the last one left."""
    found, cursor = arrival(tiny.site, "people", cursor=cursors[-1], has_run=has_run)
    cursors.append(cursor)
    return found


def test_a_source_opens_a_release_when_it_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New or changed since the last look, it may still be being written; when it was found too small, it is not read again until
    it changes; and then the next release likewise."""
    tiny = make_site(tmp_path / "site", rows=make_rows(5, releases=["1"]))
    cursors = [""]
    changed = "the source is new or was changed; the next look tells whether it stays as it is."
    assert look(tiny, cursors).reason == changed
    assert "too few records of release 1" in look(tiny, cursors).reason
    with monkeypatch.context() as patch:
        patch.setattr(timetable, "count_arrived", None)  # whoever reads the source fails
        assert "too few records of release 1" in look(tiny, cursors).reason
    assert cursors[-1] == cursors[-2]
    tiny.write_rows(make_rows(30, releases=["1"]))
    assert look(tiny, cursors).reason == changed
    tiny.write_rows(make_rows(releases=["1"]))
    assert look(tiny, cursors).reason == changed
    assert look(tiny, cursors) == Tick(ReleaseId("people", "1"), ARRIVAL)
    while (found := look(tiny, cursors)).reason == changed:
        assert len(cursors) < 12
    assert "of release 2" in found.reason
    (tiny.home / "people.csv").unlink()
    assert "there is no such file" in look(tiny, cursors).reason
    tiny.write_rows(make_rows())
    assert [look(tiny, cursors).release for _ in range(2)] == [None, ReleaseId("people", "2")]
    assert opened(tiny) == ["people/1/r1", "people/2/r1"]


# status


def status(tiny: TinySite, now: datetime) -> dict[str, tuple[str, str]]:
    """State and words of each line of `status`."""
    lines, _ = list_releases(tiny.site, now=now)
    shown = list(describe_status(tiny.site, now=now))
    for line in lines:
        [text] = [text for text in shown if text.split()[0] == line.release]
        assert text.split()[1] == line.state
        assert text.endswith(line.reason or line.claim)
    return {line.release: (line.state, line.reason or line.claim) for line in lines}
