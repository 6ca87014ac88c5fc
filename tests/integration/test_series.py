"""A series that is held and goes on, and what was missed meanwhile."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.cli.program import main
from release_pipeline.errors import Held, OverCap, WrongUsage
from release_pipeline.ledger.account import read_ledgers
from release_pipeline.ledger.states import find_hold, hold_series, resume_series
from release_pipeline.operate.overview import describe_status, list_releases, view_status
from release_pipeline.operate.timetable import (
    ARRIVAL,
    TIMETABLE,
    Tick,
    arrival,
    describe_late,
    list_missed,
    record_policies,
    tick,
)
from release_pipeline.pipeline.check import check_policy, describe_check, view_check
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.validate import validate
from release_pipeline.policy.documents import to_json
from release_pipeline.store.registry import ReleaseId
from release_pipeline.verifier.chain import Event, History
from release_pipeline.verifier.command import verify_path
from release_pipeline.verifier.report import Report
from tests.integration.clocks import set_registry_clock
from tests.integration.people import copy_site
from tests.integration.sites import GX_WARNINGS, TinySite, make_rows, make_site

MONTHS = ["2025-03", "2025-04", "2025-05"]
EVERY = '{every: month, first: 2025-03, cron: "0 6 1 * *"}'
SEEN = datetime(2025, 3, 10, 12, tzinfo=UTC)
JUNE = datetime(2025, 6, 1, 6, tzinfo=UTC)
HELD = Tick(reason="the series is held since 2025-03-10 by ana: the source moves")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock by which the registry dates its events."""
    return set_registry_clock(monkeypatch, SEEN)


@pytest.fixture
def tiny(clock: Any, tmp_path: Path) -> TinySite:
    """A monthly series from March on, whose source has three months."""
    tiny = make_site(tmp_path / "site", rows=make_rows(releases=MONTHS), releases=EVERY)
    record_policies(tiny.site)
    return tiny


def at(tiny: TinySite, clock: Any, now: datetime, *, why: str = TIMETABLE) -> Tick:
    """A tick at that moment, every earlier release being run."""
    clock.moment = now
    return tick(tiny.site, "people", why=why, has_run=lambda _: True, now=now)


def hold(tiny: TinySite) -> None:
    """As somebody holds it."""
    hold_series(tiny.site, "people", why="the source moves", by="ana")


def kinds(tiny: TinySite) -> list[str]:
    """What happened, in order."""
    return [event.kind for event in tiny.events()]


# hold and resume


def test_a_held_series_opens_and_charges_nothing_whoever_asks(tiny: TinySite, clock: Any) -> None:
    """Neither a tick, nor the arrival, nor a person; nothing is noted of the releases, so that they come after it."""
    hold(tiny)
    before = kinds(tiny)
    for why in (TIMETABLE, ARRIVAL):
        assert at(tiny, clock, JUNE, why=why) == HELD
    found = arrival(tiny.site, "people", cursor="seen", has_run=lambda _: True)
    assert found == (HELD, "")
    with pytest.raises(Held, match="held since 2025-03-10 by ana: the source moves"):
        run_release(tiny.flow("2025-03"))
    assert kinds(tiny) == before
    assert not tiny.charges()
    resume_series(tiny.site, "people", why="it has moved", by="bea")
    assert at(tiny, clock, JUNE) == Tick(ReleaseId("people", "2025-03"), TIMETABLE)


def test_what_was_opened_waits_and_is_not_blocked(tiny: TinySite, clock: Any) -> None:
    """Held between its opening and its charge: in the transaction that would charge it."""
    at(tiny, clock, JUNE)
    flow = tiny.flow("2025-03")
    ingest(flow)
    validate(flow)
    hold(tiny)
    with pytest.raises(Held):
        microaggregate(flow)
    assert (tiny.status("2025-03").state, tiny.charges()) == ("open", [])
    resume_series(tiny.site, "people", why="it has moved", by="ana")
    microaggregate(flow)
    assert tiny.status("2025-03").state == "reserved"


