"""`desk`: what people wait for at the desk of a site with many releases and policies: every page that they may look at, by role,
alone and while others read and a run goes on.

The backend and the web process run as in earnest, as two processes; a page's time is taken at its HTTP answer, read whole. Pages
are those of `WAYS`: one that is added is measured.
"""

from __future__ import annotations

import csv
import http.client
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.figures import Figure, Target
from release_pipeline.desk.tokens import make_token
from release_pipeline.desk.web.pages import WAYS
from release_pipeline.flow.opening import open_release
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.trust.approvals import approve_candidate, approve_policy, approve_populations
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.flow.trust.members import trust_key
from release_pipeline.store.registry import ReleaseId

SHARE_OF_POLICIES = 0.6  # policies for each release: 30 of 50
PUBLISHED, APPROVED = 0.4, 0.1  # of the releases
TURNS, READERS = 7, 20
LIMIT = Target("at most", 0.3)  # seconds of the server, for a page
SECONDS = "seconds"
_ROWS, _BUSY_ROWS = 60, 60_000
_WAIT_SECONDS = 60
_BUSY = "busy"
_PEOPLE = {"olga": "officer", "ana": "steward", "ben": "reviewer", "cleo": "reviewer", "robot": "service"}
_READERS = {"officer": "olga", "steward": "ana", "reviewer": "ben", "auditor": "vic", "operator": "otto"}
_POLICY = """\
policy: {name}
steward: ana
population: {population}
source: {{path: {source}, release_column: year}}
person: {{column: person}}
releases: ["1", "2"]
protect: {{method: idp-cbls, epsilon: 2, k: 5}}
columns:
  person: {{role: identifier, do: drop}}
  town: {{role: quasi, do: keep, values: [north, south, east], why: needed, label: Town}}
  income: {{role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known, label: Income}}
  rent: {{role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known, label: Rent}}
gates: {{min_rows: 20}}
about: {{title: People, description: People of three towns, licence: CC0-1.0, publisher: {{name: Town}},
  contact: {{email: desk@example.org}}}}
"""
_RUN = "import sys; from pathlib import Path; from release_pipeline.flow.opening import open_release; "
_RUN += "from release_pipeline.flow.site import find_site; open_release(find_site(Path(sys.argv[1])), sys.argv[2], '1').run()"
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who is logged in."""

    role: str
    base: str
    cookie: str


def desk(sizes: Sequence[int]) -> Iterator[Figure]:
    """Every page of a site with that many releases; of the most, with readers and a run beside it."""
    for n in sizes:
        with TemporaryDirectory(prefix="release-pipeline-benchmark-") as folder:
            site = make_site(Path(folder) / "site", n)
            with _serving(site, Path(folder)) as port:
                readers = [_log_in(port, role, make_token(site, person)) for role, person in _READERS.items()]
                yield from _measure_alone(port, readers, n)
                yield from _measure_beside(site, port, readers, n)


def _measure_alone(port: int, readers: Sequence[Reader], n: int) -> Iterator[Figure]:
    """Each page of each role several times, the first one, which finds nothing remembered, too."""
    for reader in readers:
        for path in list_pages(n):
            took = [_look(port, reader, path) for _ in range(TURNS)]
            if None in took:
                continue  # not for this role, or not of this site
            seconds = [each for each in took if each is not None]
            name = f"{reader.role}: {path}"
            yield Figure("desk", name, n, "wall time", median(seconds), median(seconds), SECONDS, LIMIT)
            yield Figure("desk", f"{name}, slowest", n, "wall time", max(seconds), max(seconds), SECONDS, LIMIT)


def _measure_beside(site: Site, port: int, readers: Sequence[Reader], n: int) -> Iterator[Figure]:
    """Many readers, each asking one page after the other, while a run goes on in a process of its own."""
    run = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(site.home), _BUSY], cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    took, lock = list[float](), threading.Lock()

    def read(number: int) -> None:
        reader, chosen = readers[number % len(readers)], random.Random(number)  # noqa: S311  which page is nobody's secret
        pages = list_pages(n)
        for _ in range(TURNS):
            seconds = _look(port, reader, chosen.choice(pages))
            if seconds is not None:
                with lock:
                    took.append(seconds)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = run.poll()
    if run.wait() != 0:
        raise RuntimeError("the run beside the readers failed")
    beside = "a run" if ended is None else "a run that ended before them"
    took.sort()
    for name, share in (("median", 0.5), ("95 of 100", 0.95)):
        seconds = took[min(int(share * len(took)), len(took) - 1)]
        yield Figure("desk", f"{READERS} readers beside {beside}: {name}", n, "wall time", seconds, seconds, SECONDS)


def list_pages(n: int) -> list[str]:
    """The pages that are looked at, with the names of a site of that many releases where they have places."""
    release, waiting, policy = _name_release(0, n), _name_release(n - 1, count_policies(n)), _name_policy(0)
    values = {"release": str(release), "policy": policy, "name": policy, "population": _name_population(0), "person": "ben"}
    values |= {"what": "policy", "subject": policy}
    pages = [way.path for way in WAYS if not way.sends]
    filled = [re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values.get(found[1], "unknown"), page) for page in pages]
    return [*filled, *(page.replace(str(release), str(waiting)) for page in filled if str(release) in page)]


def make_site(home: Path, releases: int) -> Site:
    """A site with so many candidates under three policies for each five of them; some are approved, and some published."""
    (home / "policies").mkdir(parents=True)
    policies = count_policies(releases)
    _write_rows(home / "people.csv", _ROWS)
    _write_rows(home / "many.csv", _BUSY_ROWS)
    populations = {_name_population(number) for number in range(policies)} | {f"{_BUSY}-folk"}
    caps = "".join(f"{name}: {{cap: {{epsilon: 100, definition: idp, scope: column}}}}\n" for name in sorted(populations))
    (home / "populations.yaml").write_text(caps, encoding="utf-8")
    for number in range(policies):
        _write_policy(home, _name_policy(number), _name_population(number), "people.csv")
    _write_policy(home, _BUSY, f"{_BUSY}-folk", "many.csv")
    site, keys = find_site(home), {name: PrivateKey(Ed25519PrivateKey.generate()) for name in _PEOPLE}
    for name, role in _PEOPLE.items():
        trust_key(site, name, role, keys[name].public, key=keys["olga"])
    with (home / "site.yaml").open("a", encoding="utf-8") as file:
        file.write("desk: {people: {vic: [auditor], otto: [operator]}, runs: true}\n")
    approve_populations(site, key=keys["olga"])
    for name in (*(_name_policy(number) for number in range(policies)), _BUSY):
        approve_policy(site, name, key=keys["olga"])
    for number in range(releases):
        _make_release(site, keys, _name_release(number, policies), share=number / releases)
    return site


def _make_release(site: Site, keys: Mapping[str, PrivateKey], release: ReleaseId, *, share: float) -> None:
    open_release(site, release.policy, release.release).run()
    if share < PUBLISHED + APPROVED:
        for name in ("ben", "cleo"):
            approve_candidate(site, release, key=keys[name])
    if share < PUBLISHED:
        publish(site, release, key=keys["robot"])


def _name_policy(number: int) -> str:
    return f"people-{number}"


def _name_population(number: int) -> str:
    return f"folk-{number // 3}"


def _name_release(number: int, policies: int) -> ReleaseId:
    """The first release of each policy, and then the second ones."""
    return ReleaseId(_name_policy(number % policies), "1" if number < policies else "2")


def count_policies(releases: int) -> int:
    """How many policies a site of so many releases has."""
    return max(int(releases * SHARE_OF_POLICIES), 1)


def _write_policy(home: Path, name: str, population: str, source: str) -> None:
    text = _POLICY.format(name=name, population=population, source=source)
    (home / "policies" / f"{name}.yaml").write_text(text, encoding="utf-8")


def _write_rows(file: Path, count: int) -> None:
    numbers, towns = random.Random(1), ("north", "south", "east")  # noqa: S311  made-up people
    with file.open("w", newline="", encoding="utf-8") as written:
        writer = csv.writer(written)
        writer.writerow(("person", "year", "town", "income", "rent"))
        for year in ("1", "2"):
            for i in range(count):
                writer.writerow((f"p{i}", year, towns[i % 3], numbers.randrange(0, 1001), numbers.randrange(0, 201) / 2))


@contextmanager
def _serving(site: Site, folder: Path) -> Iterator[int]:
    """The port of the pages, meanwhile."""
    path, port = folder / "backend", _find_port()
    backend = [sys.executable, "-m", "release_pipeline.cli", "desk", "backend", "--home", str(site.home), "--socket", str(path)]
    web = [sys.executable, "-m", "release_pipeline.cli", "desk", "web", "--socket", str(path), "--port", str(port)]
    started: list[subprocess.Popen[bytes]] = []
    log = folder / "desk.log"  # at their end both say that they were stopped
    try:
        for command in (backend, web):
            with log.open("ab") as said:
                started.append(subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=said))
            assert started[-1].stdout is not None  # noqa: S101  for the type checker
            if not started[-1].stdout.readline():
                raise RuntimeError(f"{command[3:5]} did not start: {log.read_text(errors='replace')[-500:]}")
        yield port
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _find_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _log_in(port: int, role: str, token: str) -> Reader:
    origin = f"http://127.0.0.1:{port}"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_WAIT_SECONDS)
    headers = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    connection.request("POST", "/login", urlencode({"token": token}), headers)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 303:
        raise RuntimeError(f"{role} could not log in: {answer.status}")
    place = str(answer.getheader("location")).rstrip("/")
    return Reader(role, place, str(answer.getheader("set-cookie")).partition(";")[0])


def _look(port: int, reader: Reader, path: str) -> float | None:
    """Seconds until a page was read; None where it is none for this reader."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_WAIT_SECONDS)
    begun = time.perf_counter()
    connection.request("GET", reader.base + path, headers={"Cookie": reader.cookie, "Sec-Fetch-Site": "same-origin"})
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - begun
    connection.close()
    if answer.status >= 500:
        raise RuntimeError(f"{reader.role} {path}: {answer.status}")
    return took if answer.status == 200 else None
