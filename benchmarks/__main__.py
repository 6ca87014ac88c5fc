"""`python -m benchmarks [NAME ...] [--quick] [--json FILE]`: exit code 0 whatever the figures say. Three are apart, and
have options of their own: `python -m benchmarks peers` takes hours, and packages that are none of the project's; `python -m
benchmarks scale` takes tables of as many rows as are asked for; and so does `python -m benchmarks same`, which measures nothing,
but ends with exit code 1 where an engine gives other bytes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import machine, memory, peers, same, scale, table
from benchmarks.auditing import auditing
from benchmarks.clustering import CENSUS, clustering
from benchmarks.commands import commands
from benchmarks.desk import desk
from benchmarks.events import events
from benchmarks.exploring import exploring
from benchmarks.figures import Figure, with_growth
from benchmarks.grouping import ADULT, grouping, notes
from benchmarks.masking import laplace, masking
from benchmarks.ordering import ordering
from benchmarks.pipeline import pipeline
from benchmarks.sampler import sampler
from benchmarks.synthesis import synthesis

BENCHMARKS: dict[str, Callable[[Sequence[int]], Iterator[Figure]]] = {
    "sampler": sampler,
    "masking": masking,
    "laplace": laplace,
    "grouping": grouping,
    "clustering": clustering,
    "ordering": ordering,
    "auditing": auditing,
    "synthesis": synthesis,
    "pipeline": pipeline,
    "commands": commands,
    "events": events,
    "exploring": exploring,
    "desk": desk,
}
SIZES, QUICK_SIZES = (10**5, 10**6, 10**7), (4 * 10**3, 10**4)
GROUPING_SIZES, QUICK_GROUPING_SIZES = (ADULT, 10**6), (10**3, 3 * 10**3)
CLUSTERING_SIZES, QUICK_CLUSTERING_SIZES = (CENSUS, 10**4, 5 * 10**4, 10**5, 10**6), (CENSUS, 2 * 10**3, 4 * 10**3)
AUDITING_SIZES, QUICK_AUDITING_SIZES = (5 * 10**4, 10**6), (10**3, 3 * 10**3)
SYNTHESIS_SIZES, QUICK_SYNTHESIS_SIZES = (10**5, 10**6), (4 * 10**3,)
PIPELINE_SIZES, QUICK_PIPELINE_SIZES = (10**6,), (5 * 10**3,)
COMMANDS_SIZES = (4 * 10**3,)
EVENTS_SIZES, QUICK_EVENTS_SIZES = (20, 100, 1000, 10**4), (20,)  # no run without some ten events before it
DESK_SIZES, QUICK_DESK_SIZES = (50,), (4,)
EXPLORING_SIZES, QUICK_EXPLORING_SIZES = (280_000,), (600,)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print machine facts and one line per figure as it is measured; write all of it to the JSON file if one is named."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    apart = {"peers": peers.main, "same": same.main, "scale": scale.main}
    if given and given[0] in apart:
        apart[given[0]](given[1:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=f"Run the benchmarks {', '.join(BENCHMARKS)}.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (all)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, not how fast")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args(given)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"no such benchmark: {', '.join(unknown)} (there are {', '.join(BENCHMARKS)})")

    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)  # before minutes of measuring, not after

    facts = machine.facts()
    print(table.machine_lines(facts))
    if options.quick:
        print("\nQuick run: at these sizes fixed costs count; the targets are meant for 100,000 records and more.")
    if not memory.measurable():
        print("\nPeak memory is measured on Linux only.")
    if "grouping" in (options.names or BENCHMARKS) and (lines := notes()):
        print("\n" + "\n".join(lines))
    print("\n" + table.heading(), flush=True)
    figures: list[Figure] = []
    for name in options.names or BENCHMARKS:
        for figure in with_growth(BENCHMARKS[name](_sizes(name, quick=options.quick))):
            print(table.row(figure), flush=True)
            figures.append(figure)
    if options.json is not None:
        content = {"machine": facts, "quick": options.quick, "figures": [figure.as_json() for figure in figures]}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _sizes(name: str, *, quick: bool) -> Sequence[int]:
    if name == "commands":
        return COMMANDS_SIZES
    if name == "events":
        return QUICK_EVENTS_SIZES if quick else EVENTS_SIZES
    if name == "pipeline":
        return QUICK_PIPELINE_SIZES if quick else PIPELINE_SIZES
    if name == "synthesis":
        return QUICK_SYNTHESIS_SIZES if quick else SYNTHESIS_SIZES
    if name == "grouping":
        return QUICK_GROUPING_SIZES if quick else GROUPING_SIZES
    if name == "auditing":
        return QUICK_AUDITING_SIZES if quick else AUDITING_SIZES
    if name == "desk":
        return QUICK_DESK_SIZES if quick else DESK_SIZES
    if name == "exploring":
        return QUICK_EXPLORING_SIZES if quick else EXPLORING_SIZES
    if name == "clustering":
        return QUICK_CLUSTERING_SIZES if quick else CLUSTERING_SIZES
    if name == "masking" and quick:
        return QUICK_SIZES[:1]  # each peak takes a process of its own
    return QUICK_SIZES if quick else SIZES


if __name__ == "__main__":
    main()
