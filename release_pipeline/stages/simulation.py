"""Releases that nobody gets: a policy tried on some records again and again with fresh noise, and what readers are left with.

Every draw goes through the strategy of the policy as a release does, from groups to suppression, and is compared with the records
in all that a reader asks first. What is found is as confidential as the records that it was tried on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.privacy.attacks import Attacked, AttackedColumn, infer, link
from release_pipeline.privacy.distributions import Steps, ks_of_steps
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import noise_stream, shuffled_positions
from release_pipeline.privacy.utility import column_error, correlation_matrix, covariance_matrix, variance_of
from release_pipeline.stages.audit import LEAST_ATTACKED, says_yes, without_reasons
from release_pipeline.stages.column_table import load_table, select_cells
from release_pipeline.stages.compared import Compared, Read, read_with
from release_pipeline.stages.measures.columns import compare_values
from release_pipeline.stages.measures.features import encode_entries, encode_features
from release_pipeline.stages.measures.linkage import measure_ladder
from release_pipeline.stages.measures.prediction import measure_ranking
from release_pipeline.stages.measures.subgroups import LEAST
from release_pipeline.stages.served import SHARES
from release_pipeline.stages.strategies import RECORD, Series, Suppressed, find_strategy

PLACES = 60  # of a distribution's curve
MOST_GROUPS, MOST_LABELS = 3, 60
LINKED, MODELLED, ATTACKED = 500, 4_000, 30_000  # records that figures of one draw are of; the fewer are attacked, the more
# a row stands out among them: the audit takes more
SEED = 1

Numbers = npt.NDArray[np.float64]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Records:
    """Some records as stages have them, by column."""

    columns: Mapping[str, pa.Array]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(next(iter(self.columns.values())))

    def take(self, places: npt.NDArray[np.intp]) -> Records:
        """Some of them, in this order, with repetition."""
        return Records({name: column.take(pa.array(places)) for name, column in self.columns.items()})

    def read(self, table: str, columns: Sequence[str] | None, /, *, where: tuple[str, str] | None = None) -> pa.Table:
        """As a strategy reads them."""
        if table != "records":
            raise KeyError(table)
        return select_cells(pa.table(self.columns), columns, where)


@dataclass(frozen=True)
class Reference:
    """What the records are like themselves, of the columns that every setting masks. `base`: those that these were drawn of."""

    records: Records
    columns: Mapping[str, NoiseColumn]
    groupings: tuple[str, ...]
    base: Reference | None = None

    def resample(self, places: npt.NDArray[np.intp]) -> Reference:
        """That of some of the records, drawn again and again, with curves and groups at the same places as here."""
        return Reference(self.records.take(places), self.columns, self.groupings, self)

    @cached_property
    def seen(self) -> dict[str, Numbers]:
        """The numbers in their domain and on their grid."""
        found: dict[str, Numbers] = {}
        for name, column in self.columns.items():
            numbers: Numbers = self.records.columns[name].to_numpy()
            snapped = column.coded_grid.snap(numbers)
            found[name] = numbers if np.array_equal(snapped, numbers) else snapped  # not twice in memory
        return found

    def take(self, name: str, at: IntArray) -> pa.Array:
        """A column of some of the records, of numbers as the method sees them."""
        column = self.records.columns[name]
        return pa.array(self.seen[name][at]) if name in self.columns else column.take(pa.array(at))

    @cached_property
    def steps(self) -> dict[str, Steps]:
        """Their distribution functions."""
        return {name: Steps.of(np.sort(numbers)) for name, numbers in self.seen.items()}

    def ordered(self, name: str) -> Numbers:
        """The numbers of a column in ascending order, made of its steps."""
        steps = self.steps[name]
        return np.repeat(steps.values, np.diff(steps.below))

    @cached_property
    def variance(self) -> dict[str, float]:
        """Of those that have a value."""
        valued = {name: known(column, self.seen[name]) for name, column in self.columns.items()}
        return {name: variance_of(values) if len(values) else 0.0 for name, values in valued.items()}

    @cached_property
    def points(self) -> dict[str, Numbers]:
        """The values whose share of the records is looked at: declared atoms, zero where a column has it, reasons for none."""
        return {name: list_looked_at(column) for name, column in self.columns.items()}

    @cached_property
    def places(self) -> dict[str, Numbers]:
        """Where curves are drawn."""
        if self.base is not None:
            return self.base.places
        valued = {name: known(column, self.seen[name]) for name, column in self.columns.items()}
        return {
            name: np.unique(np.quantile(values, np.linspace(0, 1, PLACES), method="nearest")) if len(values) else np.zeros(1)
            for name, values in valued.items()
        }

    @cached_property
    def figures(self) -> dict[str, dict[str, Numbers]]:
        """The figures of every column that releases are compared in."""
        return {name: self.describe(name, self.seen[name], self.ordered(name), self.groups) for name in self.columns}

    @cached_property
    def groups(self) -> dict[str, tuple[IntArray, tuple[str, ...]]]:
        """The place of each record's group, -1 where it has none, and the groups' labels, by the column that makes them."""
        labels = {name: None if self.base is None else self.base.groups[name][1] for name in self.groupings}
        return {name: group_by(self.records.columns[name], labels[name]) for name in self.groupings}

    @cached_property
    def scores(self) -> dict[str, float]:
        """How well models that learned from the records rank others, by target: filled where it is found."""
        return {}

    @cached_property
    def correlations(self) -> Numbers:
        """Those of all columns."""
        return correlate(list(self.columns.values()), [self.seen[name] for name in self.columns])

    def describe(
        self, name: str, numbers: Numbers, ordered: Numbers, groups: Mapping[str, tuple[IntArray, tuple[str, ...]]]
    ) -> dict[str, Numbers]:
        """What readers ask of a column first. `ordered`: its numbers in ascending order."""
        column, points = self.columns[name], self.points[name]
        at = (np.searchsorted(ordered, points, side="right") - np.searchsorted(ordered, points, side="left")) / len(ordered)
        values, ascending = known(column, numbers), known(column, ordered)
        if not len(values):
            values = ascending = np.array([np.nan])
        own = without_reasons(column, numbers)
        return {
            "mean": np.array([float(np.mean(values))]),
            "quantiles": ascending[_place_quantiles(len(ascending))],
            "at": at,
            "curve": np.searchsorted(ascending, self.places[name], side="right") / len(ascending),
            "groups": np.concatenate([mean_by(own, *groups[by]) for by in groups]) if groups else np.empty(0),
        }


@cache
def _place_quantiles(count: int) -> IntArray:
    """Where quantiles are in ascending values: the least that so large a share does not exceed."""
    return np.quantile(np.arange(count), SHARES, method="inverted_cdf").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Simulated:
    """What simulated releases were like, draw by draw along the first axis. `once`: figures of the first draw alone; `refusal`:
    why no such release would be made."""

    draws: int
    columns: Mapping[str, Mapping[str, Numbers]] = field(default_factory=dict[str, Mapping[str, Numbers]])
    whole: Mapping[str, Numbers] = field(default_factory=dict[str, Numbers])
    once: Mapping[str, Any] = field(default_factory=dict[str, Any])
    refusal: str = ""


def simulate(
    policy: Policy,
    references: Sequence[Reference],
    *,
    secret: bytes,
    draws: int,
    with_risks: bool = True,
    attacked: Reference | None = None,
) -> Simulated:
    """So many simulated releases of a policy, each of the records of a reference, one after the other. The same secret gives the
    same draws. `with_risks`: one of `attacked` is attacked, and models learn from it; of the first reference where none is given.
    It must have no record twice: nobody could tell it from itself."""
    columns: dict[str, dict[str, list[Numbers]]] = {name: {} for name in references[0].columns}
    whole: dict[str, list[float]] = {}
    once: dict[str, Any] = {}
    strategy = find_strategy(policy, series=Series(secret, 0) if policy.publishes_parts else None)
    grouped: tuple[Reference, Mapping[str, pa.Table]] | None = None

    def release(reference: Reference, *context: str | int) -> tuple[Suppressed, Read]:
        """A release, and what reads the records and tables that it was made of."""
        nonlocal grouped
        if grouped is None or grouped[0] is not reference or policy.parts > 1:
            grouped = reference, strategy.group(reference.records.read, secret=secret, context=context, progress=_quiet).tables
        made = dict(grouped[1])
        read = read_with(made, reference.records.read)
        made |= strategy.measure(read, secret=secret, context=context, progress=_quiet)
        return strategy.suppress(read, strategy.mask(read, secret=secret, context=context, progress=_quiet)), read

    def look(reference: Reference, read: Read, table: pa.Table) -> dict[str, Any]:
        """What is looked at once of a release; where values are swapped models learn from one without those who are tested."""
        learned = table
        if policy.swap is not None and policy.audit.predict:
            tested, _ = _draw_tested(reference.records.count, secret)
            others = np.setdiff1d(np.arange(reference.records.count), tested)
            learned = load_table(release(reference.resample(others), "simulated", "unseen")[0].table)
        return _look_once(policy, reference, strategy.compare(read, table), table, learned, secret)

    for draw in range(draws):
        reference = references[draw % len(references)]
        suppressed, read = release(reference, "simulated", draw)
        if suppressed.obstacle:
            return Simulated(draw, refusal=suppressed.obstacle)
        whole.setdefault("suppressed", []).append(suppressed.share)
        table = load_table(suppressed.table)
        _compare(policy, reference, table, columns, whole)
        if draw == 0 and with_risks and (attacked is None or attacked is reference):
            once = look(reference, read, table)
    if with_risks and attacked is not None and attacked is not references[0]:
        suppressed, read = release(attacked, "simulated", "attacked")
        if not suppressed.obstacle:
            table = load_table(suppressed.table)
            once = look(attacked, read, table)
    return Simulated(
        draws,
        {name: {figure: np.stack(found) for figure, found in figures.items()} for name, figures in columns.items()},
        {name: np.array(found) for name, found in whole.items()},
        once,
    )


def _compare(
    policy: Policy,
    reference: Reference,
    table: pa.Table,
    columns: dict[str, dict[str, list[Numbers]]],
    whole: dict[str, list[float]],
) -> None:
    nobodys = policy.rows_are_nobodys
    own = table.column(RECORD).to_numpy()
    groups = {by: group_by(table.column(by), reference.groups[by][1]) for by in reference.groupings}
    released: list[Numbers] = []
    for name, column in reference.columns.items():
        numbers: Numbers = table.column(name).to_numpy()
        released.append(numbers)
        before = reference.seen[name] if nobodys else reference.seen[name][own]
        ordered = np.sort(numbers)
        found = reference.describe(name, numbers, ordered, groups)
        found["error"] = np.array(
            [column_error(*compare_values(column, before, numbers, is_nobodys=nobodys), variance=reference.variance[name])]
        )
        found["ks"] = np.array([ks_of_steps(reference.steps[name], Steps.of(ordered))])
        for figure, one in found.items():
            columns[name].setdefault(figure, []).append(one)
    if len(released) > 1:
        off = np.abs(correlate(list(reference.columns.values()), released) - reference.correlations)
        pairs = off[np.triu_indices(len(off), 1)]
        valid = pairs[~np.isnan(pairs)]
        whole.setdefault("correlation", []).append(float(valid.mean()) if len(valid) else 0.0)
        whole.setdefault("worst_correlation", []).append(float(valid.max()) if len(valid) else 0.0)


def _look_once(
    policy: Policy, reference: Reference, compared: Compared, table: pa.Table, learned: pa.Table, secret: bytes
) -> dict[str, Any]:
    """What is too dear to do at every draw: linkage, attacks, models that learned from the table `learned`."""
    found: dict[str, Any] = {}
    if not policy.protect.is_synthetic:
        rungs = measure_ladder(compared, noise_stream(secret, "linkage"), sample=LINKED)
        found["linkage"] = [asdict(rung) for rung in rungs]
    if not policy.rows_are_nobodys:  # or else what is taken out as somebody's own row is in the rows of others
        found |= _attack(policy, reference, table, secret)
    for name, target in policy.audit.predict.items():
        if (score := _score(policy, reference, learned, name, target, secret)) is not None:
            found.setdefault("models", {})[name] = score
    return found


def _attack(policy: Policy, reference: Reference, table: pa.Table, secret: bytes) -> dict[str, Any]:
    """Linking and inferring (GEM23) as the audit has them: how much likelier than for people who are not in it."""
    tried = shuffled_positions(table.num_rows, noise_stream(secret, "attacked"))[:ATTACKED]
    sample, places = table.take(pa.array(tried)), table.column(RECORD).to_numpy()[tried]
    columns: list[AttackedColumn] = []
    own, records = np.arange(len(tried)), reference.records
    for name, column in policy.released_columns.items():
        after = sample.column(name)
        if isinstance(column, NoiseColumn):
            columns.append(AttackedColumn(name, reference.seen[name][places], after.to_numpy(), own))
            continue
        is_coarse = name in policy.generalised_columns  # who knows the hierarchy makes the label of the true value
        before = after if is_coarse else pa.chunked_array([records.columns[name].take(pa.array(places))])
        columns.append(AttackedColumn(name, *encode_entries([before, after])))
    if len(columns) < 2 or len(tried) < LEAST_ATTACKED:
        return {}
    attacked = Attacked(tuple(columns))
    linked = link(attacked, stream=noise_stream(secret, "link"))
    inferred = infer(attacked, stream=noise_stream(secret, "infer")).overall
    return {"attacks": {attack.name: attack.risk.value for attack in (linked, inferred)}, "attacked": len(tried)}


def _draw_tested(count: int, secret: bytes) -> tuple[IntArray, IntArray]:
    """The records that models are tested on, and as many others."""
    order = shuffled_positions(count, noise_stream(secret, "tested"))
    half = min(MODELLED, count) // 2
    return order[:half], order[half : 2 * half]


def _score(
    policy: Policy, reference: Reference, table: pa.Table, name: str, target: Any, secret: bytes
) -> dict[str, float] | None:
    """How well a forest that learned from released records ranks original ones, beside one that learned from original ones."""
    records = reference.records
    if name not in table.column_names or name not in records.columns:
        return None
    tested, learned = _draw_tested(records.count, secret)
    place: IntArray = np.full(records.count, -1, dtype=np.int64)
    place[table.column(RECORD).to_numpy()] = np.arange(table.num_rows)
    found = place[learned]
    if policy.swap is not None:  # of a release without those who are tested
        found = shuffled_positions(table.num_rows, noise_stream(secret, "learned"))[: len(learned)].astype(np.int64)
    elif policy.protect.is_synthetic:
        found = np.arange(min(table.num_rows, len(learned)), dtype=np.int64)
    chosen = found[found >= 0]
    names = [one for one in policy.released_columns if one in table.column_names and one in records.columns]
    sides = [pa.table({one: reference.take(one, at) for one in names}) for at in (learned, tested)]
    sides.append(table.select(names).take(pa.array(chosen)))
    features = encode_features(sides)
    rest = [at for at, one in enumerate(names) if one != name]
    answers = [says_yes(side.column(name), target, policy.noise_columns.get(name)) for side in sides]
    if not rest or not 0 < answers[1].sum() < len(answers[1]):
        return None

    def rank(side: int) -> float:
        return measure_ranking(features[side][:, rest], answers[side], features[1][:, rest], answers[1], seed=SEED)

    if name not in reference.scores:  # that of the records is the same for every setting
        reference.scores[name] = rank(0)
    return {"original": reference.scores[name], "released": rank(2)}


def describe_samples(rows: int) -> Iterator[str]:
    """What of releases of so many records is found by some of them alone, in words."""
    if rows > LINKED:
        yield (
            f"linkage is of {LINKED:,} among {rows:,} released records, attacks of {min(ATTACKED, rows):,}; models learn "
            f"from half of {min(MODELLED, rows):,} and are judged on the others: all of one simulated release"
        )


def list_groupings(policy: Policy, records: Records) -> tuple[str, ...]:
    """The columns whose groups are looked at: those of the policy's audit, or the first with few entries."""
    listed = [name for name in policy.listed_columns if name in records.columns]
    named = [name for name in policy.audit.groups if name in listed]
    few = [name for name in listed if len(pa.chunked_array([records.columns[name]]).unique()) <= MOST_LABELS]
    return tuple((named or few)[:MOST_GROUPS])


