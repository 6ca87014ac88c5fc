"""Two who want the same last epsilon, and people who look while a release runs: real processes, threads, and DuckDB itself."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier
from typing import Any

import duckdb
import pytest

from release_pipeline.errors import NotPassed, ReleasePipelineError, StoreError
from release_pipeline.ledger.policies import open_population, read_caps
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.reservation import Reservation, reserve
from release_pipeline.policy.plans.loss import release_loss
from release_pipeline.store import vault_files
from release_pipeline.store.database import open_database
from release_pipeline.store.files import PLAIN, locked, sync
from release_pipeline.store.ledger import Charge, add_charge, list_charges
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.vault import open_workspace
from release_pipeline.store.vault_files import prune_workspaces
from tests.integration.processes import COMMAND, LONGEST, PROCESSES, TOGETHER, Program, child, hear, start_program
from tests.integration.sites import ROOT, TinySite, make_site

ROUNDS = 10
THREADS = 8
IDP = "definition: idp, scope: column"
CAP = f"epsilon: 4, {IDP}"  # for two releases; each takes 2
MORE = "{method: dp-um, epsilon: 2, k: 5}"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="leases on files are Linux's")
COMMANDS = (("status",), ("status", "--json"), ("ledger",), ("ledger", "folk", "--exposure"), ("check",))


# what a child does


def contend(folder: Path, wanted: Sequence[tuple[str, str]], barrier: Any, lines: Connection) -> None:
    """In the site `folder/N`, for each N, ask for the charge of this (policy, release) together with the others."""
    for place, (policy, release) in enumerate(wanted):
        site = Site(folder / str(place), {})
        reservation = Reservation(site.policy(policy), ReleaseId(policy, release), 60, "source")
        barrier.wait(TOGETHER)
        try:
            lines.send(("passed", reserve(site, reservation, PLAIN).hex()))
        except ReleasePipelineError as refused:
            lines.send((type(refused).__name__, str(refused)))


def begin(folder: Path, rounds: int, barrier: Any, lines: Connection) -> None:
    """Note something in the registry of the site `folder/N`, for each N, which does not exist until the first does that."""
    for place in range(rounds):
        barrier.wait(TOGETHER)
        try:
            with Site(folder / str(place), {}).open_registry() as registry:
                registry.add("policy", policy="people")
            lines.send("noted")
        except ReleasePipelineError as refused:
            lines.send(str(refused))


def add_one(home: Path, lines: Connection) -> None:
    """Note something in the registry of a site."""
    lines.send(os.getpid())
    with Site(home, {}).open_registry() as registry:
        registry.add("policy", policy="people")
    lines.send("noted")


def run_together(home: Path, policy: str, release: str, barrier: Any, lines: Connection) -> None:
    """The whole release, begun together with the others."""
    flow = open_release(Site(home, {}), policy, release)
    barrier.wait(TOGETHER)
    try:
        lines.send(("passed", run_release(flow).facts["candidate_hash"]))
    except ReleasePipelineError as refused:
        lines.send((type(refused).__name__, str(refused)))


def hold(home: Path, let_go: Any, lines: Connection) -> None:
    """Open the registry and the vault as a run does, and keep both until told to let go."""
    site = Site(home, {})
    with open_workspace(site.vault, "folk", ReleaseId("people", "1").workspace), site.open_registry():
        lines.send("holding")
        let_go.wait(LONGEST)


# what the tests do with children


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """What `work` gives or raises for 0, 1, ... in as many threads that start together."""
    found: list[Any] = [None] * THREADS
    barrier = Barrier(THREADS)

    def one(place: int) -> None:
        barrier.wait(TOGETHER)
        try:
            found[place] = work(place)
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=one, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return found


def reservation_of(tiny: TinySite, policy: str, release: str) -> Reservation:
    """What a charge would be for."""
    return Reservation(tiny.site.policy(policy), ReleaseId(policy, release), 60, "source")


def charge_of(tiny: TinySite, release: str) -> Charge:
    """The charge of a release of the policy."""
    policy = tiny.site.policy("people")
    loss = release_loss(policy, records=60)
    return Charge(ReleaseId("people", release), policy.population, policy.canonical_hash(), "source", 60, loss)


def copies_of(tiny: TinySite, folder: Path, count: int) -> list[TinySite]:
    """The same site several times."""
    for place in range(count):
        shutil.copytree(tiny.home, folder / str(place))
    return [TinySite(folder / str(place)) for place in range(count)]


def told_of_cap(words: str) -> bool:
    """Whether a refusal says what is left of what, and whom to ask."""
    return "the ledger refuses: folk has 0 left of 4" in words and "take 2" in words and "populations.yaml" in words


def make_charged(home: Path, **options: Any) -> TinySite:
    """A site whose vault is there, as a run makes it before it charges."""
    tiny = make_site(home, **options)
    with tiny.site.open_registry():
        pass
    duckdb.connect(str(tiny.site.vault / "folk.duckdb")).close()
    return tiny


@pytest.fixture(scope="module")
def half_spent(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A population with epsilon 2 of 4 left, for eight releases of a policy, or two of another, that take 2 each."""
    names = [str(name) for name in range(1, THREADS + 2)]
    tiny = make_charged(tmp_path_factory.mktemp("half") / "site", cap=CAP, releases=str(names).replace("'", '"'))
    tiny.write_policy(policy="more", protect=MORE)
    reserve(tiny.site, reservation_of(tiny, "people", str(THREADS + 1)), PLAIN)
    return tiny


