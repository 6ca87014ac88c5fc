"""Guesses in tables of many columns, which are added up once for all secrets, against guesses looked up row by row."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.mechanisms.attacks.inferring import TOLERANCE, infer
from release_pipeline.mechanisms.attacks.view import Attacked, AttackedColumn, draw_people
from release_pipeline.mechanisms.noise import noise_stream

ROWS, SECRET = 60, bytes(32)


def make_table(seed: int) -> Attacked:
    """Sixteen columns with many ties: categories, numbers, one that releases a constant, one of halves."""
    rng = np.random.default_rng(seed)
    columns = list[AttackedColumn]()
    for number in range(16):
        if number < 5:
            original = rng.integers(0, 3, ROWS)
            released = np.where(rng.random(ROWS) < 0.3, rng.integers(-1, 3, ROWS), original)
        else:
            original = np.round(rng.normal(size=ROWS) * 2) / (2 if number == 7 else 1)
            released = np.full(ROWS, 4.0) if number == 9 else original + rng.integers(-1, 2, ROWS)
        columns.append(AttackedColumn(f"c{number}", original, released))
    return Attacked(tuple(columns))


def guess_by_hand(table: Attacked, secret: AttackedColumn, person: int, left: list[int]) -> float:
    """The share of the rows nearest to a person, by all other columns, that have the secret right."""
    distances = np.zeros(len(left))
    for column in table.columns:
        released = column.released[left]
        width = np.ptp(released) if column.is_numeric else 1
        if column is secret or width == 0:
            continue
        off = np.abs(released - column.original[person]) / width
        distances += off if column.is_numeric else off != 0
    near = np.flatnonzero(distances <= distances.min() + 1e-9)
    deviation = np.abs(secret.original - np.median(secret.original)).mean() if secret.is_numeric else 0
    right = np.abs(secret.released[left][near] - secret.original[person]) <= TOLERANCE * deviation
    return float(right.mean())


@pytest.mark.parametrize("seed", range(4))
def test_all_secrets_at_once_are_guessed_as_one_by_one(seed: int) -> None:
    """Ties count as ties, a constant tells nothing, and a secret's own column is left out."""
    table = make_table(seed)
    people = draw_people(ROWS, noise_stream(SECRET, "people"), most=15)
    found = infer(table, stream=noise_stream(SECRET, "people"), people=people)
    left = people.left.tolist()
    for secret, attack in zip(table.columns, found.columns, strict=True):
        for some, share in ((people.targets, attack.attack), (people.control, attack.control)):
            by_hand = np.mean([guess_by_hand(table, secret, person, left) for person in some.tolist()])
            assert share.value == pytest.approx(by_hand, abs=1e-12), secret.name
