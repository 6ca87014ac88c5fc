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

from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import GeneraliseColumn, NoiseColumn
from release_pipeline.policy.options import KEpsilonOptions
from release_pipeline.policy.suppression import SuppressClasses
from release_pipeline.privacy import Epsilon, Grid
from release_pipeline.privacy.class_noise import (
    add_class_noise,
    class_diameters,
    class_scales,
    confidence_widths,
    epsilon_for,
    expect_magnitude,
    expect_relative_errors,
    expect_square,
    find_exposed,
    find_small_classes,
    mean_inverses,
)
from release_pipeline.privacy.figures import percent
from release_pipeline.privacy.noise import noise_stream
from release_pipeline.privacy.records import ARRAYS
from release_pipeline.privacy.sensitivity import scales_for
from release_pipeline.stages.audit import Streams, audit_table, link_within, round_figures
from release_pipeline.stages.column_table import AnyTable, ColumnTable, load_table
from release_pipeline.stages.compared import Compared
from release_pipeline.stages.gates import Gate
from release_pipeline.stages.measures.groups import Groups
from release_pipeline.stages.served import errors_of_groups, place_groups, summarise_groups
from release_pipeline.stages.strategies.grouping import Classes, Ints, label_ranges, make_classes, measure_loss, read_sensitive
from release_pipeline.stages.strategies.strategy import (
    CLASS,
    RECORD,
    SUPPRESSION,
    Contexts,
    Figures,
    Grouped,
    Keep,
    Progress,
    Read,
    Suppressed,
    describe_scales,
)
from release_pipeline.stages.suppress import encode, find_smallest

