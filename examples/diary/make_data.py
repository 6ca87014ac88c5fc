"""Writes data/diary.csv: a made-up time-use diary of a panel, in three waves of three days."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

PEOPLE = 400  # in each wave
CHANGED = 40  # who leave after each wave, and as many who join
DAYS = ["Monday", "Wednesday", "Saturday"]


def main() -> None:
    """Write the table. The same seed gives the same people."""
    random = np.random.default_rng(6)
    waves = [make_wave(random, number) for number in (1, 2, 3)]
    folder = Path("data")
    folder.mkdir(exist_ok=True)
    pd.concat(waves).to_csv(folder / "diary.csv", index=False)


def make_wave(random: np.random.Generator, number: int) -> pd.DataFrame:
    """Three days of everybody who took part in a wave."""
    first = (number - 1) * CHANGED
    person = np.repeat(np.arange(first, first + PEOPLE), len(DAYS))
    day = np.tile(DAYS, PEOPLE)
    work = np.where(day == "Saturday", random.gamma(1.0, 60, len(day)), random.normal(440, 110, len(day)))
    return pd.DataFrame(
        {
            "person": [f"D{number:04d}" for number in person],
            "wave": number,
            "day": day,
            "work": np.clip(work, 0, 900).astype(int) // 5 * 5,
            "screen": np.clip(random.gamma(2.5, 60, len(day)), 0, 900).astype(int) // 5 * 5,
        }
    )


if __name__ == "__main__":
    main()
