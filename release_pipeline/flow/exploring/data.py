"""The records that settings are tried on: a public file, or a table that is made up. Neither is a trial on confidential data.

A file that is only like the source need not meet the policy: what lies outside a domain is moved
into it, records that have an entry which is not declared are left out, and both are told.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from release_pipeline.errors import DataRefused, SourceError, WrongUsage
from release_pipeline.flow.exploring.made_up import make_up
from release_pipeline.flow.exploring.origins import (
    find_home,
    find_source_like,
    hash_content,
    hash_file,
)
from release_pipeline.flow.exploring.trials import note_public, say_compared
from release_pipeline.flow.reading import release_filter, typed_column
from release_pipeline.flow.site import Site, find_site
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.policy.settings import Axes, Setting
from release_pipeline.privacy.utility import measure_clamping
from release_pipeline.stages.checks import round_up
from release_pipeline.stages.simulation import Records
from release_pipeline.store.source import SourceDoor, find_file, open_raw

LEAST = 20  # records, with fewer of which nothing can be told
LEAST_MOVED = 0.0005  # share of records outside of a domain, from which on it is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to know. Either `like` or `shape`; `public`: where anybody finds the file
    `like`; `refused`: settings that the ledger would refuse are tried too."""

    like: Path | None = None
    public: str = ""
    shape: bool = False
    release: str | None = None
    rows: int | None = None
    axes: Axes = field(default_factory=Axes)
    targets: Sequence[str] = ()
    home: Path | None = None
    by: str = ""
    workers: int | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    """Records, what they are in `words`, and what was done to make them such."""

    records: Records
    words: str
    warnings: tuple[str, ...] = ()


def read_data(policy: Policy, asked: Asked, site: Site | None, settings: Sequence[Setting], file: Path) -> Data:
    """The records that are asked for. That somebody says that a file is public is noted before it is read."""
    if asked.like is None:
        records, warnings = make_up(policy, rows=asked.rows)
        return Data(records, f"a table made up of the shape in {file.name}", warnings)
    compared = say_compared([setting.words for setting in settings], asked.targets)
    with _unchanged(asked.like):
        _note_public(policy, asked, asked.like, site, file, compared)
        words = f"{asked.like.name}, which is public, as {asked.by} said: {asked.public}"
        return read_file(policy, asked.like, words, release=asked.release)


def read_file(policy: Policy, file: Path, words: str, *, release: str | None = None) -> Data:
    """The records of a file that has the columns of a policy."""
    source = find_file(file, expected=policy.declared)
    return _read_records(policy, source, str(file), words, release=release)


@contextmanager
def _unchanged(file: Path) -> Generator[None]:
    """What is noted or examined of a file is what is read of it: refused where another took its
    place meanwhile."""

    def know() -> tuple[object, ...]:
        digest, known = hash_file(file), file.stat()
        return known.st_dev, known.st_ino, known.st_mtime_ns, known.st_ctime_ns, digest

    before = know()
    yield
    if know() != before:
        raise SourceError("the file was changed while it was read.", where=str(file), remedy="Run it again.")


def _note_public(policy: Policy, asked: Asked, like: Path, site: Site | None, file: Path, compared: Sequence[str]) -> None:
    """Note that somebody says that a file is public: where the policy lies, and where the ledger
    is. Refused where a site of the policy, of the file or of the ledger knows better."""
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


def _read_records(policy: Policy, source: SourceDoor, where: str, words: str, *, release: str | None) -> Data:
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
    with open_raw(source, {name: names[name] for name in needed}, release=chosen, derive=policy.derived_before) as table:
        if not (count := table.count_records()):
            of = f" of release {release}" if chosen is not None else ""
            raise DataRefused(f"there are no records{of}.", findings=(), where=where, remedy="Name another with --release.")
        return _finish(policy, lambda name: typed_column(policy, name, table, only_declared=True), count, where, words)


def _needed(policy: Policy) -> list[str]:
    """The columns of the source that released ones are made of: no person's, none of an
    expectation."""
    inputs = {column for how in policy.derived_before.values() for column in how.inputs}
    wanted = [name for name in policy.released_columns if name not in policy.derive]
    return list(dict.fromkeys((*wanted, *sorted(inputs - policy.derive.keys()))))


def _finish(policy: Policy, typed: Callable[[str], pa.Array | None], count: int, where: str, words: str) -> Data:
    """The records that are declared, their numbers moved into the domain."""
    columns: dict[str, pa.Array] = {}
    left = np.ones(count, dtype=np.bool_)
    warnings: list[str] = []
    moved: list[str] = []
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
        if isinstance(column, NoiseColumn):
            values = whole.to_numpy(zero_copy_only=False).astype(np.float64)
            mine = np.isfinite(values)
            points = column.find_reasons(values) >= 0 if column.reasons else np.zeros(count, dtype=np.bool_)
            numbers = values[mine & ~points]
            share = measure_clamping(numbers, column.exact_grid).share if len(numbers) else 0.0
            if share >= LEAST_MOVED:
                moved.append(f"{name}: {share:.1%} of the records lie outside the domain, and are moved to its ends")
            low, high = float(column.exact_grid.lo), float(column.exact_grid.hi)
            whole = pa.array(np.where(points, values, np.clip(np.nan_to_num(values), low, high)))
        else:
            mine = np.asarray(whole.is_valid())
        if not mine.all():
            lost = round_up(int((~mine).sum()))
            warnings.append(f"{name}: up to {lost:,} records have no entry that the policy declares, and are left out")
        left &= mine
        columns[name] = whole
    if int(left.sum()) < LEAST:
        raise DataRefused(
            f"too few of {count:,} records have entries that the policy declares; at least {LEAST} are needed.",
            findings=tuple(warnings),
            where=where,
            remedy="Name a file whose columns are as the policy has them, or use --shape.",
        )
    if not left.all():
        columns = {name: column.filter(pa.array(left)) for name, column in columns.items()}
    return Data(Records(columns), words, (*warnings, *moved))