def list_looked_at(column: NoiseColumn) -> Numbers:
    """Declared atoms, zero where the domain has it, the reasons for no value."""
    grid = column.exact_grid
    atoms = {float(point) for point in grid.restore(np.array(column.exact_atoms, dtype=np.float64))}
    if float(grid.lo) <= 0 <= float(grid.hi):
        atoms.add(0.0)
    return np.append(np.array(sorted(atoms)), column.reason_points)


def known(column: NoiseColumn, numbers: Numbers) -> Numbers:
    """Those that are values."""
    return numbers[column.find_reasons(numbers) < 0] if column.reasons else numbers


def group_by(entries: pa.Array | pa.ChunkedArray, labels: tuple[str, ...] | None) -> tuple[IntArray, tuple[str, ...]]:
    """The place of each record's group among the labels, -1 for none; the labels are those that occur, in order, unless given."""
    whole = entries.combine_chunks() if isinstance(entries, pa.ChunkedArray) else entries
    texts = whole.cast(pa.string()).dictionary_encode()
    found = texts.dictionary.to_pylist()
    if labels is None:
        labels = tuple(sorted(found, key=lambda text: (len(text), text)))
    place = {label: at for at, label in enumerate(labels)}
    moved = np.array([*(place.get(text, -1) for text in found), -1], dtype=np.int64)
    return moved[texts.indices.fill_null(-1).to_numpy()], labels


def mean_by(numbers: Numbers, place: IntArray, labels: tuple[str, ...]) -> Numbers:
    """The mean of each group's values; NaN where fewer than ten have one."""
    use = (place >= 0) & ~np.isnan(numbers)
    if not use.all():
        place, numbers = place[use], numbers[use]
    count = np.bincount(place, minlength=len(labels))
    sums = np.bincount(place, numbers, minlength=len(labels))
    return np.divide(sums, count, out=np.full(len(labels), np.nan), where=count >= LEAST)


def correlate(columns: Sequence[NoiseColumn], numbers: Sequence[Numbers]) -> Numbers:
    """Correlations of the records that have a value in all columns."""
    there = np.ones(len(numbers[0]), dtype=np.bool_)
    for column, own in zip(columns, numbers, strict=True):
        if column.reasons:
            there &= column.find_reasons(own) < 0
    valued = list(numbers) if there.all() else [own[there] for own in numbers]
    return correlation_matrix(covariance_matrix(valued)) if len(valued[0]) else np.full((len(columns),) * 2, np.nan)


def _quiet(_: str) -> None:
    """Strategies tell every column."""
