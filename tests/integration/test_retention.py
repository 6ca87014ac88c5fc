"""What the vault keeps no longer than a policy says: what goes, what stays, and that nothing is left half."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from release_pipeline.errors import Blocked, DataRefused, GateFailed
from release_pipeline.ledger.account import read_ledgers
from release_pipeline.ledger.exposure import read_exposure
from release_pipeline.operate.retention import Pruned, prune
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.validate import validate
from release_pipeline.store.registry import ReleaseId
from tests.guards import HANGING
from tests.integration.clocks import set_registry_clock
from tests.integration.sites import ROOT, Row, TinySite, make_rows, make_site

RETAIN = timedelta(days=30)
JANUARY, FEBRUARY = datetime(2025, 1, 1, 12, tzinfo=UTC), datetime(2025, 2, 1, 12, tzinfo=UTC)
NOW = datetime(2025, 2, 5, tzinfo=UTC)  # January's are due, February's are not
DONE, RECENT, UNDRAWN, REFUSED, LATER = "1", "2", "3", "4", "5"
ALL = (DONE, RECENT, UNDRAWN, REFUSED, LATER)
DUE = (ReleaseId("people", DONE), ReleaseId("people", REFUSED))
CANARIES = {release: f"canary-town-of-release-{release}" for release in ALL}
COLUMNS = f"""
  person: {{role: identifier, do: drop}}
  remark: {{role: confidential, do: drop}}
  town:   {{role: quasi, do: keep, values: [north, south, east, {", ".join(CANARIES.values())}], why: needed}}
  sex:    {{role: quasi, do: keep, values: [0, 1], why: needed}}
  income: {{role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}}
  rent:   {{role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}}"""


def rows_of(release: str, count: int = 60) -> list[Row]:
    """The records of one release, a third of them in its canary town."""
    rows = make_rows(count, releases=[release])
    return [{**row, "town": CANARIES[release]} if row["town"] == "east" else row for row in rows]


@pytest.fixture(scope="module")
def aged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a candidate of January and one of February; of January also a charged release without noise, and one that was
    refused because it was too small."""
    rows = [row for release in ALL for row in rows_of(release, 10 if release == REFUSED else 60)]
    home = tmp_path_factory.mktemp("aged") / "site"
    tiny = make_site(home, rows=rows, releases=str(list(ALL)), columns=COLUMNS, retain="30 days")
    with pytest.MonkeyPatch.context() as patch:
        clock = set_registry_clock(patch, JANUARY)
        run_release(tiny.flow(DONE))
        with pytest.raises(DataRefused):
            run_release(tiny.flow(REFUSED))
        undrawn = tiny.flow(UNDRAWN)
        ingest(undrawn)
        validate(undrawn)
        microaggregate(undrawn)
        clock.moment = FEBRUARY
        run_release(tiny.flow(RECENT))
    return home


@pytest.fixture
def tiny(aged: Path, tmp_path: Path) -> TinySite:
    """A copy of that site."""
    shutil.copytree(aged, tmp_path / "site")
    return TinySite(tmp_path / "site")


def files_of(folder: Path) -> Iterator[Path]:
    """Every file below a folder."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def working_files(tiny: TinySite) -> dict[str, bytes]:
    """The vault's files without the candidates, whose kept column is released."""
    vault = tiny.site.vault
    found = {str(file.relative_to(vault)): file.read_bytes() for file in files_of(vault)}
    return {name: content for name, content in found.items() if not name.startswith("candidates/")}


def with_canary(tiny: TinySite) -> dict[str, set[str]]:
    """Which canaries are in the bytes of which files."""
    found = {release: set[str]() for release in ALL}
    for name, content in working_files(tiny).items():
        for release, canary in CANARIES.items():
            if canary.encode() in content:
                found[release].add(name)
    return found


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The content of every file, and when it was written."""
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files_of(folder)}


def exposed(tiny: TinySite) -> Mapping[int | None, int]:
    """How many people were exposed to how much."""
    [ledger] = read_ledgers(tiny.site, "folk")
    return read_exposure(tiny.site, ledger.account).people


def rooms(tiny: TinySite, release: str) -> dict[str, pa.Table]:
    """The tables of a release's room, for comparison bit for bit."""
    return tiny.tables(release)


# what goes


