"""A source with a person, two kept quasi-identifiers and ten noise columns, and a site that releases it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

POLICY = "synthetic"
COLUMNS = 12  # that are released
K = 10
_REGIONS, _BANDS, _RAREST = 20, ("18-29", "30-44", "45-59", "60-74", "75-89", "90+"), 4
_KINDS = (  # kind, how many, domain, grid
    ("lognormal", 3, (0, 10**6), "0.01"),
    ("normal", 3, (0, 200), "0.1"),
    ("zeroes", 2, (0, 10**5), "0.01"),
    ("whole", 2, (0, 100), "1"),
)


def noise_columns(n: int) -> dict[str, npt.NDArray[np.float64] | npt.NDArray[np.int64]]:
    """Ten columns of n numbers: lognormal, normal, three quarters of zeroes, and whole numbers with many ties."""
    rng = np.random.default_rng(n)

    def make(kind: str) -> Any:
        if kind == "lognormal":
            return np.round(rng.lognormal(10, 1, n), 2)
        if kind == "normal":
            return np.round(rng.normal(100, 15, n), 1)
        if kind == "zeroes":
            return np.round(np.where(rng.random(n) < 0.75, 0.0, rng.lognormal(6, 1.5, n)), 2)
        return rng.poisson(8, n)

    return {f"{kind}_{number}": make(kind) for kind, count, _, _ in _KINDS for number in range(1, count + 1)}


def write_sources(folder: Path, noise: dict[str, Any]) -> None:
    """The table as table.parquet and table.csv; one group in each region is so small that its cells are blanked."""
    n = len(next(iter(noise.values())))
    rng = np.random.default_rng(n + 1)
    band = rng.integers(0, len(_BANDS) - 1, n)
    region = rng.integers(1, _REGIONS + 1, n)
    rare = _REGIONS * _RAREST
    band[:rare], region[:rare] = len(_BANDS) - 1, np.arange(rare) % _REGIONS + 1
    columns = {
        "person": pa.array(rng.permutation(n) + 10**8),
        "region": pa.array(region),
        "band": pa.array(np.array(_BANDS, dtype=object)[band], pa.string()),
        **{name: pa.array(values) for name, values in noise.items()},
    }
    table = pa.table(columns)
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, folder / "table.parquet")
    pyarrow.csv.write_csv(table, folder / "table.csv", pyarrow.csv.WriteOptions(quoting_style="needed"))


def make_site(home: Path, source: str) -> Path:
    """A site of its own with one policy for `source`, a path from the site."""
    (home / "policies").mkdir(parents=True)
    (home / "policies" / f"{POLICY}.yaml").write_text(_policy(source), encoding="utf-8")
    (home / "populations.yaml").write_text(
        "synthetic-people: {cap: {epsilon: 10, definition: idp, scope: column}}\n", encoding="utf-8"
    )
    return home


def _policy(source: str) -> str:
    noise = [
        f"  {kind}_{number}: {{role: confidential, do: noise, domain: [{low}, {high}], grid: {grid}, outside: clamp, "
        f"missing: fail, why: synthetic, label: {kind} {number}}}"
        for kind, count, (low, high), grid in _KINDS
        for number in range(1, count + 1)
    ]
    gates = ", ".join(f"{kind}_{number}: 1" for kind, count, _, _ in _KINDS for number in range(1, count + 1))
    lines = [
        f"policy: {POLICY}",
        "steward: ana",
        "population: synthetic-people",
        f"source: {{path: {source}}}",
        "person: {column: person, records_per_release: 1}",
        "releases: once",
        f"protect: {{method: idp-cbls, epsilon: 10, k: {K}, scope: column, consistency: isotonic}}",
        "columns:",
        "  person: {role: identifier, do: drop}",
        f"  region: {{role: quasi, do: keep, values: {list(range(1, _REGIONS + 1))}, why: synthetic, label: Region}}",
        f"  band: {{role: quasi, do: keep, values: [{', '.join(map(repr, _BANDS))}], why: synthetic, label: Band}}",
        *noise,
        f"suppress: {{quasi_groups_below: {_RAREST + 1}, at_most: 5%}}",
        f"gates: {{min_rows: 1000, expected_error: {{{gates}}}}}",
        "publish: {formats: [parquet, csv]}",
        "about: {title: Synthetic records, description: Made up to measure by, licence: CC0-1.0, publisher: {name: nobody}, "
        "contact: {email: nobody@example.org}}",
    ]
    return "\n".join(lines) + "\n"
