"""Crash safety with real processes: a release is killed at the boundaries of its protocol, and before files are renamed.

After every kill the release is run again, and must end as one that nobody disturbed: the same candidate bit for bit, the same
tables, one charge, one event of each kind, and not one file more.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import duckdb
import pytest

from release_pipeline.ledger.account import read_ledgers
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.operate.overview import list_releases
from release_pipeline.pipeline import opening, reservation
from release_pipeline.pipeline.opening import open_release, revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.store.files import Probe
from release_pipeline.store.site import Site
from release_pipeline.store.vault import open_workspace
from tests.drawn import draw_cases
from tests.integration.processes import LONGEST, PROCESSES, begin, both, finish
from tests.integration.sites import TinySite, make_site

CHARGED, ON_THE_DISK, NOTED = "the loss is charged", "the secret is on the disk", "the secret is noted"
COMMITTED, DRAWN, FORGOTTEN = "the masked table is committed", "drawn is noted", "the secret is forgotten"
FINISHED = "the candidate is noted"
BOUNDARIES = (
    "ingested",
    "validated",
    CHARGED,
    "the secret is written, not yet in its place",
    ON_THE_DISK,
    NOTED,
    "the clusters are made, not yet committed",
    "the clusters are committed",
    "the noise is drawn, not yet committed",
    COMMITTED,
    DRAWN,
    FORGOTTEN,
    "suppressed",
    "audited",
    "the candidate's folder is in its place",
    FINISHED,
)
# The first, the last, and between them one for each store that changes: registry, secrets, vault, candidates.
KILLED_AT = ("ingested", CHARGED, ON_THE_DISK, COMMITTED, DRAWN, "the candidate's folder is in its place", FINISHED)
EVENTS = ["format", "policy", "opened", "reserved", "secret", "drawn", "candidate"]
STATES = {"ingested": "open", CHARGED: "reserved", DRAWN: "drawn", FINISHED: "candidate"}  # by the boundary where it begins
SPENT = {"open": ("0", "0"), "reserved": ("2", "2"), "drawn": ("2", "0"), "candidate": ("2", "0")}  # spent; not drawn of that
SECRET, OTHER = b"s" * SECRET_BYTES, b"o" * SECRET_BYTES
KILLED = (-signal.SIGKILL, -signal.SIGXFSZ)


# what a child does


def attempt(home: Path, secret: bytes, stop: str | None, lines: Connection) -> None:
    """Run release 1, telling every boundary; killed by itself when it has passed `stop`."""

    def passed(boundary: str) -> None:
        lines.send(boundary)
        if boundary == stop:
            die()

    run_release(open_release(Site(home, {}), "people", "1", probe=Probe(reached=passed, new_secret=lambda: secret)))


def attempt_charge(home: Path, secret: bytes, _: str | None, lines: Connection) -> None:
    """Run release 1; killed when the charge is written and its transaction has not ended."""
    charge = reservation.add_charge

    def charge_and_die(*arguments: Any) -> None:
        charge(*arguments)
        lines.send("charging")
        die()

    reservation.add_charge = charge_and_die
    attempt(home, secret, None, lines)


def attempt_revision(home: Path, _: bytes, stop: str | None, lines: Connection) -> None:
    """Open revision 2 of release 1; killed after that is noted, before the secret of revision 1 is forgotten."""
    if stop is not None:
        opening.forget_secret = lambda *_: die()
    lines.send(str(revise_release(Site(home, {}), "people", "1", why="a test")))


def attempt_and_copy(home: Path, secret: bytes, copies: str | None, lines: Connection) -> None:
    """Run release 1; before every change of a file's name, what a kill would leave on the disk is copied into `copies`."""
    assert copies is not None
    seen: set[str] = set()
    busy = False

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal busy
        changes = event in ("os.rename", "os.remove", "shutil.rmtree")
        if busy or not changes:
            return
        busy = True
        state = repr([(str(file), digest(file)) for file in sorted(home.rglob("*"))])
        if state not in seen:
            seen.add(state)
            shutil.copytree(home, Path(copies, str(len(seen))))
            lines.send(f"{event} {Path(str(arguments[0])).name}")
        busy = False

    sys.addaudithook(look)
    run_release(open_release(Site(home, {}), "people", "1", probe=Probe(new_secret=lambda: secret)))


def attempt_to_make(home: Path, _: bytes, size: str | None, lines: Connection) -> None:
    """Make the registry of a site that has none, or then the vault; killed by the system when a file grows over so many bytes."""
    what, _, longest = (size or "").partition(" ")
    flow = open_release(Site(home, {}), "people", "1")
    if what == "vault":
        flow.check_may_begin()
    lines.send("making")
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(longest), resource.RLIM_INFINITY))
    if what == "vault":
        with open_workspace(flow.site.vault, "folk", flow.id.workspace):
            pass
    else:
        flow.check_may_begin()