@pytest.mark.slow
def test_what_was_charged_goes_on_and_is_not_revised(tiny: TinySite) -> None:
    """Its candidate costs nothing more; a revision would be charged."""
    tiny.charge("2025-03")
    hold(tiny)
    run_release(tiny.flow("2025-03"))
    assert tiny.status("2025-03").state == "candidate"
    with pytest.raises(Held):
        revise_release(tiny.site, "people", "2025-03", why="a mistake")
    assert len(tiny.charges()) == 1


def test_holds_are_events_with_who_and_why(tiny: TinySite) -> None:
    """One after the other; another policy is not held; wrong ones are refused in words, and note nothing."""
    assert find_hold(tiny.events(), "people") is None
    hold(tiny)
    with pytest.raises(WrongUsage, match="by ana: the source moves"):
        hold(tiny)
    for policy, why, by, words in (
        ("nobody", "so", "ana", "no policy 'nobody'"),
        ("people", " ", "ana", "needs its reason"),
        ("people", "so", "", "a name is one line"),
        ("people", "a\nb", "ana", "one line"),
    ):
        for order in (hold_series, resume_series):
            with pytest.raises(WrongUsage, match=words):
                order(tiny.site, policy, why=why, by=by)
    resume_series(tiny.site, "people", why="it has moved", by="bea")
    with pytest.raises(WrongUsage, match="not held"):
        resume_series(tiny.site, "people", why="again", by="bea")
    found = [(event.kind, dict(event.content)) for event in tiny.events() if event.kind in ("held", "resumed")]
    assert found == [
        ("held", {"policy": "people", "why": "the source moves", "by": "ana"}),
        ("resumed", {"policy": "people", "why": "it has moved", "by": "bea"}),
    ]


def test_a_broken_policy_can_be_held(tiny: TinySite) -> None:
    """That is a reason to."""
    (tiny.home / "policies" / "people.yaml").write_text("policy: [")
    hold(tiny)
    assert any("held people: the series is held" in line for line in describe_status(tiny.site))


def test_status_and_check_tell_of_a_hold(tiny: TinySite, clock: Any) -> None:
    """And call nothing late: somebody wanted it."""
    assert describe_late(tiny.site, tiny.site.policy("people"), now=JUNE)
    hold(tiny)
    assert describe_late(tiny.site, tiny.site.policy("people"), now=JUNE) == ""
    line = list_releases(tiny.site, now=JUNE)[0][0]
    assert (line.state, line.late) == ("waiting", False)
    assert HELD.reason in line.reason
    words = f"{HELD.reason}; nothing is opened or charged until `release-pipeline resume people`"
    assert f"held people: {words}" in list(describe_status(tiny.site, now=JUNE))
    check = check_policy(tiny.home / "policies" / "people.yaml", rows=None, home=None)
    assert f"{'held':<12}{words}" in list(describe_check(check))
    held = {"policy": "people", "since": SEEN.isoformat(), "by": "ana", "why": "the source moves"}
    assert to_json(view_check(check))["held"] == held
    assert to_json(view_status(tiny.site, now=JUNE))["held"] == [held]


# backfill


def test_what_was_missed_is_opened_oldest_first(tiny: TinySite, clock: Any) -> None:
    """One a tick, in order, once the series goes on."""
    hold(tiny)
    resume_series(tiny.site, "people", why="so", by="ana")
    assert list_missed(tiny.site.policy("people"), tiny.events(), JUNE) == MONTHS
    for hour, month in enumerate(MONTHS):
        assert at(tiny, clock, JUNE + timedelta(hours=hour)).release == ReleaseId("people", month)
        tiny.charge(month)
    assert "2025-06 has not ended" in at(tiny, clock, JUNE + timedelta(hours=4)).reason


