"""The effect of a release on each column: errors, distances, shares of declared atoms.

The effect on a column's distribution: how many records share each declared atom, and how far the distributions are apart as a
whole. It is forecast by simulated noise before anything is charged, and measured afterwards. Confidential, like every figure
here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.audit.compared import Compared
from release_pipeline.mechanisms.basis.grid import Grid
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import (
    BEYOND,
    choose_places,
    column_error,
    compare_ranks,
    correlation_matrix,
    covariance_matrix,
    describe_spread,
    find_distance,
    find_gap,
    rank_correlation_matrix,
    share_at,
    share_at_most,
    share_of_many,
    sse_paper,
    variance_of,
)
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.rows.counted import Counting

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExpectedShape:
    """Means over simulated noise: `atom_share`, the largest difference of a share at an atom (None without atoms), `ks`, the
    Kolmogorov-Smirnov distance, and the share at each atom."""

    atom_share: float | None
    ks: float
    at_atoms: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as evidence keeps them."""
        return asdict(self) | {"at_atoms": list(self.at_atoms)}


def summarise_shapes(column: Tally, simulated: Iterable[Tally], points: npt.NDArray[Any]) -> ExpectedShape:
    """Return the mean effect of simulated releases on the distribution of a column. `points`: the atoms and the reasons for no
    value."""
    original, gaps, shares = share_at(column, points), list[float](), list[Numbers]()
    for released in simulated:
        gaps.append(find_gap(column, released))
        shares.append(share_at(released, points))
    differences = [float(np.max(np.abs(share - original))) for share in shares] if len(points) else []
    return ExpectedShape(
        atom_share=float(np.mean(differences)) if differences else None,
        ks=float(np.mean(gaps)),
        at_atoms=tuple(np.mean(shares, axis=0).tolist()) if len(points) else (),
    )


def measure_atoms(column: NoiseColumn, before: Tally, after: Tally) -> dict[str, list[float | None]]:
    """Return the share of records at each atom, on the declared grid before and as released; None for an original share that
    would reveal fewer than ten records."""
    points = list_points(column)
    shares = share_at(before, points)
    return {"original": _hide(shares.tolist(), find_few(before, points)), "released": share_at(after, points).tolist()}


def find_few(column: Tally, points: Numbers) -> npt.NDArray[np.bool_]:
    """Return which points fewer than ten records have, or all but fewer than ten: their share would reveal single persons."""
    counts, records = column.count_up_to(points) - column.count_below(points), len(column)
    return (counts > 0) & (counts < records) & (np.minimum(counts, records - counts) < BEYOND)


def _hide(shares: Sequence[float | None], few: npt.NDArray[np.bool_]) -> list[float | None]:
    return [None if hidden else share for share, hidden in zip(shares, few.tolist(), strict=True)]


def list_points(column: NoiseColumn) -> Numbers:
    """Return the values and the reasons for none whose share of records is measured, ascending."""
    return np.append(place_atoms(column.exact_grid, column.exact_atoms), column.reason_points)


def lie_on_grid(grid: Grid, values: Numbers) -> bool:
    """Return whether every value is a point of the grid inside the domain."""
    return np.array_equal(values, grid.snap(values))


def place_atoms(grid: Grid, atoms: Sequence[int]) -> Numbers:
    """Return the values of atoms given in grid units."""
    return grid.restore(np.array(atoms, dtype=np.float64))


# The closed formulas of an audit, column by column: errors, distances of distributions, moments,
# and links between columns.
#
# No more than two columns of either table are in memory at once, if they are large: links between columns read them again.


HELD = 32 << 20  # bytes of columns that are held together

Flags = npt.NDArray[np.bool_]
FIGURES = ("error", "absolute_error", "ks", "wasserstein", "spread", "curves")  # of every column


@dataclass(frozen=True, slots=True)
class _OneByOne(Sequence[Numbers]):
    """A sequence of columns that are read when they are requested."""

    names: Sequence[str]
    get: Callable[[str], Numbers]

    def __getitem__(self, index: Any) -> Any:  # always one column, never a slice
        return self.get(str(self.names[index]))

    def __len__(self) -> int:
        return len(self.names)