# the last epsilon


def test_one_of_two_processes_gets_the_last_epsilon(half_spent: TinySite, tmp_path: Path) -> None:
    """Ten times two processes ask together, for releases of one policy or of two: one is charged, the other told of the cap."""
    sites = copies_of(half_spent, tmp_path, ROUNDS)
    others = [("people", "2") if place % 2 else ("more", "1") for place in range(ROUNDS)]
    barrier = PROCESSES.Barrier(2)
    with (
        child(contend, tmp_path, [("people", "1")] * ROUNDS, barrier) as one,
        child(contend, tmp_path, others, barrier) as other,
    ):
        lines = [(hear(one), hear(other)) for _ in range(ROUNDS)]
    for place, (tiny, both) in enumerate(zip(sites, lines, strict=True)):
        assert sorted(how for how, _ in both) == ["OverCap", "passed"], (place, both)
        [words] = [words for how, words in both if how == "OverCap"]
        assert told_of_cap(words), words
        winner = ReleaseId("people", "1") if both[0][0] == "passed" else ReleaseId(*others[place])
        charges = [charge.id for charge in tiny.charges()]
        assert charges == [ReleaseId("people", str(THREADS + 1)), winner]
        secrets = {file.name for file in (tiny.site.vault / "secrets").iterdir()}
        assert secrets == {str(charge).replace("/", "~") for charge in charges}


def test_registry_alone_lets_one_of_eight_threads_charge(half_spent: TinySite, tmp_path: Path) -> None:
    """Without the lock around a reservation, the registry's own transactions are one at a time within a process."""
    for tiny in copies_of(half_spent, tmp_path, 3):
        policy = tiny.site.policy("people")

        def charge(place: int, tiny: TinySite = tiny, policy: Any = policy) -> str:
            with tiny.site.open_registry() as registry:
                account = open_population(read_caps(tiny.site), policy.population, list_charges(registry))
                wanted = charge_of(tiny, str(place + 1))
                time.sleep(0.01)  # what another would use to look at the same sum
                if not account.admits(wanted.loss):
                    return "over"
                add_charge(registry, wanted, account)
            return "charged"

        assert sorted(map(str, in_threads(charge))) == ["charged"] + ["over"] * (THREADS - 1)
        assert len(tiny.charges()) == 2


def test_release_that_is_started_twice_at_once_is_one_release(tmp_path: Path) -> None:
    """At a site where not even the vault exists: one charge, one secret, one set of bits; whoever came second has the same, or is
    told to begin again."""
    tiny = make_charged(tmp_path / "site")
    barrier = PROCESSES.Barrier(2)
    with (
        child(run_together, tiny.home, "people", "1", barrier) as one,
        child(run_together, tiny.home, "people", "1", barrier) as other,
    ):
        ended = [hear(one), hear(other)]
    assert {how for how, _ in ended} <= {"passed", NotPassed.__name__, StoreError.__name__}, ended
    assert all("Run the release from its start." in words for how, words in ended if how != "passed")
    [bits] = {bits for how, bits in ended if how == "passed"}
    assert sorted(tiny.states()) == sorted(["opened", "reserved", "secret", "drawn", "candidate"])
    assert len(tiny.charges()) == 1
    assert run_release(tiny.flow()).facts["candidate_hash"] == bits
    assert tiny.flow().candidate_is_whole()