def test_nothing_of_a_pruned_release_is_in_any_file_of_the_vault(tiny: TinySite) -> None:
    """The canaries of the old candidate and of the refused release are in the vault before, and in none of its files afterwards:
    not in the database, its log, a copy or a free page. Those of the others are still there; no file came or went."""
    before = with_canary(tiny)
    assert [bool(before[release]) for release in ALL] == [True, True, True, True, False]
    names = working_files(tiny).keys()
    assert prune(tiny.site, now=NOW) == [Pruned("folk", DUE)]
    after = with_canary(tiny)
    assert [after[release] for release in ALL] == [set(), {"folk.duckdb"}, {"folk.duckdb"}, set(), set()]
    assert working_files(tiny).keys() == names
    assert {stat.S_IMODE(file.stat().st_mode) for file in files_of(tiny.site.vault) if file.name != ".gitignore"} == {0o600}
    assert rooms(tiny, DONE) == rooms(tiny, REFUSED) == {}
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb"), read_only=True) as connection:
        schemas = {name for (name,) in connection.execute("SELECT DISTINCT schema_name FROM duckdb_schemas()").fetchall()}
    assert {schema.split(" ")[0] for schema in schemas if schema.startswith("people/")} == {"people/2/r1", "people/3/r1"}


@pytest.mark.parametrize(("early", "expected"), [(timedelta(seconds=1), 0), (timedelta(0), 1)])
def test_a_release_is_kept_for_as_long_as_its_policy_says(tiny: TinySite, early: timedelta, expected: int) -> None:
    """To the second, from when it became what it is; a longer time keeps it longer."""
    now = datetime.fromisoformat(tiny.status(RECENT).since) + RETAIN - early
    assert sum(RECENT in [release.release for release in pruned.releases] for pruned in prune(tiny.site, now=now)) == expected
    assert bool(rooms(tiny, RECENT)) == (expected == 0)


def test_why_a_release_was_refused_goes_with_it(tiny: TinySite) -> None:
    """The figures of a gate that was not passed describe the data; those of other releases stay."""
    folder = tiny.site.vault / "refused"
    folder.mkdir()
    for release in (REFUSED, UNDRAWN):
        (folder / f"people~{release}~r1.json").write_text("{}")
    prune(tiny.site, now=NOW)
    assert [file.name for file in folder.iterdir()] == [f"people~{UNDRAWN}~r1.json"]


# what stays


def test_other_rooms_stay_bit_for_bit_and_can_be_served(tiny: TinySite) -> None:
    """Tables of the same rows in the same order; the recent candidate is made again from them, the same to the byte."""
    before = {release: rooms(tiny, release) for release in (RECENT, UNDRAWN)}
    folder = tiny.folder(RECENT)
    candidate = {file.name: file.read_bytes() for file in files_of(folder)}
    prune(tiny.site, now=NOW)
    assert {release: rooms(tiny, release) for release in (RECENT, UNDRAWN)} == before
    shutil.rmtree(folder)
    run_release(tiny.flow(RECENT))
    assert {file.name: file.read_bytes() for file in files_of(folder)} == candidate
    assert len(tiny.charges()) == 3


def test_a_charged_release_without_noise_keeps_what_its_retry_needs(tiny: TinySite, aged: Path, tmp_path: Path) -> None:
    """However old, and though an attempt with another source was refused: it ends as it would have ended without the pruning,
    with the same secret and the same noise."""
    shutil.copytree(aged, tmp_path / "other")
    other = TinySite(tmp_path / "other")
    source = (tiny.home / "people.csv").read_bytes()
    tiny.write_rows(rows_of(UNDRAWN)[::-1])
    with pytest.raises(Blocked, match="charged for other data"):
        run_release(tiny.flow(UNDRAWN))
    assert tiny.status(UNDRAWN).state == "blocked"
    (tiny.home / "people.csv").write_bytes(source)
    much_later = datetime.now(UTC) + timedelta(days=10_000)
    pruned = {release.release for pruned in prune(tiny.site, now=much_later) for release in pruned.releases}
    assert pruned == {DONE, RECENT, REFUSED}
    for site in (tiny, other):
        run_release(site.flow(UNDRAWN))
    names = ("data.csv", "data.parquet", "SHA256SUMS")
    assert [(tiny.folder(UNDRAWN) / name).read_bytes() for name in names] == [
        (other.folder(UNDRAWN) / name).read_bytes() for name in names
    ]
    assert [charge.id.release for charge in tiny.charges()] == [DONE, UNDRAWN, RECENT]


def test_a_pruned_release_is_not_run_again(tiny: TinySite) -> None:
    """Refused in words with the day and the next revision, before anything is read; its candidate stands, and the refusal does
    not block it."""
    prune(tiny.site, now=NOW)
    before = snapshot(tiny.folder(DONE))
    tiny.write_rows([])
    with pytest.raises(Blocked, match=r"people/1/r1: its tables were pruned on 20.*people/1/r2"):
        run_release(tiny.flow(DONE))
    assert (tiny.status(DONE).state, snapshot(tiny.folder(DONE))) == ("candidate", before)
    assert rooms(tiny, DONE) == {}


