"""A registry in Postgres: real servers, real processes that stand for hosts, and what happens when any of them dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dagster as dg
import duckdb
import psycopg2
import pytest

from release_pipeline.apps.cli.program import main
from release_pipeline.errors import Blocked, OverCap, ReleasePipelineError, StoreBusy, StoreError
from release_pipeline.operate.backup import restore, write_backup
from release_pipeline.operate.survivors import accept
from release_pipeline.pipeline import reservation
from release_pipeline.pipeline.cap import check_cap
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.reservation import Reservation, reserve
from release_pipeline.policy import Policy
from release_pipeline.publish.verification import verify
from release_pipeline.store import registry, registry_server
from release_pipeline.store import site as sites
from release_pipeline.store.files import PLAIN
from release_pipeline.store.ledger import VaultDamaged, _update_budget, find_budget_faults, list_charges
from release_pipeline.store.registry import TABLES, RegistryChanged, ReleaseId
from release_pipeline.store.registry_copies import move_to_server
from release_pipeline.store.registry_server import Server, ServerConnection, split_address
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import copy_site, review
from tests.integration.processes import PROCESSES, begin, finish
from tests.integration.publishing import failures_of, publish_release
from tests.integration.sites import TinySite, make_rows, make_site, materializations, run_job
from tests.integration.test_sources import server  # noqa: F401  a fixture
from tests.leaks import find_canaries, read_blobs

pytestmark = pytest.mark.slow

PASSWORD = "pa55/word@of:kanarienvogel"  # noqa: S105  with letters that an address may not have
CANARIES = [PASSWORD, "pa55%2Fword%40of%3Akanarienvogel", "kanarienvogel"]
CAP = "epsilon: 2000, definition: idp, scope: column"
CHARGES = 1000  # what fits under the cap


@dataclass(frozen=True)
class Ledger:
    """An empty database for one registry."""

    port: int
    name: str
    folder: Path = Path()

    @property
    def address(self) -> str:
        """As site.yaml has it."""
        return f"postgresql://ledger:${{file:{self.folder}/ledger.password}}@127.0.0.1:{self.port}/{self.name}"

    def connect(self) -> Any:
        """A connection of somebody else who has the password."""
        connection = psycopg2.connect(host="127.0.0.1", port=self.port, user="ledger", password=PASSWORD, dbname=self.name)
        connection.autocommit = True
        return connection

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, which changes what it says."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def port(request: pytest.FixtureRequest) -> int:
    """Where a server listens that knows the account of the registry; in CI it has to be there."""
    try:
        address = request.getfixturevalue("server")
    except pytest.skip.Exception as skipped:
        if os.environ.get("CI"):
            pytest.fail(f"in CI a Postgres server is required: {skipped.msg}")
        raise
    with closing(psycopg2.connect(address)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CREATE ROLE ledger LOGIN CREATEDB PASSWORD %s", [PASSWORD])
    return int(urlsplit(address).port or 0)


_made: list[str] = []


@pytest.fixture
def ledger(port: int, tmp_path: Path) -> Iterator[Ledger]:
    """A database of its own, and its password in a file beside the site."""
    (tmp_path / "ledger.password").write_text(f"{PASSWORD}\n")
    made = Ledger(port, f"ledger{len(_made)}", tmp_path)
    _made.append(made.name)
    Ledger(port, "postgres").ask(f"CREATE DATABASE {made.name}")
    registry._verified = registry._Verified(Path())
    yield made
    registry._verified = registry._Verified(Path())


@pytest.fixture
def tiny(ledger: Ledger, tmp_path: Path) -> TinySite:
    """A site whose registry is there."""
    return share(make_site(tmp_path / "site", cap=CAP), ledger)


def share(tiny: TinySite, ledger: Ledger) -> TinySite:
    """The site, with its registry on the server from now on."""
    with (tiny.home / "site.yaml").open("a") as file:
        file.write(f"registry: {json.dumps(ledger.address)}\n")
    return tiny


def forget_verified() -> None:
    """What a new process knows of the registry: nothing."""
    registry._verified = registry._Verified(Path())


def wanted(site: Site, name: str = "1", policy: Policy | None = None) -> Reservation:
    """What a charge is for."""
    return Reservation(policy or site.policy("people"), ReleaseId("people", name), 60, "keyed hash of the records")


def begin_vault(tiny: TinySite) -> None:
    """The site as it is before its first charge: a vault with a file of the population, and an event."""
    with tiny.site.open_registry() as opened:
        opened.add("held", policy="people", why="a test", by="ana")
        opened.add("resumed", policy="people", why="a test", by="ana")
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb")) as vault:
        vault.execute("CREATE SCHEMA made")


def is_whole(tiny: TinySite) -> int:
    """How many charges there are, when chain, seals, head and budgets agree."""
    forget_verified()
    with tiny.site.open_registry(read_only=True) as opened:
        assert list(find_budget_faults(opened)) == []
        return len(list_charges(opened))


# two hosts


def charge_many(home: Path, host: str, count: int, tells: Connection) -> None:
    """Charge as many releases; tells how many the cap has refused."""
    site, refused = Site(home, {}), 0
    policy = site.policy("people")
    for number in range(count):
        try:
            with site.open_registry() as opened:
                reservation._charge(opened, site, wanted(site, f"{host}{number}", policy))
        except OverCap:
            refused += 1
    tells.send(refused)


def test_two_hosts_charge_a_thousand_and_no_more(tiny: TinySite, tmp_path: Path) -> None:
    """Each has a folder and a vault of its own, so that nothing but the server stands between them."""
    begin_vault(tiny)
    hosts = {"a": tiny.home, "b": tmp_path / "other"}
    shutil.copytree(tiny.home, hosts["b"])
    running = []
    for host, home in hosts.items():
        hears, tells = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=charge_many, args=(home, host, CHARGES // 2 + 20, tells))
        begin(process)
        tells.close()
        running.append((process, hears))
    refused = [hears.recv() for _, hears in running]
    assert [finish(process) for process, _ in running] == [0, 0]
    assert sum(refused) == 40
    for home in hosts.values():
        assert is_whole(TinySite(home)) == CHARGES
    names = [charge.id.release for charge in tiny.charges()]
    assert len(set(names)) == CHARGES
    turns = sum(one[0] != other[0] for one, other in pairwise(names))
    assert turns > 20, "the hosts did not take turns: nothing was tried"


# killed between every two steps


def die_before(step: int) -> None:
    """From here on this process dies before it asks the server for the step of that number, or moves the head."""
    steps = 0

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **named: Any) -> Any:
            nonlocal steps
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            steps += 1
            return work(*arguments, **named)

        return count

    for kind, names in ((ServerConnection, ("execute", "commit", "close")), (sites._RegistryAnchor, ("write",))):
        for name in names:
            setattr(kind, name, counted(getattr(kind, name)))
    Path.unlink = counted(Path.unlink)  # type: ignore[method-assign]


def attempt_charge(home: Path, step: int) -> None:
    """Reserve release 1, killed before a step."""
    die_before(step)
    reserve(Site(home, {}), wanted(Site(home, {})), PLAIN)


def attempt_opening(home: Path, step: int) -> None:
    """Read the registry, killed before a step."""
    die_before(step)
    with Site(home, {}).open_registry(read_only=True):
        pass


def kill_before_each(work: Callable[[Path, int], None], home: Path, reset: Callable[[], None], check: Callable[[], None]) -> int:
    """Let a process do the work and die before its first, second, ... step, until there is no step left to die before; gives how
    many deaths that were. After each `check`; before each `reset`."""
    step = 0
    while True:
        reset()
        process = PROCESSES.Process(target=work, args=(home, step))
        begin(process)
        code = finish(process)
        check()
        if code == 0:
            return step
        assert code == -signal.SIGKILL
        step += 1


def attempt_first(home: Path, step: int) -> None:
    """Note the first event of all, killed before a step."""
    die_before(step)
    with Site(home, {}).open_registry() as opened:
        opened.add("held", policy="people", why="a test", by="ana")


def test_killed_at_any_step_a_charge_is_whole_or_not_there(tiny: TinySite, ledger: Ledger, tmp_path: Path) -> None:
    """And the same command ends as if nobody had died: one charge, one secret, one event of each kind."""
    begin_vault(tiny)
    shutil.copytree(tiny.home, tmp_path / "before")
    for table in TABLES:
        ledger.ask(f"CREATE TABLE old_{table} AS TABLE {table}")
    seen: set[int] = set()

    def reset() -> None:
        for table in TABLES:
            ledger.ask(f"TRUNCATE {table}; INSERT INTO {table} TABLE old_{table}")
        shutil.rmtree(tiny.home)
        shutil.copytree(tmp_path / "before", tiny.home)

    def check() -> None:
        seen.add(is_whole(tiny))
        secret = reserve(tiny.site, wanted(tiny.site), PLAIN)
        assert reserve(tiny.site, wanted(tiny.site), PLAIN) == secret
        assert is_whole(tiny) == 1
        assert [event.kind for event in tiny.events()] == ["format", "held", "resumed", "reserved", "secret"]

    assert kill_before_each(attempt_charge, tiny.home, reset, check) >= 30
    assert seen == {0, 1}


def test_killed_at_any_step_a_registry_begins_whole_or_not(tiny: TinySite, ledger: Ledger) -> None:
    """The very first event: with its tables, or without any."""
    seen: set[int] = set()

    def reset() -> None:
        ledger.ask("DROP TABLE IF EXISTS events, head, budgets")
        shutil.rmtree(tiny.site.vault, ignore_errors=True)

    def check() -> None:
        forget_verified()
        seen.add(len(tiny.events()))
        begin_vault(tiny)
        assert is_whole(tiny) == 0

    assert kill_before_each(attempt_first, tiny.home, reset, check) > 15
    assert seen == {0, 2}


def test_killed_at_any_step_a_registry_moves_to_the_server(ledger: Ledger, tmp_path: Path) -> None:
    """Who gives a site a server later finds all events there, and no file."""
    tiny = make_site(tmp_path / "site", cap=CAP)
    begin_vault(tiny)
    before = tiny.events()
    shutil.copytree(tiny.home, tmp_path / "before")
    place = share(TinySite(tmp_path / "before"), ledger).site.registry
    assert isinstance(place, Server)

    def reset() -> None:
        ledger.ask("DROP TABLE IF EXISTS events, head, budgets")
        shutil.rmtree(tiny.home)
        shutil.copytree(tmp_path / "before", tiny.home)

    def check() -> None:
        forget_verified()
        assert tiny.events() == before
        assert not tiny.site.registry_file.exists()
        move_to_server(tiny.site.registry_file, place, anchor=sites._RegistryAnchor(tiny.site), may_replace=lambda *_: False)
        assert tiny.events() == before  # who came a moment later than another changes nothing

    assert kill_before_each(attempt_opening, tiny.home, reset, check) > 10


# a lost connection


def test_a_connection_that_is_lost_is_told_and_charges_nothing(
    tiny: TinySite, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a charge, and before its commit."""
    begin_vault(tiny)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'release-pipeline'"
    for name in ("execute", "commit"):
        work = getattr(ServerConnection, name)

        def lose(self: ServerConnection, *arguments: Any, work: Callable[..., Any] = work, name: str = name) -> Any:
            if name == "commit" or "UPDATE budgets" in arguments[0]:
                ledger.ask(ended)
            return work(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(ServerConnection, name, lose)
            with pytest.raises(StoreError, match=r"connection .* was lost.*Give the same command again") as lost:
                reserve(tiny.site, wanted(tiny.site), PLAIN)
        assert find_canaries({"error": str(lost.value).encode()}, CANARIES) == []
        assert lost.value.__context__ is None
        assert is_whole(tiny) == 0
    reserve(tiny.site, wanted(tiny.site), PLAIN)
    assert is_whole(tiny) == 1


def test_a_commit_whose_answer_is_lost_is_charged_once(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether it was noted; the same command finds that it was."""
    begin_vault(tiny)
    commit = ServerConnection.commit

    def lose_answer(self: ServerConnection) -> None:
        commit(self)
        self.close()
        commit(self)

    with monkeypatch.context() as patched:
        patched.setattr(ServerConnection, "commit", lose_answer)
        with pytest.raises(StoreError, match="Nobody knows whether the last step was noted"):
            reserve(tiny.site, wanted(tiny.site), PLAIN)
    assert is_whole(tiny) == 1
    secret = reserve(tiny.site, wanted(tiny.site), PLAIN)
    assert reserve(tiny.site, wanted(tiny.site), PLAIN) == secret
    assert is_whole(tiny) == 1


def test_who_waits_too_long_is_told_and_may_try_again(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_vault(tiny)
    monkeypatch.setattr(registry_server, "WAIT_SECONDS", 1.0)
    place = tiny.site.registry
    assert isinstance(place, Server)
    with place.open(), pytest.raises(StoreBusy, match="another host or process"), tiny.site.open_registry():
        pass
    with place.open(), tiny.site.open_registry(read_only=True) as opened:  # who reads waits for nobody
        assert len(opened.events) == 3


def test_without_the_lock_nobody_writes_over_another(tiny: TinySite, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second line: where the lock fails, of two who go on from one event only the first is noted. Three things see to it: the
    row of the cap, the index of events, and the head."""
    begin_vault(tiny)
    monkeypatch.setattr(registry_server, "statement", lambda name: "SELECT 1" if name.endswith("begin_writing") else READ(name))
    site = tiny.site

    def write_over_another(number: int, late_kind: str) -> None:
        with site.open_registry() as late:
            with site.open_registry() as early:
                reservation._charge(early, site, wanted(site, f"early{number}"))
            if late_kind == "charge":
                reservation._charge(late, site, wanted(site, f"late{number}"))
            else:
                late.add("held", policy="people", why="a test", by="ana")

    refusals = [("charge", "do not agree on what is spent"), ("event", "SQLSTATE 23505"), ("event", "somebody else wrote")]
    for number, (kind, refusal) in enumerate(refusals):
        if number == 2:
            ledger.ask("DROP INDEX events_number_idx")
        with pytest.raises(StoreError, match=refusal):
            write_over_another(number, kind)
        assert is_whole(tiny) == number + 1


READ = registry_server.statement


def test_the_server_does_not_go_over_a_cap(tiny: TinySite) -> None:
    """Whatever was computed before: the row of the cap refuses it, in the words of a charge that does not fit."""
    begin_vault(tiny)
    reserve(tiny.site, wanted(tiny.site), PLAIN)
    policy = tiny.site.policy("people")

    def overspend() -> None:
        with tiny.site.open_registry() as opened:
            [charge] = list_charges(opened)
            account, _ = check_cap(tiny.site, opened, policy, ReleaseId("people", "2"), records=60)
            beyond = account.most + 1
            _update_budget(opened, charge, account, spent=account.total, after=beyond, happened=False)

    with pytest.raises(OverCap, match="the database refused to go over the cap"):
        overspend()
    assert is_whole(tiny) == 1


def test_the_head_of_the_vault_never_goes_back(tiny: TinySite) -> None:
    """Whoever wrote an earlier event and comes later to the vault changes nothing there."""
    begin_vault(tiny)
    anchor = sites._RegistryAnchor(tiny.site)
    last = anchor.read()
    anchor.write(1, tiny.events()[0].hash)
    assert anchor.read() == last == (3, tiny.events()[-1].hash)
    assert last is not None
    with pytest.raises(RegistryChanged, match="another event"):  # a server that lost one, and counts on from there
        anchor.write(last[0], "0" * 64)
    assert anchor.read() == last


# what somebody changed on the server

CHANGES = {
    "an event": "UPDATE events SET body = replace(body, 'ana', 'bob') WHERE number = 2",
    "a seal": "UPDATE events SET seal = hash WHERE number = 2",
    "the last event": "DELETE FROM events WHERE number = 3",
    "the last event and the head": "DELETE FROM events WHERE number = 3; UPDATE head SET number = 2, hash = events.hash FROM "
    "events WHERE events.number = 2",
    "the head": "UPDATE head SET number = 2",
    "two heads": "INSERT INTO head SELECT * FROM head",
    "all events": "TRUNCATE events, head",
    "a table": "DROP TABLE budgets",
    "all tables": "DROP TABLE events, head, budgets",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_changed_on_the_server_is_found(tiny: TinySite, ledger: Ledger, change: str) -> None:
    """By who reads, by who writes, and by `verify`, in a process that knows nothing of it."""
    begin_vault(tiny)
    ledger.ask(change)
    for read_only in (True, False):
        forget_verified()
        with (
            pytest.raises(RegistryChanged, match=r"postgresql://ledger@.*Restore the registry"),
            tiny.site.open_registry(read_only=read_only),
        ):
            pass
    assert any("Restore the registry" in words for words in failures_of(verify(tiny.home)))


def test_an_older_database_is_found(tiny: TinySite, ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """As a server that was set back to yesterday has it: faultless by itself, one charge short."""
    begin_vault(tiny)
    for table in TABLES:
        ledger.ask(f"CREATE TABLE old_{table} AS TABLE {table}")
    reserve(tiny.site, wanted(tiny.site), PLAIN)
    for table in TABLES:
        ledger.ask(f"TRUNCATE {table}; INSERT INTO {table} TABLE old_{table}")
    for known in (True, False):
        if not known:
            forget_verified()
        with pytest.raises(RegistryChanged, match="the vault knows of 5 events, and here are 3"):
            reserve(tiny.site, wanted(tiny.site), PLAIN)
    assert any("an older copy put back" in words for words in failures_of(verify(tiny.home)))
    assert main(["status", "--health", "--home", str(tiny.home)]) == 1
    assert "an older copy put back" in capsys.readouterr().out


# a whole site


def test_people_that_are_rolled_back_are_found(tiny: TinySite) -> None:
    """An older file of the vault, and older rows in a newer file: who was in the last release is missing there."""
    run_release(tiny.flow("1"))
    file = tiny.site.vault / "folk.duckdb"
    older = file.read_bytes()
    run_release(tiny.flow("2"))
    newer = file.read_bytes()
    assert failures_of(verify(tiny.home, deep=True)) == []

    file.write_bytes(older)
    assert failures_of(verify(tiny.home)) != []
    tiny.write_policy(releases='["1", "2", "3"]')
    tiny.write_rows(make_rows(releases=("1", "2", "3")))
    with pytest.raises(VaultDamaged, match=r"does not know of people/2/r1"):
        run_release(tiny.flow("3"))

    file.write_bytes(newer)
    with duckdb.connect(str(file)) as vault:
        vault.execute("DELETE FROM main.exposed WHERE release = 'people/2/r1'")
    assert any("who was in which release" in words for words in failures_of(verify(tiny.home, deep=True)))


def test_a_site_goes_through_backup_and_restore(
    candidate: Path, keys: dict[str, PrivateKey], ledger: Ledger, tmp_path: Path
) -> None:
    """With its registry on a server: what came after the backup is found there, and kept there under other names."""
    tiny = share(copy_site(candidate, tmp_path / "site"), ledger)
    file = tmp_path / "site.tar"
    write_backup(tiny.site, file)
    assert not tiny.site.registry_file.exists()
    review(tiny, keys, "ben", "cleo")
    publish_release(tiny, keys, "2")
    assert failures_of(verify(tiny.home, deep=True)) == []
    events = len(tiny.events())

    done = restore(file, tiny.home)
    assert done.all_known
    assert [entry["release"] for entry in done.lost] == ["people/2/r1"]
    forget_verified()
    with pytest.raises(Blocked, match="the officer has not entered"):
        run_release(tiny.flow("2"))
    assert not tiny.site.registry_file.exists()
    accept(tiny.site, key=keys["olga"], named={})
    assert [charge.id.release for charge in tiny.charges()] == ["1", "2"]
    assert failures_of(verify(tiny.home)) == []
    tables = {name for (name,) in ledger.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    [aside] = [name for name in tables if name.startswith("events_until")]
    assert len(ledger.ask(f"TABLE {aside}")) == events

    elsewhere = restore(file, tmp_path / "new")  # the folder is lost, the server is not
    assert not elsewhere.all_known
    assert [entry["release"] for entry in elsewhere.lost] == ["people/2/r1"]


def test_a_server_that_went_on_is_not_replaced(candidate: Path, ledger: Ledger, tmp_path: Path) -> None:
    """Another host that works while a backup is put back: nothing of it is lost, and nothing goes on."""
    tiny = share(copy_site(candidate, tmp_path / "site"), ledger)
    file = tmp_path / "site.tar"
    write_backup(tiny.site, file)
    other = copy_site(tiny.home, tmp_path / "other")
    restore(file, tiny.home)
    forget_verified()
    with other.site.open_registry() as opened:
        opened.add("held", policy="people", why="a test", by="ana")
    with pytest.raises(StoreError, match="the server has another registry"):
        tiny.events()
    assert tiny.site.registry_file.exists()
    forget_verified()
    assert other.events()[-1].kind == "held"


# the password


def test_no_address_has_its_password_in_it() -> None:
    """Only the name of a variable or of a file."""
    good = {
        "postgresql://ledger:${NAME}@db.example.org/a": ("postgresql://ledger", "NAME", "@db.example.org/a"),
        "postgres://ledger:${file:/run/a}@[::1]:5/a?sslmode=verify-full": (
            "postgres://ledger",
            "file:/run/a",
            "@[::1]:5/a?sslmode=verify-full",
        ),
        "postgresql://ledger@db.example.org/a": ("postgresql://ledger", "", "@db.example.org/a"),
        "postgresql:///a?host=/run/postgresql": ("postgresql://", "", "/a?host=/run/postgresql"),
    }
    assert {text: split_address(text) for text in good} == good
    for text in (
        "ledger:kanarienvogel@db.example.org/a",
        "db.example.org/a?password=kanarienvogel",
        "db.example.org/a?p%61ssword=kanarienvogel",
        "ledger:${NAME}kanarienvogel@db.example.org/a",
        "a:b@kanarienvogel@db.example.org",
    ):
        assert split_address(f"postgresql://{text}") is None
    assert split_address("mysql://ledger@db.example.org/a") is None


@pytest.mark.filterwarnings("ignore")
def test_the_password_is_nowhere(
    tiny: TinySite, ledger: Ledger, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In no file of the site or of a backup, no row, no output and no error: when all is well, with a wrong password, without a
    server, with an address that cannot be read, and with a password in the file itself."""
    monkeypatch.setenv("LEDGER_PASSWORD", PASSWORD)
    spoken: dict[str, bytes] = {}
    home, settings = str(tiny.home), tiny.home / "site.yaml"
    right = f"postgresql://ledger:${{LEDGER_PASSWORD}}@127.0.0.1:{ledger.port}/{ledger.name}"
    settings.write_text(f"registry: {json.dumps(right)}\n")
    (tmp_path / "ledger.password").unlink()
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        assert run_job(tiny, instance=instance).success
        spoken["job"] = repr(materializations(run_job(tiny, "2", instance=instance))).encode()
        settings.write_text(f"registry: {json.dumps(right.replace(str(ledger.port), '1'))}\n")
        assert not run_job(tiny, instance=instance).success  # what it says of that is in the folder, too
    settings.write_text(f"registry: {json.dumps(right)}\n")
    assert tiny_charges(tiny) == 2
    commands = [
        ["status"],
        ["status", "--health"],
        ["status", "--json"],
        ["ledger"],
        ["verify", home],
        ["run", "people", "--release", "1"],
    ]
    commands.append(["backup", "-o", str(tmp_path / "site.tar")])
    addresses = {
        "right": right,
        "nobody there": right.replace(str(ledger.port), "1"),
        "no port": right.replace(str(ledger.port), "x"),
        "no such option": f"{right}?kanary=1",
        "in the file": right.replace("${LEDGER_PASSWORD}", PASSWORD),
    }
    for name, address in addresses.items():
        settings.write_text(f"registry: {json.dumps(address)}\n")
        for command in commands:
            code = main([*command, *([] if command[0] == "verify" else ["--home", home])])
            assert (code == 0) == (name == "right"), (name, command, code)
    settings.write_text(f"registry: {json.dumps(right)}\n")
    monkeypatch.setenv("LEDGER_PASSWORD", f"{PASSWORD}, and wrong")
    assert main(["status", "--home", home]) == 1
    spoken["output"] = "".join(capfd.readouterr()).encode()
    spoken["rows"] = repr(ledger.ask("SELECT * FROM events")).encode()
    spoken["server"] = repr(Site(tiny.home, {"LEDGER_PASSWORD": PASSWORD}).registry).encode()
    assert b"postgresql://ledger@127.0.0.1" in spoken["server"]
    assert find_canaries({**spoken, **read_blobs(tmp_path)}, CANARIES) == []


def tiny_charges(tiny: TinySite) -> int:
    """How many charges the site has whose password the environment has."""
    with Site(tiny.home, dict(os.environ)).open_registry(read_only=True) as opened:
        return len(list_charges(opened))


def test_a_missing_password_or_server_is_told(tiny: TinySite, tmp_path: Path) -> None:
    """In words, with what to do, before anything is noted."""
    (tmp_path / "ledger.password").unlink()
    with pytest.raises(ReleasePipelineError, match=r"password of the registry is missing: file:/.*/ledger\.password is not set"):
        tiny.events()
    (tmp_path / "ledger.password").write_text("another")
    with pytest.raises(StoreError, match=r"cannot be reached, or refuses this account.*Check the address") as refused:
        tiny.events()
    assert refused.value.__context__ is None
