"""Writes data/pay.csv: the made-up pay of a company's staff."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

STAFF = 1_600
UNITS = ["F1", "F2", "S1", "S2"]


def main() -> None:
    """Write the table. The same seed gives the same people."""
    random = np.random.default_rng(4)
    grade = random.choice([1, 2, 3], STAFF, p=[0.5, 0.35, 0.15])
    base = np.round(random.normal(24_000 + 9_000 * grade, 3_000), -2).clip(18_000)
    bonus = np.where(random.random(STAFF) < 0.4, np.round(base * random.uniform(0.02, 0.12, STAFF), -1), 0)
    gross = base + bonus
    pay = pd.DataFrame(
        {
            "staff": [f"S{number:05d}" for number in range(STAFF)],
            "unit": random.choice(UNITS, STAFF),
            "grade": grade,
            "hired": pd.to_datetime("2008-01-01") + pd.to_timedelta(random.integers(0, 6_500, STAFF), unit="D"),
            "base": base,
            "bonus": bonus,
            "gross": gross,
            "deductions": np.round(gross * 0.31),
        }
    )
    folder = Path("data")
    folder.mkdir(exist_ok=True)
    pay.astype({"base": int, "bonus": int, "gross": int, "deductions": int}).to_csv(folder / "pay.csv", index=False)


if __name__ == "__main__":
    main()
