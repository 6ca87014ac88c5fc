"""`python -m benchmarks same`: one release by each method on each engine, with the same secrets, whose candidate and stored
tables must be the same bytes. Exit code 1 where one is not.

The source has what engines differ in most easily: ties, a column that is nearly constant, a grid of 10^9 points, missing values.
`--engine spark` needs the Spark Connect server at `--spark` and the folder `--storage` that it shares with this machine. Pieces
of arrays on disk have a tenth of the records here, however much memory there is, and so have tasks of a cluster where they would
have more; an engine that held no array elsewhere fails. Secrets that are no secrets: nothing of it may be released.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import machine, table
from benchmarks.journey import ALL
from benchmarks.scale import ENGINES, REGIONS, SLICE, Engine, declare_quasi, write_policy, write_slices

SIZES, QUICK = (10**3, 10**5), (10**3,)
PIECES = 10  # of a table, and tasks of one that is smaller than a cluster's
METHODS = {
    "laplace": "{method: laplace, epsilon: 2}",
    "dp-um": "{method: dp-um, epsilon: 2, k: 25}",
    "dp-um rho": "{method: dp-um, definition: zcdp, delta: 0.000000001, epsilon: 2, k: 25}",
    "idp-ls": "{method: idp-ls, epsilon: 2, k: 25}",
    "idp-cbls": "{method: idp-cbls, epsilon: 2, k: 25}",
    "isotonic": "{method: idp-cbls, epsilon: 2, k: 25, consistency: isotonic}",
    "dp-cdf": "{method: dp-cdf, epsilon: 2}",
    "dp-cdf k": "{method: dp-cdf, epsilon: 2, k: 25}",
    "dp-table": "{method: dp-table, epsilon: 72}",
    "k-epsilon": "{method: k-epsilon, grouping: ola, epsilon: 2, k: 25}",
}
_GRIDS = {"income": "domain: [0, 1000000], grid: 1", "age": "domain: [0, 110], grid: 1", "flat": "domain: [0, 9], grid: 1"}
_GRIDS["wide"] = "domain: [0, 1000000], grid: 0.001"


def make_slice(first: int, rows: int) -> pa.Table:
    """Some records; of `age` one in thirty is missing, `income` is zero for a third, `flat` is the same of nearly all."""
    rng = np.random.default_rng(first)
    income = np.where(rng.random(rows) < 0.3, 0, np.minimum(np.round(rng.lognormal(10, 1, rows)), 10**6))
    age = np.clip(np.round(rng.normal(45, 18, rows)), 0, 110)
    made: dict[str, Any] = {
        "person": np.arange(first, first + rows) * 7919 % (1 << 40) + 10**8,
        "sex": rng.integers(1, 3, rows),
        "region": rng.integers(1, REGIONS + 1, rows),
        "income": income,
        "age": pa.array(age, mask=rng.random(rows) < 1 / 30),
        "flat": np.where(rng.random(rows) < 1 / 500, 6.0, 5.0),
        "wide": np.round(np.minimum(rng.lognormal(9, 2, rows), 10**6), 3),
    }
    return pa.table(made)


def write_site(home: Path, source: Path, method: str, engine: Engine) -> None:
    """A site whose policy is the same whatever the engine."""
    write_policy(home, "same", source, METHODS[method], _declare(method), _finish(method), engine)


def _declare(method: str) -> dict[str, str]:
    does = "synthesise" if method == "dp-table" else "noise"
    missing = "keep" if method in ("dp-table", "dp-cdf", "dp-cdf k") else "{fill: 0}"
    found = {name: f"{{{said}}}" for name, said in declare_quasi(METHODS[method]).items()}
    for name, grid in _GRIDS.items():
        found[name] = f"{{role: confidential, do: {does}, {grid}, outside: clamp, missing: {missing}, why: x}}"
    if method == "k-epsilon":
        cuts = f"{{intervals: [5, 10, 30], {_GRIDS['age']}, outside: clamp}}"
        found["age"] = f"{{role: quasi, do: generalise, why: x, missing: {{category: unknown}}, hierarchy: {cuts}}}"
    return found


def _finish(method: str) -> list[str]:
    """What is suppressed, and what must hold."""
    gates = "gates: {min_rows: 100}"
    if method == "dp-table":
        return [gates]
    if method == "k-epsilon":
        return ["suppress: {grouping_at_most: 50%, confidence: 90%, at_most: 90%}", gates]
    return ["suppress: {quasi_groups_below: 2, at_most: 20%}", gates]


def look_at(home: Path) -> dict[str, str]:
    """Hashes of the candidate's files and of every stored table, by name."""
    from release_pipeline.flow.site import find_site

    found: dict[str, str] = {}
    site = find_site(home)
    for file in sorted(site.candidate("same/once/r1").iterdir()):
        with file.open("rb") as opened:
            found[file.name] = hashlib.file_digest(opened, "sha256").hexdigest()
    with duckdb.connect(str(site.vault / "everybody.duckdb"), read_only=True) as vault:
        stored = vault.execute("SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL").fetchall()
        for room, name in stored:
            if name != "notes":  # when and how long
                found[f"{room} {name}"] = _hash_table(vault, f'"{room}"."{name}"')
    return found


