"""Crash safety of what people do to a release, with real processes: each step is killed at some of its boundaries.

The clock of the children stands still, so that everything is determined: after every kill, what is noted and what is public is
what an undisturbed step has at one of its boundaries; and the step done again ends as an undisturbed one, byte for byte.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import pytest

from release_pipeline.publish import publish as withdrawal
from release_pipeline.publish.publish import publish, retract, supersede
from release_pipeline.publish.verification import verify
from release_pipeline.store import files, registry
from release_pipeline.store.files import Probe
from release_pipeline.store.site import Site, _RegistryAnchor
from release_pipeline.trust import approvals, keys
from release_pipeline.trust.approvals import approve_candidate
from release_pipeline.trust.keys import PrivateKey
from tests.drawn import draw_cases
from tests.integration.people import CORRECTION, RELEASE, copy_site, read_keys, review
from tests.integration.processes import LONGEST, PROCESSES, begin, finish
from tests.integration.sites import TinySite

BEGUN = "begun"
WRITTEN, KEPT, APPROVED = "the event is written, not yet committed", "the event is committed, not yet kept", "approved"
INTENT, BUILT = "the intent is noted", "the package is built"
PLACED, PUBLISHED = "the package is in its place", "published is noted"
SIGNED, TOMB = "the tombstone is signed", "the tombstone is written"
HALF = "half of the tombstone is written"


@dataclass(frozen=True)
class Step:
    """What a person does; `state` before and after it, and its boundaries in order. `between` is the state that the registry
    tells after some of them: the intent of a publication."""

    who: str
    act: Callable[[Site, PrivateKey, Probe], object]
    before: str
    after: str
    boundaries: tuple[str, ...]
    between: tuple[str, ...] = ()


def _approve(site: Site, key: PrivateKey, probe: Probe) -> None:
    approve_candidate(site, RELEASE, key=key)
    probe.reached(APPROVED)


STEPS = {
    "approve": Step("cleo", _approve, "candidate", "approved", (WRITTEN, KEPT, APPROVED)),
    "publish": Step(
        "robot",
        lambda site, key, probe: publish(site, RELEASE, key=key, probe=probe),
        "approved",
        "published",
        (WRITTEN, KEPT, INTENT, BUILT, f"{WRITTEN} (2)", f"{KEPT} (2)", PUBLISHED, PLACED),
        ("publishing",),
    ),
    "retract": Step(
        "olga",
        lambda site, key, probe: retract(site, RELEASE, key=key, why="wrong", probe=probe),
        "published",
        "retracted",
        (WRITTEN, KEPT, "retracted is noted", HALF, SIGNED, f"{HALF} (2)", TOMB, "retracted is done"),
    ),
    "supersede": Step(
        "olga",
        lambda site, key, probe: supersede(site, RELEASE, CORRECTION, key=key, why="better", probe=probe),
        "published",
        "superseded",
        (WRITTEN, KEPT, "superseded is noted", HALF, SIGNED, f"{HALF} (2)", TOMB, "superseded is done"),
    ),
}
ALL = [(name, boundary) for name, step in STEPS.items() for boundary in step.boundaries]


# what a child does


def attempt(home: Path, key_folder: Path, name: str, now: datetime, stop: str | None, tells: Connection) -> None:
    """Do the step, telling every boundary; killed by itself when it has passed `stop`."""
    stop_clock(now)
    step, passed = STEPS[name], list[str]()
    key = read_keys(key_folder)[step.who]

    def tell(boundary: str) -> None:
        passed.append(boundary)
        times = passed.count(boundary)
        boundary = boundary if times == 1 else f"{boundary} ({times})"
        tells.send(boundary)
        if boundary == stop:
            die()

    look_between(tell)
    tells.send(BEGUN)
    step.act(Site(home, {}), key, Probe(reached=tell))


def stop_clock(now: datetime) -> None:
    """Whatever is noted or signed in this process happens now."""

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return now.astimezone(tz)

    for module in (registry, keys):
        module.datetime = Stopped


def look_between(tell: Callable[[str], None]) -> None:
    """Tell what no probe is told: that an event is in a transaction, or committed; that a file is half written."""
    move, keep, write, replacing = approvals.move, _RegistryAnchor.write, withdrawal.write_text, files.replacing

    def move_and_tell(*arguments: Any, **content: Any) -> Any:
        event = move(*arguments, **content)
        tell(WRITTEN)
        return event

    def tell_and_keep(anchor: _RegistryAnchor, number: int, digest: str) -> None:
        tell(KEPT)
        keep(anchor, number, digest)

    @contextmanager
    def tell_half_way(path: Path) -> Generator[IO[bytes]]:
        with replacing(path) as file:
            yield file
            tell(HALF)

    def write_and_tell(*arguments: Any, **named: Any) -> None:
        files.replacing = tell_half_way
        try:
            write(*arguments, **named)
        finally:
            files.replacing = replacing

    approvals.move = withdrawal.move = move_and_tell
    _RegistryAnchor.write = tell_and_keep
    withdrawal.write_text = write_and_tell


def die() -> None:
    """No handler and no `finally` runs after this."""
    os.kill(os.getpid(), signal.SIGKILL)


# what the test does with children


@dataclass
class Ended:
    """How an attempt ended: what it told, and whether it was killed."""

    lines: list[str] = field(default_factory=list[str])
    killed: bool = False


@dataclass(frozen=True)
class Start:
    """A site where a step can be taken, and the moment at which it is."""

    name: str
    home: Path
    key_folder: Path
    now: datetime

    @property
    def step(self) -> Step:
        """The step."""
        return STEPS[self.name]

    def copy(self, home: Path) -> TinySite:
        """The site elsewhere."""
        return copy_site(self.home, home)

    def run(self, tiny: TinySite, stop: str | None = None) -> Ended:
        """The step in a process of its own, killed by itself at `stop`."""
        hears, tells = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=attempt, args=(tiny.home, self.key_folder, self.name, self.now, stop, tells))
        begin(process)
        tells.close()
        ended = Ended()
        try:
            while hears.poll(LONGEST):
                ended.lines.append(hears.recv())
        except (EOFError, OSError):  # it ended, perhaps in the middle of a word
            pass
        finally:
            hears.close()
            code = finish(process)
        assert code in (0, -signal.SIGKILL), f"it failed after {ended.lines[-1:]}, see its standard error"
        ended.killed = code != 0
        return ended


@dataclass
class End:
    """What is compared of a site: the chain, the state, what is public byte for byte, and the names of all files."""

    events: list[str]
    state: str
    public: dict[str, str]
    files: list[str]


def look_at(tiny: TinySite) -> End:
    """A site as it is; the chain is whole."""
    public = {str(file.relative_to(tiny.site.releases)): digest(file) for file in tiny.site.releases.rglob("*") if file.is_file()}
    names = (str(path.relative_to(tiny.home)) for path in tiny.home.rglob("*"))
    return End([event.hash for event in tiny.events()], tiny.status().state, public, sorted(names))


def digest(file: Path) -> str:
    """What is in a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def is_stray(name: str) -> bool:
    """Whether nobody would miss it: what is being written has a name that begins with a dot, wherever it lies."""
    return any(part.startswith(".") and part != ".gitignore" for part in Path(name).parts)


