"""Whether a model can tell released records from original ones: the propensity-score measure pMSE.

WOO09: Woo, Reiter, Oganian and Karr, "Global Measures of Data Utility for Microdata Masked for Disclosure Limitation", Journal of
Privacy and Confidentiality 1(1), 2009. SNO18: Snoke, Raab, Nowok, Dibben and Slavkovic, "General and Specific Utility Measures
for Synthetic Data", Journal of the Royal Statistical Society A 181(3), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from release_pipeline.privacy.noise import NoiseStream, shuffled_positions
from release_pipeline.privacy.utility import pmse, pmse_by_chance, variance_of
from release_pipeline.stages.measures.features import Matrix

SHUFFLES = 3
LEAF = 20  # records in a leaf of the tree at least, or a hundredth of them
REGRESSION, TREE = "logistic regression", "classification tree"


@dataclass(frozen=True, slots=True)
class Discrimination:
    """A model and its pMSE. `by_chance`: what it would be if both were independent samples of one population."""

    model: str
    pmse: float
    by_chance: float


def tell_apart(original: Matrix, released: Matrix, *, seed: int, stream: NoiseStream) -> list[Discrimination]:
    """pMSE of a logistic regression of every column, and of a classification tree of limited depth.

    By chance: in closed form for the regression; for the tree the mean over three shuffles of which record is of which table.
    Because released records are made of original ones and are no independent sample, a good release lies below it.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    records = np.concatenate([original, released])
    deviation = np.sqrt([variance_of(column) for column in records.T])
    varied = deviation > 0
    records = (records[:, varied] - np.mean(records[:, varied], axis=0)) / deviation[varied]
    is_released = np.repeat([False, True], [len(original), len(released)])
    share = len(released) / len(records)
    if records.shape[1] == 0:
        return [Discrimination(name, 0.0, 0.0) for name in (REGRESSION, TREE)]
    leaf = max(LEAF, len(records) // 100)

    def score(model: Any, which: np.ndarray) -> float:
        return pmse(model.fit(records, which).predict_proba(records)[:, 1], share)

    def tree(which: np.ndarray) -> float:
        return score(DecisionTreeClassifier(min_samples_leaf=leaf, random_state=seed), which)

    shuffles = [is_released[shuffled_positions(len(records), stream)] for _ in range(SHUFFLES)]
    parameters = int(np.linalg.matrix_rank(records)) + 1
    regression = LogisticRegression(C=np.inf, max_iter=200)
    return [
        Discrimination(REGRESSION, score(regression, is_released), pmse_by_chance(parameters, share, len(records))),
        Discrimination(TREE, tree(is_released), float(np.mean([tree(shuffle) for shuffle in shuffles]))),
    ]