@np.errstate(over="ignore", invalid="ignore")  # the sum of raw values may overflow
def measure_columns(compared: Compared) -> dict[str, Any]:
    """Return figures of every masked column: errors record by record and the Kolmogorov-Smirnov distance, against what the method
    saw; and, against the raw original, how far distributions moved, moments, and links between columns."""
    names = list(compared.policy.noise_columns)
    figures = {name: _measure_column(compared, name) for name in names}
    return {**by_figure(figures), **(_measure_links(compared, names) if names else {})}


def measure_counted(compared: Compared, few: Compared, before: Counting, after: Counting) -> dict[str, Any]:
    """Return these figures for synthetic rows, by counts of all records and rows, and so against what the method saw. `few`: the
    sample in which links between columns are measured."""
    figures: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(before.encoders):
        if (column := compared.policy.noise_columns.get(name)) is not None:
            tallies = (side.tally(place) for side in (before, after))
            sides = [Tally(column.coded_grid.values_of(tally.entries), tally.ends) for tally in tallies]
            one, other = (pick_tally(column, side) for side in sides)
            values = describe_values(one, other)
            errors = {"error": compare_ranks(one, other), "absolute_error": values["wasserstein"]}
            figures[name] = {**errors, **describe_change(column, *sides), **values}
    return {**by_figure(figures), **(_measure_links(few, list(figures)) if figures else {})}


