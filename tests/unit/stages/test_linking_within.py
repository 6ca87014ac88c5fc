"""Linking within classes among some originals: who is among them, and what a guess is worth there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.policy import parse_policy
from release_pipeline.privacy.noise import NoiseStream, noise_stream
from release_pipeline.stages import linking_within
from release_pipeline.stages.compared import Compared
from release_pipeline.stages.linking_within import link_within
from tests.unit.stages.test_memory import CLASSES

POLICY = CLASSES.replace("LEVELS", "[10]")
SIZES = (3000, 40, 10)  # of classes; and some records have none
NONE = 50


def link(released: Any, noise: float = 0.0, numbers: int = 20_000) -> dict[str, Any]:
    """Records of three classes, of which some are released with such noise, in another order."""
    rng = np.random.default_rng(3)
    group = rng.permutation(np.concatenate([np.repeat(np.arange(len(SIZES)), SIZES), np.full(NONE, -1)]))
    records = pa.table({name: rng.integers(0, numbers, len(group)).astype(float) for name in ("c0", "c1")})
    own = rng.permutation(np.flatnonzero(released(group)))
    table = pa.table({name: records.column(name).to_numpy()[own] + noise * rng.normal(size=len(own)) for name in ("c0", "c1")})

    def read(_: str, columns: Any) -> pa.Table:
        return records.select(columns)

    def streams(*purpose: Any) -> NoiseStream:
        return noise_stream(bytes(32), *purpose)

    compared = Compared(parse_policy(POLICY, name="few.yaml"), read, table, own, table)
    return link_within(compared, group, group[own], streams)


def every(group: Any) -> Any:
    return group >= 0


def test_all_originals_are_looked_at_where_few_were_released() -> None:
    """Exact values are found; a guess hits one of those of the class, dropped ones included."""
    found = link(every)
    assert "linking_among" not in found
    assert found["linking_risk"]["value"] > 0.99
    assert found["linking_by_guess"] == pytest.approx(len(SIZES) / sum(SIZES))
    half = link(lambda group: (group >= 0) & (np.arange(len(group)) % 2 == 0))
    assert half["linking_by_guess"] == pytest.approx(sum(1 / size * size for size in SIZES) / sum(SIZES), rel=0.2)


def test_of_large_classes_some_are_drawn_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """About as many of each; small ones are whole. Where none is large nothing is told, and nothing differs."""
    whole = link(every, noise=300.0)
    monkeypatch.setattr(linking_within, "ATTACKED_SAMPLE", 100)
    same = link(every, noise=300.0)
    assert same == whole
    monkeypatch.setattr(linking_within, "CANDIDATES", 600)
    monkeypatch.setattr(linking_within, "LINKAGE_SAMPLE", 150)
    few = link(every, noise=300.0)
    # 200 of the large class and some 150 that are tried themselves, of which some are drawn
    assert 200 + 50 < few["linking_among"] < 200 + 150 + 50 + 45
    assert whole["linking_by_guess"] * 2 < few["linking_by_guess"]
    assert whole["linking_risk"]["value"] < few["linking_risk"]["value"]


def test_distances_are_those_of_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few are looked at: a column weighs what it weighs among all members."""
    told: list[Any] = []
    real = linking_within.record_linkage

    def note(*arguments: Any, **options: Any) -> Any:
        told.append(options["deviations"])
        return real(*arguments, **options)

    monkeypatch.setattr(linking_within, "record_linkage", note)
    link(every)
    monkeypatch.setattr(linking_within, "ATTACKED_SAMPLE", 100)
    monkeypatch.setattr(linking_within, "CANDIDATES", 30)
    link(every)
    assert told[0] == told[1]