def test_the_timetable_stops_at_a_missed_release_that_is_blocked(tiny: TinySite, clock: Any) -> None:
    """April is not opened before March, which was missed, too; in a series that is on time May does not wait for April."""
    at(tiny, clock, JUNE)
    tiny.flow("2025-03").record_blocked("it is too small.")
    found = at(tiny, clock, JUNE + timedelta(hours=1))
    assert found.release is None
    assert found.reason.startswith("release 2025-03 was missed, too, comes before 2025-04, and is blocked: it is too small.")
    tiny.charge("2025-04")  # by hand, which leaves March out
    assert at(tiny, clock, JUNE + timedelta(hours=2)).release == ReleaseId("people", "2025-05")


def test_a_blocked_release_of_a_series_on_time_stops_nothing(tiny: TinySite, clock: Any) -> None:
    """March was opened before April was due."""
    at(tiny, clock, datetime(2025, 4, 1, 6, tzinfo=UTC))
    tiny.flow("2025-03").record_blocked("it is too small.")
    assert at(tiny, clock, datetime(2025, 5, 1, 6, tzinfo=UTC)).release == ReleaseId("people", "2025-04")


def test_what_is_missed(clock: Any, tmp_path: Path) -> None:
    """Of a list with a timetable as many as it has fired for, of one without all; from the last charged release on."""
    tiny = make_site(tmp_path / "site", releases='{list: ["1", "2"], cron: "0 6 1 * *"}')
    record_policies(tiny.site)
    for month, missed in ((3, []), (4, ["1"]), (5, ["1", "2"]), (9, ["1", "2"])):
        now = datetime(2025, month, 11, tzinfo=UTC)
        assert list_missed(tiny.site.policy("people"), tiny.events(), now) == missed
    tiny.write_policy()
    assert list_missed(tiny.site.policy("people"), tiny.events()) == ["1", "2"]
    tiny.flow("1").record_blocked("it is too small.")
    assert list_missed(tiny.site.policy("people"), tiny.events()) == ["1", "2"]
    tiny.charge("2")
    assert list_missed(tiny.site.policy("people"), tiny.events()) == ["2"]


