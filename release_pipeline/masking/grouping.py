"""Records into classes: which share their generalised quasi-identifiers, at which levels, and what that lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import DataRefused, ReleasePipelineError
from release_pipeline.masking.strategy import Figures, Progress
from release_pipeline.mechanisms.basis.grid import Grid
from release_pipeline.mechanisms.clusters.cuts import cut_classes
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from release_pipeline.mechanisms.clusters.lattice import search_lattice
from release_pipeline.mechanisms.columns.class_noise import class_diameters, class_ends, class_sizes
from release_pipeline.mechanisms.risk.standing_out import count_different
from release_pipeline.policy import Policy
from release_pipeline.policy.file.options import KEpsilonOptions
from release_pipeline.policy.file.sections import SuppressClasses
from release_pipeline.policy.hierarchies import Intervals, Listed
from release_pipeline.policy.kinds import GeneraliseColumn
from release_pipeline.rows.columns import Read, number_cells
from release_pipeline.rows.suppress import combine

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Classes:
    """The class of each record (-1: suppressed), the labels of each class by column, and what is noted of the grouping."""

    group: Ints
    labels: dict[str, list[str]]
    noted: Figures


@dataclass(frozen=True, slots=True)
class _Coded:
    """A generalised column as numbers: places in its hierarchy, or grid units where it is cut as a number."""

    codes: Codes
    hierarchy: Hierarchy | None
    spec: GeneraliseColumn


def make_classes(policy: Policy, protect: KEpsilonOptions, read: Read, progress: Progress) -> Classes:
    """The classes of these records: a function of the records only."""
    coded = {name: _encode(protect, read, name, column) for name, column in policy.generalised_columns.items()}
    progress(f"grouping by {', '.join(coded)}")
    try:
        if protect.grouping == "ola":
            return _search(policy, protect, coded, progress)
        return _cut(protect, coded)
    except ReleasePipelineError as error:
        raise DataRefused(f"no classes could be made: {error.what}", findings=(), remedy=error.remedy) from None


def unite_classes(of_parts: Sequence[Classes], rows: Sequence[Ints]) -> Classes:
    """The classes of random parts as a reader of all parts sees them: those with equal labels are one. `rows`: the records of
    each part, among all. What is noted of a column is the largest of its parts."""
    number: dict[tuple[str, ...], int] = {}
    group = np.full(sum(len(mine) for mine in rows), -1, dtype=np.int64)
    names = list(of_parts[0].labels)
    for classes, mine in zip(of_parts, rows, strict=True):
        every = zip(*(classes.labels[name] for name in names), strict=True)
        places = [number.setdefault(labels, len(number)) for labels in every]
        group[mine] = np.array([*places, -1], dtype=np.int64)[classes.group]
    noted = {
        name: {key: max(classes.noted[name][key] for classes in of_parts) for key in of_parts[0].noted[name]} for name in names
    }
    return Classes(group, {name: [labels[place] for labels in number] for place, name in enumerate(names)}, noted)


def _search(
    policy: Policy,
    protect: KEpsilonOptions,
    coded: dict[str, _Coded],
    progress: Progress,
) -> Classes:
    """By the different rows of these columns: who shares one is in one class."""
    rule = policy.suppress
    rows = combine([column.codes for column in coded.values()])
    codes = rows.codes.astype(np.int64)
    share = Fraction(rule.grouping_at_most) if isinstance(rule, SuppressClasses) else Fraction(0)
    best = search_lattice(
        codes,
        [column.hierarchy for column in coded.values() if column.hierarchy is not None],
        protect.k,
        max_suppressed=int(share * len(rows.of_record)),
        metric=protect.chosen_metric,
        counts=rows.counts,
        progress=progress,
    )
    first = _first_of_each(best.group)
    labels, noted = dict[str, list[str]](), Figures()
    for place, ((name, column), level) in enumerate(zip(coded.items(), best.levels, strict=True)):
        assert column.hierarchy is not None  # noqa: S101  for the type checker
        names = column.hierarchy.labels[level]
        labels[name] = [names[label] for label in column.hierarchy.codes[level, codes[first, place]].tolist()]
        noted[name] = {"level": level, "levels": column.hierarchy.levels}
    return Classes(best.group[rows.of_record], labels, noted)


def _cut(protect: KEpsilonOptions, coded: dict[str, _Coded]) -> Classes:
    codes = np.stack([column.codes.astype(np.int64) for column in coded.values()], axis=1)
    hierarchies = {index: column.hierarchy for index, column in enumerate(coded.values()) if column.hierarchy is not None}
    group, reached = cut_classes(codes, protect.k, hierarchies=hierarchies)
    first = _first_of_each(group)
    labels, noted = dict[str, list[str]](), Figures()
    for index, (name, column) in enumerate(coded.items()):
        spec = column.spec.hierarchy
        if column.hierarchy is None:
            assert isinstance(spec, Intervals)  # noqa: S101  for the type checker
            units = column.codes.astype(np.int64, copy=False)
            labels[name] = label_ranges(spec, units, group)
            noted[name] = {"mean_width": float(np.mean(class_diameters(units, group)[group])) * float(spec.grid)}
            continue
        levels, names = reached[:, index], column.hierarchy.labels
        codes_there = column.hierarchy.codes[levels, column.codes[first]]
        labels[name] = [names[level][code] for level, code in zip(levels.tolist(), codes_there.tolist(), strict=True)]
        noted[name] = {"mean_level": float(np.mean(levels[group])), "levels": column.hierarchy.levels}
    return Classes(group, labels, noted)


def label_ranges(spec: Intervals, units: Ints, group: Ints) -> list[str]:
    """For each class the range of its numbers, which are in units of their grid; an empty text for a class without any."""
    low, high = class_ends(units, group)
    return [spec.show(int(a), int(b)) if a <= b else "" for a, b in zip(low, high, strict=True)]


def _encode(protect: KEpsilonOptions, read: Read, name: str, column: GeneraliseColumn) -> _Coded:
    """A generalised column as numbers, with the labels of what occurs in it."""
    entries, spec, missing = read("records", [name]).column(name), column.hierarchy, column.missing_entry
    if not isinstance(spec, Intervals):
        known, places = number_cells(entries)
        occurring = known.to_pylist()
        if not isinstance(spec, Listed):
            return _Coded(places, Hierarchy.of(column.label_entries(occurring)), column)
        declared = Hierarchy.of(column.listed_rows)  # as a whole: how wide a label is does not depend on what occurs
        return _Coded(declared.encode(occurring)[places], declared, column)
    numbers = entries.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)  # NaN where there is none
    if column.codes:
        return _encode_coded(numbers, spec, column)
    if protect.grouping == "mondrian":
        return _Coded(_find_units(spec.exact_grid, 0, numbers), None, column)
    values, codes = np.unique(_find_units(spec.exact_grid, -1, numbers), return_inverse=True)
    rows = spec.label_units([unit for unit in values.tolist() if unit >= 0])
    if missing is not None and values[0] < 0:
        rows = [(*([missing] * (spec.levels - 1)), "*"), *rows]
    return _Coded(codes, Hierarchy.of(rows), column)


def _find_units(grid: Grid, absent: int, part: npt.NDArray[np.float64]) -> Ints:
    """Numbers in units of their grid, and `absent` where there is none."""
    there = np.isfinite(part)
    return np.where(there, grid.quantise(np.where(there, part, float(grid.lo))), absent)


def _encode_coded(numbers: npt.NDArray[np.float64], spec: Intervals, column: GeneraliseColumn) -> _Coded:
    """Numbers some of which stand for reasons to have no value: each of these is a label of its own, in no interval."""
    grid = spec.exact_grid
    units = replace(grid, width=grid.width + len(column.reasons)).quantise(numbers)
    found, codes = np.unique(units, return_inverse=True)
    values = [unit for unit in found.tolist() if unit <= grid.width]
    reasons = [reason for unit in found.tolist() if (reason := column.find_reason(unit)) is not None]
    rows = [*spec.label_units(values), *map(column.row_of, reasons)]
    return _Coded(codes, Hierarchy.of(rows), column)


def measure_loss(policy: Policy, protect: KEpsilonOptions, read: Read, group: Ints) -> dict[str, float]:
    """Of each generalised column, the share of its occurring values that a record's label stands for besides its own: 0 where
    nothing was generalised, 1 where everything became one (the normalised certainty penalty)."""
    lost: dict[str, float] = {}
    labels = read("labels", None)
    members = group >= 0
    for name, column in policy.generalised_columns.items():
        coded = _encode(protect, read, name, column)
        label = labels.column(name).combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        of = np.append(label, -1)[group]  # the last one where there is no class
        values = len(np.unique(coded.codes[members]))
        stands_for, sizes = count_different(coded.codes, of, members), class_sizes(of)
        lost[name] = int(np.dot(sizes, stands_for - 1)) / int(sizes.sum()) / (values - 1) if values > 1 else 0.0
    return lost


def _first_of_each(group: Ints) -> npt.NDArray[np.intp]:
    """One record of each class."""
    classes, first = np.unique(group, return_index=True)
    return first[classes >= 0]
