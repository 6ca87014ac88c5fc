"""Of a long row of cases that are alike, each commit tries others: places where a process is killed, or a byte is changed."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

EVERY = "RELEASE_PIPELINE_EVERY_CASE"  # of the environment: where it is set, all cases are tried
SHARE = 10  # one in so many
T = TypeVar("T")


def random_of_commit(purpose: str) -> random.Random:
    """Numbers that are the same in every process of one commit, and others in the next."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return random.Random(asked.stdout + purpose)  # noqa: S311


def draw_cases(cases: Sequence[T], purpose: str, *, least: int = 2) -> list[T]:
    """A tenth of the cases and at least so many, in their order, drawn by the hash of the commit."""
    count = len(cases) if os.environ.get(EVERY) else min(max(len(cases) // SHARE, least), len(cases))
    places = random_of_commit(purpose).sample(range(len(cases)), count)
    return [cases[place] for place in sorted(places)]