@GX_WARNINGS
@pytest.mark.slow
def test_backfill_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In order up to the first that the cap refuses, which is told with what comes after; held, it does nothing."""
    tiny = make_site(
        tmp_path / "site",
        rows=make_rows(releases=["1", "2", "3"]),
        releases='["1", "2", "3"]',
        cap="epsilon: 3, definition: idp, scope: column",
    )
    home = ["--home", str(tiny.home)]
    assert main(["hold", "people", "--why", "the source moves", "--by", "ana", *home]) == 0
    assert main(["run", "people", "--backfill", *home]) == 1
    assert "resume people --why REASON" in capsys.readouterr().err
    assert main(["resume", "people", "--why", "it has moved", *home]) == 0
    assert "missed: 1, 2, 3;" in capsys.readouterr().out
    for wrong in (["--release", "1"], ["--revise", "so"], ["--json"]):
        assert main(["run", "people", "--backfill", *wrong, *home]) == 2
    capsys.readouterr()
    assert main(["run", "people", "--backfill", *home]) == 1
    told = capsys.readouterr()
    assert "people/1/r1: candidate" in told.out
    assert "the backfill stops at people/2; not opened, for they come after it: 3" in told.err
    assert "the ledger refuses" in told.err
    assert tiny.states("3") == []
    assert [str(known.id) for known in tiny.charges()] == ["people/1/r1"]


# what comes


def plan(tiny: TinySite, now: datetime) -> list[tuple[str, bool]]:
    """The releases that the ledger says will come, and whether it has room for each."""
    [ledger] = read_ledgers(tiny.site, now=now)
    return [(f"{planned.release.policy}/{planned.release.release}", planned.fits) for planned in ledger.planned]


def test_what_the_ledger_plans_is_what_is_charged(tiny: TinySite, clock: Any) -> None:
    """Tick by tick: what had room is charged, and the first that had none is refused; then none is opened."""
    tiny.write_cap("epsilon: 5, definition: idp, scope: column")
    clock.moment = now = datetime(2025, 5, 10, tzinfo=UTC)
    assert plan(tiny, now) == [(f"people/2025-0{month}", month < 5) for month in range(3, 8)]
    for month in (3, 4):
        assert at(tiny, clock, datetime(2025, month + 3, 1, 6, tzinfo=UTC)).release == ReleaseId("people", f"2025-0{month}")
        tiny.charge(f"2025-0{month}")
    assert "the ledger refuses" in at(tiny, clock, datetime(2025, 8, 1, 6, tzinfo=UTC)).reason
    with pytest.raises(OverCap):
        run_release(tiny.flow("2025-05"))


def test_what_other_policies_charge_before_is_not_left(tiny: TinySite, clock: Any) -> None:
    """In the order of their timetables; a held series charges nothing before others. `check` says that it counts one alone."""
    tiny.write_cap("epsilon: 7, definition: idp, scope: column")
    tiny.write_policy(policy="others", releases='{every: month, first: 2025-05, cron: "0 5 1 * *"}')
    record_policies(tiny.site)
    now = datetime(2025, 5, 10, tzinfo=UTC)
    fitting = [name for name, fits in plan(tiny, now) if fits]
    assert fitting == ["others/2025-05", "people/2025-03", "others/2025-06"]
    clock.moment = opened = datetime(2025, 6, 1, 5, tzinfo=UTC)
    assert tick(tiny.site, "others", why=TIMETABLE, has_run=lambda _: True, now=opened).release is not None
    assert plan(tiny, opened)[0] == ("others/2025-05", True)
    hold_series(tiny.site, "others", why="so", by="ana")  # also what is opened of it
    assert [name for name, fits in plan(tiny, opened) if fits] == ["people/2025-03", "people/2025-04", "people/2025-05"]
    check = check_policy(tiny.home / "policies" / "people.yaml", rows=None, home=None)
    assert "3 fit, if no other policy" in " ".join(describe_check(check))


# verify


def faults(*happened: tuple[str, str]) -> list[str]:
    """What `verify` says of a chain of these kinds of events, each of a policy or a release."""
    report = Report(None)
    events = [
        Event(number, kind, about if "/" in about else "", {"policy": about, "policy_hash": "0" * 64}, "hash")
        for number, (kind, about) in enumerate(happened, start=1)
    ]
    History(report, events)
    return [finding.words for finding in report.findings if finding.level == "FAIL"]


def test_verify_fails_for_a_charge_of_a_held_series() -> None:
    """Of that policy alone, from its hold until it is resumed; holds and ends of holds follow each other."""
    hold, resume, charged = ("held", "people"), ("resumed", "people"), ("reserved", "people/1/r1")
    for fine in ([charged, hold], [hold, resume, charged], [hold, ("reserved", "others/1/r1")], [hold, resume, hold]):
        assert faults(*fine) == []
    assert faults(hold, charged) == [
        "events.jsonl: event 2 (reserved): it charges people/1/r1 while its series was held (event 1)"
    ]
    assert faults(hold, resume, hold, charged)[0].endswith("(event 3)")
    assert "held already" in faults(hold, hold)[0]
    assert "not held" in faults(resume)[0]


def test_a_site_and_a_dossier_of_a_series_that_was_held_verify(published: Path, tmp_path: Path) -> None:
    """With its events in the chain, where they are looked at."""
    tiny = copy_site(published, tmp_path / "site")
    hold(tiny)
    resume_series(tiny.site, "people", why="it has moved", by="ana")
    hold(tiny)
    file = tmp_path / "dossier.zip"
    assert main(["dossier", "people/1", "-o", str(file), "--home", str(tiny.home)]) == 0
    found = verify_path(file)
    assert [finding.words for finding in found if finding.level == "FAIL"] == []
    with zipfile.ZipFile(file) as dossier:
        assert b'\\"kind\\":\\"held\\"' in dossier.read("events.jsonl")
