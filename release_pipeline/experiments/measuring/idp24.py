"""IDP24, figures 3 to 6: the error of the four rank methods on census and wine, and what a classifier learns from their releases.

As the paper has it: the claim is for each centroid (scope `centroid`), noise is added to it without consistency, epsilon is split
equally over the columns, and alpha says how far the declared domain reaches, [0, alpha max]. Released values are moved back into
the domain, as ours always are. `sse` is the paper's mean SSE, divided by the square of the variance; `error` is free of units.
`without_noise` is the error of the means as they are, `noise_correlation` how alike the noise of different columns is: no reader
learns either, and wrong code would show in them.

For the F-measures the class is masked with the other columns and read off the masked value: census ERNVAL above 30,000, wine
quality above 6. A forest learns from the first 66% of the released records and is tested on the remaining original ones. With
`class-kept` the class is released as it is, and the other columns share epsilon: the paper does not say which.

`linkage` is the percentage of released records that link to their own originals by all columns.
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
from release_pipeline.experiments.tables import CENSUS, COLUMNS, Numbers, Source, read_source
from release_pipeline.privacy.risk import record_linkage
from release_pipeline.privacy.utility import sse_paper
from release_pipeline.stages.measures.prediction import measure_forest

METHODS = ("laplace", "dp-um", "idp-ls", "idp-cbls")
TABLES = ("census", "wine")
CENSUS_KS = (3, 5, 10, 15, 20, 25, 35, 50, 75, 100)
KS = {"census": CENSUS_KS, "wine": (*CENSUS_KS, 200, 400)}  # as far as the paper's figures go
EPSILONS = ("0.01", "0.1", "1")
ALPHAS = ("1", "1.5", "3")
RUNS = 50
CLASSES = {"census": ("ERNVAL", 30_000), "wine": ("quality", 6)}  # the column, and what is above it
CLASS_COLUMNS = {"census": (*CENSUS, "ERNVAL"), "wine": COLUMNS["wine"]}
CLASS_KS = (5, 15, 25, 50, 100)
KEPT_CLASS_KS = (5, 25, 100)
LINKED_KS = {"census": (5, 25, 100), "wine": (5, 25, 100, 400)}
LINKED_AT_MOST = 1000  # records that are tried
FEW_RUNS = 10  # of forests and of linkage
QUICK_KS, QUICK_RUNS = {"census": (5, 25, 100), "wine": (5, 25, 100, 400)}, 20


def list_settings(*, quick: bool) -> list[Setting]:
    """Every method with every k, epsilon and alpha; laplace has no k, which is 1 here."""
    tables, class_ks = (("census",), (5, 100)) if quick else (TABLES, CLASS_KS)
    epsilons, few = ("1",) if quick else EPSILONS, FEW_RUNS
    errors = [
        Setting.of("error", QUICK_RUNS if quick else RUNS, table=table, method=method, k=k, epsilon=epsilon, alpha=alpha)
        for table in TABLES
        for method, k in _with_ks(METHODS, (QUICK_KS if quick else KS)[table])
        for epsilon in EPSILONS
        for alpha in (("1.5",) if quick else ALPHAS)
    ]
    original = [Setting.of("f-measure", few, table=table, method="original", k=0, epsilon="inf") for table in tables]
    chosen = {
        "f-measure": [(table, *pair) for table in tables for pair in _with_ks(METHODS, class_ks)],
        "class-kept": [("census", *pair) for pair in _with_ks(METHODS[2:], class_ks if quick else KEPT_CLASS_KS)],
        "linkage": [(table, *pair) for table in tables for pair in _with_ks(METHODS, LINKED_KS[table])],
    }
    others = [
        Setting.of(kind, few, table=table, method=method, k=k, epsilon=epsilon)
        for kind, rows in chosen.items()
        for table, method, k in rows
        for epsilon in epsilons
    ]
    return [*errors, *original, *others]


def _with_ks(methods: Sequence[str], ks: Sequence[int]) -> list[tuple[str, int]]:
    """Each method with each k that it has."""
    return [(method, k) for method in methods for k in ((1,) if method == "laplace" else ks)]


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """One setting in all of its runs."""
    measures = {"error": _measure_error, "linkage": _measure_linkage}
    return measures.get(setting.kind, _measure_classes)(data, setting, secrets)


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


def _measure_linkage(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    source = read_source(data, setting.text("table"))
    context = ("idp24", setting.key)
    columns = prepare_columns(source, _how(setting), context)
    return [{"linkage": link(source.values, released)} for released in release_all(columns, secrets, context)]


def link(original: Numbers, released: Numbers) -> float:
    """The percentage of released records, in record order, that link to their own originals by all columns; evenly spread records
    are tried where there are more than `LINKED_AT_MOST`."""
    count = len(original)
    tried = np.unique(np.linspace(0, count - 1, min(count, LINKED_AT_MOST)).astype(np.int64))
    return 100 * record_linkage(original, released, np.arange(count), positions=tried).value


def _measure_classes(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    table, is_kept = setting.text("table"), setting.kind == "class-kept"
    names, (name, above) = CLASS_COLUMNS[table], CLASSES[table]
    others = tuple(column for column in names if column != name)
    truth = read_source(data, table, (name,)).values[:, 0] > above
    source = read_source(data, table, others if is_kept else (*others, name))
    context = ("idp24", setting.key)
    if setting.text("method") == "original":
        tables = (source.values for _ in secrets)
    else:
        tables = release_all(prepare_columns(source, _how(setting), context), secrets, context)
    features = source.values[:, : len(others)]
    found: list[dict[str, float]] = []
    for run, released in enumerate(tables):
        target = truth if is_kept else released[:, -1] > above
        yes, no = measure_forest(features, truth, released[:, : len(others)], target, seed=run)
        found.append({"above": yes, "not_above": no})
    return found


def _how(setting: Setting) -> Rank:
    return Rank(setting.text("method"), setting.number("k"), setting.text("epsilon"))
