"""The papers' experiments at a command: settings measured, results and pictures written, claims judged, a page and a manifest.

A run goes into one folder:

    reproduction.md                 the page: each claim in one line, its picture, what was measured, whether it holds
    manifest.json                   what was run: versions, data, seed, times, and the hash of every table and picture
    EXPERIMENT/KIND.csv, .parquet   a row for each run of each setting
    EXPERIMENT/README.md            what their columns are
    EXPERIMENT/PICTURE.svg, .png
    run.json                        which experiments, of which seed and length
    measured/EXPERIMENT.jsonl       what was measured so far: a run that was stopped goes on there
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from release_pipeline import __version__
from release_pipeline.errors import WrongUsage
from release_pipeline.experiments import agreement
from release_pipeline.experiments.measuring import choosing, idp24, kdp13, kea18, ours, prs20
from release_pipeline.experiments.reporting import choosing as tell_choosing
from release_pipeline.experiments.reporting import idp24 as tell_idp24
from release_pipeline.experiments.reporting import kdp13 as tell_kdp13
from release_pipeline.experiments.reporting import kea18 as tell_kea18
from release_pipeline.experiments.reporting import ours as tell_ours
from release_pipeline.experiments.reporting import prs20 as tell_prs20
from release_pipeline.experiments.reporting.claims import Chapter
from release_pipeline.experiments.reporting.columns import explain_columns
from release_pipeline.experiments.reporting.page import make_page
from release_pipeline.experiments.runs import (
    Progress,
    Results,
    Setting,
    hash_code,
    list_versions,
    make_fingerprint,
    measure_all,
)
from release_pipeline.experiments.tables import REFERENCES, find_data

KEPT, BEGUN = "measured", "run.json"  # what was measured so far, and of what
SEED, QUICK_SEED = 1, 2  # other noise, so that a quick run says something of the committed figures


@dataclass(frozen=True, slots=True)
class Experiment:
    """One paper: the reference tables it needs, what is measured, and what is told of it."""

    tables: tuple[str, ...]
    measuring: ModuleType
    report: Callable[[Results], Chapter]

    def list_settings(self, *, quick: bool) -> list[Setting]:
        """All settings, or the few of a quick run."""
        return self.measuring.list_settings(quick=quick)


CATALOGUE = {
    "idp24": Experiment(("census", "wine"), idp24, tell_idp24.report),
    "kdp13": Experiment(("census",), kdp13, tell_kdp13.report),
    "prs20": Experiment((), prs20, tell_prs20.report),
    "kea18": Experiment(("adult", *kea18.QUASI[1:]), kea18, tell_kea18.report),
    "ours": Experiment(("census", "wine"), ours, tell_ours.report),
    "choosing": Experiment(("census", "wine", "adult"), choosing, tell_choosing.report),
}


@dataclass(frozen=True, slots=True)
class Options:
    """How a run goes: where the data lie, how many settings at a time, which noise, and which figures to compare with."""

    data: Path
    quick: bool
    jobs: int
    seed: int
    committed: list[agreement.Figure]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Found:
    """What one experiment gave: results, what is told of them, how many figures were compared with the committed ones, which of
    them differ, and its part of the manifest."""

    results: Results
    chapter: Chapter
    compared: int
    departures: list[agreement.Departure]
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found, by experiment, and the page that says it."""

    found: dict[str, Found]
    page: Path

    @property
    def chapters(self) -> dict[str, Chapter]:
        """What is told, by experiment."""
        return {name: found.chapter for name, found in self.found.items()}

    @property
    def compared(self) -> int:
        """How many figures were compared with the committed ones."""
        return sum(found.compared for found in self.found.values())

    @property
    def departures(self) -> list[agreement.Departure]:
        """Those that chance does not explain."""
        return [departure for found in self.found.values() for departure in found.departures]


def reproduce(
    names: Sequence[str], folder: Path, *, data: Path | None, quick: bool, jobs: int, seed: int | None, progress: Progress
) -> Outcome:
    """Run these experiments into the folder, or go on with what was begun there."""
    if find_spec("matplotlib") is None:
        raise WrongUsage("the pictures need Matplotlib.", remedy="pip install 'release-pipeline[reproduce]'")
    chosen = {name: CATALOGUE[name] for name in names}
    place = find_data(data, dict.fromkeys(table for experiment in chosen.values() for table in experiment.tables))
    used = seed if seed is not None else QUICK_SEED if quick else SEED
    _check_folder(folder, {"experiments": list(names), "quick": quick, "seed": used})
    options = Options(place, quick, jobs, used, agreement.read_figures(), progress)
    found = {name: _run(name, experiment, folder, options) for name, experiment in chosen.items()}
    outcome = Outcome(found, folder / "reproduction.md")
    page = make_page(
        outcome.chapters,
        made=describe(names, quick=quick, seed=used),
        quick=quick,
        compared=outcome.compared,
        departures=outcome.departures,
    )
    outcome.page.write_text(page, encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(_make_manifest(outcome, options), indent=2) + "\n", encoding="utf-8")
    return outcome


