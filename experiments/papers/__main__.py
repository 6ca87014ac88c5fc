"""The experiments of the papers, measured again, with a page of what their claims became: `python -m experiments.papers --help`.

The folder gets `reproduction.md` and a CSV file `EXPERIMENT-KIND.csv` of each kind of setting, with a row for each run. Exit
code 1 where a figure differs from the committed one by more than chance allows.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from experiments.papers import agreement, choosing, idp24, kdp13, kea18, ours, prs20
from experiments.papers.reporting import Chapter, write_page, write_summary
from experiments.papers.runs import measure_all, tabulate
from experiments.papers.tables import find_data
from release_pipeline import __version__
from release_pipeline.errors import ReleasePipelineError

PAPERS: dict[str, ModuleType] = {
    "idp24": idp24,
    "kdp13": kdp13,
    "prs20": prs20,
    "kea18": kea18,
    "ours": ours,
    "choosing": choosing,
}
DOCS = Path(__file__).resolve().parents[2] / "docs"
SEED, QUICK_SEED = 1, 2  # other noise, so that a quick run says something of the committed figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, and say which figures differ from the committed ones."""
    parser = argparse.ArgumentParser(prog="python -m experiments.papers", description="Measure the papers' experiments again.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PAPERS)} (all)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the reference data (RELEASE_PIPELINE_REFERENCE_DATA)")
    parser.add_argument(
        "--output", type=Path, default=Path("reproduction"), metavar="FOLDER", help="where to write (reproduction)"
    )
    parser.add_argument("--quick", action="store_true", help="few settings and runs, about a minute")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="settings at a time (cores)")
    parser.add_argument("--seed", type=int, metavar="N", help="other noise (1; 2 with --quick)")
    parser.add_argument("--commit", action="store_true", help="make docs/reproduction.md and the committed figures of it")
    options = parser.parse_args(arguments)
    names = options.names or list(PAPERS)
    if unknown := [name for name in names if name not in PAPERS]:
        parser.error(f"no such experiment: {', '.join(unknown)} (there are {', '.join(PAPERS)}).")
    if options.commit and (options.quick or names != list(PAPERS)):
        parser.error("--commit is for a full run of all experiments.")
    try:
        return _run(names, options)
    except ReleasePipelineError as error:
        print("\n".join([str(error), *error.details]), file=sys.stderr)
        return error.exit_code


def _run(names: Sequence[str], options: argparse.Namespace) -> int:
    data = find_data(options.data, list(dict.fromkeys(table for name in names for table in PAPERS[name].NEEDS)))
    seed = options.seed if options.seed is not None else QUICK_SEED if options.quick else SEED
    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    committed = agreement.read_figures()
    chapters: dict[str, tuple[str, Chapter]] = {}
    figures: list[agreement.Figure] = []
    compared, departures = 0, list[agreement.Departure]()
    for name in names:
        module = PAPERS[name]
        measured = measure_all(
            module.list_settings(quick=options.quick),
            module.measure,
            data,
            seed=seed,
            jobs=options.jobs,
            progress=lambda words, name=name: print(f"{name}: {words}", file=sys.stderr, flush=True),
        )
        tables = tabulate(measured)
        for kind, table in tables.items():
            table.to_csv(folder / f"{name}-{kind.replace(' ', '-')}.csv")
        chapters[name] = module.__doc__ or "", module.report(tables)
        count, differing = agreement.compare(name, measured, committed)
        compared, departures = compared + count, [*departures, *differing]
        quick = {setting.key for setting in module.list_settings(quick=True)}
        figures += [figure for figure in agreement.summarise(name, measured) if figure.setting in quick]
    command = " ".join(
        ["python -m experiments.papers", *options.names, *(["--quick"] if options.quick else []), f"--seed {seed}"]
    )
    made = f"`{command}`, release-pipeline {__version__}"
    (folder / "reproduction.md").write_text(write_page(chapters, made, compared, departures), encoding="utf-8")
    if options.commit:
        agreement.write_figures(figures)
        (DOCS / "reproduction.md").write_text(write_summary(chapters), encoding="utf-8")
    for name, (_, chapter) in chapters.items():
        for claim in chapter.claims:
            print(f"{name:8} {claim.judge()[0]:19} {claim.words}")
    for departure in departures:
        print(f"DIFFERS  {departure}")
    print(f"{compared - len(departures):,} of {compared:,} figures agree with the committed ones: {folder / 'reproduction.md'}")
    return int(bool(departures))


if __name__ == "__main__":
    sys.exit(main())
