"""A table that is made up from a steward's assumptions (`shape` in a policy), without any confidential record."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import DataRefused, SourceError, WrongUsage
from release_pipeline.ledger.looks import note_public, say_compared
from release_pipeline.masking.simulation import Records
from release_pipeline.mechanisms.basis.utility import measure_clamping
from release_pipeline.mechanisms.noise.unclaimed import Random, make_random
from release_pipeline.pipeline.reading import release_filter, typed_column
from release_pipeline.pipeline.sources import find_home, find_source_like, hash_content, hash_file
from release_pipeline.policy import Policy
from release_pipeline.policy.file.sections import ColumnSketch
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.policy.plans.settings import Axes, Setting
from release_pipeline.policy.values.formats import name_some
from release_pipeline.policy.values.scalars import canonical_name
from release_pipeline.rows.checks import round_up
from release_pipeline.store.site import Site, find_site
from release_pipeline.store.source import SourceReader, find_file, open_raw

Numbers = npt.NDArray[np.float64]
KEY = bytes(32)  # of choices that protect nothing: the same table every time
NOTHING = ColumnSketch()
TAIL = 3.0  # e-foldings in which values beyond the last quantile reach the end of the domain


def make_up(policy: Policy, *, rows: int | None) -> tuple[Records, tuple[str, ...]]:
    """Return a table made from the policy's `shape`, and what to keep in mind about it."""
    sketch = policy.shape
    if sketch is None:
        raise WrongUsage(
            "the policy has no shape: nothing says what the data may look like.",
            where=policy.policy,
            remedy="Add one, like shape: {rows: 20000, columns: {income: {at: {0: 12%}, quantiles: {50%: 21000, 90%: 62000}}}}.",
        )
    made = policy.noise_columns | policy.listed_columns
    if others := {name: column.do for name, column in policy.released_columns.items() if name not in made}:
        raise WrongUsage(
            f"{name_some(others)}: no table is made up of columns with do: {next(iter(others.values()))}.",
            where=policy.policy,
            remedy="Use --like with a file.",
        )
    count, random = rows or sketch.rows, make_random(KEY, policy.policy, "made up")
    scores = random.standard_normal((len(policy.noise_columns), count))  # which records have the low values of each column
    score_of = dict(zip(policy.noise_columns, scores, strict=True))
    columns: dict[str, pa.Array] = {}
    for name in policy.released_columns:
        assumed = sketch.columns.get(name, NOTHING)
        if number := policy.noise_columns.get(name):
            columns[name] = pa.array(make_numbers(number, assumed, score_of[name], random))
        elif column := policy.listed_columns.get(name):
            columns[name] = _make_entries(column, assumed, count, random)
    unassumed = [name for name in columns if name not in sketch.columns]
    if unassumed:
        return Records(columns), (f"of {name_some(unassumed)} the shape says nothing: values are even over what is declared",)
    return Records(columns), ()


def make_numbers(column: NoiseColumn, assumed: ColumnSketch, scores: Numbers, random: Random) -> Numbers:
    """Return the numbers of a column in the order of these scores; points beyond the domain where there is no value."""
    count = len(scores)
    missing = [round(float(share) * count) for share in assumed.missing.values()]
    order = np.argsort(scores, kind="stable")
    lost = random.permutation(count)[: sum(missing)]
    made = np.empty(count)
    made[order] = _values_in_order(column, assumed, count)
    points = dict(zip(column.reasons, column.reason_points, strict=True))
    starts = np.cumsum([0, *missing])
    for (reason, first), last in zip(zip(assumed.missing, starts, strict=False), starts[1:], strict=True):
        made[lost[first:last]] = points[reason]
    return made


def _values_in_order(column: NoiseColumn, assumed: ColumnSketch, count: int) -> Numbers:
    """Return as many values as there are records, ascending, on the grid."""
    share_valued = 1 - float(sum(assumed.missing.values(), Decimal(0)))
    heaps = {float(value): round(count * float(share) / max(share_valued, 1e-9)) for value, share in assumed.at.items()}
    others = max(count - sum(heaps.values()), 0)
    places = (np.arange(others) + 0.5) / max(others, 1)
    spread = quantile_function(assumed, (float(column.domain[0]), float(column.domain[1])))(places)
    found = np.sort(np.concatenate([column.exact_grid.snap(spread), *(np.full(many, value) for value, many in heaps.items())]))
    return np.resize(found, count) if len(found) != count else found


