"""The records that settings are tried on: of a file that has a policy's columns, of a published package, or of its source.

A file that is only like the source need not meet the policy: what lies outside a domain is moved into it, records that have an
entry which is not declared are left out, and both are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import DataRefused, WrongUsage
from release_pipeline.flow.data_files import list_data
from release_pipeline.flow.reading import fill_slots, needed_columns, numbers_of, release_filter, typed_column
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.kinds.missing import reason_column
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.privacy.utility import measure_clamping
from release_pipeline.stages.checks import round_up
from release_pipeline.stages.simulation import Records
from release_pipeline.store.raw import RawTable
from release_pipeline.store.source import SourceDoor, find_file, open_raw

LEAST = 20  # records, with fewer of which nothing can be told
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Tried:
    """Records, and what was done to make them such. `clamped`: the share of them that lay outside each domain; `as_came`: the
    numbers of each masked column before they were moved into it."""

    records: Records
    clamped: Mapping[str, float] = field(default_factory=dict[str, float])
    warnings: tuple[str, ...] = ()
    as_came: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict[str, npt.NDArray[np.float64]])


def read_like(policy: Policy, path: Path, *, release: str | None, progress: Progress) -> Tried:
    """The records of a file, or of a package's data, that is like the source."""
    if path.is_dir():
        return _read_package(policy, path, progress)
    progress(f"reading {path}")
    return _read_records(policy, find_file(path, expected=policy.declared), str(path), release=release)


def read_records(policy: Policy, source: SourceDoor, where: str, *, release: str | None, progress: Progress) -> Tried:
    """The records of the source of a policy."""
    progress(f"reading {where}")
    return _read_records(policy, source, where, release=release)


def _read_records(policy: Policy, source: SourceDoor, where: str, *, release: str | None) -> Tried:
    names = {canonical_name(name): name for name in source.header}
    needed = needed_columns(policy) if policy.slots is not None else _needed(policy)
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
    with open_raw(source, {name: names[name] for name in needed}, release=chosen, derive=policy.derived_before) as table:
        fill_slots(policy, table, where)
        if not (count := table.count_records()):
            of = f" of release {release}" if chosen is not None else ""
            raise DataRefused(f"there are no records{of}.", findings=(), where=where, remedy="Name another with --release.")
        return _finish(
            policy,
            lambda name: typed_column(policy, name, table, only_declared=True),
            lambda name: numbers_of(policy, name, table),
            count,
            where,
        )


def _needed(policy: Policy) -> list[str]:
    """The columns of the source that released ones are made of: no person's, none of an expectation."""
    inputs = {column for how in policy.derived_before.values() for column in how.inputs}
    wanted = [name for name in policy.released_columns if name not in policy.derive]
    return list(dict.fromkeys((*wanted, *sorted(inputs - policy.derive.keys()))))


def _finish(
    policy: Policy,
    typed: Callable[[str], pa.Array | None],
    numbers: Callable[[str], npt.NDArray[np.float64]],
    count: int,
    where: str,
) -> Tried:
    columns: dict[str, pa.Array] = {}
    left = np.ones(count, dtype=np.bool_)
    warnings: list[str] = []
    clamped: dict[str, float] = {}
    came: dict[str, npt.NDArray[np.float64]] = {}
    for name, column in policy.released_columns.items():
        found = typed(name)
        if found is None:
            raise DataRefused(
                f"column {name} has another type than the policy declares.",
                findings=(),
                where=where,
                remedy="Name a file whose columns are as the policy has them.",
            )
        whole = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        mine = np.ones(count, dtype=np.bool_)
        if isinstance(column, NoiseColumn):
            values = whole.to_numpy(zero_copy_only=False).astype(np.float64)
            mine = np.isfinite(values)
            came[name] = numbers(name)
            low, high = float(column.exact_grid.lo), float(column.exact_grid.hi)
            clamped[name] = measure_clamping(came[name], column.exact_grid).share if len(came[name]) else 0.0
            points = column.find_reasons(values) >= 0 if column.reasons else np.zeros(count, dtype=np.bool_)
            whole = pa.array(np.where(points, values, np.clip(np.nan_to_num(values), low, high)))
        else:
            mine = np.asarray(whole.is_valid())
        if not mine.all():
            warnings.append(
                f"{name}: up to {round_up(int((~mine).sum())):,} records have no entry that the policy declares, and are left out"
            )
        left &= mine
        columns[name] = whole
    kept = int(left.sum())
    if kept < LEAST:
        raise DataRefused(
            f"too few of {count:,} records have entries that the policy declares; at least {LEAST} are needed.",
            findings=tuple(warnings),
            where=where,
            remedy="Name a file whose columns are as the policy has them, or use --shape.",
        )
    if kept < count:
        columns = {name: column.filter(pa.array(left)) for name, column in columns.items()}
    warnings += [
        f"{name}: {share:.1%} of the records lie outside the domain, and are moved to its ends"
        for name, share in clamped.items()
        if share >= 0.0005
    ]
    return Tried(Records(columns), clamped, tuple(warnings), came)


def find_data(folder: Path) -> Path:
    """The released table of a package."""
    for form in ("parquet", "csv"):
        files = list_data(folder, form)
        if len(files) > 1:
            raise WrongUsage(
                f"the rows of this package lie in {len(files)} files, and packages of one alone are read here.",
                where=str(folder),
                remedy="Use --shape.",
            )
        if files[0].is_file():
            return files[0]
    raise WrongUsage(
        "this folder is no package of this site, as it was published: it has neither data.parquet nor data.csv.",
        where=str(folder),
        remedy="Name a folder of releases/, or a file.",
    )


def _read_package(policy: Policy, folder: Path, progress: Progress) -> Tried:
    """The rows of a published package, as the source would have them: reasons for no value have columns of their own there."""
    file = find_data(folder)
    if policy.generalised_columns:
        raise DataRefused(
            f"{name_some(policy.generalised_columns)} stand in packages as labels alone.",
            findings=(),
            where=str(folder),
            remedy="Name a file of the columns as they come, or use --shape.",
        )
    progress(f"reading {file}")
    source = find_file(file, expected=frozenset(policy.published_columns))
    names = {canonical_name(name): name for name in source.header}
    if absent := [name for name in policy.released_columns if name not in names]:
        raise DataRefused(
            f"{name_some(absent)} {'is' if len(absent) == 1 else 'are'} not in this package.", findings=(), where=str(file)
        )
    reasons = [reason_column(name) for name in policy.released_columns if reason_column(name) in names]
    with open_raw(source, {name: names[name] for name in (*policy.released_columns, *reasons)}) as table:

        def typed(name: str) -> pa.Array | None:
            column = policy.columns[name]
            if not isinstance(column, NoiseColumn) or not column.reasons or reason_column(name) not in names:
                return typed_column(policy, name, table, only_declared=True)
            values, said = _moments(column, table, name), table.categories(reason_column(name)).to_pylist()
            points = dict(zip(column.reasons, column.reason_points, strict=True))
            return pa.array(
                [points.get(reason, value) if reason else value for value, reason in zip(values.tolist(), said, strict=True)]
            )

        def numbers(name: str) -> npt.NDArray[np.float64]:
            column = policy.columns[name]
            values = _moments(column, table, name) if isinstance(column, NoiseColumn) else table.numbers(name)
            return values[~np.isnan(values)]

        return _finish(policy, typed, numbers, table.count_records(), str(folder))


def _moments(column: NoiseColumn, table: RawTable, name: str) -> npt.NDArray[np.float64]:
    clock = column.clock
    return table.numbers(name) if clock is None else table.numbers(name, unit=clock.unit) - clock.offset
