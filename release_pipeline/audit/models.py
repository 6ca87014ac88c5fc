"""Models trained on released records, tested on original ones (KDP13 and methods.md section 6: the F-measure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from release_pipeline.mechanisms.basis.utility import f_measure
from release_pipeline.rows.columns import Matrix

TRAINED_SHARE = 0.66
FOREST, BOOSTING = "random forest", "gradient boosting"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The F-measure of one model on the same original records: trained on released records, trained on original ones."""

    model: str
    released: float
    original: float


@dataclass(frozen=True, slots=True)
class Predictions:
    """The models of one target. `guess`: the F-measure of answering yes for everybody; no figures if the target is the same for
    all records that train or test."""

    models: tuple[Prediction, ...]
    guess: float
    trained: int
    tested: int


def predict(
    original: Matrix,
    original_target: np.ndarray,
    released: Matrix,
    released_target: np.ndarray,
    *,
    seed: int,
    trained: int | None = None,
) -> Predictions:
    """Return the models trained on the first 66% of the records of each table, or on so many `trained`, and tested on the
    remaining original records.

    Row i of both tables belongs to the same person, so that no model is tested on somebody it was trained on.
    """
    first = int(TRAINED_SHARE * len(original)) if trained is None else trained
    test, truth = original[first:], original_target[first:]
    targets = (original_target[:first], released_target[:first], truth)
    models: tuple[Prediction, ...] = ()
    if all(0 < np.count_nonzero(target) < len(target) for target in targets[:2]) and truth.any():
        fitted = zip(_make_models(seed), _make_models(seed), strict=True)
        models = tuple(
            Prediction(
                name,
                f_measure(truth, on_released.fit(released[:first], targets[1]).predict(test)),
                f_measure(truth, on_original.fit(original[:first], targets[0]).predict(test)),
            )
            for (name, on_released), (_, on_original) in fitted
        )
    return Predictions(models, f_measure(truth, np.ones(len(truth), dtype=np.bool_)), first, len(test))


def _make_forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=2, random_state=seed)


def _make_models(seed: int) -> Iterator[tuple[str, Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    boosting: Any = HistGradientBoostingClassifier  # the stubs allow fewer values than the class
    yield FOREST, _make_forest(seed)
    yield BOOSTING, boosting(early_stopping=False, random_state=seed)
