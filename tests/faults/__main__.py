"""`python -m tests.faults [--only N..M] [--jobs 2]`: plants one fault at a time in a copy, and says which the tests catch."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.drawn import EVERY
from tests.faults.planted import ROOT, Fault, read_faults

RESULT = Path(__file__).with_name("caught.json")
CAUGHT, MISSED, AWAY, BROKEN = "caught", "not caught", "not applicable", "not told"
LONGEST = 300  # seconds that one file of tests may take
LEFT_OUT = (".git", ".venv", "site", "__pycache__", ".pytest_cache", ".hypothesis", ".ruff_cache")


@dataclass
class Tree:
    """A copy of the program and its tests, and which files of tests pass there while no fault is planted."""

    folder: Path
    passes: dict[str, bool] = field(default_factory=dict[str, bool])

    def copy(self) -> None:
        """Make it, as a checkout with a commit: tests ask for that."""
        shutil.copytree(ROOT, self.folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "a copy"]):
            subprocess.run(["git", "-C", str(self.folder), *words], check=True)

    def try_fault(self, fault: Fault) -> str:
        """What the tests say when it is planted."""
        if fault.count_places(self.folder) != 1:
            return f"{AWAY}: its text does not stand in {fault.file} exactly once. Mend it in planted.toml."
        file = self.folder / "release_pipeline" / fault.file
        before = file.read_text(encoding="utf-8")
        for tests in fault.tests:  # the first that fails is enough
            file.write_text(before.replace(fault.find, fault.put), encoding="utf-8")
            try:
                is_caught = not self._run(tests)
            finally:
                file.write_text(before, encoding="utf-8")
            if is_caught and not self._passes_without(tests):
                return f"{BROKEN}: {tests} fails without it"
            if is_caught:
                return f"{CAUGHT} by {tests}"
        return MISSED

    def _passes_without(self, tests: str) -> bool:
        if tests not in self.passes:
            self.passes[tests] = self._run(tests)
        return self.passes[tests]

    def _run(self, tests: str) -> bool:
        """Whether these tests pass; those that hang do not."""
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-n", "0"]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), EVERY: "1"}
        try:
            done = subprocess.run(
                [*command, f"tests/{tests}"],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                check=False,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main() -> int:
    """Plant the chosen faults; 1 where one is not caught that was caught before, or cannot be tried."""
    faults = read_faults()
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", metavar="N..M", help=f"these alone, from 1 to {len(faults)}; N for one")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many at a time (default: 1)")
    options = parser.parse_args()
    first, _, last = (options.only or f"1..{len(faults)}").partition("..")
    results: dict[str, str] = json.loads(RESULT.read_text(encoding="utf-8"))["faults"] if RESULT.exists() else {}
    is_worse = False
    with tempfile.TemporaryDirectory(prefix="faults-") as work, ThreadPoolExecutor(options.jobs) as pool:
        trees = [Tree(Path(work, str(number))) for number in range(options.jobs)]
        for tree in trees:
            tree.copy()

        def try_one(number: int) -> tuple[int, str]:
            tree = trees.pop()
            try:
                return number, tree.try_fault(faults[number - 1])
            finally:
                trees.append(tree)

        for number, found in pool.map(try_one, range(int(first), int(last or first) + 1)):
            name = faults[number - 1].name
            print(f"{number:3} {found}: {name}", flush=True)
            was_caught = results.get(name, "").startswith(CAUGHT)
            is_worse |= not found.startswith((CAUGHT, MISSED)) or (found == MISSED and was_caught)
            results[name] = found
            _store(faults, results)
    return int(is_worse)


def _store(faults: tuple[Fault, ...], results: dict[str, str]) -> None:
    known = {fault.name: results[fault.name] for fault in faults if fault.name in results}
    others = [name for name, found in known.items() if not found.startswith(CAUGHT)]
    content = {"faults planted": len(known), "caught": len(known) - len(others), "not caught": others, "faults": known}
    RESULT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