def quantile_function(assumed: ColumnSketch, domain: tuple[float, float]) -> Callable[[Numbers], Numbers]:
    """Return the function from shares of the records to values: straight lines between the stated quantiles; beyond the last one
    values grow by e-foldings to the end of the domain, which hardly any reaches."""
    shares = [float(share) for share in assumed.quantiles]
    values = [float(value) for value in assumed.quantiles.values()]
    if not shares or shares[0] > 0:
        shares, values = [0.0, *shares], [domain[0], *values]
    last, top = shares[-1], values[-1]

    def find(places: Numbers) -> Numbers:
        inner = np.interp(places, shares, values)
        if last >= 1:
            return inner
        if len(shares) == 1:  # no quantile is stated: an even distribution
            return domain[0] + (domain[1] - domain[0]) * places
        beyond = np.clip((places - last) / (1 - last), 0, 1)
        grown = top + (domain[1] - top) * np.expm1(TAIL * beyond) / math.expm1(TAIL)
        return np.where(places > last, grown, inner)

    return find


def _make_entries(column: ListedColumn, assumed: ColumnSketch, count: int, random: Random) -> pa.Array:
    known: list[str] = [*map(str, column.values), *(() if column.integers else column.reasons)]
    left = 1 - float(sum(assumed.shares.values(), Decimal(0)))
    unassumed = [value for value in map(str, column.values) if value not in assumed.shares]
    each = left / len(unassumed) if unassumed else 0.0
    shares = np.array(
        [float(assumed.shares[value]) if value in assumed.shares else each * (value in unassumed) for value in known]
    )
    ends = np.cumsum(np.maximum(shares, 0)) / max(float(np.maximum(shares, 0).sum()), 1e-12)
    drawn = np.minimum(np.searchsorted(ends, random.random(count), side="right"), len(known) - 1)
    entries = pa.array(known, pa.string()).take(pa.array(drawn))
    return entries.cast(pa.int64()) if column.integers else entries


# The records that settings are tried on: a public file, or a table that is made up. Neither is a trial on confidential data. A
# file that is only similar to the source need not meet the policy: values outside a domain are moved into it, and records with an
# undeclared entry are left out. Warnings report both.