def die() -> None:
    """No handler and no `finally` runs after this."""
    os.kill(os.getpid(), signal.SIGKILL)


# what the test does with children


@dataclass
class Ended:
    """How an attempt ended: what it told, and the signal that ended it, if one did."""

    lines: list[str]
    killed: bool


def run(
    work: Callable[[Path, bytes, str | None, Connection], None],
    tiny: TinySite,
    secret: bytes = SECRET,
    stop: str | None = None,
) -> Ended:
    """`work` in a process of its own, and how it ended."""
    hears, tells = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=work, args=(tiny.home, secret, stop, tells))
    begin(child)
    tells.close()
    ended = Ended([], killed=False)
    try:
        while hears.poll(LONGEST):
            ended.lines.append(hears.recv())

    except (EOFError, OSError):  # it ended, perhaps in the middle of a word
        pass
    finally:
        hears.close()
        code = finish(child)
    assert code in (0, *KILLED), f"the attempt failed after {ended.lines[-1:]}, see its standard error"
    ended.killed = code in KILLED
    return ended


def digest(file: Path) -> str:
    """What is in a file; nothing for a folder."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


@dataclass
class End:
    """Everything that is compared of a site when a release has ended."""

    candidate: dict[str, str]
    tables: dict[str, list[str]]
    events: list[str]
    charged: list[tuple[str, int | None]]
    files: list[str]


def look_at(tiny: TinySite) -> End:
    """The end of a release; every database opens for writing at once, so nobody holds a lock, and the chain is whole. The
    stamp of the source is left out, and the seals that cover it: each copy of a site has other files."""
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb")) as vault:
        named = vault.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        tables = {
            f"{workspace}.{name}": sorted(
                re.sub(r"(delivered|seal)\W+\w+", r"\1", repr(row)) for row in vault.table(f'"{workspace}"."{name}"').fetchall()
            )
            for workspace, name in named
        }
    duckdb.connect(str(tiny.site.registry)).close()
    with tiny.site.open_registry() as registry:
        events = [event.kind for event in registry.events]
    return End(
        candidate={file.name: digest(file) for file in tiny.folder().iterdir()},
        tables=tables,
        events=events,
        charged=[(str(charge.id), charge.loss.idp_column) for charge in tiny.charges()],
        files=sorted(str(path.relative_to(tiny.home)) for path in tiny.home.rglob("*")),
    )


def copy_of(tiny: TinySite, home: Path) -> TinySite:
    """The same site elsewhere: the same key, so the same keyed hashes."""
    shutil.copytree(tiny.home, home)
    return TinySite(home)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site where nothing has run; only the vault's key is there."""
    tiny = make_site(tmp_path_factory.mktemp("crash") / "site")
    tiny.site.keyed_hash(b"")
    return tiny


@dataclass
class Undisturbed:
    """A release that nobody disturbed."""

    ended: Ended
    end: End


@pytest.fixture(scope="module")
def undisturbed(untouched: TinySite, tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, Undisturbed]:
    """The same release without a kill, by the secret that it was given."""
    found: dict[bytes, Undisturbed] = {}
    for secret in (SECRET, OTHER):
        tiny = copy_of(untouched, tmp_path_factory.mktemp("undisturbed") / "site")
        ended = run(attempt, tiny, secret)
        found[secret] = Undisturbed(ended, look_at(tiny))
    return found


# killed at boundaries


def test_undisturbed_release_passes_exactly_these_boundaries(undisturbed: dict[bytes, Undisturbed]) -> None:
    """Each once and in this order: a boundary that is new must be added here."""
    assert tuple(undisturbed[SECRET].ended.lines) == BOUNDARIES
    end = undisturbed[SECRET].end
    assert end.events == EVENTS
    assert end.charged == [("people/1/r1", 2 * 10**9)]
    assert not [name for name in end.files if name.startswith("vault/secrets/") or ".partial" in name or ".before" in name]
    assert end.candidate != undisturbed[OTHER].end.candidate, "the secret that the test gives decides nothing"