def _check_folder(folder: Path, wanted: dict[str, object]) -> None:
    """It is missing or empty, or holds a run of the same: nobody's files, and no other run's, are overwritten."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        begun = folder / BEGUN
        if not begun.is_file():
            if any(folder.iterdir()):
                raise WrongUsage("other files are in this folder.", where=str(folder), remedy="Name an empty one: -o FOLDER.")
            begun.write_text(json.dumps(wanted) + "\n", encoding="utf-8")
        if json.loads(begun.read_text(encoding="utf-8")) != wanted:
            raise WrongUsage(
                "a run of other experiments, of another seed or of other length is in this folder.",
                where=str(folder),
                remedy="Name another folder: -o FOLDER.",
            )
    except (OSError, ValueError):
        raise WrongUsage("this cannot be a folder for results.", where=str(folder), remedy="Name another: -o FOLDER.") from None


def _run(name: str, experiment: Experiment, folder: Path, options: Options) -> Found:
    start = time.monotonic()
    settings = experiment.list_settings(quick=options.quick)
    runs = sum(setting.runs for setting in settings)
    contents = {REFERENCES[table].file: REFERENCES[table].content for table in experiment.tables}
    options.progress(f"{name}: {len(settings):,} settings, {runs:,} runs")
    results = measure_all(
        settings,
        experiment.measuring.measure,
        options.data,
        seed=options.seed,
        jobs=options.jobs,
        kept=folder / KEPT / f"{name}.jsonl",
        fingerprint=make_fingerprint(options.seed, contents.values()),
        progress=lambda words: options.progress(f"{name}: {words}"),
    )
    chapter = experiment.report(results)
    files = [*_write_tables(name, results, folder / name), *_draw(chapter, folder / name)]
    manifest = {
        "settings": len(settings),
        "runs": runs,
        "seconds of this command": round(time.monotonic() - start, 1),
        "contents of the data": contents,
        "files": {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
        "claims": [asdict(finding) for finding in chapter.findings],
    }
    return Found(results, chapter, *agreement.compare(name, results, options.committed), manifest)


def _make_manifest(outcome: Outcome, options: Options) -> dict[str, Any]:
    return {
        "release-pipeline": __version__,
        "code": hash_code(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "libraries": list_versions(),
        "quick": options.quick,
        "seed": options.seed,
        "jobs": options.jobs,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "experiments": {name: found.manifest for name, found in outcome.found.items()},
        "figures compared": outcome.compared,
        "figures that differ": [str(departure) for departure in outcome.departures],
    }


def describe(names: Sequence[str], *, quick: bool, seed: int) -> str:
    """The command that makes this run, and of which version."""
    what = " ".join(["all"] if list(names) == list(CATALOGUE) else names) + (" --quick" if quick else "")
    return f"`release-pipeline reproduce {what} --seed {seed}`, release-pipeline {__version__}"


def choose_key_figures(name: str, results: Results) -> list[agreement.Figure]:
    """Of a full run what a quick one measures too."""
    quick = {setting.key for setting in CATALOGUE[name].list_settings(quick=True)}
    return [figure for figure in agreement.summarise(name, results) if figure.setting in quick]


def _write_tables(name: str, results: Results, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    tables = {kind: pa.Table.from_pylist(rows) for kind, rows in results.tables.items()}
    for kind, made in tables.items():
        files += [folder / f"{kind}.csv", folder / f"{kind}.parquet"]
        pyarrow.csv.write_csv(made, files[-2])
        pyarrow.parquet.write_table(made, files[-1])
    about = folder / "README.md"
    about.write_text(explain_columns(name, {kind: made.column_names for kind, made in tables.items()}), encoding="utf-8")
    return [*files, about]


def _draw(chapter: Chapter, folder: Path) -> list[Path]:
    return [file for picture in chapter.pictures for file in picture.save(folder)]
