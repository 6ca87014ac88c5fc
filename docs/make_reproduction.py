"""Make docs/reproduction.md, its pictures, and the key figures that quick runs are compared with, from a full run.

    python docs/make_reproduction.py FOLDER [--data DATA]

FOLDER is that of `release-pipeline reproduce all -o FOLDER`; what it lacks is measured first. The figures that were committed
before are not compared with: they are what is made anew.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from release_pipeline.cli.options import Progress
from release_pipeline.experiments.agreement import write_figures
from release_pipeline.experiments.names import EXPERIMENTS
from release_pipeline.experiments.reporting.page import make_page
from release_pipeline.experiments.reproduce import SEED, choose_key_figures, describe, reproduce

DOCS = Path(__file__).resolve().parent


def main() -> None:
    """Run what is missing, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    outcome = reproduce(
        list(EXPERIMENTS),
        options.folder,
        data=options.data,
        quick=False,
        jobs=os.cpu_count() or 1,
        seed=None,
        progress=Progress(),
    )
    write_figures(figure for name, found in outcome.found.items() for figure in choose_key_figures(name, found.results))
    made = describe(list(EXPERIMENTS), quick=False, seed=SEED)
    target = DOCS / "reproduction"
    shutil.rmtree(target, ignore_errors=True)
    for name, chapter in outcome.chapters.items():
        (target / name).mkdir(parents=True)
        for picture in chapter.pictures:
            shutil.copy(options.folder / name / f"{picture.name}.svg", target / name)
    shutil.copy(options.folder / "manifest.json", target)
    (DOCS / "reproduction.md").write_text(make_page(outcome.chapters, made=made, pictures="reproduction/"), encoding="utf-8")


if __name__ == "__main__":
    main()
