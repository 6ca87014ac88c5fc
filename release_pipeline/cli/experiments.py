"""The privacy expert's part: reproduce."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import PROGRAM, Progress, whole_number
from release_pipeline.errors import WrongUsage

ALL = "all"
INSTALL = "pip install 'release-pipeline[reproduce]'"
MOST_JOBS = 1024


def add_commands(commands: Any) -> None:
    """Add this command. Where the experiments are not installed it takes any name, and says what to install."""
    known = _list_experiments()
    reproduce = commands.add_parser(
        "reproduce",
        help="the papers' experiments: results, pictures, and a page that says which claims hold",
        description="Experiments: " + "; ".join(f"{name}: {about}" for name, about in known.items()) + f"; or {ALL}."
        if known
        else f"The experiments are not a part of this installation: {INSTALL}",
        epilog="All but prs20 need reference data: what is missing is named, with where it is published. "
        "Exit code 1 if a figure differs from the committed one by more than chance allows.",
    )
    reproduce.add_argument(
        "experiment",
        choices=[*known, ALL] if known else None,
        metavar="EXPERIMENT",
        help=f"{', '.join(known)} or {ALL}" if known else "which one",
    )
    reproduce.add_argument(
        "--data", type=Path, metavar="FOLDER", help="the reference data (default: RELEASE_PIPELINE_REFERENCE_DATA)"
    )
    reproduce.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", help="where to write (default: reproduction-EXPERIMENT, here)"
    )
    reproduce.add_argument("--quick", action="store_true", help="few settings and runs, about a minute")
    reproduce.add_argument(
        "--jobs",
        type=whole_number(1, MOST_JOBS, f"a whole number from 1 to {MOST_JOBS}"),
        default=os.cpu_count() or 1,
        metavar="N",
        help="settings at a time (default: cores)",
    )
    reproduce.add_argument(
        "--seed",
        type=whole_number(0, 2**64 - 1, "a whole number below 2^64"),
        metavar="N",
        help="other noise (default: 1; 2 with --quick)",
    )
    reproduce.set_defaults(run=_reproduce)


def _list_experiments() -> dict[str, str]:
    """The experiments by name; none where they are not installed."""
    try:
        from release_pipeline.experiments.names import EXPERIMENTS
    except ModuleNotFoundError as missing:
        if missing.name != "release_pipeline.experiments":
            raise
        return {}
    return EXPERIMENTS


def _reproduce(options: argparse.Namespace) -> int:
    known = _list_experiments()
    if not known:
        raise WrongUsage("the experiments are not a part of this installation.", where=options.experiment, remedy=INSTALL)
    from release_pipeline.experiments.reproduce import reproduce

    folder = options.output or Path(f"reproduction-{options.experiment}{'-quick' if options.quick else ''}")
    try:
        outcome = reproduce(
            list(known) if options.experiment == ALL else [options.experiment],
            folder,
            data=options.data,
            quick=options.quick,
            jobs=options.jobs,
            seed=options.seed,
            progress=Progress(),
        )
    except KeyboardInterrupt:
        print(f"{PROGRAM}: stopped; what was measured is kept: the same command goes on from there.", file=sys.stderr)
        return 130
    for name, chapter in outcome.chapters.items():
        for finding in chapter.findings:
            print(f"{name:8} {finding.verdict:19} {finding.claim}")
    if options.quick:
        print("A quick run: verdicts are of few settings and runs, and may differ from those of a full one.")
    for departure in outcome.departures:
        print(f"DIFFERS  {departure}")
    print(
        f"{outcome.compared - len(outcome.departures):,} of {outcome.compared:,} figures agree with the committed ones; "
        f"the page: {outcome.page}"
    )
    return int(bool(outcome.departures))
