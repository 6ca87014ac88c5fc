"""Several UNIX accounts on one machine: the table of docs/operating.md, walked with real ones."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import re
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy import load_policy
from release_pipeline.policy.loading.load import read_policy
from release_pipeline.store.database import open_delivered
from release_pipeline.store.files import PUBLIC, write_text
from tests.guards import HANGING
from tests.integration.people import copy_site
from tests.integration.sites import ROOT, TinySite, policy_text

# Who signs is an account that exists (list and irc of Debian): ssh-keygen works for no other.
PEOPLE = {"operator": 61001, "steward": 61002, "reviewer": 38, "officer": 39, "auditor": 61005, "public": 61006}
STEWARDS = 61102  # the group that writes policies
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become other accounts")


def become(person: str) -> None:
    """This process is that account's from here on."""
    os.setgroups([STEWARDS] if person == "steward" else [])
    os.setgid(PEOPLE[person])
    os.setuid(PEOPLE[person])
    os.umask(0o022)


def be(person: str, work: Callable[[], object]) -> str:
    """What happens when this account does it: nothing, or the name of what it met. In a process of its own."""
    hears, tells = os.pipe()
    if (child := os.fork()) == 0:
        try:
            become(person)
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
                found = work()
            words = "" if not found else f"exit code {found}: {out.getvalue()[-300:]}{err.getvalue()[-300:]}"
        except BaseException as error:
            words = type(error).__name__
        os.write(tells, words.encode())
        os._exit(0)
    os.close(tells)
    with os.fdopen(hears) as heard:
        words = heard.read()
    _, status = os.waitpid(child, 0)
    return f"killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else words


@contextlib.contextmanager
def attacking(person: str, attack: Callable[[], bool]) -> Iterator[Callable[[], int]]:
    """Another process, in which this account repeats `attack` until the block ends; gives the number of times it was true."""
    count = mmap.mmap(-1, 8)
    if (child := os.fork()) == 0:
        become(person)
        while True:
            with contextlib.suppress(OSError):
                if attack():
                    count[:] = (int.from_bytes(count[:], "big") + 1).to_bytes(8, "big")
    try:
        yield lambda: int.from_bytes(count[:], "big")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.fixture