def test_registry_that_several_begin_at_once_is_one(tmp_path: Path) -> None:
    """Four processes find no registry and make it: each waits for the others, and nothing that one has written is lost."""
    rounds = 5
    for place in range(rounds):
        (tmp_path / str(place)).mkdir()
    barrier = PROCESSES.Barrier(4)
    with (
        child(begin, tmp_path, rounds, barrier) as a,
        child(begin, tmp_path, rounds, barrier) as b,
        child(begin, tmp_path, rounds, barrier) as c,
        child(begin, tmp_path, rounds, barrier) as d,
    ):
        lines = [hear(hears) for _ in range(rounds) for hears in (a, b, c, d)]
    assert {words for words in lines if words != "noted"} == set()
    assert [len(TinySite(tmp_path / str(place)).events()) for place in range(rounds)] == [5] * rounds


def one_comes_while_another_opens(file: Path, work: Callable[..., None], *arguments: Sequence[Any]) -> list[Any]:
    """Two processes that do `work`. The second begins when the first has read the database's headers, and has not locked it: a
    lease of this process on the file stops whoever opens it for writing. The first goes on when the second is done or waits."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # how the system tells of somebody who is stopped
    lease = os.open(file, os.O_RDONLY)
    try:
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        with child(work, *arguments[0]) as one:
            first = hear(one)
            until = time.monotonic() + TOGETHER
            while fcntl.fcntl(lease, fcntl.F_GETLEASE) != fcntl.F_UNLCK:
                assert time.monotonic() < until, "nobody opens it"
                time.sleep(0.01)
            os.kill(first, signal.SIGSTOP)
            fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            with child(work, *arguments[1]) as other:
                hear(other)
                other.poll(1)
                os.kill(first, signal.SIGCONT)
                return [hear(one), hear(other)]
    finally:
        os.close(lease)
        signal.signal(signal.SIGIO, before)


@LINUX
def test_event_that_is_added_while_another_opens_the_registry_is_seen(tmp_path: Path) -> None:
    """DuckDB reads the headers of a file before it locks it; what is written in between would not be there for it."""
    tiny = make_charged(tmp_path / "site")
    with tiny.site.open_registry() as registry:
        registry.add("policy", policy="people")
    assert one_comes_while_another_opens(tiny.site.registry, add_one, [tiny.home], [tiny.home]) == ["noted"] * 2
    assert len(tiny.events()) == 4


def test_database_is_not_closed_while_another_opens_it(tmp_path: Path) -> None:
    """What is written at the end is written before somebody reads the headers, or after they found the file locked."""
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with open_database(tmp_path / "some.duckdb"):
            inside.set()
            leave.wait(TOGETHER)

    another = threading.Thread(target=work)
    another.start()
    assert inside.wait(TOGETHER)
    with locked(tmp_path):  # as who opens it
        leave.set()
        another.join(0.3)
        assert another.is_alive()
    another.join(LONGEST)
    assert not another.is_alive()


def test_vault_is_not_replaced_while_another_opens_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens it has this lock: or it would read the headers of the old file, and then lock the new one."""
    tiny = make_charged(tmp_path / "site")
    for name in ("people/1/r1", "people/2/r1"):
        with open_workspace(tiny.site.vault, "folk", name) as workspace:
            workspace.write_checkpoint("stage", {"of": name})
    file = tiny.site.vault / "folk.duckdb"
    old, found, opening = file.stat().st_ino, list[int](), threading.Event()

    def open_slowly() -> None:
        with locked(tiny.site.vault):
            opening.set()
            time.sleep(0.3)
            found.append(file.stat().st_ino)

    def sync_and_wait(path: Path) -> None:
        sync(path)
        if path != file.parent:  # what comes next is to replace it
            another.start()
            assert opening.wait(TOGETHER)

    another = threading.Thread(target=open_slowly)
    monkeypatch.setattr(vault_files, "sync", sync_and_wait)
    assert prune_workspaces(file, lambda rooms: rooms[:1]) != []
    another.join(LONGEST)
    assert found == [old] != [file.stat().st_ino]


