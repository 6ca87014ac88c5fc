"""What policies, packages and the verifier gave when the golden set was last made they give today, byte by byte."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.golden.making import DIGESTS, NAMES
from tests.guards import HANGING
from tests.integration.sites import ROOT

HINT = """
To see both versions, in a checkout of either commit: python -m tests.golden --into DIR {names}; then diff -r DIR1 DIR2.
Where the change is meant: python -m tests.golden --renew {names}, in a commit that says why."""


def test_a_digest_is_stored_for_every_policy_and_for_no_other() -> None:
    """A file for each."""
    assert {file.stem for file in DIGESTS.glob("*.json")} == set(NAMES)


@pytest.mark.slow
def test_everything_is_as_the_golden_set_has_it() -> None:
    """In a process of its own, whose clock stands still."""
    command = [sys.executable, "-m", "tests.golden", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGING)
    differences = done.stdout.splitlines()
    names = " ".join(sorted({line.split(":")[0] for line in differences}))
    assert done.returncode == 0, "\n".join([*differences[:50], done.stderr, HINT.format(names=names)])
