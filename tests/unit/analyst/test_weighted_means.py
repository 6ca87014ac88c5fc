"""Weighted means of columns that were released as they are."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.analyst.facts import ColumnFacts, NoHonestAnswer
from release_pipeline.analyst.release import Release
from release_pipeline.errors import InvalidArgument
from tests.unit.analyst.cards import make_facts, noise


def test_weighted_means_are_of_columns_without_noise() -> None:
    """Weights may be texts, as a kept column has them; of a masked column none is given, nor where a cell is blank."""
    columns = noise("a"), ColumnFacts("w", "keep", "string"), ColumnFacts("n", "keep", "number")
    facts = make_facts("laplace", *columns, rows=4)
    data = {"a": np.zeros(4), "w": np.array(["1.5", "10", "40", "10"]), "n": np.array([1.0, 2.0, 3.0, 4.0])}
    release = Release(facts, data)
    found = release.mean("n", weights="w")
    assert found.low == found.high == found.estimate == pytest.approx((1.5 + 20 + 120 + 40) / 61.5)
    with pytest.raises(NoHonestAnswer, match="which weight goes with which value"):
        release.mean("a", weights="w")
    with pytest.raises(NoHonestAnswer, match="which weight goes with which value"):
        release.mean("n", weights="a")
    with pytest.raises(NoHonestAnswer, match="blank cells"):
        Release(facts, {**data, "w": np.array(["1.5", "", "40", "10"])}).mean("n", weights="w")
    with pytest.raises(InvalidArgument, match="not a number"):
        Release(facts, {**data, "w": np.array(["x", "1", "40", "10"])}).mean("n", weights="w")
    with pytest.raises(InvalidArgument, match="negative"):
        Release(facts, {**data, "w": np.array(["-1", "1", "40", "10"])}).mean("n", weights="w")
    with pytest.raises(InvalidArgument, match="no such column"):
        release.mean("n", weights="v")