@pytest.mark.parametrize("boundary", KILLED_AT)
def test_killed_at_boundary(untouched: TinySite, undisturbed: dict[bytes, Undisturbed], tmp_path: Path, boundary: str) -> None:
    """Killed there, people are told its state and what is spent; run again, it ends as undisturbed. Once the secret is noted, it
    decides, whatever a new one would have been."""
    tiny, place = copy_of(untouched, tmp_path / "site"), BOUNDARIES.index(boundary)
    first = run(attempt, tiny, SECRET, boundary)
    assert (first.killed, tuple(first.lines)) == (True, BOUNDARIES[: place + 1])
    state = [state for begins, state in STATES.items() if place >= BOUNDARIES.index(begins)][-1]
    assert list_releases(tiny.site)[0][0].state == state
    [ledger] = read_ledgers(tiny.site)
    assert (ledger.account.spent, ledger.account.format(ledger.reserved)) == SPENT[state]
    noted = place >= BOUNDARIES.index(NOTED)
    again = run(attempt, tiny, OTHER if noted else SECRET)
    assert (again.killed, again.lines[-1]) == (False, FINISHED)
    assert look_at(tiny) == undisturbed[SECRET].end


def test_secret_that_was_not_noted_is_not_used(
    untouched: TinySite, undisturbed: dict[bytes, Undisturbed], tmp_path: Path
) -> None:
    """Killed before the registry notes it: nothing was made with that secret, and the next attempt makes another."""
    tiny = copy_of(untouched, tmp_path / "site")
    assert run(attempt, tiny, SECRET, ON_THE_DISK).killed
    run(attempt, tiny, OTHER)
    assert look_at(tiny) == undisturbed[OTHER].end


def test_killed_at_every_boundary_in_turn(untouched: TinySite, undisturbed: dict[bytes, Undisturbed], tmp_path: Path) -> None:
    """One release, killed at every boundary, each time one further: as undisturbed."""
    tiny = copy_of(untouched, tmp_path / "site")
    for boundary in BOUNDARIES:
        again = run(attempt, tiny, SECRET, boundary)
        assert (again.killed, again.lines[-1]) == (True, boundary)
    run(attempt, tiny, OTHER)
    assert look_at(tiny) == undisturbed[SECRET].end


def test_killed_while_it_charges(untouched: TinySite, undisturbed: dict[bytes, Undisturbed], tmp_path: Path) -> None:
    """The charge is written and not committed: nothing was charged, and no secret made; run again it is charged once."""
    tiny = copy_of(untouched, tmp_path / "site")
    first = run(attempt_charge, tiny)
    assert (first.killed, first.lines[-1]) == (True, "charging")
    assert tiny.charges() == []
    assert list((tiny.site.vault / "secrets").iterdir()) == []
    run(attempt, tiny)
    assert look_at(tiny) == undisturbed[SECRET].end


@pytest.mark.parametrize(("what", "size"), [("registry", 4096), ("vault", 0)])
def test_killed_while_it_makes_a_database(
    untouched: TinySite, undisturbed: dict[bytes, Undisturbed], tmp_path: Path, what: str, size: int
) -> None:
    """Killed at the first bytes of a new database: what is left of it stands in nobody's way, and nothing of it stays."""
    tiny = copy_of(untouched, tmp_path / "site")
    assert run(attempt_to_make, tiny, stop=f"{what} {size}").killed
    assert list_releases(tiny.site)[1] == []
    assert run(attempt, tiny).lines[-1:] == [FINISHED]
    assert look_at(tiny) == undisturbed[SECRET].end


# killed at any change on the disk


def test_whatever_a_kill_leaves_is_run_to_the_same_end(
    untouched: TinySite, undisturbed: dict[bytes, Undisturbed], tmp_path: Path
) -> None:
    """From before some renamings and removals of a file: the same candidate, tables and files, one charge, one event each."""
    tiny = copy_of(untouched, tmp_path / "site")
    (tmp_path / "copies").mkdir()
    moments = run(attempt_and_copy, tiny, SECRET, str(tmp_path / "copies")).lines
    assert len(moments) > 10
    places = draw_cases(range(1, len(moments) + 1), "what a kill leaves", least=4)

    def finish(which: int) -> End:
        copy = TinySite(tmp_path / "copies" / str(places[which]))
        assert run(attempt, copy).lines[-1] == FINISHED
        return look_at(copy)

    for place, end in zip(places, both(finish, len(places)), strict=True):
        assert end == undisturbed[SECRET].end, f"killed before {moments[place - 1]}"


# revisions


def test_killed_after_a_revision_was_opened(untouched: TinySite, tmp_path: Path) -> None:
    """The secret of the revision that was given up is gone, at the latest when the new one has run."""
    tiny = copy_of(untouched, tmp_path / "site")
    assert run(attempt, tiny, SECRET, "the clusters are committed").killed
    assert run(attempt_revision, tiny, stop="noted").killed
    assert [event.kind for event in tiny.events()][-1] == "opened"
    run(attempt, tiny, OTHER)
    assert [str(charge.id) for charge in tiny.charges()] == ["people/1/r1", "people/1/r2"]
    assert list((tiny.site.vault / "secrets").iterdir()) == []