def _hash_table(vault: duckdb.DuckDBPyConnection, name: str) -> str:
    """Whatever the batches that it is read in: which entries are missing, and all entries, column by column."""
    reader = vault.table(name).to_arrow_reader(SLICE)
    begun = {field.name: str(field.type).encode() for field in reader.schema}
    hashes = {column: (hashlib.sha256(kind), hashlib.sha256(kind)) for column, kind in begun.items()}
    for batch in reader:
        for (missing, entries), values in zip(hashes.values(), batch.columns, strict=True):
            missing.update(values.is_null().to_numpy(zero_copy_only=False))
            if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
                entries.update(values.fill_null(0).to_numpy(zero_copy_only=False))
            else:
                entries.update("".join(f"{entry!r}\n" for entry in values.to_pylist()).encode())
    return " ".join(f"{name}:{missing.hexdigest()}:{entries.hexdigest()}" for name, (missing, entries) in hashes.items())


def run_here(home: Path, few: int) -> dict[str, Any]:
    """One release with secrets that are none, in this process, with pieces of so few records: its hashes, how many arrays lay on
    disk, and how many passes a cluster did."""
    from release_pipeline.flow import forecast, secret_files
    from release_pipeline.flow.opening import open_release
    from release_pipeline.flow.site import find_site
    from release_pipeline.store import scratch, shared, vault

    site = find_site(home)
    if site.vault.exists() or [file.name for file in site.policy_files()] != ["same.yaml"]:
        raise SystemExit(f"{home} is no new site of this benchmark: its key would be overwritten.")
    secret_files.secrets.token_bytes = lambda nbytes=None: bytes(range(nbytes or 32))
    if few < shared.TASK:
        shared.TASK = vault.LARGE = forecast.LARGE = few
    vault._PIECES, vault._LEAST_PIECE = 1 << 62, few
    reserve, on_disk = scratch.reserve_bytes, 0

    def count_reserved(file: int, count: int) -> None:
        nonlocal on_disk
        on_disk += 1
        reserve(file, count)

    scratch.reserve_bytes = count_reserved
    site.keyed_hash(b"")  # makes the vault, whose key is then another
    (site.vault / "key").write_bytes(bytes(range(32)))
    flow = open_release(site, "same", "once")
    done = [getattr(flow, stage)() for stage in ALL]
    if not flow.candidate_is_whole():
        raise SystemExit("the release did not become a candidate.")
    passes = sum(stage.facts.get("cluster_passes", 0) for stage in done if stage is not None)
    return {"hashes": look_at(home), "disk": on_disk, "cluster": passes}


def compare(rows: int, method: str, engines: Sequence[Engine], folder: Path) -> str:
    """What differs, in words; nothing, as it should be."""
    source = folder / f"same-{rows}.parquet"
    if not source.exists():
        write_slices(source, rows, make_slice)
    first: dict[str, str] | None = None
    said: list[str] = []
    for engine in engines:
        begun = perf_counter()
        with TemporaryDirectory(dir=folder, prefix="site-") as home:
            write_site(Path(home), source, method, engine)
            command = [sys.executable, "-m", "benchmarks.same", home, str(max(1, rows // PIECES))]
            root = Path(__file__).resolve().parents[1]
            made = json.loads(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout)
        found: dict[str, str] = made["hashes"]
        took = f"{len(found)} hashes, {made['disk']} arrays on disk, {made['cluster']} passes, {perf_counter() - begun:.0f} s"
        print(f"{rows:,} {method} {engine.name}: {took}", file=sys.stderr, flush=True)
        first = found if first is None else first
        said += [f"{engine.name}: {name}" for name in sorted({*first, *found}) if first.get(name) != found.get(name)]
        if not {"memory": True, "duckdb": made["disk"], "spark": made["cluster"]}[engine.name]:
            said.append(f"{engine.name}: all arrays were in memory")
    return ", ".join(said)


def main(arguments: Sequence[str]) -> None:
    """Print one line for each number of rows and method."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks same", description="The same bytes, whatever the engine.")
    parser.add_argument("--quick", action="store_true", help="few rows")
    parser.add_argument("--rows", type=float, nargs="+", metavar="N", help="numbers of rows (1e3 1e5)")
    parser.add_argument("--method", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)} (all)")
    parser.add_argument("--engine", nargs="+", choices=ENGINES[1:], default=["memory", "duckdb"], help="engines (memory duckdb)")
    parser.add_argument("--spark", default="", metavar="URL", help="the Spark Connect server, as in sc://127.0.0.1:15002")
    parser.add_argument("--storage", default="", metavar="FOLDER", help="the folder that it shares with this machine")
    parser.add_argument("--folder", type=Path, help="keep the sources here, and work here")
    options = parser.parse_args(arguments)
    if len(set(options.engine)) < 2:
        parser.error("name two engines or more: one is the same as itself.")
    sizes = [int(rows) for rows in options.rows] if options.rows else QUICK if options.quick else SIZES
    on_spark = {"spark": options.spark, "storage": options.storage}
    engines = [Engine(name, **(on_spark if name == "spark" else {})) for name in options.engine]
    print(table.machine_lines(machine.facts()) + "\n", flush=True)
    failed = False
    with TemporaryDirectory(prefix="release-pipeline-same-") as made:
        folder: Path = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        for rows in sizes:
            for method in options.method or METHODS:
                differing = compare(rows, method, engines, folder)
                failed = failed or bool(differing)
                print(f"{rows:,} rows, {method}: {differing or 'the same bytes'} ({', '.join(options.engine)})", flush=True)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    print(json.dumps(run_here(Path(sys.argv[1]), int(sys.argv[2]))))
