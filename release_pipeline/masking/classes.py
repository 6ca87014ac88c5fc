"""Class by class: (k,epsilon)-anonymity. Records that share their generalised quasi-identifiers form a class; noise inside it is
as large as the class is wide; records that stand out in their class are suppressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.audit.audit import Streams, audit_table, round_figures
from release_pipeline.audit.compared import Compared
from release_pipeline.audit.gates import Gate, Groups
from release_pipeline.audit.subgroups import errors_of_groups, place_groups, summarise_groups
from release_pipeline.masking.grouping import Classes, Ints, label_ranges, make_classes, measure_loss
from release_pipeline.masking.strategy import (
    CLASS,
    OF_COLUMN,
    RECORD,
    SUPPRESSION,
    Contexts,
    Figures,
    Grouped,
    Progress,
    Suppressed,
    describe_scales,
)
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.accounting.sensitivity import scales_for
from release_pipeline.mechanisms.basis.figures import percent
from release_pipeline.mechanisms.basis.utility import variance_of
from release_pipeline.mechanisms.columns.class_noise import (
    add_class_noise,
    class_diameters,
    class_scales,
    class_sizes,
    epsilon_for,
    expect_magnitude,
    expect_relative_errors,
    expect_square,
    mean_inverses,
    take_of_class,
)
from release_pipeline.mechanisms.noise import noise_stream, shuffled_positions
from release_pipeline.mechanisms.risk.standing_out import confidence_widths, find_exposed, find_small_classes
from release_pipeline.policy import Policy
from release_pipeline.policy.file.options import KEpsilonOptions
from release_pipeline.policy.file.sections import SuppressClasses
from release_pipeline.rows.columns import AnyTable, ColumnTable, Read, filter_rows, load_table
from release_pipeline.rows.suppress import combine_cells, find_smallest

FORECASTS = 3
IN_VAULT = ", and may not be (the figures are in the vault). The release is charged; another try is a revision, charged again."
_compute: Any = pyarrow.compute  # its functions are made at run time
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClassStrategy:
    """k-epsilon."""

    policy: Policy
    suppression_reads: ClassVar[tuple[str, ...]] = ("validated", "microaggregated")
    makes: ClassVar[tuple[str, ...]] = ("membership", "statistics", "labels")

    @property
    def protect(self) -> KEpsilonOptions:
        """The options of the method."""
        assert isinstance(self.policy.protect, KEpsilonOptions)  # noqa: S101  for the type checker
        return self.policy.protect

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """In closed form, from the classes and scales that these data get; no noise is simulated. Of numbers as the method sees
        them, in their domain and on their grid: what clamping took from them before is not in it. `epsilon_needed`: in all, for a
        limit on a relative error."""
        classes = make_classes(self.policy, self.protect, read, progress)
        return self.expect_of(classes, read, secret=secret)

    def expect_of(self, classes: Classes, read: Read, *, secret: bytes) -> Figures:
        """The figures of noise columns and of suppression, for these classes."""
        expected: Figures = {}
        groups, names = self._declared_groups(classes, read)
        for name in self.policy.noise_columns:
            expected[name] = self._expect_column(name, classes.group, groups, names, read)
        return expected | {SUPPRESSION: self._forecast(read, classes.group, secret=secret)}

    def _expect_column(
        self, name: str, group: Ints, groups: list[Ints], names: list[tuple[str, tuple[str, ...]]], read: Read
    ) -> dict[str, Any]:
        column = self.policy.noise_columns[name]
        q, step, width = self._units(name, read), float(column.grid), column.exact_grid.width
        numbers = column.exact_grid.values_of(q)
        scale = class_scales(q, group, self.policy.column_epsilon[name])
        in_classes, variance = int(np.count_nonzero(group >= 0)), variance_of(numbers)
        squares = expect_square(q, group, scale, width) * (step * step)
        square = _divide(float(np.sum(squares)), in_classes)
        relative, count = expect_relative_errors(numbers, group, scale, step)
        magnitude = take_of_class(expect_magnitude(scale), group)
        figures: dict[str, Any] = {
            "error": square / variance if variance > 0 else 0.0,
            "relative_error": _or_none(_mean_of_classes(relative, count)),
            "relative_error_left_out": in_classes - int(count.sum()),
            "mean_noise": _divide(float(np.sum(magnitude)), in_classes) * step,
            **self._needed(name, numbers, q, group),
        }
        if not names:
            return figures
        return figures | summarise_groups(errors_of_groups(squares, variance, groups, names))

    def _declared_groups(self, classes: Classes, read: Read) -> tuple[list[Ints], list[tuple[str, tuple[str, ...]]]]:
        """The group of each record that has a class in each column of groups, and the labels: of a generalised column those that
        the classes get."""
        groups: list[Ints] = []
        names: list[tuple[str, tuple[str, ...]]] = []
        for by in self.policy.audit.groups:
            if by in classes.labels:
                entries = pa.array(classes.labels[by], pa.string()).take(pa.array(classes.group, mask=classes.group < 0))
            else:
                own = read("records", [by]).column(0).combine_chunks().cast(pa.string())
                entries = _compute.if_else(pa.array(classes.group >= 0), own, None)
            place, labels = place_groups(pa.chunked_array([entries]))
            groups.append(place)
            names.append((by, labels))
        return groups, names

    def judge(self, expected: Figures) -> list[Gate]:
        """The limits on suppression, judged on the forecast: what is over them by its mean is not worth a charge."""
        rule, forecast = self.policy.suppress, expected[SUPPRESSION]
        if not isinstance(rule, SuppressClasses) or not forecast:
            return []
        gates = [Gate("suppression to expect in all", forecast["in_all"], float(rule.at_most))]
        if rule.confidence_at_most is not None:
            gates.append(Gate("suppression to expect after the noise", forecast["after_noise"], float(rule.confidence_at_most)))
        return gates

    def _forecast(self, read: Read, group: Ints, *, secret: bytes) -> dict[str, Any]:
        """The mean shares of records that the policy's suppression would drop, over simulated noise that is never released."""
        rule, names = self.policy.suppress, list(self.policy.noise_columns)
        if not isinstance(rule, SuppressClasses) or rule.confidence is None:
            return {}
        grids = [column.exact_grid for column in self.policy.noise_columns.values()]
        original = [self._units(name, read) for name in names]
        scales = [class_scales(q, group, self.policy.column_epsilon[name]) for name, q in zip(names, original, strict=True)]
        widths = confidence_widths(scales, rule.confidence)
        after: list[int] = []
        for number in range(FORECASTS):
            noisy = [
                add_class_noise(q, group, scale, grid, secret=secret, context=(name, "forecast", number))
                for q, scale, grid, name in zip(original, scales, grids, names, strict=True)
            ]
            exposed = find_exposed(original, noisy, group, widths, self.protect.k)
            small = find_small_classes(group, ~exposed, k=self.protect.k)
            after.append(int(np.count_nonzero(exposed | small)))
        share = float(np.mean(after)) / len(group)
        dropped = int(np.count_nonzero(group < 0))
        return {"after_noise": share, "in_all": share + dropped / len(group)}

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """`membership`: the class of each record; `labels`: what each class is released as; `statistics`: its noise scales."""
        classes = make_classes(self.policy, self.protect, read, progress)
        return self.group_of(classes, read)

    def group_of(self, classes: Classes, read: Read) -> Grouped:
        """The tables, evidence and facts of these classes."""
        sizes = class_sizes(classes.group)
        evidence: Figures = {name: dict(noted) for name, noted in classes.noted.items()}
        parts: list[pa.Table] = []
        for name, column in self.policy.noise_columns.items():
            scale = class_scales(self._units(name, read), classes.group, self.policy.column_epsilon[name])
            parts.append(pa.table({OF_COLUMN: pa.repeat(name, len(scale)), "scale": pa.array(scale)}))
            evidence[name] = {
                "epsilon": str(self.policy.column_epsilon[name]),
                "records": int(sizes.sum()),
                "classes": len(sizes),
                "classes_without_noise": int(np.count_nonzero(scale == 0)),
                **describe_scales(scale, float(column.grid)),
            }
        membership = pa.table({CLASS: pa.array(classes.group.astype(np.int32))})
        labels = pa.table({name: pa.array(labels, pa.string()) for name, labels in classes.labels.items()})
        return Grouped(
            {"membership": membership, "statistics": pa.concat_tables(parts), "labels": labels}, evidence, self.facts_of(classes)
        )

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """Nothing but the values that are released."""
        return {}

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> ColumnTable:
        """Each record of a class with the labels of its class and noise on its own numbers."""
        group = self._groups(read)
        shuffled = shuffled_positions(len(group), noise_stream(secret, *context, "shuffle"))
        records = shuffled[group[shuffled] >= 0]
        classes, labels = group[records], read("labels", None)

        def make_column(name: str) -> Any:
            if name in (RECORD, CLASS):
                return pa.array(records if name == RECORD else classes)
            if name in self.policy.noise_columns:
                progress(f"masking {name}")
                grid = self.policy.noise_columns[name].exact_grid
                units, scale = self._units(name, read), self._scale(read, name)
                noisy = add_class_noise(units, group, scale, grid, secret=secret, context=(*context, name))
                return pa.array(grid.values_of(noisy[records]))
            if name in self.policy.generalised_columns:
                return labels.column(name).take(pa.array(classes))
            return read("records", [name]).column(0).take(pa.array(records))

        return ColumnTable((RECORD, CLASS, *self.policy.released_columns), len(records), make_column)

    def suppress(self, read: Read, masked: AnyTable) -> Suppressed:
        """Without the records that stand out in their class with the policy's confidence, and without classes that are too small
        then. What the grouping dropped is counted too."""
        every, rule = self._groups(read), self.policy.suppress
        by_record = np.argsort(masked.column(RECORD).to_numpy(), kind="stable")
        group = masked.column(CLASS).to_numpy()[by_record]  # of the records that have one
        exposed: Flags = np.zeros(len(group), dtype=np.bool_)
        if isinstance(rule, SuppressClasses) and rule.confidence is not None:
            columns = self.policy.noise_columns
            widths = confidence_widths([self._scale(read, name) for name in columns], rule.confidence)
            original = [self._units(name, read)[every >= 0] for name in columns]
            noisy = [column.exact_grid.quantise(masked.column(name).to_numpy())[by_record] for name, column in columns.items()]
            exposed = find_exposed(original, noisy, group, widths, self.protect.k)
        small = find_small_classes(group, ~exposed, k=self.protect.k)
        is_left = np.empty(len(group), dtype=np.bool_)
        is_left[by_record] = ~(exposed | small)
        left = int(np.count_nonzero(is_left))
        table = self._narrow(read, filter_rows(masked, is_left, left))
        counts = {
            "grouping": len(every) - len(group),
            "confidence": int(np.count_nonzero(exposed)),
            "classes_left_too_small": int(np.count_nonzero(small)),
        }
        return Suppressed(
            table=table,
            cells=0,
            dropped=len(every) - left,
            share=(len(every) - left) / len(every),
            anonymity=self._find_smallest(table) if self.policy.cut_columns else self._find_smallest(masked, is_left),
            refusal=self.refuse(counts, len(every)),
            figures=counts,
        )

    def _find_smallest(self, table: AnyTable, is_left: Flags | None = None) -> int | None:
        """How many records of a table the smallest group of equal quasi-identifiers has, of those that are left."""
        rows, _ = combine_cells(table.column(name) for name in self.policy.released_quasi)
        counts = class_sizes(rows.of_record, is_left)
        return find_smallest(rows.codes[counts > 0], counts[counts > 0])

    def _narrow(self, read: Read, cut: ColumnTable) -> AnyTable:
        """Ranges of mondrian as those of the records that are left, so that none ends at the number of somebody who was dropped;
        but classes of different parts that would come to have the same labels keep theirs, which may: records with equal labels
        have one class, and noise of one scale.
        """
        if not self.policy.cut_columns or not cut.num_rows:
            return cut
        table = load_table(cut)
        records, classes = table.column(RECORD).to_numpy(), table.column(CLASS).to_numpy()
        before: dict[str, list[str]] = read("labels", None).to_pydict()
        after = {name: list(labels) for name, labels in before.items()}
        for name, spec in self.policy.cut_columns.items():
            units = spec.exact_grid.quantise(read("records", [name]).column(name).to_numpy()[records])
            after[name][: int(classes.max()) + 1] = label_ranges(spec, units, classes)
        _keep_apart(np.unique(classes).tolist(), before, after)
        for name in self.policy.cut_columns:
            labels = pa.array(after[name], pa.string()).take(pa.array(classes))
            table = table.set_column(table.column_names.index(name), name, labels)
        return table

    def compare(self, read: Read, released: AnyTable) -> Compared:
        """A released table next to the records of its classes."""
        group, labels = self._groups(read), read("labels", None)
        members = np.flatnonzero(group >= 0)

        def make_known(name: str) -> Any:
            if name in self.policy.kept_columns:
                return read("records", [name]).column(0).take(pa.array(members))
            return labels.column(name).take(pa.array(group[members]))

        everybody = ColumnTable(tuple(self.policy.released_quasi), len(members), make_known)
        own = released.column(RECORD).to_numpy()
        return Compared(self.policy, read, released, own, everybody, classes=group)

    def audit(
        self, read: Read, released: AnyTable, *, groups: Groups | None, streams: Streams, progress: Progress
    ) -> dict[str, Any]:
        """What `audit_table` measures, relative errors, and what the generalisation lost."""
        compared, group = self.compare(read, released), self._groups(read)
        figures = audit_table(compared, groups=groups, streams=streams, progress=progress)
        more: dict[str, Any] = {
            "relative_error": {name: _measure_relative_error(compared, name) for name in self.policy.noise_columns},
            "information_loss": measure_loss(self.policy, self.protect, read, group),
        }
        return figures | round_figures(more)

    def _groups(self, read: Read) -> Ints:
        """The class of each record, -1 for none."""
        return read("membership", None).column(CLASS).to_numpy().astype(np.int64, copy=False)

    def _units(self, name: str, read: Read) -> Ints:
        """A noise column in units of its grid."""
        grid = self.policy.noise_columns[name].exact_grid
        return grid.quantise(read("records", [name]).column(name).to_numpy())

    def _scale(self, read: Read, name: str) -> Ints:
        return read("statistics", ["scale"], where=(OF_COLUMN, name)).column(0).to_numpy()

    def facts_of(self, classes: Classes) -> dict[str, Any]:
        """What anybody sees in the released table anyway: the level of each column, where it is one for all records."""
        levels = {name: f"{noted['level']} of {noted['levels'] - 1}" for name, noted in classes.noted.items() if "level" in noted}
        return {"levels": levels} if levels else {}

    def refuse(self, counts: dict[str, int], records: int) -> str:
        """Why the release cannot go on with so much suppressed; empty if it can. Without the share, which the noise and the data
        decide together."""
        rule = self.policy.suppress
        if not isinstance(rule, SuppressClasses):
            return ""
        after = counts["confidence"] + counts["classes_left_too_small"]
        if rule.confidence_at_most is not None and after > rule.confidence_at_most * records:
            limit = percent(rule.confidence_at_most)
            return f"more than {limit} of the records would have to be suppressed after the noise{IN_VAULT}"
        if after + counts["grouping"] > rule.at_most * records:
            return f"more than {percent(rule.at_most)} of the records would have to be suppressed in all{IN_VAULT}"
        return ""

    def _needed(self, name: str, numbers: npt.NDArray[np.float64], q: Ints, group: Ints) -> dict[str, Any]:
        """The epsilon in all with which these classes would keep the policy's limit on the relative error of a column."""
        limit = self.policy.gates.relative_error.get(name)
        if limit is None:
            return {}
        step = float(self.policy.noise_columns[name].grid)
        share = self.protect.epsilon.nano / self.policy.column_epsilon[name].nano
        diameters = class_diameters(q, group)
        inverse, count = mean_inverses(numbers, group, len(diameters))

        def error_with(epsilon: Epsilon) -> float:
            return _mean_of_classes(expect_magnitude(scales_for(diameters, epsilon)) * step * inverse, count)

        needed = epsilon_for(error_with, float(limit))
        return {"epsilon_needed": None if needed is None else float(needed) * share}