# what the registry makes of it


def test_two_transactions_of_the_registry_cannot_both_commit(tmp_path: Path) -> None:
    """Even with the lock of threads passed by (one thread opens it twice), the second event at the same place is refused."""
    tiny = make_charged(tmp_path / "site", cap=CAP)
    tiny.flow().check_may_begin()

    def nested() -> None:
        with tiny.site.open_registry() as one, tiny.site.open_registry() as other:
            one.add("policy", policy="one")
            other.add("policy", policy="other")

    before = tiny.events()
    with pytest.raises(ReleasePipelineError):
        nested()
    assert tiny.events() == before


# readers


def start(tiny: TinySite, arguments: Sequence[str], *, wait: float | None = None) -> Program:
    """A command of the command line in a process of its own; `wait`: for how long it waits for a lock, instead of 30 s."""
    what = [str(tiny.home / "policies" / "people.yaml"), "--home"] if arguments[0] == "check" else ["--home"]
    program = COMMAND
    if wait is not None:
        limit = f"connections.open_database.__wrapped__.__kwdefaults__['wait'] = {wait}\n"
        program = f"from release_pipeline.store import database as connections\n{limit}{COMMAND}"
    environment = {**os.environ, "RELEASE_PIPELINE_HOME": ""}
    return start_program([*arguments, *what, tiny.home], program=program, environment=environment, folder=ROOT)


def end(reader: Program) -> tuple[int, str]:
    """Exit code and everything that it said, which is never a traceback."""
    done = reader.end()
    for text in (done.stdout, done.stderr):
        assert "Traceback" not in text, text
        assert "internal error" not in text, text
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site with a release that is a candidate."""
    tiny = make_charged(tmp_path_factory.mktemp("readers") / "site")
    run_release(tiny.flow())
    return tiny


def test_readers_wait_for_a_run_that_holds_the_databases(finished: TinySite) -> None:
    """Held for three seconds, registry and vault are waited for; then every command answers as if nothing had been."""
    let_go = PROCESSES.Event()
    with child(hold, finished.home, let_go) as hears:
        assert hear(hears) == "holding"
        readers = [start(finished, arguments, wait=LONGEST) for arguments in COMMANDS]
        time.sleep(3)
        early = [reader.process.exitcode for reader in readers]
        let_go.set()
        answers = [end(reader) for reader in readers]
    assert early == [None] * len(COMMANDS), "nobody can have read what another process holds"
    assert [code for code, _ in answers] == [0] * len(COMMANDS), answers
    status, _, ledger, exposure, check = (text for _, text in answers)
    assert "people/1/r1  candidate" in status
    assert "spent      2" in ledger
    assert "60 people" in exposure
    assert "has spent 2 of 10" in check


def test_readers_that_wait_too_long_say_so(finished: TinySite) -> None:
    """Held for longer than a reader waits: it fails in words, which say that another process works and to try again."""
    let_go = PROCESSES.Event()
    with child(hold, finished.home, let_go) as hears:
        assert hear(hears) == "holding"
        readers = [start(finished, arguments, wait=0.2) for arguments in COMMANDS]
        answers = [end(reader) for reader in readers]
        let_go.set()
    for code, words in answers:
        assert code == 1
        assert "another process is working with this database. Wait for it, then try again." in words


def test_reader_that_comes_with_the_first_event_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader looks, and there is no registry; before it looks into the vault, somebody has made one. Nothing was removed."""
    tiny = make_site(tmp_path / "site")
    exists, looked = Path.exists, list[Path]()

    def look_too_early(path: Path, **options: bool) -> bool:
        found = exists(path, **options)
        if path == tiny.site.registry and not found and not looked:
            looked.append(path)
            flow.check_may_begin()
        return found

    flow = tiny.flow()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", look_too_early)
        assert len(tiny.events()) in (0, 3)
    assert [event.kind for event in tiny.events()] == ["format", "policy", "opened"]