def test_exposure_stays(tiny: TinySite) -> None:
    """Who was exposed to how much is the same after their tables are gone; the guard still compares with the pruned release."""
    before = exposed(tiny)
    assert before == {6 * 10**9: 60}
    prune(tiny.site, now=NOW)
    assert exposed(tiny) == before
    tiny.write_rows(rows_of(LATER, 62))
    with pytest.raises(GateFailed, match=r"since people/1/r1 fewer than 10 people joined"):
        run_release(tiny.flow(LATER))


# what is not pruned at all


@pytest.mark.parametrize("reason", ["no retain", "unreadable policy", "another policy of this name", "no policy"])
def test_nothing_goes_under_a_policy_that_does_not_say_so(tiny: TinySite, reason: str) -> None:
    """Without `retain`, or when the policy cannot be read or is not there: not a byte changes, however old the release, and
    whatever another policy says."""
    tiny.write_policy(policy="others", retain="1 days")
    file = tiny.home / "policies" / "people.yaml"
    match reason:
        case "no retain":
            tiny.write_policy(releases=str(list(ALL)), columns=COLUMNS)
        case "unreadable policy":
            file.write_text(file.read_text() + "unknown: 1\n")
        case "another policy of this name":
            file.write_text(file.read_text().replace("policy: people", "policy: others"))
        case _:
            file.unlink()
    before = snapshot(tiny.home)
    assert prune(tiny.site, now=NOW + timedelta(days=10_000)) == []
    assert snapshot(tiny.home) == before


# killed in between

BOUNDARIES = (
    "schema/drop_release_schema",
    "schema/copy_vault",
    "schema/detach_copy",
    "the file is not yet replaced",
    "the file is replaced",
)
PROGRAM = """
import os, pathlib, signal, sys
from datetime import datetime
from release_pipeline.operate.retention import prune
from release_pipeline.store.site import Site
from release_pipeline.store import vault_files

home, now, boundary = sys.argv[1:]
statement, replace = vault_files.statement, pathlib.Path.replace

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def counted(name, **identifiers):
    seen.append(name)
    if name == boundary and (name != "schema/drop_release_schema" or seen.count(name) == 2):
        die()
    return statement(name, **identifiers)

def replaced(self, target):
    ours = pathlib.Path(target).suffix == ".duckdb"
    if ours and boundary == "the file is not yet replaced":
        die()
    result = replace(self, target)
    if ours and boundary == "the file is replaced":
        die()
    return result

seen = []
vault_files.statement, pathlib.Path.replace = counted, replaced
prune(Site(pathlib.Path(home), {}), now=datetime.fromisoformat(now))
"""


@pytest.mark.slow
def test_killed_while_pruning_leaves_a_whole_file_and_the_next_pruning_ends_it(aged: Path, tmp_path: Path) -> None:
    """kill -9 before every statement and on both sides of the replacing: each room is there as it was or not at all, those that
    are kept are unchanged, and so are people and registry; then one more pruning leaves neither a canary nor a file."""
    original = TinySite(aged)
    tables = {release: rooms(original, release) for release in ALL}
    names, people = working_files(original).keys(), exposed(original)
    homes = {boundary: tmp_path / f"site{i}" for i, boundary in enumerate(BOUNDARIES)}
    running: dict[str, subprocess.Popen[bytes]] = {}
    for boundary, home in homes.items():
        shutil.copytree(aged, home)
        command = [sys.executable, "-c", PROGRAM, str(home), NOW.isoformat(), boundary]
        running[boundary] = subprocess.Popen(command, cwd=ROOT)
    wrong: list[tuple[str, str]] = []
    for boundary, process in running.items():
        assert process.wait(timeout=HANGING) == -signal.SIGKILL, boundary
        tiny = TinySite(homes[boundary])
        killed = {release: rooms(tiny, release) for release in ALL}
        checks = {
            "kept rooms after the kill": all(killed[release] == tables[release] for release in (RECENT, UNDRAWN)),
            "whole rooms after the kill": all(killed[release] in (tables[release], {}) for release in (DONE, REFUSED)),
            "people after the kill": exposed(tiny) == people,
            "registry after the kill": tiny.events() == original.events(),
        }
        prune(tiny.site, now=NOW)
        found = with_canary(tiny)
        checks |= {
            "nothing left": [found[release] for release in (DONE, REFUSED)] == [set(), set()],
            "both noted": {event.release for event in tiny.events() if event.kind == "pruned"} == set(DUE),
            "files": working_files(tiny).keys() == names,
            "kept rooms": all(rooms(tiny, release) == tables[release] for release in (RECENT, UNDRAWN)),
            "people": exposed(tiny) == people,
        }
        wrong += [(boundary, what) for what, holds in checks.items() if not holds]
    assert wrong == []
