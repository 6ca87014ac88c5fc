"""IDP24, figures 3 to 6: the error of the four rank methods on census and wine, and what a classifier learns from their releases.

As the paper has it: the claim is for each centroid (scope `centroid`), noise is added to it without consistency, epsilon is split
equally over the columns, and alpha says how far the declared domain reaches, [0, alpha max]. Released values are moved back into
the domain, as ours always are. `sse` is the paper's mean SSE, divided by the square of the variance; `error` is free of units.
`without_noise` is the error of the means as they are, `noise_correlation` how alike the noise of different columns is: no reader
learns either, and wrong code would show in them.

For the F-measures the class is masked with the other columns and read off the masked value: census ERNVAL above 30,000, wine
quality above 6. A forest learns from the first 66% of the released records and is tested on the remaining original ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from release_pipeline.experiments.measuring.masking import (
    Rank,
    add_losses,
    draw_means,
    find_means,
    prepare_columns,
    release_all,
    spread,
)
from release_pipeline.experiments.runs import Setting
from release_pipeline.experiments.tables import CENSUS, COLUMNS, Source, read_source
from release_pipeline.privacy.utility import sse_paper
from release_pipeline.stages.measures.prediction import measure_forest

METHODS = ("laplace", "dp-um", "idp-ls", "idp-cbls")
TABLES = ("census", "wine")
KS = (3, 5, 10, 15, 20, 25, 35, 50, 75, 100)
EPSILONS = ("0.01", "0.1", "1")
ALPHAS = ("1", "1.5", "3")
RUNS = 50
CLASSES = {"census": ("ERNVAL", 30_000), "wine": ("quality", 6)}  # the column, and what is above it
CLASS_COLUMNS = {"census": (*CENSUS, "ERNVAL"), "wine": COLUMNS["wine"]}
CLASS_KS = (5, 15, 25, 50, 100)
CLASS_RUNS = 10
QUICK_KS, QUICK_RUNS, QUICK_CLASS_RUNS = (5, 25, 100), 20, 10


def list_settings(*, quick: bool) -> list[Setting]:
    """Every method with every k, epsilon and alpha; laplace has no k, which is 1 here."""
    errors = [
        Setting.of("error", QUICK_RUNS if quick else RUNS, table=table, method=method, k=k, epsilon=epsilon, alpha=alpha)
        for table in TABLES
        for method in METHODS
        for k in ((1,) if method == "laplace" else QUICK_KS if quick else KS)
        for epsilon in EPSILONS
        for alpha in (("1.5",) if quick else ALPHAS)
    ]
    classes = [
        Setting.of("f-measure", QUICK_CLASS_RUNS if quick else CLASS_RUNS, table=table, method=method, k=k, epsilon=epsilon)
        for table in (("census",) if quick else TABLES)
        for method in METHODS
        for k in ((1,) if method == "laplace" else (5, 100) if quick else CLASS_KS)
        for epsilon in (("1",) if quick else EPSILONS)
    ]
    original = [
        Setting.of("f-measure", QUICK_CLASS_RUNS if quick else CLASS_RUNS, table=table, method="original", k=0, epsilon="inf")
        for table in (("census",) if quick else TABLES)
    ]
    return [*errors, *original, *classes]


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """One setting in all of its runs."""
    return (_measure_error if setting.kind == "error" else _measure_classes)(data, setting, secrets)


def _measure_error(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    source = read_source(data, setting.text("table"), alpha=setting.text("alpha"))
    context = ("idp24", *(value for name, value in setting.fields if name != "alpha"))  # so that only the domain differs
    columns = prepare_columns(source, _how(setting), context)
    means = find_means(columns)
    same = {"loss": add_losses(columns), "without_noise": source.measure(spread(columns, means))[0]}
    found: list[dict[str, float]] = []
    for secret in secrets:
        noisy = draw_means(columns, secret, context)
        alike = correlate([one - mean for one, mean in zip(noisy, means, strict=True)])
        found.append({**compare(source, spread(columns, noisy)), **same, "noise_correlation": alike})
    return found


def correlate(columns: Sequence[np.ndarray]) -> float:
    """The mean correlation of pairs of columns, which differ from 0 by chance where noise is drawn for each on its own."""
    correlation = np.corrcoef(np.stack([column for column in columns if np.ptp(column) > 0]))
    return float(np.mean(correlation[np.triu_indices(len(correlation), 1)]))


def compare(source: Source, released: np.ndarray) -> dict[str, float]:
    """The paper's mean SSE, and the mean and the median over columns of the error."""
    mean, median = source.measure(released)
    return {"sse": sse_paper([*source.values.T], [*released.T]), "error": mean, "median_error": median}


def _measure_classes(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    table = setting.text("table")
    source = read_source(data, table, CLASS_COLUMNS[table])
    place, above = CLASS_COLUMNS[table].index(CLASSES[table][0]), CLASSES[table][1]
    truth = source.values[:, place] > above
    context = ("idp24", setting.key)
    if setting.text("method") == "original":
        tables = (source.values for _ in secrets)
    else:
        tables = release_all(prepare_columns(source, _how(setting), context), secrets, context)
    features = np.delete(source.values, place, axis=1)
    found: list[dict[str, float]] = []
    for run, released in enumerate(tables):
        yes, no = measure_forest(features, truth, np.delete(released, place, axis=1), released[:, place] > above, seed=run)
        found.append({"above": yes, "not_above": no})
    return found


def _how(setting: Setting) -> Rank:
    return Rank(setting.text("method"), setting.number("k"), setting.text("epsilon"))
