"""`auditing`: linkage and the three attacks, beside comparing all pairs in NumPy and SciPy's tree on the raw points; and the
whole audit of a candidate.

Correlated whole numbers, released in clusters of five: a released table has equal values, but hardly two equal rows. Linkage is
tried on 2,000 records, as in an audit, against all originals; all pairs in NumPy on 50 of them; costs are compared per record.
The index is made anew for every call and counts. SciPy's tree as it comes is given the raw points and asked for one nearest each.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import memory
from benchmarks.clock import cpu_seconds
from benchmarks.figures import Figure, Target
from release_pipeline.policy import parse_policy
from release_pipeline.privacy.attacks import Attacked, AttackedColumn, infer, link, single_out
from release_pipeline.privacy.noise import noise_stream, shuffled_positions
from release_pipeline.privacy.risk import record_linkage
from release_pipeline.stages.audit import audit_table
from release_pipeline.stages.compared import Compared
from release_pipeline.stages.measures.groups import measure_groups

K = 5
COLUMNS = (4, 10)
TRIED, PAIRED = 2_000, 50
SECRET = bytes(32)
AT_MOST = Target("at most", 1)
SECONDS = Target("at most", 40)
COPIES = Target("at most", 3)
AUDIT_SECONDS = Target("at most", 120)
WARM = 3_000
MEMORY_FROM = 10_000  # records: with fewer only the largest table of a run, for what every process needs decides
_POLICY = (
    "policy: auditing",
    "steward: ana",
    "population: made",
    "source: {path: made.csv}",
    "person: each-row",
    "releases: once",
    f"protect: {{method: idp-cbls, epsilon: 10, k: {K}}}",
    "columns:",
)

Floats = npt.NDArray[np.float64]


def auditing(sizes: Sequence[int]) -> Iterator[Figure]:
    """Linkage per record against both baselines, the attacks together in CPU seconds, and peak memory of each."""
    _link(*_tables(WARM, 1), np.arange(WARM))
    for m in COLUMNS:
        for n in sizes:
            original, released = _tables(n, m)
            tried = shuffled_positions(n, noise_stream(SECRET))[:TRIED]
            few = tried[:PAIRED]
            ours, tree, pairs = cpu_seconds(
                partial(_link, original, released, tried),
                partial(_by_tree, original, released, tried),
                partial(_by_pairs, original, released, few),
                runs=1,
            )
            if not np.isclose(_link(original, released, few), _by_pairs(original, released, few)):
                raise RuntimeError("all pairs have another linkage.")
            ratio = ours / len(tried) / (pairs / len(few))
            target = AT_MOST if n >= 10**4 else None
            yield Figure("auditing", f"linkage, {m} columns", n, "CPU time", ours, ratio, "all pairs in NumPy", target)
            yield Figure("auditing", f"linkage by SciPy's tree, {m} columns", n, "CPU time", tree, ours / tree, "linkage to it")
            yield from _memory("linkage", n, m, sizes[-1])
            (seconds,) = cpu_seconds(_run("attacks", original, released), runs=1)
            yield Figure("auditing", f"attacks, {m} columns", n, "CPU time", seconds, seconds, "CPU seconds", SECONDS)
            yield from _memory("attacks", n, m, sizes[-1])
            yield from _whole(original, released)
            yield from _memory("whole audit", n, m, sizes[-1])


def _whole(original: Floats, released: Floats) -> Iterator[Figure]:
    """All that a candidate's audit measures, models included, beside sorting every column of both tables once."""
    (n, m), run = original.shape, _run("whole audit", original, released)
    begun = perf_counter()
    run()
    seconds = perf_counter() - begun
    begun = perf_counter()
    for table in (original, released):
        np.sort(table, axis=0)
    sorting = perf_counter() - begun
    case = f"whole audit, {m} columns"
    yield Figure("auditing", case, n, "wall time", seconds, seconds, "seconds", AUDIT_SECONDS)
    yield Figure("auditing", f"audit over sorts, {m} columns", n, "wall time", seconds, seconds / sorting, "sorts of both tables")


def _link(original: Floats, released: Floats, tried: npt.NDArray[np.intp]) -> float:
    return record_linkage(original, released, np.arange(len(released)), positions=tried).value


