"""One release of a site in a fresh process, timed: `python -m experiments.benchmarks.journey HOME [STAGE ...]`. What people do
with a candidate, `approve`, `publish` and `verify`, are stages too, where `appoint` has made these people before.

The clock starts before anything of the pipeline is imported, as for somebody who starts a run. Prints JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, process_time
from typing import Any

from experiments.benchmarks import measuring

ALL = ("ingested", "validated", "microaggregated", "masked", "suppressed", "audited", "candidate")
PEOPLE = ("approve", "publish", "verify")  # what follows, by people
_ROLES = {"olga": "officer", "ana": "steward", "ben": "reviewer", "cleo": "reviewer", "robot": "service"}


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds by the clock, CPU seconds of all threads, and peak bytes above what was resident when the process began: all, and
    those that are of no file, which the system could not take back by writing them where they belong."""

    wall: float
    cpu: float
    peak: int = 0
    own: int = 0


@dataclass(frozen=True, slots=True)
class Journey:
    """What a run cost in all, imports included, and each of its parts."""

    whole: Cost
    parts: dict[str, Cost] = field(default_factory=dict[str, Cost])


@contextmanager
def _watching() -> Iterator[list[int]]:
    """The most bytes of this process that are of no file, looked at every 20 ms: the system keeps no peak of them."""
    most, done = [0], Event()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], measuring.resident("RssAnon"))

    watcher = Thread(target=watch, daemon=True)
    if measuring.is_memory_told():
        watcher.start()
    try:
        yield most
    finally:
        done.set()
        if measuring.is_memory_told():
            watcher.join()


class _Meter:
    def __init__(self) -> None:
        self._before = measuring.resident("VmRSS") if measuring.is_memory_told() else 0
        self._own_before = measuring.resident("RssAnon") if measuring.is_memory_told() else 0
        self._start = perf_counter(), process_time()
        self.parts: dict[str, Cost] = {}

    def part(self, name: str, task: Callable[[], Any]) -> Any:
        if measuring.is_memory_told():
            measuring.reset_peak()
        wall, cpu = perf_counter(), process_time()
        with _watching() as own:
            result = task()
        peak = max(measuring.resident("VmHWM") - self._before, 0) if measuring.is_memory_told() else 0
        self.parts[name] = Cost(perf_counter() - wall, process_time() - cpu, peak, max(own[0] - self._own_before, 0))
        return result

    def journey(self) -> Journey:
        wall, cpu = self._start
        peak, own = (max(getattr(part, name) for part in self.parts.values()) for name in ("peak", "own"))
        return Journey(Cost(perf_counter() - wall, process_time() - cpu, peak, own), self.parts)


def run_stages(home: Path, stages: tuple[str, ...] = ALL) -> Journey:
    """The stages of a release one by one, judged by the plain checks, in a fresh process."""
    command = [sys.executable, "-m", "experiments.benchmarks.journey", str(home), *stages]
    done = subprocess.run(command, cwd=measuring.ROOT, check=True, stdout=subprocess.PIPE, text=True)
    written = json.loads(done.stdout)
    return Journey(Cost(**written["whole"]), {name: Cost(**part) for name, part in written["parts"].items()})


def appoint(home: Path) -> None:
    """People with keys of their own, in the site's folder, and a policy and caps that the officer has approved."""
    from release_pipeline.store.site import find_site
    from release_pipeline.trust import approvals, keys, members

    site = find_site(home)
    for name, role in _ROLES.items():
        public = keys.make_key(home / name)
        members.trust_key(site, name, role, public, key=_read_key(home, "olga"))
    [file] = site.policy_files()
    approvals.approve_policy(site, file.stem, key=_read_key(home, "olga"))
    approvals.approve_populations(site, key=_read_key(home, "olga"))


def _read_key(home: Path, name: str) -> Any:
    from release_pipeline.trust import keys

    return keys.read_key(home / name)


def _stages_here(meter: _Meter, home: Path, stages: list[str]) -> None:
    def load() -> Any:
        from release_pipeline.pipeline import opening, release

        return opening.open_release, release.STAGES

    open_release, run = meter.part("imports", load)

    def freeze() -> None:
        run["candidate"](flow)
        if not flow.candidate_is_whole():  # as the job checks it
            raise RuntimeError("the candidate is not whole.")

    def open_flow() -> Any:
        from release_pipeline.store.site import find_site

        site = find_site(home)
        [file] = site.policy_files()
        return open_release(site, file.stem, None)

    def approve() -> None:
        from release_pipeline.trust.approvals import approve_candidate

        for name in ("ben", "cleo"):
            approve_candidate(flow.site, flow.id, key=_read_key(home, name))

    def publish() -> None:
        from release_pipeline.publish.publish import publish

        publish(flow.site, flow.id, key=_read_key(home, "robot"))

    def verify() -> None:
        from release_pipeline.publish.verification import verify

        if failed := [finding for finding in verify(flow.site.package(str(flow.id))) if finding.level == "FAIL"]:
            raise RuntimeError(f"the package is not verified: {failed}")

    flow, others = open_flow(), {"candidate": freeze, "approve": approve, "publish": publish, "verify": verify}
    for stage in stages:
        result = meter.part(stage, others.get(stage) or partial(run[stage], flow))
        if result is not None and (result.refusal or not all(gate.passed for gate in result.gates)):
            raise RuntimeError(f"the stage '{stage}' was not passed: {result.refusal} {result.gates}")


def _main(home: str, *stages: str) -> None:
    meter = _Meter()
    _stages_here(meter, Path(home), list(stages or ALL))
    print(json.dumps(asdict(meter.journey())))


if __name__ == "__main__":
    _main(*sys.argv[1:])
