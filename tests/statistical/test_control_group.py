"""The attacks tell a release that gives people away from one that tells of everybody alike. Fixed seeds, so never flaky."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.mechanisms.attacks import Attack, Attacked, AttackedColumn, infer, link, single_out
from release_pipeline.mechanisms.noise import noise_stream

pytestmark = pytest.mark.statistical

ROWS, RELEASES = 900, 40
Floats = npt.NDArray[np.float64]


def people(chance: np.random.Generator, n: int = ROWS) -> Floats:
    """Four correlated columns and a category of five, as whole numbers."""
    common = chance.normal(size=(n, 1))
    numbers = np.round(100 * (0.6 * common + chance.normal(size=(n, 4))))
    return np.column_stack([numbers, np.digitize(common + chance.normal(size=(n, 1)), [-1, 0, 0.5, 1])])


def attacked(original: Floats, released: Floats) -> Attacked:
    columns = [AttackedColumn(f"number {j}", original[:, j].copy(), released[:, j].copy()) for j in range(4)]
    codes = [table[:, 4].astype(np.int64) for table in (original, released)]
    return Attacked((*columns, AttackedColumn("category", *codes)))


def run_all(table: Attacked, number: int) -> list[Attack]:
    """Linking, inferring and both ways of singling out."""
    streams = [noise_stream(bytes([number]) * 32, purpose) for purpose in ("link", "infer", "single out")]
    return [link(table, stream=streams[0]), infer(table, stream=streams[1]).overall, *single_out(table, stream=streams[2])]


def test_a_table_released_as_it_is_gives_people_away_and_control_people_not() -> None:
    original = people(np.random.default_rng(1))
    linking, inferring, one, several = run_all(attacked(original, original), 1)
    for attack in (linking, inferring, one, several):
        assert attack.risk.value > 0.9, attack
        assert attack.risk.low > 0.85, attack
    assert linking.guess == 1 / 600
    assert linking.control.high < 0.02
    assert inferring.control.value == pytest.approx(inferring.guess, abs=0.08)
    assert inferring.worst
    assert one.worst.startswith("number")


@pytest.fixture(scope="module")
def fresh() -> list[list[Attack]]:
    """Every attack on releases that are new draws of the same law, people for people unrelated."""
    found: list[list[Attack]] = []
    for number in range(RELEASES):
        chance = np.random.default_rng(number)
        found.append(run_all(attacked(people(chance), people(chance)), number))
    return found


def test_fresh_draws_show_no_risk(fresh: list[list[Attack]]) -> None:
    """An interval of 95% lies above 0 in one of forty, and in four or more of forty once in fifty times."""
    for attacks in zip(*fresh, strict=True):
        above = sum(attack.risk.low > 0 for attack in attacks)
        assert above <= 3, attacks[0].name
        middles = np.mean([attack.attack.value - attack.control.value for attack in attacks])
        assert abs(middles) < 0.02, attacks[0].name
