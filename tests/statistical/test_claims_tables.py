"""The audit of claims about tables beside the rows: what holds is not broken, what is planted is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from release_pipeline.claims.audit import Effort, Finding, audit_promise
from release_pipeline.claims.promises import list_promises
from release_pipeline.masking import tables as stages_tables
from release_pipeline.mechanisms import tables as table_noise
from release_pipeline.mechanisms.noise import NoiseStream, noise_stream
from release_pipeline.mechanisms.tables import Sensitivity, Shape, of_amounts, sum_levels
from release_pipeline.policy.file import tables as policy_tables
from tests.statistical.auditing import FEW, SOME, SUITE, draw_scaled

pytestmark = [pytest.mark.statistical, pytest.mark.slow]
SEEN = Effort(explore=1_000, prove=4_000, classes=0, counted=3, counts=4_000)  # too few draws choose the wrong pair
PATCH = pytest.MonkeyPatch


def audit_tables(name: str, words: str, effort: Effort = FEW) -> Finding:
    """What the audit finds of a promise about the tables beside the rows."""
    [promise] = [promise for promise in list_promises(SUITE[name]) if promise.description == words]
    return audit_promise(SUITE[name], promise, effort)


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [
        ("tables", "the table heads", 0.6),
        ("tables", "the table totals", 0.5),
        ("tables", "all tables together", 0.35),
        ("tables in levels", "all tables together", 0.35),
        ("tables, two records per person", "the table totals", 0.5),
        ("tables, by rho", "the table totals", 0.3),
        ("tables, weighted", "the table totals", 0.5),
        ("tables, of those who have a value", "the table valued", 0.4),
    ],
)
def test_claims_of_tables_hold_and_are_nearly_reached(name: str, words: str, least: float) -> None:
    """Of every one most is proved, or much of what several make together, whose worst outcome is rare; none is broken."""
    found = audit_tables(name, words, SOME)
    assert found.holds
    assert found.proved is not None
    assert found.proved >= least * found.claimed


def _as_if_one_cell(low: int, high: int, cells: int) -> Sensitivity:
    """As if a record could only change its number, and not its cell."""
    return of_amounts(low, high, 1)


def _as_if_unweighted(low: int, high: int, cells: int) -> Sensitivity:
    """As if every record had the least weight."""
    return of_amounts(0, low, cells)


def _as_if_weighed_once(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """As if the largest number could not go with the largest weight."""
    return other


def _the_same_in_both_levels(cell: Any, amounts: Any, shape: Shape, noise: Any, stream: NoiseStream) -> Any:
    exact = sum_levels(cell, amounts, shape)
    drawn = noise[0].draw(max(shape.cells), stream)
    return [level + drawn[: len(level)] for level in exact]


def _for_all_tables_alike(_secret: bytes, *_context: object) -> NoiseStream:
    return noise_stream(_secret, "tables")


TABLE_FAULTS: dict[str, tuple[str, str, Callable[[PATCH], None]]] = {
    "scales a third too small": (
        "tables",
        "the table heads",
        lambda patch: patch.setattr(table_noise, "discrete_laplace", draw_scaled),
    ),
    "sums as if a record stayed in its cell": (
        "tables",
        "the table totals",
        lambda patch: patch.setattr(policy_tables, "of_amounts", _as_if_one_cell),
    ),
    "weighted counts as if all had the least weight": (
        "tables, weighted",
        "the table heads",
        lambda patch: patch.setattr(policy_tables, "of_amounts", _as_if_unweighted),
    ),
    "weighted sums as if nobody had more than one": (
        "tables, weighted",
        "the table totals",
        lambda patch: patch.setattr(policy_tables, "multiply_ends", _as_if_weighed_once),
    ),
    "levels that share their noise": (
        "tables in levels",
        "the table heads",
        lambda patch: patch.setattr(stages_tables, "measure_levels", _the_same_in_both_levels),
    ),
    "tables that share their noise": (
        "tables",
        "all tables together",
        lambda patch: patch.setattr(stages_tables, "noise_stream", _for_all_tables_alike),
    ),
}


@pytest.mark.parametrize("fault", TABLE_FAULTS)
def test_faults_of_tables_are_seen(fault: str, monkeypatch: PATCH) -> None:
    """Of the scale, of the sensitivity, and of noise that is drawn twice."""
    name, words, plant = TABLE_FAULTS[fault]
    plant(monkeypatch)
    assert not audit_tables(name, words, FEW if name == "tables, weighted" else SEEN).holds  # its faults are large
