"""Random forests that experiments learn with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.audit.models import TRAINED_SHARE
from release_pipeline.mechanisms.basis.utility import f_measure, rank_values
from release_pipeline.rows.columns import Matrix


def measure_forest(
    original: Matrix, truth: np.ndarray, released: Matrix, released_target: np.ndarray, *, seed: int
) -> tuple[float, float]:
    """The F-measures of both classes, yes and no: a forest that learned from the first 66% of the released records, tested on the
    remaining original ones."""
    first = int(TRAINED_SHARE * len(original))
    said = _make_forest(seed).fit(released[:first], released_target[:first]).predict(original[first:])
    tested = truth[first:]
    return f_measure(tested, said), f_measure(~tested, ~said)


def measure_ranking(
    learned: Matrix, target: npt.NDArray[np.bool_], asked: Matrix, truth: npt.NDArray[np.bool_], *, seed: int
) -> float:
    """How often a forest that learned from some records puts one of others that is what it looks for above one that is not: the
    area under its curve (AUC). One half where there is nothing to learn."""
    if not 0 < np.count_nonzero(target) < len(target):
        return 0.5
    ranks = rank_values(_make_forest(seed, least=5).fit(learned, target).predict_proba(asked)[:, 1])
    found, others = int(np.count_nonzero(truth)), int(np.count_nonzero(~truth))
    return float((ranks[truth].sum() - found * (found - 1) / 2) / (found * others))


def _make_forest(seed: int, *, least: int = 2) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=least, random_state=seed)