def _keep_apart(classes: Sequence[int], before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """Give classes that would have equal labels `after` those of `before` back, which no two classes share, until none have."""
    given_back: set[int] = set()
    while True:
        held: dict[tuple[str, ...], list[int]] = {}
        for number in classes:
            held.setdefault(tuple(labels[number] for labels in after.values()), []).append(number)
        equal = {number for places in held.values() if len(places) > 1 for number in places} - given_back
        if not equal:
            return
        for name, labels in after.items():
            for number in equal:
                labels[number] = before[name][number]
        given_back |= equal


def _divide(total: float, count: int) -> float:
    return total / count if count else float("nan")


def _mean_of_classes(relative: npt.NDArray[np.float64], count: Ints) -> float:
    """The mean over the records whose number is not 0; NaN without any."""
    use = count > 0
    return float(np.sum(relative[use] * count[use]) / np.sum(count[use])) if use.any() else float("nan")


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number


def _measure_relative_error(compared: Compared, name: str) -> float | None:
    """The mean of |x - y| / |x| where x is not 0."""
    original, released = compared.seen(name)[compared.original_of], compared.released.column(name).to_numpy()
    use = original != 0
    count = int(np.count_nonzero(use))
    each = np.where(use, np.abs(original - released) / np.abs(np.where(use, original, 1.0)), 0.0)
    return float(np.sum(each)) / count if count else None