def office(candidate: Path, key_folder: Path) -> Iterator[TinySite]:
    """A site as docs/operating.md says to set it up: the operator's, with policies that the group of stewards writes."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="accounts-"))
    folder.chmod(0o755)
    tiny = copy_site(candidate, folder / "site")
    for path in (folder, tiny.home, *tiny.home.rglob("*")):
        os.chown(path, PEOPLE["operator"], PEOPLE["operator"])
    for path in (tiny.home / "policies", *(tiny.home / "policies").iterdir()):
        os.chown(path, PEOPLE["operator"], STEWARDS)
        path.chmod(0o3775 if path.is_dir() else 0o664)
    for person, key in (("reviewer", "ben"), ("officer", "olga")):
        own = folder / person
        own.mkdir(mode=0o700)
        shutil.copy(key_folder / key, own / "my")
        for path in (own, *own.iterdir()):
            os.chown(path, PEOPLE[person], PEOPLE[person])
    yield tiny
    shutil.rmtree(folder)


def read_table() -> dict[str, dict[str, str]]:
    """Who may do what with which place, as docs/operating.md has it: r, w, or nothing."""
    section = (ROOT / "docs" / "operating.md").read_text().partition("## Who may read and write what")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    assert rows[0][1:] == list(PEOPLE)
    return {re.sub("`", "", place): dict(zip(PEOPLE, marks, strict=True)) for place, *marks in rows[2:]}


def test_the_table_holds_for_real_accounts(office: TinySite) -> None:
    """Every cell of it: what may be read and written is, what may not is refused by the system."""
    home = office.home
    table = read_table()
    assert {"vault/", "registry.duckdb", "policies/", "trusted-keys.yaml", "site.yaml"} <= set(table)
    (home / "releases").mkdir(exist_ok=True)
    os.chown(home / "releases", PEOPLE["operator"], PEOPLE["operator"])
    for place, marks in table.items():
        path = home / place
        assert path.exists(), place
        for person, may in marks.items():
            readable = be(person, lambda path=path: [*path.iterdir()] and None if path.is_dir() else path.read_bytes() and None)
            writable = be(person, lambda path=path: _touch(path))
            assert (readable == "", writable == "") == ("r" in may, "w" in may), (place, person, may, readable, writable)


def _touch(path: Path) -> None:
    if path.is_dir():
        (path / "new").write_bytes(b"")
        (path / "new").unlink()
        return
    with path.open("ab"):
        pass


SECRET = "SECRETCELL"  # noqa: S105
TRIES = 1000


@pytest.fixture
def hostile(office: TinySite) -> TinySite:
    """The office with files that only the operator reads, and two policies of a steward that name lists."""
    keys, policies = office.home / "keys", office.home / "policies"
    keys.mkdir(mode=0o700)
    (keys / "towns.csv").write_text(f"town\n{SECRET}\n")
    (keys / "towns.csv").chmod(0o600)
    (policies / "lists").mkdir()
    (policies / "there").mkdir()
    for place in ("lists", "there"):
        (policies / place / "towns.csv").write_text("town\nnorth\nsouth\neast\n")
        text = policy_text(policy=place).replace("[north, south, east]", f"{{file: {place}/towns.csv}}")
        (policies / f"{place}.yaml").write_text(text)
    for path in (keys, keys / "towns.csv"):
        os.chown(path, PEOPLE["operator"], PEOPLE["operator"])
    for path in policies.rglob("*"):
        if path.name != "people.yaml":
            os.chown(path, PEOPLE["steward"], STEWARDS)
    return office


def make_link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def make_hard_link(path: Path, target: Path) -> None:
    path.hardlink_to(target)


def make_endless(path: Path, _: Path) -> None:
    path.symlink_to("/dev/zero")


def make_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def make_huge(path: Path, _: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 33)


def make_file(path: Path, _: Path) -> None:
    path.write_text("town\nnorth\nsouth\neast\n")


KINDS = (make_file, make_link, make_hard_link, make_endless, make_pipe, make_huge)


def _list_attacks(home: Path, kinds: Sequence[Callable[[Path, Path], None]]) -> Iterator[Callable[[], bool]]:
    """Every kind of thing in the place of a policy and of a list, and a link in the place of a folder of lists."""
    policies, secret = home / "policies", home / "keys" / "towns.csv"

    def put(path: Path, make: Callable[[Path, Path], None]) -> bool:
        beside = path.with_name(f".{path.name}.new")
        beside.unlink(missing_ok=True)
        make(beside, secret)
        beside.replace(path)
        return True

    def turn(folder: Path) -> bool:
        if folder.is_symlink():
            folder.unlink()
            folder.with_name("aside").rename(folder)
        else:
            folder.rename(folder.with_name("aside"))
            folder.symlink_to(secret.parent)
        return True

    for make in kinds:
        yield lambda make=make: put(policies / "peek.yaml", make)
        yield lambda make=make: put(policies / "lists" / "towns.csv", make)
        yield lambda: turn(policies / "there")


def take_turns(attacks: Sequence[Callable[[], bool]]) -> Callable[[], bool]:
    """The next of several attacks at each call."""
    number = -1

    def attack() -> bool:
        nonlocal number
        number = (number + 1) % len(attacks)
        return attacks[number]()

    return attack


def read_as_the_desk(tiny: TinySite, *, plans: bool = True) -> str:
    """Everything that pages and commands could show of the policies; with `plans` also what each would do."""
    read, broken = tiny.site.read_policies()
    shown = [*(policy.canonical_json() for policy in read), *broken]
    for name in ("peek", "lists", "there"):
        try:
            file = tiny.site.policy_file(name)
            shown += [read_policy(file), *([str(load_policy(file))] if plans else [])]
        except ReleasePipelineError as error:
            shown.append(str(error))
    return "\n".join(shown)


@pytest.mark.slow
def test_a_steward_with_a_shell_shows_no_file_of_the_operator(hostile: TinySite) -> None:
    """Links, hard links, devices, pipes and endless files in the place of policies and lists, exchanged while they are read."""
    attacks = list(_list_attacks(hostile.home, KINDS))

    def read() -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
        signal.alarm(int(HANGING))
        for number in range(TRIES):  # a plan takes a while: some of them do
            assert SECRET not in read_as_the_desk(hostile, plans=number % 20 == 0)

    with attacking("steward", take_turns(attacks)) as count:
        assert be("operator", read) == ""
        assert count() > TRIES


@pytest.mark.slow
def test_a_steward_with_a_shell_has_no_file_overwritten(hostile: TinySite) -> None:
    """A link is put in the place of each file that the operator's account is writing, although the folder is not sticky here."""
    policies, target = hostile.home / "policies", hostile.home / "keys" / "towns.csv"
    policies.chmod(0o2775)
    before = target.read_text(), target.stat().st_mode
    link = policies / ".link"
    be("steward", lambda: link.symlink_to(target))

    seen: set[str] = set()

    def exchange() -> bool:
        for name in os.listdir(policies):  # noqa: PTH208  names only, as fast as they come
            if name.startswith(".partial-") and name not in seen:
                seen.add(name)
                os.replace(link, policies / name)  # noqa: PTH105
                link.symlink_to(target)
                return True
        return False

    def save() -> None:
        file = hostile.home / "policies" / "people.yaml"
        for number in range(TRIES):
            text = f"{policy_text()}# {number} {'x' * 20_000}\n"
            file.unlink(missing_ok=True)
            refused = ""
            try:
                write_text(file, text, mode=PUBLIC)
            except ReleasePipelineError as error:
                refused = error.what
            assert "is not what was to be written" in refused or read_policy(file) == text

    with attacking("steward", exchange) as count:
        assert be("operator", save) == ""
        assert count() > 0
    assert (target.read_text(), target.stat().st_mode) == before