def _by_tree(original: Floats, released: Floats, tried: npt.NDArray[np.intp]) -> float:
    """SciPy's tree as it comes, on all originals: one nearest each, ties not looked for."""
    from scipy.spatial import KDTree

    deviation = original.std(axis=0)
    found = KDTree(original / deviation).query(released[tried] / deviation)[1]
    return float(np.mean(found == tried))


def _by_pairs(original: Floats, released: Floats, tried: npt.NDArray[np.intp]) -> float:
    """Every original for every record tried, ties included."""
    deviation = original.std(axis=0)
    known, linked = original / deviation, 0.0
    for record in tried:
        distance = np.sqrt(((known - released[record] / deviation) ** 2).sum(axis=1))
        nearest = distance <= distance.min() * (1 + 1e-9)
        linked += nearest[record] / nearest.sum()
    return linked / len(tried)


def _memory(case: str, n: int, m: int, most: int) -> Iterator[Figure]:
    if memory.measurable() and (n >= MEMORY_FROM or n == most):
        command = [sys.executable, "-m", "benchmarks.auditing", case, str(n), str(m)]
        root = Path(__file__).resolve().parents[1]
        peak = int(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout)
        target = COPIES if n >= 10**6 and m == COLUMNS[-1] else None  # of fewer rows and columns fixed costs count
        yield Figure("auditing", f"{case}, {m} columns", n, "peak memory", peak, peak / (8 * n * m), "times the table", target)


def _peak_here(case: str, n: int, m: int) -> int:
    """Peak resident memory above what was resident right before, both tables not included, in this fresh process."""
    _run(case, *_tables(WARM, m))()
    run = _run(case, *_tables(n, m))
    memory.reset_peak()
    before = memory.resident("VmRSS")
    run()
    return max(memory.resident("VmHWM") - before, 0)


def _run(case: str, original: Floats, released: Floats) -> Callable[[], object]:
    if case == "linkage":
        tried = shuffled_positions(len(released), noise_stream(SECRET))[:TRIED]
        return partial(_link, original, released, tried)
    if case == "whole audit":
        compared = _compared(original, released)
        streams = partial(noise_stream, SECRET)

        def audit() -> object:
            groups = measure_groups(compared.released, compared.policy)
            return audit_table(compared, groups=groups, streams=streams, progress=lambda _: None)

        return audit
    table = _attacked(original, released)
    return lambda: [attack(table, stream=noise_stream(SECRET, attack.__name__)) for attack in (link, infer, single_out)]


def _attacked(original: Floats, released: Floats) -> Attacked:
    """Columns that are views of the tables, so that they take no memory of their own."""
    return Attacked(tuple(AttackedColumn(f"c{j}", original[:, j], released[:, j]) for j in range(original.shape[1])))


def _compared(original: Floats, released: Floats) -> Compared:
    """The tables as the stage has them, under a policy with a masked column for each of theirs."""
    names = [f"c{j}" for j in range(original.shape[1])]
    columns = [
        f"  {name}: {{role: confidential, do: noise, domain: [-2000, 2000], grid: 1, outside: clamp, why: made}}"
        for name in names
    ]
    policy = parse_policy("\n".join([*_POLICY, *columns, ""]), name="auditing")
    before, after = (pa.table({name: pa.array(table[:, j]) for j, name in enumerate(names)}) for table in (original, released))
    return Compared(policy, lambda _, wanted: before.select(wanted), after, np.arange(len(original)), after.select([]))


def _tables(n: int, m: int) -> tuple[Floats, Floats]:
    """Whole numbers with a common part, by columns, and means of clusters of five neighbours along that part."""
    chance = np.random.default_rng(n)
    common = np.sort(chance.standard_normal(n))[:, np.newaxis]
    original = np.asfortranarray(np.round(100 * (0.7 * common + chance.standard_normal((n, m)))))
    cluster = np.minimum(np.arange(n) // K, n // K - 1)
    size = np.bincount(cluster)
    released = np.empty_like(original)
    for j in range(m):
        released[:, j] = (np.bincount(cluster, original[:, j]) / size)[cluster]
    return original, released


if __name__ == "__main__":
    named, size, columns = sys.argv[1:]
    print(_peak_here(named, int(size), int(columns)))