LEAST = 20  # records; with fewer, figures mean nothing
LEAST_MOVED = 0.0005  # share of records outside of a domain from which a warning reports it


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The request for an exploration. Either `like` or `shape`; `public`: where anyone finds the file `like`; `refused`: settings
    that the ledger would refuse are tried too."""

    like: Path | None = None
    public: str = ""
    shape: bool = False
    release: str | None = None
    rows: int | None = None
    axes: Axes = field(default_factory=Axes)
    home: Path | None = None
    by: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    """Records, a `description` of their origin, and `warnings` of what was done to make them fit."""

    records: Records
    description: str
    warnings: tuple[str, ...] = ()


def read_data(policy: Policy, asked: Asked, site: Site | None, settings: Sequence[Setting], file: Path) -> Data:
    """Return the requested records. A statement that a file is public is recorded before the file is read."""
    if asked.like is None:
        records, warnings = make_up(policy, rows=asked.rows)
        return Data(records, f"a table made up of the shape in {file.name}", warnings)
    compared = say_compared(setting.summary for setting in settings)
    with _unchanged(asked.like):
        _note_public(policy, asked, asked.like, site, file, compared)
        description = f"{asked.like.name}, which is public, as {asked.by} said: {asked.public}"
        return read_file(policy, asked.like, description, release=asked.release)


def read_file(policy: Policy, file: Path, description: str, *, release: str | None = None) -> Data:
    """Return the records of a file that has the columns of a policy."""
    source = find_file(file, expected=policy.declared)
    return _read_records(policy, source, str(file), description, release=release)


@contextmanager
def _unchanged(file: Path) -> Generator[None]:
    """Yield while the file stays as it was recorded or examined; refused where another took its place meanwhile."""

    def know() -> tuple[object, ...]:
        digest, known = hash_file(file), file.stat()
        return known.st_dev, known.st_ino, known.st_mtime_ns, known.st_ctime_ns, digest

    before = know()
    yield
    if know() != before:
        raise SourceError("the file was changed while it was read.", where=str(file), remedy="Run it again.")


def _note_public(policy: Policy, asked: Asked, like: Path, site: Site | None, file: Path, compared: Sequence[str]) -> None:
    """Record the statement that a file is public: in the site of the policy, and in that of the ledger. Refused where a site of
    the policy, of the file or of the ledger knows better."""
    homes = [None if site is None else site.home, find_home(file), find_home(like)]
    sites = {home.resolve(): find_site(home) for home in homes if home is not None}
    for known in sites.values():
        if why := find_source_like(known, like, strict=True):
            raise WrongUsage(
                f"this file is not public: {why}. Nothing was read.",
                where=str(like),
                remedy="Name a public file, or use --shape.",
            )
    for home in {home.resolve() for home in homes[:2] if home is not None}:
        digest = hash_content(sites[home], like)
        note_public(sites[home], policy, by=asked.by, where=asked.public, digest=digest, compared=compared)


def _read_records(policy: Policy, source: SourceReader, where: str, description: str, *, release: str | None) -> Data:
    names = {canonical_name(name): name for name in source.header}
    needed = _needed(policy)
    if absent := [name for name in needed if name not in names]:
        raise DataRefused(
            f"{name_some(absent)} {'is' if len(absent) == 1 else 'are'} not in it, and the policy releases what is made of that.",
            findings=(),
            where=where,
            remedy="Name a file that has the columns of the policy, or use --shape.",
        )
    column = policy.source.release_column
    has_releases = column is not None and column in names
    chosen = release_filter(policy, names, release) if has_releases else None
    with open_raw(source, {name: names[name] for name in needed}, release=chosen, derive=policy.derive) as table:
        if not (count := table.count_records()):
            of = f" of release {release}" if chosen is not None else ""
            raise DataRefused(f"there are no records{of}.", findings=(), where=where, remedy="Name another with --release.")
        return _finish(policy, lambda name: typed_column(policy, name, table, only_declared=True), count, where, description)


def _needed(policy: Policy) -> list[str]:
    """Return the columns of the source that released ones are made from: not those of persons or expectations."""
    inputs = {column for how in policy.derive.values() for column in how.inputs}
    wanted = [name for name in policy.released_columns if name not in policy.derive]
    return list(dict.fromkeys((*wanted, *sorted(inputs - policy.derive.keys()))))


def _finish(policy: Policy, typed: Callable[[str], pa.Array | None], count: int, where: str, description: str) -> Data:
    """Return the records with declared entries, their numbers moved into the domain."""
    columns: dict[str, pa.Array] = {}
    are_declared = np.ones(count, dtype=np.bool_)
    warnings: list[str] = []
    moved: list[str] = []
    for name in policy.released_columns:
        cells = typed(name)
        if cells is None:
            raise DataRefused(
                f"column {name} has another type than the policy declares.",
                findings=(),
                where=where,
                remedy="Name a file whose columns are as the policy has them.",
            )
        whole = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
        if column := policy.noise_columns.get(name):
            values = whole.to_numpy(zero_copy_only=False).astype(np.float64)
            is_declared = np.isfinite(values)
            points = column.find_reasons(values) >= 0 if column.reasons else np.zeros(count, dtype=np.bool_)
            numbers = values[is_declared & ~points]
            share = measure_clamping(numbers, column.exact_grid).share if len(numbers) else 0.0
            if share >= LEAST_MOVED:
                moved.append(f"{name}: {share:.1%} of the records lie outside the domain, and are moved to its ends")
            low, high = float(column.exact_grid.lo), float(column.exact_grid.hi)
            whole = pa.array(np.where(points, values, np.clip(np.nan_to_num(values), low, high)))
        else:
            is_declared = np.asarray(whole.is_valid())
        if not is_declared.all():
            lost = round_up(int((~is_declared).sum()))
            warnings.append(f"{name}: up to {lost:,} records have no entry that the policy declares, and are left out")
        are_declared &= is_declared
        columns[name] = whole
    if int(are_declared.sum()) < LEAST:
        raise DataRefused(
            f"too few of {count:,} records have entries that the policy declares; at least {LEAST} are needed.",
            findings=tuple(warnings),
            where=where,
            remedy="Name a file whose columns are as the policy has them, or use --shape.",
        )
    if not are_declared.all():
        columns = {name: column.filter(pa.array(are_declared)) for name, column in columns.items()}
    return Data(Records(columns), description, (*warnings, *moved))
