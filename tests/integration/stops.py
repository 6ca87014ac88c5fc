"""The command line in a process of its own, to which something happens at a named moment: a signal, or memory that is used up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.integration.processes import run_program
from tests.integration.sites import ROOT

PROGRAM = """
import os, signal, sys
import numpy as np
from release_pipeline.apps.cli import main, running
from release_pipeline.store import files as secret_files

moment, what = sys.argv[1], sys.argv[2]

def happen(point):
    if point != moment:
        return
    if what == "memory":
        np.empty(1 << 60, dtype=np.uint8)
    os.kill(os.getpid(), getattr(signal, what))

def revise(*arguments, **named):
    opened = revise_release(*arguments, **named)
    happen("revised")
    return opened

revise_release, running.revise_release = running.revise_release, revise
secret_files.Probe.reached = lambda self, point: happen(point)
sys.exit(main(sys.argv[3:]))
"""


def environment() -> dict[str, str]:
    """The environment of a process that runs this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def command(home: Path, *arguments: str, moment: str = "", what: str = "SIGTERM") -> subprocess.CompletedProcess[str]:
    """A command at a site; `what` (a signal, or `memory`) comes at the moment, if one is named."""
    done = run_program([moment, what, *arguments, "--home", home], program=PROGRAM, environment=environment())
    for bad in ("Traceback", "nternal error", "SQL:", "zyx"):
        assert bad not in done.stdout + done.stderr, done.stderr
    return done


def command_limited(home: Path, *arguments: str, file_bytes: int) -> subprocess.CompletedProcess[str]:
    """A command at a site that may write no file larger than that."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({file_bytes}, {file_bytes}))\n{PROGRAM}"
    return run_program(["", "SIGTERM", *arguments, "--home", home], program=limit, environment=environment())
