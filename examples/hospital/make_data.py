"""Writes data/stays.csv: made-up hospital stays of two quarters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

WARDS = ["medicine", "surgery", "paediatrics"]
CODES = ["I10", "I21", "I25", "J18", "J44", "J45", "K35", "K80", "S72", "S82"]
STAYS = 1_500  # in each quarter


def main() -> None:
    """Write the table. The same seed gives the same people."""
    random = np.random.default_rng(5)
    quarters = [make_quarter(random, name, start) for name, start in (("2024-Q1", "2024-01-01"), ("2024-Q2", "2024-04-01"))]
    folder = Path("data")
    folder.mkdir(exist_ok=True)
    pd.concat(quarters).to_csv(folder / "stays.csv", index=False)


def make_quarter(random: np.random.Generator, name: str, start: str) -> pd.DataFrame:
    """The stays that began in a quarter. Nobody stays twice in one."""
    ward = random.choice(WARDS, STAYS, p=[0.5, 0.35, 0.15])
    child = ward == "paediatrics"
    age = np.where(child, random.integers(0, 16, STAYS), np.clip(random.normal(64, 17, STAYS), 16, 100)).astype(int)
    stay = np.minimum(random.geometric(np.where(child, 0.4, 0.18)), 60)
    admitted = pd.Timestamp(start) + pd.to_timedelta(random.integers(0, 88, STAYS), unit="D")
    earlier = random.poisson(age / 60).astype(float)
    earlier[earlier == 0] = np.nan  # the system leaves the field empty at the first stay
    return pd.DataFrame(
        {
            "patient": [f"P{number:06d}" for number in random.choice(200_000, STAYS, replace=False)],
            "quarter": name,
            "ward": ward,
            "sex": random.choice(["f", "m"], STAYS),
            "age": age,
            "postcode": random.choice(["10115", "10117", "10243", "10245", "12043", "12045"], STAYS),
            "admitted": admitted.strftime("%Y-%m-%d"),
            "left": (admitted + pd.to_timedelta(stay, unit="D")).strftime("%Y-%m-%d"),
            "code": random.choice(CODES, STAYS),
            "earlier": earlier,
        }
    )


if __name__ == "__main__":
    main()
