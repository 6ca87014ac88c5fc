"""The papers' experiments at a command: settings measured, results and pictures written, claims judged, a page and a manifest.

A run goes into one folder:

    reproduction.md                 the page: each claim in one line, its picture, what was measured, whether it holds
    manifest.json                   what was run: versions, data, seed, times, and the hash of every file
    EXPERIMENT/KIND.csv, .parquet   a row for each run of each setting
    EXPERIMENT/PICTURE.svg, .png
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
from release_pipeline.experiments.measuring import idp24, kdp13, kea18, ours, prs20
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
from release_pipeline.experiments.telling import idp24 as tell_idp24
from release_pipeline.experiments.telling import kdp13 as tell_kdp13
from release_pipeline.experiments.telling import kea18 as tell_kea18
from release_pipeline.experiments.telling import ours as tell_ours
from release_pipeline.experiments.telling import prs20 as tell_prs20
from release_pipeline.experiments.telling.claims import Chapter
from release_pipeline.experiments.telling.page import make_page

SEED, QUICK_SEED = 1, 2  # other noise, so that a quick run says something of the committed figures


@dataclass(frozen=True, slots=True)
class Experiment:
    """One paper: the reference tables it needs, what is measured, and what is told of it."""

    tables: tuple[str, ...]
    measuring: ModuleType
    tell: Callable[[Results], Chapter]

    def list_settings(self, *, quick: bool) -> list[Setting]:
        """All settings, or the few of a quick run."""
        return self.measuring.list_settings(quick=quick)


CATALOGUE = {
    "idp24": Experiment(("census", "wine"), idp24, tell_idp24.tell),
    "kdp13": Experiment(("census",), kdp13, tell_kdp13.tell),
    "prs20": Experiment((), prs20, tell_prs20.tell),
    "kea18": Experiment(("adult", *kea18.QUASI), kea18, tell_kea18.tell),
    "ours": Experiment(("census", "wine"), ours, tell_ours.tell),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found: results and chapters by experiment, how many figures were compared with the committed ones, and which
    differ."""

    results: dict[str, Results]
    chapters: dict[str, Chapter]
    compared: int
    departures: list[agreement.Departure]
    page: Path


def reproduce(
    names: Sequence[str], folder: Path, *, data: Path | None, quick: bool, jobs: int, seed: int | None, progress: Progress
) -> Outcome:
    """Run these experiments into the folder, or go on with what was begun there."""
    if find_spec("matplotlib") is None:
        raise WrongUsage("the pictures need Matplotlib.", remedy="pip install 'release-pipeline[reproduce]'")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "measured").is_dir():
        raise WrongUsage("other files are in this folder.", where=str(folder), remedy="Name an empty one: -o FOLDER.")
    chosen = {name: CATALOGUE[name] for name in names}
    tables = list(dict.fromkeys(table for experiment in chosen.values() for table in experiment.tables))
    place = find_data(data, tables)
    seed = seed if seed is not None else QUICK_SEED if quick else SEED
    committed = agreement.read_figures() if agreement.FILE.is_file() else []
    measured: dict[str, Results] = {}
    chapters: dict[str, Chapter] = {}
    compared, departures = 0, list[agreement.Departure]()
    told: dict[str, Any] = {}
    for name, experiment in chosen.items():
        start = time.monotonic()
        settings = experiment.list_settings(quick=quick)
        progress(f"{name}: {len(settings):,} settings, {sum(setting.runs for setting in settings):,} runs")
        results = measured[name] = measure_all(
            settings,
            experiment.measuring.measure,
            place,
            seed=seed,
            jobs=jobs,
            kept=folder / "measured" / f"{name}.jsonl",
            fingerprint=make_fingerprint(seed, [REFERENCES[table].content for table in experiment.tables]),
            progress=lambda words, name=name: progress(f"{name}: {words}"),
        )
        count, differing = agreement.compare(name, results, committed)
        compared, departures = compared + count, departures + differing
        chapter = chapters[name] = experiment.tell(results)
        files = [*_write_tables(results, folder / name), *_draw(chapter, folder / name)]
        told[name] = {
            "settings": len(settings),
            "runs": sum(setting.runs for setting in settings),
            "seconds": round(time.monotonic() - start, 1),
            "data": {REFERENCES[table].file: REFERENCES[table].content for table in experiment.tables},
            "files": {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
            "claims": [asdict(finding) for finding in chapter.findings],
        }
    page = folder / "reproduction.md"
    page.write_text(make_page(chapters, quick=quick, compared=compared, departures=departures), encoding="utf-8")
    manifest = {
        "release-pipeline": __version__,
        "code": hash_code(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "libraries": list_versions(),
        "quick": quick,
        "seed": seed,
        "jobs": jobs,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "experiments": told,
        "figures compared": compared,
        "figures that differ": [str(departure) for departure in departures],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return Outcome(measured, chapters, compared, departures, page)


def choose_key_figures(name: str, results: Results) -> list[agreement.Figure]:
    """Of a full run what a quick one measures too."""
    quick = {setting.key for setting in CATALOGUE[name].list_settings(quick=True)}
    return [figure for figure in agreement.summarise(name, results) if figure.setting in quick]


def _write_tables(results: Results, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for kind, rows in results.tables.items():
        table = pa.Table.from_pylist(rows)
        files += [folder / f"{kind}.csv", folder / f"{kind}.parquet"]
        pyarrow.csv.write_csv(table, files[-2])
        pyarrow.parquet.write_table(table, files[-1])
    return files


def _draw(chapter: Chapter, folder: Path) -> list[Path]:
    return [file for picture in chapter.pictures for file in picture.save(folder)]
