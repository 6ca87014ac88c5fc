"""Writes data/register.duckdb: a made-up register of residents in two years, as a table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

RESIDENTS = 3_000
MOVED = 200  # people who left, and as many who came
TOWNS = ["Alder", "Birch", "Cedar", "Dogwood"]


def main() -> None:
    """Write the table. The same seed gives the same people."""
    random = np.random.default_rng(3)
    everybody = pd.DataFrame(
        {
            "person": [f"R{number:05d}" for number in range(RESIDENTS + MOVED)],
            "town": random.choice(TOWNS, RESIDENTS + MOVED, p=[0.4, 0.3, 0.2, 0.1]),
            "sex": random.choice(["f", "m"], RESIDENTS + MOVED),
            "age": np.clip(random.normal(42, 23, RESIDENTS + MOVED), 0, 105).astype(int),
        }
    )
    before = everybody[:RESIDENTS].assign(year="2023")
    after = everybody[MOVED:].assign(year="2024", age=everybody["age"][MOVED:] + 1)
    people = pd.concat([before, after])
    file = Path("data/register.duckdb")
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    with duckdb.connect(file) as connection:
        connection.register("people", people)
        connection.execute("CREATE TABLE residents AS SELECT * FROM people")


if __name__ == "__main__":
    main()