FORECASTS = 3
IN_VAULT = ", and may not be (the figures are in the vault). The release is charged; another try is a revision, charged anew."
_compute: Any = pyarrow.compute  # its functions are made at run time


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
        return self.expect_of(make_classes(self.policy, self.protect, read, progress), read, secret=secret)

    def expect_of(self, classes: Classes, read: Read, *, secret: bytes) -> Figures:
        """The same, of classes that are made."""
        expected: Figures = {}
        groups, names = self._declared_groups(classes, read)
        for name, column in self.policy.noise_columns.items():
            q, step = column.exact_grid.quantise(read("records", [name]).column(name).to_numpy()), float(column.grid)
            numbers = column.exact_grid.restore(q.astype(np.float64))
            scale = class_scales(q, classes.group, self.policy.column_epsilon[name])
            kept = classes.group >= 0
            variance = float(np.var(numbers))
            squares = expect_square(q, classes.group, scale, column.exact_grid.width) * (step * step)
            square = float(np.mean(squares[kept]))
            relative, count = expect_relative_errors(numbers, classes.group, scale, step)
            expected[name] = {
                "error": square / variance if variance > 0 else 0.0,
                "relative_error": _or_none(_mean_of_classes(relative, count)),
                "relative_error_left_out": int(np.count_nonzero(kept & (numbers == 0))),
                "mean_noise": float(np.mean(expect_magnitude(scale)[classes.group[kept]])) * step,
                **self._needed(name, numbers, q, classes.group),
                **(summarise_groups(errors_of_groups(squares, variance, groups, names)) if names else {}),
            }
        return expected | {SUPPRESSION: self._forecast(read, classes.group, secret=secret)}

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
        original = _units(read("records", names), grids)
        scales = [class_scales(original[:, place], group, self.policy.column_epsilon[name]) for place, name in enumerate(names)]
        widths, sensitive = confidence_widths(scales, rule.confidence), read_sensitive(self.policy, self.protect, read)
        after: list[int] = []
        for number in range(FORECASTS):
            parts = zip(original.T, scales, grids, names, strict=True)
            noisy = [
                add_class_noise(q, group, scale, grid, secret=secret, context=(name, "forecast", number))
                for q, scale, grid, name in parts
            ]
            exposed = find_exposed(original, np.stack(noisy, axis=1), group, widths, self.protect.k)
            after.append(int(np.count_nonzero(exposed | self._find_left_too_small(group, exposed, sensitive))))
        share = float(np.mean(after)) / len(group)
        return {"after_noise": share, "in_all": share + np.count_nonzero(group < 0) / len(group)}

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress, keep: Keep | None = None) -> Grouped:
        """`membership`: the class of each record; `labels`: what each class is released as; `statistics`: its noise scales."""
        return self.group_of(make_classes(self.policy, self.protect, read, progress), read).hand_over("membership", keep)

    def group_of(self, classes: Classes, read: Read) -> Grouped:
        """The same, of classes that are made."""
        sizes = np.bincount(classes.group[classes.group >= 0], minlength=int(classes.group.max(initial=-1)) + 1)
        evidence: Figures = {name: dict(noted) for name, noted in classes.noted.items()}
        parts: list[pa.Table] = []
        for name, column in self.policy.noise_columns.items():
            q = column.exact_grid.quantise(read("records", [name]).column(name).to_numpy())
            scale = class_scales(q, classes.group, self.policy.column_epsilon[name])
            parts.append(pa.table({"column_name": pa.repeat(name, len(scale)), "scale": pa.array(scale)}))
            evidence[name] = {
                "epsilon": str(self.policy.column_epsilon[name]),
                "records": int(sizes.sum()),
                "classes": len(sizes),
                "classes_without_noise": int(np.count_nonzero(scale == 0)),
                **describe_scales(scale, float(column.grid)),
            }
        tables = {
            "membership": pa.table({CLASS: pa.array(classes.group.astype(np.int32))}),
            "statistics": pa.concat_tables(parts),
            "labels": pa.table({name: pa.array(labels, pa.string()) for name, labels in classes.labels.items()}),
        }
        return Grouped(tables, evidence, self.facts_of(classes))

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """Nothing beside the values that are released."""
        return {}

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> ColumnTable:
        """Each record of a class with the labels of its class and noise on its own numbers."""
        group = self._groups(read)
        order = ARRAYS.shuffle(len(group), noise_stream(secret, *context, "shuffle"))
        order = order[group[order] >= 0]
        labels, places = read("labels", None), pa.array(group[order])
        columns = self.policy.released_columns

        def make(name: str) -> Any:
            if name in (RECORD, CLASS):
                return pa.array(order) if name == RECORD else places
            column = columns[name]
            if isinstance(column, NoiseColumn):
                progress(f"masking {name}")
                grid = column.exact_grid
                q = grid.quantise(read("records", [name]).column(name).to_numpy())
                noisy = add_class_noise(q, group, self._scale(read, name), grid, secret=secret, context=(*context, name))
                return pa.array(grid.restore(noisy[order].astype(np.float64)))
            if isinstance(column, GeneraliseColumn):
                return labels.column(name).take(places)
            return read("records", [name]).column(0).take(pa.array(order))

        return ColumnTable((RECORD, CLASS, *columns), len(order), make)

    def suppress(self, read: Read, masked: AnyTable) -> Suppressed:
        """Without the records that stand out in their class with the policy's confidence, and without classes that are too small
        then. What the grouping dropped is counted too."""
        group, rule = self._groups(read), self.policy.suppress
        own = masked.column(RECORD).to_numpy()
        released = np.full(len(group), -1, dtype=np.int64)
        released[own] = masked.column(CLASS).to_numpy()
        exposed = np.zeros(len(group), dtype=np.bool_)
        if isinstance(rule, SuppressClasses) and rule.confidence is not None:
            names = list(self.policy.noise_columns)
            widths = confidence_widths([self._scale(read, name) for name in names], rule.confidence)
            grids = [column.exact_grid for column in self.policy.noise_columns.values()]
            original = _units(read("records", names), grids)
            noisy = np.zeros_like(original)
            noisy[own] = _units(masked.select(names), grids)
            exposed = find_exposed(original, noisy, released, widths, self.protect.k)
        small = self._find_left_too_small(released, exposed, read_sensitive(self.policy, self.protect, read))
        kept = (released >= 0) & ~exposed & ~small
        table = self._narrow(read, load_table(masked).filter(pa.array(kept[own])))
        counts = {
            "grouping": int(np.count_nonzero(group < 0)),
            "confidence": int(np.count_nonzero(exposed)),
            "classes_left_too_small": int(np.count_nonzero(small)),
        }
        codes = encode([table.column(name) for name in self.policy.released_quasi])
        return Suppressed(
            table=table,
            cells=0,
            dropped=len(group) - table.num_rows,
            share=(len(group) - table.num_rows) / len(group),
            anonymity=find_smallest(codes),
            refusal=self.refuse(counts, len(group)),
            figures=counts,
        )

    def _find_left_too_small(self, group: Ints, exposed: npt.NDArray[np.bool_], sensitive: Ints | None) -> npt.NDArray[np.bool_]:
        """The records whose class has too few that do not stand out."""
        kept = (group >= 0) & ~exposed
        return find_small_classes(group, kept, k=self.protect.k, sensitive=sensitive, l=self.protect.l or 1)

    def _narrow(self, read: Read, table: pa.Table) -> pa.Table:
        """Ranges of mondrian as those of the records that are left, so that none ends at the number of somebody who was dropped;
        but classes of different parts that would come to have the same labels keep theirs, which may: records with equal labels
        have one class, and noise of one scale.
        """
        if not self.policy.cut_columns or not table.num_rows:
            return table
        own, classes = table.column(RECORD).to_numpy(), table.column(CLASS).to_numpy()
        before: dict[str, list[str]] = read("labels", None).to_pydict()
        after = {name: list(labels) for name, labels in before.items()}
        for name, spec in self.policy.cut_columns.items():
            units = spec.exact_grid.quantise(read("records", [name]).column(name).to_numpy()[own])
            after[name][: int(classes.max()) + 1] = label_ranges(spec, units, classes)
        _keep_apart(np.unique(classes).tolist(), before, after)
        for name in self.policy.cut_columns:
            labels = pa.array(after[name], pa.string()).take(pa.array(classes))
            table = table.set_column(table.column_names.index(name), name, labels)
        return table

    def audit(
        self, read: Read, released: AnyTable, *, groups: Groups | None, streams: Streams, progress: Progress
    ) -> dict[str, Any]:
        """What `audit_table` measures, linking within classes, relative errors, and what the generalisation lost."""
        names = list(self.policy.noise_columns)
        own, group = released.column(RECORD).to_numpy(), self._groups(read)
        members = np.flatnonzero(group >= 0)
        labels = read("labels", None).take(pa.array(group[members]))
        kept = {name: read("records", [name]).column(0).take(pa.array(members)) for name in self.policy.kept_columns}
        everybody = pa.table({name: kept[name] if name in kept else labels.column(name) for name in self.policy.released_quasi})
        compared = Compared(self.policy, read, released, own, everybody)
        figures = audit_table(compared, groups=groups, streams=streams, progress=progress)
        relative = {name: _or_none(_relative_error(compared.seen(name)[own], released.column(name).to_numpy())) for name in names}
        place = np.full(len(group), -1, dtype=np.intp)
        place[members] = np.arange(len(members))
        x = np.stack([compared.seen(name) for name in names], axis=1)[members]
        y = np.stack([released.column(name).to_numpy() for name in names], axis=1)
        classes = len(np.unique(released.column(CLASS).to_numpy()))
        more = {
            "relative_error": relative,
            "linking_risk": link_within(x, y, place[own], group[members], stream=streams("linkage within classes")),
            "linking_by_guess": classes / len(own),
            "information_loss": measure_loss(self.policy, self.protect, read, group),
        }
        return figures | round_figures(more)

    def _groups(self, read: Read) -> Ints:
        return read("membership", None).column(CLASS).to_numpy().astype(np.int64)

    def _scale(self, read: Read, name: str) -> Ints:
        statistics = read("statistics", None)
        return statistics.filter(_compute.equal(statistics.column("column_name"), name)).column("scale").to_numpy()

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
        for place in classes:
            held.setdefault(tuple(labels[place] for labels in after.values()), []).append(place)
        equal = {place for places in held.values() if len(places) > 1 for place in places} - given_back
        if not equal:
            return
        for name, labels in after.items():
            for place in equal:
                labels[place] = before[name][place]
        given_back |= equal


def _units(table: pa.Table, grids: Sequence[Grid]) -> Ints:
    """The columns of a table in units of their grids, a column each."""
    return np.stack([grid.quantise(column.to_numpy()) for grid, column in zip(grids, table.columns, strict=True)], axis=1)


def _mean_of_classes(relative: npt.NDArray[np.float64], count: Ints) -> float:
    """The mean over the records whose number is not 0; NaN without any."""
    use = count > 0
    return float(np.sum(relative[use] * count[use]) / np.sum(count[use])) if use.any() else float("nan")


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number


def _relative_error(original: npt.NDArray[np.float64], released: npt.NDArray[np.float64]) -> float:
    """The mean of |x - y| / |x| where x is not 0."""
    use = original != 0
    return float(np.mean(np.abs(original[use] - released[use]) / np.abs(original[use]))) if use.any() else float("nan")