def by_figure(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return figures of columns keyed by the figure first: those that every column has, and those at atoms that some have."""
    by_name: dict[str, dict[str, Any]] = {name: {} for name in FIGURES}
    for column, own in figures.items():
        for name, figure in own.items():
            by_name.setdefault(name, {})[column] = figure
    return by_name


def _measure_column(compared: Compared, name: str) -> dict[str, Any]:
    column = compared.policy.noise_columns[name]
    original: Numbers = compared.original(name).to_numpy()
    released: Numbers = compared.released.column(name).to_numpy()
    seen = compared.seen(name)  # the forecast of the distance uses these; reasons for no value are entries, too
    before, after = Tally.of(seen), Tally.of(released)
    values = pick_tally(column, before) if np.array_equal(original, seen) else Tally.of(_values(column, original))
    figures = {**describe_change(column, before, after), **describe_values(values, pick_tally(column, after))}
    x, y = compare_values(column, seen[compared.original_of], released, is_nobodys=compared.is_nobodys)
    figures["error"] = column_error(x, y, variance=variance_of(_values(column, seen)))
    figures["absolute_error"] = float(np.mean(np.abs(x - y)))
    return figures


def describe_change(column: NoiseColumn, before: Tally, after: Tally) -> dict[str, Any]:
    """Return how a column's distribution changed from what the method saw: as a whole, and at the values that readers count."""
    found: dict[str, Any] = {"ks": find_gap(before, after)}
    if column.atoms or column.reasons:
        found["atoms"] = measure_atoms(column, before, after)
    return found


def describe_values(before: Tally, after: Tally) -> dict[str, Any]:
    """Return how far apart the values are, both as figures and as curves."""
    moved = find_distance(before, after)
    places = choose_places(after)
    shares = {"original": share_of_many(before, places), "released": share_at_most(after, places).tolist()}
    return {
        "wasserstein": moved if np.isfinite(moved) else float(np.finfo(np.float64).max),  # if the sum overflows
        "spread": {"original": asdict(describe_spread(before)), "released": asdict(describe_spread(after))},
        "curves": {"places": places.tolist(), **shares},
    }


def pick_tally(column: NoiseColumn, numbers: Tally) -> Tally:
    """Return the entries that are values, not reasons for none; all entries if there are no values."""
    values = Tally.of_counts(numbers.entries, np.where(column.find_reasons(numbers.entries) < 0, numbers.counts, 0))
    return values if len(values) else numbers


def _measure_links(compared: Compared, names: list[str]) -> dict[str, Any]:
    """Return links between columns, over the records with a value in all of them; over all records if there are none."""
    columns, originals = compared.policy.noise_columns, compared.original_of
    coded = [name for name in names if columns[name].reasons]
    is_released = np.zeros(compared.originals, dtype=np.bool_)
    is_released[originals] = True

    def have_values(get: Callable[[str], Numbers], there: Flags) -> Flags:
        """Return which of these records have a value in all columns."""
        for name in coded:
            there = there & (columns[name].find_reasons(get(name)) < 0)
        return there

    def pick_columns(get: Callable[[str], Numbers], there: Flags, among: Flags) -> Sequence[Numbers]:
        """Return the columns for the records in `there`, or `among` if there are none: held in memory if they are small, else
        read one by one."""
        use = there if there.any() else among
        few = _OneByOne(names, get if use.all() else lambda name: get(name)[use])
        return list(few) if 8 * len(originals) * len(names) <= HELD else few

    def delivered(name: str) -> Numbers:
        return compared.original(name).to_numpy()

    def masked(name: str) -> Numbers:
        return compared.released.column(name).to_numpy()

    def seen(name: str) -> Numbers:
        return compared.seen(name)[originals]

    everybody = np.ones(len(originals), dtype=np.bool_)
    released = pick_columns(masked, have_values(masked, everybody), everybody)
    sides = {"original": pick_columns(delivered, have_values(delivered, is_released), is_released), "released": released}
    linked = {side: correlation_matrix(covariance_matrix(columns)).tolist() for side, columns in sides.items()}
    if compared.is_nobodys:  # each table by itself, by ranks: heavy tails would decide other correlations
        sides = {"original": pick_columns(seen, have_values(seen, everybody), everybody), "released": released}
        ranked = {side: rank_correlation_matrix(numbers).tolist() for side, numbers in sides.items()}
        more: dict[str, Any] = {"rank_correlations": {"names": names, **ranked}}
    else:
        there = have_values(masked, have_values(seen, everybody))
        before, after = (pick_columns(get, there, everybody) for get in (seen, masked))
        more = {"sse_paper": sse_paper(before, after)}
    return {**more, "correlations": {"names": names, **linked}}


def _values(column: NoiseColumn, numbers: Numbers) -> Numbers:
    """Return the numbers that are values; all of them if there are no values."""
    found = pick_values(column, numbers)
    return found if len(found) else numbers


def pick_values(column: NoiseColumn, numbers: Numbers) -> Numbers:
    """Return the numbers that are values, not reasons for none."""
    return numbers[column.find_reasons(numbers) < 0] if column.reasons else numbers


def compare_values(column: NoiseColumn, before: Numbers, after: Numbers, *, is_nobodys: bool) -> tuple[Numbers, Numbers]:
    """Return the pairs of values that errors of a column use: records with a value before and after, or values of equal ranks if
    rows are synthetic."""
    if not is_nobodys:
        return with_values(column, before, after)
    released = _values(column, after)
    return match_ranks(_values(column, before), released), released


def with_values(column: NoiseColumn, before: Numbers, after: Numbers) -> tuple[Numbers, Numbers]:
    """Return the records that have a value in both tables of one column; all records if there are none."""
    if not column.reasons:
        return before, after
    there = (column.find_reasons(before) < 0) & (column.find_reasons(after) < 0)
    return (before[there], after[there]) if there.any() else (before, after)


def match_ranks(before: Numbers, after: Numbers) -> Numbers:
    """Return for each released value the original of the same rank, if nothing else links them."""
    places = (np.arange(len(after)) + 0.5) * (len(before) / max(len(after), 1))
    matched = np.empty(len(after))
    matched[np.argsort(after, kind="stable")] = np.sort(before)[places.astype(np.int64)]
    return matched


# The range of a figure of one more release, in 99 of 100 cases, from simulated releases.


SURE = 0.995  # each end of 99%
LEAST_TRIED = 1e-12  # the least figure whose logarithm is taken
_LARGEST = 700.0  # the largest exponent whose exponential a float holds


def predict(expected: npt.NDArray[np.float64], *, positive: bool, widened: float = 1.0) -> tuple[float, float]:
    """Return the prediction interval of Student's t for one more figure like these, two or more; on the logarithms if figures are
    never below 0. `widened`: how many times further the ends are from the middle."""
    use_logs = positive and float(expected.min()) > LEAST_TRIED
    values = np.log(expected) if use_logs else expected
    reach = widened * quantile_of_t(len(expected) - 1) * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / len(expected))
    low, high = float(np.mean(values)) - reach, float(np.mean(values)) + reach
    if use_logs:
        return math.exp(low), math.exp(min(high, _LARGEST))
    return max(low, 0.0) if positive else low, high


def quantile_of_t(freedom: int) -> float:
    """Return the point that Student's t with so many degrees of freedom exceeds once in 200."""
    import scipy.special  # 0.1 s to import: only where it is used

    return float(scipy.special.stdtrit(freedom, SURE))