@pytest.mark.slow
def test_a_delivered_database_shows_no_other_file(hostile: TinySite) -> None:
    """A table is exchanged for views on a file that only the operator reads, while it is opened as the source of a policy."""
    delivered, secret = hostile.home.parent / "delivered", hostile.home / "keys" / "towns.csv"
    delivered.mkdir()
    views = [f"read_csv('{secret}')", f"glob('{secret}')", f"'{secret}'"]
    secret.chmod(0o644)  # DuckDB looks at what a view reads when the view is made
    for number, made in enumerate(["(SELECT 'north' AS town)", *views]):
        with duckdb.connect(str(delivered / f"{number}.made")) as connection:
            kind = "VIEW" if number else "TABLE"
            connection.execute(f"CREATE {kind} records(town) AS SELECT * FROM {made}")  # noqa: S608
    secret.chmod(0o600)
    for path in (delivered, *delivered.iterdir()):
        os.chown(path, PEOPLE["steward"], STEWARDS)

    def deliver(number: int) -> bool:
        (delivered / ".new").unlink(missing_ok=True)
        (delivered / ".new").hardlink_to(delivered / f"{number}.made")
        (delivered / ".new").replace(delivered / "x.duckdb")
        time.sleep(0.001)  # opening takes longer: the next one finds another file
        return number > 0

    def read() -> None:
        seen, tries = 0, TRIES // 4  # the table is exchanged during nearly every one of them
        for _ in range(tries):
            with contextlib.suppress(ReleasePipelineError):
                with open_delivered(delivered / "x.duckdb", "records") as connection:
                    assert connection.execute("SELECT * FROM records").fetchall() == [("north",)]
                seen += 1
        assert 0 < seen < tries

    assert be("steward", lambda: deliver(0) and None) == ""
    attacks = [lambda number=number: deliver(number) for number in range(len(views) + 1)]
    with attacking("steward", take_turns(attacks)) as count:
        assert be("operator", read) == ""
        assert count() > 0
