"""Writes data/survey.csv: a made-up survey of the people in 2,000 households."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

HOUSEHOLDS = 2_000
DISTRICTS = ["harbour", "old town", "hills", "fields"]


def main() -> None:
    """Write the table. The same seed gives the same people."""
    random = np.random.default_rng(8)
    size = random.integers(1, 4, HOUSEHOLDS)
    household = np.repeat(np.arange(HOUSEHOLDS), size)
    district = random.choice(DISTRICTS, HOUSEHOLDS, p=[0.3, 0.3, 0.25, 0.15])[household]
    place = np.arange(len(household)) - np.repeat(np.cumsum(size) - size, size)  # in the household
    age = np.where(place < 2, random.integers(20, 90, len(household)), random.integers(0, 20, len(household)))
    status = random.choice(["single", "married", "widowed"], len(household), p=[0.4, 0.5, 0.1])
    income = np.round(random.lognormal(7.6, 0.6, len(household)), -1)
    income[random.random(len(household)) < 0.07] = -8  # refused
    car = random.choice(["yes", "no"], len(household)).astype(object)
    car[random.random(len(household)) < 0.05] = ""
    people = pd.DataFrame(
        {
            "household": [f"H{number:05d}" for number in household],
            "district": district,
            "age": age,
            "status": np.where(age < 16, "single", status),
            "car": car,
            "income": np.where(age < 16, 0, income).astype(int),
            # The hills and fields were drawn less densely: each household there stands for more.
            "weight": np.where(np.isin(district, ["hills", "fields"]), 40, 15),
        }
    )
    folder = Path("data")
    folder.mkdir(exist_ok=True)
    people.to_csv(folder / "survey.csv", index=False)


if __name__ == "__main__":
    main()