@pytest.fixture(scope="module")
def starts(
    candidate: Path, published: Path, corrected: Path, key_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Start]:
    """For every step a site where it comes next."""
    folder, people = tmp_path_factory.mktemp("starts"), read_keys(key_folder)
    homes = {"retract": published, "supersede": corrected}
    for name, names in {"approve": ("ben",), "publish": ("ben", "cleo")}.items():
        review(copy_site(candidate, folder / name), people, *names)
        homes[name] = folder / name
    now = max(TinySite(home).events()[-1].moment for home in homes.values()) + timedelta(seconds=5)
    return {name: Start(name, homes[name], key_folder, now) for name in STEPS}


@pytest.fixture(scope="module")
def undisturbed(starts: dict[str, Start], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ended, End]]:
    """How every step ends when nobody kills it."""
    found: dict[str, tuple[Ended, End]] = {}
    for name, start in starts.items():
        tiny = start.copy(tmp_path_factory.mktemp("undisturbed") / "site")
        found[name] = start.run(tiny), look_at(tiny)
        faults = [finding.words for finding in verify(tiny.home) if finding.level == "FAIL"]
        assert faults == [], name
    return found


def check_left(start: Start, tiny: TinySite, end: End) -> None:
    """What a kill left is before or after: every event is one of an undisturbed step's, in order, and every public file is as it
    was, or as it will be; of a new package there is all or nothing."""
    begun, left = look_at(TinySite(start.home)), look_at(tiny)
    assert left.state in (start.step.before, *start.step.between, start.step.after)
    assert left.events == end.events[: len(left.events)]
    assert len(left.events) >= len(begun.events)
    files = {name: known for name, known in left.public.items() if not is_stray(name)}
    assert {name: known for name, known in files.items() if known not in (begun.public.get(name), end.public.get(name))} == {}
    if start.name == "publish":
        assert files in (begun.public, end.public)
        assert files == begun.public or left.state == "published", "nothing is public before it is noted"
    elif start.name != "approve" and files != begun.public:
        assert left.state == start.step.after, "noted before anything of the package is touched"
    if any(name.startswith(f"{RELEASE}/data.") for name in end.public.keys() ^ files.keys()):
        assert start.name == "publish" or "retract" in start.name


def check_end(start: Start, tiny: TinySite, end: End) -> None:
    """The step was finished: nothing differs from an undisturbed one, no file too many and none too few, and all of it holds."""
    assert look_at(tiny) == end
    kinds = [event.kind for event in tiny.events() if event.release == RELEASE]
    if start.name != "approve":
        assert kinds.count(start.step.after) == 1
    assert [finding.words for finding in verify(tiny.home) if finding.level == "FAIL"] == []


@pytest.mark.parametrize("name", STEPS)
def test_undisturbed_step_passes_exactly_these_boundaries(undisturbed: dict[str, tuple[Ended, End]], name: str) -> None:
    """In this order: a boundary that is new must be added here, and is then killed at."""
    ended, end = undisturbed[name]
    assert (ended.lines, ended.killed) == ([BEGUN, *STEPS[name].boundaries], False)
    assert end.state == STEPS[name].after
    assert not [file for file in end.files if is_stray(file)]


@pytest.mark.parametrize(("name", "boundary"), draw_cases(ALL, "a killed publication", least=5))
def test_killed_at_boundary(
    starts: dict[str, Start], undisturbed: dict[str, tuple[Ended, End]], tmp_path: Path, name: str, boundary: str
) -> None:
    """Killed there, it is before or after; done again, it ends as undisturbed."""
    start, (_, end) = starts[name], undisturbed[name]
    tiny = start.copy(tmp_path / "site")
    ended = start.run(tiny, boundary)
    assert (ended.killed, ended.lines[-1]) == (True, boundary)
    check_left(start, tiny, end)
    assert (tiny.status().state == start.step.before) == (boundary == WRITTEN), "a commit is what decides"
    assert not start.run(tiny).killed
    check_end(start, tiny, end)
