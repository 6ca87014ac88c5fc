"""Who is attacked, who is in the control group, and what an attack came to beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.attacks.table import Rows
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions
from release_pipeline.privacy.shares import Share, difference_beyond, measure_share


@dataclass(frozen=True, slots=True)
class People:
    """Who is attacked, as rows of a table: `targets`, and as many in the `control` group; and the released rows that are `left`
    to the attacker. Where these are nobody's, the table was made of the first and without the second."""

    targets: Rows
    control: Rows
    left: Rows


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attack came to.

    attack   the share of successes against people whose own rows were there
    control  the same against people whose own rows had been taken out
    guess    the share of successes of somebody who does not look at any row that is near
    risk     the attack's successes beyond the control group's, as a share of what was left to gain (`difference_beyond`)
    worst    the column that most of the risk is in, where the attack can tell; empty where it cannot or where there is no risk
    """

    name: str
    attack: Share
    control: Share
    guess: float
    risk: Share
    worst: str


def draw_people(n: int, stream: NoiseStream, *, most: int) -> People:
    """So many of n at random at the most, as many for the control group, and all rows but those of the latter, in their order."""
    order = shuffled_positions(n, stream)
    size = min(most, n // 3)
    return People(order[size : 2 * size], order[:size], np.sort(order[size:]))


def judge(
    name: str, tried: npt.NDArray[Any], control: npt.NDArray[Any], *, guess: float, among: int | None, worst: str = ""
) -> Attack:
    """What came of it, person by person (`tried`, `control`); `among`: of how many in all they were drawn."""
    attack, beside = (measure_share(successes.astype(np.float64), among=among) for successes in (tried, control))
    risk = difference_beyond(attack, beside)
    return Attack(name, attack, beside, guess, risk, worst if risk.value > 0 else "")
