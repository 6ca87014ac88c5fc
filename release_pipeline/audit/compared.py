"""A released table next to the records that it was made from, column by column: the input of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.mechanisms.basis.samples import risk_in_population, weighted_mean, weighted_quantiles
from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.policy import Policy
from release_pipeline.rows.columns import (
    AnyTable,
    Read,
    encode_entries,
    needed_for,
    read_weights,
    select_cells,
    take_few,
    take_rows,
)

Numbers = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Compared:
    """A released table, and the same columns of the records that it was made from.

    `original_of[i]`: the original of released record i. For synthetic rows it is in any order, shorter if the records are a
    sample; for swapped values it is the record whose kept entries a row has. `everybody`: the released quasi-identifiers of all
    records, suppressed ones too, as seen by somebody who knows how they were coarsened. `is_nobodys`: released rows are
    synthetic, or their values swapped, so that errors are of ranks. `classes`: the class of each record that shares the labels of
    generalised columns, -1 for none; None without such columns. `owners`: if values are swapped, by column the record whose value
    each row has, -1 for a record outside this table.
    """

    policy: Policy
    read: Read
    released: AnyTable
    original_of: Places
    everybody: AnyTable
    is_nobodys: bool = False
    classes: npt.NDArray[np.int64] | None = None
    owners: Mapping[str, Places] | None = None

    @property
    def originals(self) -> int:
        """Return how many records the release was made from."""
        return len(self.original(next(iter(self.policy.noise_columns or self.policy.released_columns))))

    def original(self, name: str) -> pa.ChunkedArray:
        """Return a column of all records."""
        return self.read("records", [name]).column(name)

    def seen(self, name: str) -> Numbers:
        """Return a noise column of all records as the method saw it: in its domain and on its grid."""
        return self.policy.noise_columns[name].coded_grid.snap(self.original(name).to_numpy())

    def weights(self, name: str) -> Numbers:
        """Return the weights of all records as the method saw them: a masked weight in its domain, where none is negative."""
        return self.seen(name) if name in self.policy.noise_columns else read_weights(self.original(name))

    def of_released(self, name: str) -> pa.ChunkedArray:
        """Return a column of the released records' originals, in the order of release. A generalised column has the label that
        the record got: somebody who knows the hierarchy derives it from the true value."""
        if name in self.policy.generalised_columns:
            return self.released.column(name)
        return self.original(name).take(pa.array(self.original_of))

    def seen_of_released(self, name: str) -> pa.ChunkedArray:
        """Return that column with numbers as the method saw them. Domain and grid are public, so anyone who knows a true value
        can convert it to compare it with the release: a value far out, or finer than the grid, hides nobody."""
        is_masked = name in self.policy.noise_columns
        return pa.chunked_array([self.seen(name)[self.original_of]]) if is_masked else self.of_released(name)

    def read_few(self, originals: Places) -> Read:
        """Return a reader of some records as if there were no others, each column once."""
        kept: dict[str, pa.ChunkedArray] = {}

        def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
            wanted = list(self.policy.released_columns) if columns is None else columns
            needed = needed_for(wanted, where)
            for name in needed:
                if name not in kept:
                    kept[name] = take_few(self.read(table, [name]).column(name), originals)
            return select_cells(pa.table({name: kept[name] for name in needed}), wanted, where)

        return read

    def among(self, rows: Places) -> Compared:
        """Return the comparison of some released rows and their own originals, as if there were no others."""
        positions = np.arange(len(rows), dtype=np.intp)
        is_sample = len(self.original_of) != self.released.num_rows
        originals = self.original_of[: len(rows)] if is_sample else self.original_of[rows]
        classes = None if self.classes is None else self.classes[originals]
        owners = None
        if self.owners is not None:
            place = np.full(self.originals, -1, dtype=np.intp)
            place[originals] = positions
            owners = {name: place[of_rows[rows]] for name, of_rows in self.owners.items()}
        read = self.read_few(originals)
        few_rows = take_rows(self.released, list(self.policy.released_columns), rows)
        return replace(self, read=read, released=few_rows, original_of=positions, classes=classes, owners=owners)


# Records with weights: the effect on weighted figures, and how many people who are unique in the sample are unique in the
# population. Weights are those of the records; a released table is weighted by its own, as an analyst would.

SHARES = (0.25, 0.5, 0.75)


def measure_sample(
    name: str,
    columns: Iterable[tuple[str, Iterable[tuple[Numbers, Numbers]]]],
    quasi: Iterable[pa.ChunkedArray],
    weights: Numbers,
) -> dict[str, Any]:
    """Return weighted figures and the risk in the population. `columns`: for each masked column values and weights, original and
    released, read one after the other. `quasi`: the released quasi-identifiers, record by record with the `weights` of their
    originals."""
    figures: dict[str, Any] = {"weight": name, "weighted": {}}
    for column, sides in columns:
        figures["weighted"][column] = {
            side: _describe(*values) for side, values in zip(("original", "released"), sides, strict=True)
        }
    rest = iter(quasi)
    first = next(rest, None)
    if first is not None and len(weights):
        group = group_by(encode_entries([column])[0] for column in chain([first], rest))
        figures["population"] = {"records": len(weights), **asdict(risk_in_population(group, weights))}
    return figures


def _describe(values: Numbers, weights: Numbers) -> dict[str, float | None]:
    """Return mean and quartiles with weights, and the mean without."""
    known = np.isfinite(weights)
    values, weights = values[known], weights[known]
    if not len(values) or weights.sum() == 0:
        return {"mean": None, "plain": None, "low": None, "median": None, "high": None}
    low, median, high = weighted_quantiles(values, weights, SHARES)
    return {"mean": weighted_mean(values, weights), "plain": float(values.mean()), "low": low, "median": median, "high": high}
