"""What figures of synthetic rows are worth: the method is run again on the released table, as if that were the confidential one.

All of it is public: rows, the counts beside them, the design that these and the card tell, and the code. So a released table can
be measured again with fresh noise of the same laws, and synthesised again, as often as one likes, and nothing is lost by it. How
far a figure moves from the released table to those that are made of it stands for how far it moved from the confidential table
to the released one.

That is so where the noise is what moves a figure. A mean is moved by noise; how columns go together is moved by what the model of
the rows leaves out, too, and a table that was made by that model has nothing to leave out: run again, it hardly moves. So means
are answered, of a column and by group, and nothing else (docs/analyst.md says what was measured).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.counts import Counts
from release_pipeline.analyst.facts import EMPTY, ColumnFacts, Facts, NoHonestAnswer, check_name
from release_pipeline.analyst.means import Interval, Moments, tell_moments
from release_pipeline.analyst.pairs import Pair
from release_pipeline.analyst.quantiles import check_level
from release_pipeline.errors import InvalidArgument, InvalidType, ReleasePipelineError
from release_pipeline.privacy.by_value import usual_centre
from release_pipeline.privacy.by_value.noise_laws import GaussianNoise, LaplaceNoise, Noise
from release_pipeline.privacy.grid import FloatArray, IntArray, as_numbers
from release_pipeline.privacy.noise import SECRET_BYTES, Context, NoiseStream, noise_stream
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table import Column, Design, TableBudget, make_design, measure_table, synthesise
from release_pipeline.privacy.whole_table.design import NARROW, deviation
from release_pipeline.sentences import ANALYST

LEAST_TIMES, USUAL_TIMES, MOST_TIMES = 10, 20, 1000
Arrays = Mapping[str, npt.NDArray[Any]]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Groups:
    """How many records of each group have a value in a column, and the sum of these, in grid units."""

    held: IntArray
    total: FloatArray

    @property
    def means(self) -> FloatArray:
        """NaN of a group without any."""
        return np.where(self.held > 0, self.total / np.maximum(self.held, 1), np.nan)


Sums = Mapping[tuple[int, int | None], Groups]  # of a column, by another one or over all records


@dataclass(frozen=True, eq=False)
class Rerun:
    """The released table, and what came of it when the method was run on it again. `names`: the columns of the design."""

    facts: Facts
    names: tuple[str, ...]
    design: Design
    released: Sums
    again: tuple[Sums, ...]

    def __repr__(self) -> str:
        return f"<The method run {len(self.again)} times on {self.facts.rows_out:,} released rows>"


def rerun(
    facts: Facts,
    data: Arrays,
    counts: Mapping[str, Counts],
    pairs: Mapping[tuple[str, str], Pair],
    *,
    times: int = USUAL_TIMES,
    seed: int | None = None,
    progress: Progress = lambda _: None,
) -> Rerun:
    """The method run on released rows, so many times; or `NoHonestAnswer`."""
    design = find_design(facts, counts, pairs)
    names = design_names(facts)
    entries = find_entries(facts, data, counts)
    secret = secrets.token_bytes(SECRET_BYTES) if seed is None else hashlib.sha256(str(seed).encode()).digest()
    again: list[Sums] = []
    for number in range(times):
        progress(f"running the method again: {number + 1} of {times}")
        measured = measure_table(entries.__getitem__, design, _streams(secret, number))
        again.append(add_up(synthesise(measured, make_random(secret, "rerun", number, "rows")), design))
    return Rerun(facts, names, design, add_up(entries, design), tuple(again))


def _streams(secret: bytes, number: int) -> Callable[..., NoiseStream]:
    def stream(*purpose: Context) -> NoiseStream:
        return noise_stream(secret, "rerun", number, *purpose)

    return stream


def design_names(facts: Facts) -> tuple[str, ...]:
    """The columns that were counted, as the design has them: in the order of their names."""
    return tuple(sorted(facts.synthetic))


def find_design(facts: Facts, counts: Mapping[str, Counts], pairs: Mapping[tuple[str, str], Pair]) -> Design:
    """What was measured, and with how much noise: by the card, and by the laws that stand beside the counts."""
    names = design_names(facts)
    columns = [_declare(facts, facts.columns[name], counts[name]) for name in names]
    design = make_design(columns, facts.rows_in, TableBudget(facts.total.fraction, facts.by_rho))
    found = {pair: _law_of(pairs[names[pair[0]], names[pair[1]]].law) for pair in design.pairs}
    return replace(design, pairs=found)


def _declare(facts: Facts, known: ColumnFacts, counts: Counts) -> Column:
    labels = len(counts.reasons)
    in_slots = facts.has_slots and counts.reasons[-1:] == (EMPTY,)
    if known.grid is None:
        return Column(len(known.values) - 1, nominal=True, labels=labels, in_slots=in_slots)
    width = known.grid.width
    centre = usual_centre(known.grid) if known.clock is None else width // 2
    atoms = known.grid.units_of([known.number_text(atom) for atom in known.atoms])
    return Column(width, atoms=tuple(atoms), centre=min(max(centre, 0), width), labels=labels, in_slots=in_slots)


def _law_of(counts: Counts) -> Noise:
    if counts.laplace is not None:
        return LaplaceNoise(counts.laplace)
    return GaussianNoise(cast(Any, counts.gaussian))


def find_entries(facts: Facts, data: Arrays, counts: Mapping[str, Counts]) -> list[IntArray]:
    """The released rows as the design has them: the number of an entry for each, or of the reason to have none."""
    return [_find(facts.columns[name], data, counts[name].reasons) for name in design_names(facts)]


def _find(known: ColumnFacts, data: Arrays, reasons: Sequence[str]) -> IntArray:
    from release_pipeline.analyst.labels import entry_of

    name, cells = known.name, data[known.name]
    if known.grid is None:
        places = {value: place for place, value in enumerate(known.values)}
        width = len(known.values) - 1
        found = np.array([places.get(entry_of(cell), -1) for cell in cells.tolist()], dtype=np.int64)
    else:
        grid, width = known.grid, known.grid.width
        numbers = known.clock.count(cells) if known.clock is not None else np.asarray(cells, dtype=np.float64)
        blank = np.isnan(numbers)
        found = np.where(blank, -1, grid.quantise(np.where(blank, float(grid.lo), numbers)))
    if not reasons:
        return found
    at = {reason: width + 1 + place for place, reason in enumerate(reasons)}
    why = np.array([at.get(entry_of(cell), -1) for cell in data[f"{name}_missing"].tolist()], dtype=np.int64)
    return np.where(found < 0, why, found)


def add_up(entries: Sequence[IntArray], design: Design) -> Sums:
    """Records and sums of every column with numbers: of all that have one, and by each column with few entries."""
    found: dict[tuple[int, int | None], Groups] = {}
    columns = list(zip(entries, design.columns, strict=True))
    for place, (own, column) in enumerate(columns):
        if column.nominal:
            continue
        valued = own <= column.width
        numbers = own[valued].astype(np.float64)
        found[place, None] = Groups(np.array([len(numbers)]), np.array([numbers.sum()]))
        for other, (groups, by) in enumerate(columns):
            if other != place and (by.nominal or by.width <= NARROW):
                count = by.width + 1 + by.labels
                held = np.bincount(groups[valued], minlength=count).astype(np.int64)
                total = np.bincount(groups[valued], numbers, count)
                found[place, other] = Groups(held, total)
    return found
