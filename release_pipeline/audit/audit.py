"""Utility and risk of a released table against the records that it was made from. Every figure is internal: it informs the people
who decide, and gates nothing (methods.md section 2). Figures for gates are in `gates`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.audit.columns import match_ranks, measure_columns, measure_counted
from release_pipeline.audit.compared import Compared, Numbers, measure_sample
from release_pipeline.audit.gates import Groups, journalist_risk
from release_pipeline.audit.linkage import measure_ladder, note_linkage
from release_pipeline.audit.models import predict
from release_pipeline.audit.structure import measure_structure
from release_pipeline.audit.subgroups import NO_GROUP, GroupedColumn, Grouping, Labels, measure_group_means, measure_subgroups
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.attacks import (
    INFERRED,
    Attack,
    Attacked,
    AttackedColumn,
    People,
    find_closest,
    find_near_rows,
    infer,
    link,
    single_out,
    single_out_beside,
)
from release_pipeline.mechanisms.basis.utility import variance_of
from release_pipeline.mechanisms.noise import Context, NoiseStream, drawn_positions, shuffled_first, take_secret
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Plain
from release_pipeline.policy.file.sections import Target
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.rows.columns import Read, encode_entries, encode_features, read_weights, take_few
from release_pipeline.rows.counted import Counting

LEAST_ATTACKED = 10  # with fewer records an attack shows nothing
ATTACKED_SAMPLE = 100_000  # released records that are attacked and linked, if there are more
MODEL_SAMPLE = 5_000  # records of each table that models use
SEED = 1  # for the models' random choices: the same figures for the same tables
DIGITS = 6  # significant digits of a figure: rounding differences between processors are smaller

Streams: TypeAlias = Callable[[Context], NoiseStream]
Measure: TypeAlias = Callable[[Compared, Streams], dict[str, Any]]


def audit_table(
    compared: Compared,
    *,
    groups: Groups | None,
    streams: Streams,
    progress: Callable[[str], None],
    attack: Measure | None = None,
    predictor: Measure | None = None,
) -> dict[str, Any]:
    """Return every figure of a released table, as evidence keeps it. `groups`: the table's groups, which gates are judged on too;
    `streams` gives the random choices of each part by its name. `attack` and `predictor`: the measures of attacks and models, if
    these are not on the released table itself."""
    released, originals, policy = compared.released, compared.original_of, compared.policy
    figures: dict[str, Any] = {}
    progress("linking records")
    attacked = draw_attacked(compared, streams)
    figures |= note_linkage(measure_ladder(attacked, streams("linkage")))
    if len(attacked.original_of) < len(originals):
        figures["attacked_sample"] = {"tried": len(attacked.original_of), "among": len(originals)}
    progress("measuring utility")
    figures |= measure_columns(compared)
    if policy.weight is not None:
        figures["sample"] = _measure_sample(compared, policy.weight)
    if policy.audit.groups:
        figures["subgroups"] = {name: measure_by_group(compared, name) for name in policy.audit.groups}
    progress("attacking the released table")
    figures |= (_attack if attack is None else attack)(attacked, streams)
    if groups is not None:
        risk = journalist_risk(released, compared.everybody, policy.released_quasi)
        figures["groups"] = {**asdict(groups), "journalist": risk}
    progress("training models")
    return round_figures({**figures, **train_models(compared, streams, predictor)})


def draw_attacked(compared: Compared, streams: Streams) -> Compared:
    """Return what is attacked: all records, or a random sample of them as if it were the whole table. In a sample rows are
    farther apart, so a person's own row stands out more than it does among all."""
    rows = compared.released.num_rows
    if rows <= ATTACKED_SAMPLE:
        return compared
    return compared.among(np.sort(shuffled_first(rows, ATTACKED_SAMPLE, streams("attacked"))))


def _measure_sample(compared: Compared, weight: str) -> dict[str, Any]:
    """Return weighted figures of every masked column except the weight; records without a value are left out."""
    policy, released = compared.policy, compared.released
    of_all, of_released = compared.weights(weight), read_weights(released.column(weight))

    def weigh(column: NoiseColumn, values: Numbers, weights: Numbers) -> tuple[Numbers, Numbers]:
        there = column.find_reasons(values) < 0
        return values[there], weights[there]

    def weigh_both(name: str, column: NoiseColumn) -> Iterator[tuple[Numbers, Numbers]]:
        yield weigh(column, compared.seen(name), of_all)
        yield weigh(column, released.column(name).to_numpy(), of_released)

    columns = ((name, weigh_both(name, column)) for name, column in policy.noise_columns.items() if name != weight)
    quasi = (released.column(name) for name in policy.released_quasi)
    return measure_sample(weight, columns, quasi, of_all[compared.original_of])


@np.errstate(over="ignore", invalid="ignore")  # raw values may overflow
def measure_by_group(compared: Compared, by: str) -> list[dict[str, Any]]:
    """Return the figures of the groups of one column. For a generalised column the labels of suppressed records are not known, so
    its original means are those of the released records."""
    is_kept = by in compared.policy.listed_columns
    names, (after, own_labels, of_all) = number_labels(
        [compared.released.column(by), compared.of_released(by), compared.original(by) if is_kept else None]
    )
    own_labels, of_all = (after if compared.is_nobodys else own_labels), (of_all if is_kept else own_labels)

    def compare(name: str, column: NoiseColumn) -> GroupedColumn:
        everybody: Numbers = without_reasons(column, compared.original(name).to_numpy())
        seen = without_reasons(column, compared.seen(name))
        masked: Numbers = without_reasons(column, compared.released.column(name).to_numpy())
        known = seen[~np.isnan(seen)]
        variance = variance_of(known) if len(known) else 0.0
        del known
        matched = _match_in_groups(seen, of_all, masked, after) if compared.is_nobodys else seen[compared.original_of]
        return GroupedColumn(everybody if is_kept else everybody[compared.original_of], masked, matched, variance)

    return measure_subgroups(
        names,
        (of_all, after, own_labels),
        ((name, compare(name, column)) for name, column in compared.policy.noise_columns.items()),
    )


def _match_in_groups(before: Numbers, was: Labels, after: Numbers, now: Labels) -> Numbers:
    """Return originals matched to released values by rank within each group, for records with a value."""
    matched = np.full(len(after), np.nan)
    for label in np.unique(now).tolist():
        there, here = (was == label) & ~np.isnan(before), (now == label) & ~np.isnan(after)
        if there.any() and here.any():
            matched[here] = match_ranks(before[there], after[here])
    return matched


def without_reasons(column: NoiseColumn, numbers: Numbers) -> Numbers:
    """Return the numbers, NaN for an entry that is a reason for no value."""
    return np.where(column.find_reasons(numbers) < 0, numbers, np.nan) if column.reasons else numbers


def number_labels(columns: Sequence[pa.ChunkedArray | None]) -> tuple[list[str], list[Labels]]:
    """Return the texts that occur in any of these columns, ascending, and the position of each entry among them: -1 for a blank
    cell. A missing column has no entries."""
    told = [list_entries(pa.chunked_array([], pa.string()) if column is None else column) for column in columns]
    names = sorted({entry for entries, _ in told for entry in entries if entry})
    place = {name: number for number, name in enumerate(names)} | {"": NO_GROUP}
    return names, [np.array([place[entry] for entry in entries], dtype=np.int32)[at] for entries, at in told]


def list_entries(column: pa.ChunkedArray) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the different entries as texts, a blank one last, and the position of each record's."""
    coded = column.combine_chunks().dictionary_encode()
    return [*map(str, coded.dictionary.to_pylist()), ""], coded.indices.fill_null(len(coded.dictionary)).to_numpy()


def _attack(compared: Compared, streams: Streams) -> dict[str, Any]:
    """Return the results of the attacks, as evidence keeps them."""
    attacks, by_column = attack_table(compared, streams)
    return {
        "attacks": [asdict(attack) for attack in attacks],
        "inference": {name: asdict(one) for name, one in by_column.items()},
    }


def attack_table(compared: Compared, streams: Streams) -> tuple[list[Attack], dict[str, Attack]]:
    """Return the three attacks on all released columns, and inference column by column; empty if there are too few records to
    attack. Linking and inferring need two columns, and every attack needs people to compare with."""
    columns: list[AttackedColumn] = []
    for name in compared.policy.released_columns:
        after = compared.released.column(name)
        if name in compared.policy.noise_columns:
            columns.append(AttackedColumn(name, compared.seen(name), after.to_numpy(), compared.original_of))
        else:
            columns.append(AttackedColumn(name, *encode_entries([compared.of_released(name), after])))
    if compared.released.num_rows < LEAST_ATTACKED:
        return [], {}
    table, attacks = Attacked(tuple(columns)), list[Attack]()
    by_column: dict[str, Attack] = {}
    if len(columns) > 1:
        attacks.append(link(table, stream=streams("link")))
        inference = infer(table, stream=streams("infer"))
        attacks.append(inference.overall)
        by_column = {column.name: one for column, one in zip(columns, inference.columns, strict=True)}
    attacks[:0] = single_out(table, stream=streams("single out"))
    return attacks, by_column


def train_models(compared: Compared, streams: Streams, predictor: Measure | None = None) -> dict[str, Any]:
    """Return what models learn from the same persons of both tables, a random sample if there are many."""
    if predictor is not None:
        return {"predictions": predictor(compared, streams)}
    few = compared.among(shuffled_first(compared.released.num_rows, MODEL_SAMPLE, streams("models")))
    return {"predictions": predict_targets(few, None)}


def predict_targets(learned: Compared, tested: Compared | None) -> dict[str, Any]:
    """Return the predictions of each target of the policy by models that learned from released rows, tested on the last third of
    their own records, or on the originals of others in `tested`."""
    policy, figures = learned.policy, dict[str, Any]()
    if not policy.audit.predict:
        return figures
    before, after = _list_released(learned)
    if tested is not None:
        asked = pa.table({name: tested.seen_of_released(name) for name in after.column_names})
        before = pa.concat_tables([before, asked], promote_options="permissive")
    original, masked = encode_features([before, after])
    for name, target in policy.audit.predict.items():
        rest = [place for place, other in enumerate(after.column_names) if other != name]
        truth, said = (says_yes(table.column(name), target, policy.noise_columns.get(name)) for table in (before, after))
        if rest:
            first = None if tested is None else after.num_rows
            found = predict(original[:, rest], truth, masked[:, rest], said, seed=SEED, trained=first)
            figures[name] = asdict(found)
    return figures


def _list_released(compared: Compared) -> list[pa.Table]:
    """Return the released columns of some records, as the method saw them and as they are released."""
    after = compared.released.select(list(compared.policy.released_columns))
    return [pa.table({name: compared.seen_of_released(name) for name in after.column_names}), after]


def says_yes(column: pa.ChunkedArray, target: Target, of: NoiseColumn | None) -> npt.NDArray[np.bool_]:
    """Return which records have what a target of the policy's audit asks for in a column; `of`: the column's policy if it is
    masked. A record without a value is above nothing."""
    if target.above is not None:
        numbers: Numbers = column.to_numpy()
        return (numbers if of is None else without_reasons(of, numbers)) > float(target.above)
    return np.array([entry is not None and str(entry) == str(target.equals) for entry in column.to_pylist()], dtype=np.bool_)


def round_figures(figures: Plain) -> Any:
    """Return figures as evidence keeps them: six significant digits, and None for a figure that is not finite."""
    if isinstance(figures, Mapping):
        return {name: round_figures(figure) for name, figure in figures.items()}
    if isinstance(figures, list | tuple):
        return [round_figures(figure) for figure in figures]
    if isinstance(figures, float):
        return float(f"{figures:.{DIGITS}g}") if np.isfinite(figures) else None
    return figures


# Utility and risk of synthetic rows against the records that were counted: internal, like every part of an audit.
#
# Rows are synthetic, so there is nothing to link and no error of a record. People can lose what the table reveals about those
# that it was made from, beyond what it reveals about others. So the mechanism is run once more, on the records without a control
# group, with noise that is never released, and attacks on both are compared.


Remake = Callable[[Read], pa.Table]


def audit_synthetic(
    compared: Compared,
    before: Counting,
    after: Counting,
    *,
    remake: Remake,
    streams: Streams,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Return every figure of a synthetic table, as evidence keeps it. `remake`: makes such a table from other records."""
    policy = compared.policy
    progress("measuring utility")
    few = draw_attacked(compared, streams)
    figures = measure_counted(compared, few, before, after)
    figures["structure"] = _measure_structure(few, before, after, streams)
    if policy.audit.groups:
        figures["subgroups"] = {name: measure_by_group(few, name) for name in policy.audit.groups}
    if compared.originals >= LEAST_ATTACKED:
        progress("attacking a table made without a control group")
        figures |= attack_without_control(compared, remake, streams, among=len(before.tally(0)))
    progress("training models")
    return round_figures({**figures, **train_models(few, streams)})


def _measure_structure(compared: Compared, before: Counting, after: Counting, streams: Streams) -> dict[str, Any]:
    """Return how far the tables of one, two and three columns are from the original ones, compared with those of records drawn
    again."""
    nominal = [name for name in before.encoders if name in compared.policy.listed_columns]
    random = make_random(take_secret(streams("tables of columns")))
    sizes = {name: encoder.size for name, encoder in before.encoders.items()}
    return {
        **measure_structure(sizes, before, after, nominal, random),
        "group_means": _measure_group_means(compared, streams),
    }


def _measure_group_means(compared: Compared, streams: Streams) -> dict[str, Any] | None:
    """Return the errors of group means of every column of numbers by every column of categories; None if there are none."""
    policy = compared.policy
    anew = drawn_positions(compared.originals, streams("means of groups"))
    labels = {
        name: Grouping.of(compared.original(name), compared.released.column(name), anew)
        for name in policy.released_columns
        if name not in policy.noise_columns
    }

    def read(name: str, column: NoiseColumn) -> tuple[Numbers, Numbers]:
        before, after = (side.to_numpy() for side in (compared.original(name), compared.released.column(name)))
        return without_reasons(column, before), without_reasons(column, after)

    numbers = ((name, read(name, column)) for name, column in policy.noise_columns.items())
    return measure_group_means(labels, numbers, anew)


def attack_without_control(compared: Compared, remake: Remake, streams: Streams, *, among: int) -> dict[str, Any]:
    """Return attacks on people that a table was made from, and on people that it was made without, `among` so many. With more
    than `ATTACKED_SAMPLE` records, a table made from that many of them is attacked, as if there were no others: people left out
    of it are in no row."""
    count = compared.originals
    places = shuffled_first(count, min(count, ATTACKED_SAMPLE), streams("control group"))
    size = min(INFERRED, len(places) // 3)
    kept = np.sort(places[size:])
    try:
        made = remake(compared.read_few(kept))
    except InvalidArgument:  # this draw left no row that may occur, as a release's own may: there is nothing to attack
        return {"attacks": [], "inference": {}}
    rows, people = made.num_rows, np.append(np.arange(size, 2 * size), np.arange(size))  # in `places`
    columns: list[AttackedColumn] = []
    for name in compared.policy.released_columns:
        before, after = take_few(compared.original(name), places), made.column(name)
        if column := compared.policy.noise_columns.get(name):  # on its grid, or no two values would be equal
            original, released = column.coded_grid.snap(before.to_numpy()), after.to_numpy()
        else:
            original, released = encode_entries([before, after])
        padded = np.append(released, original[people])
        columns.append(AttackedColumn(name, original, padded, np.append(np.zeros(rows, dtype=np.intp), people)))
    table = Attacked(tuple(columns))
    place = np.arange(rows + 2 * size, dtype=np.intp)
    drawn = People(place[rows : rows + size], place[rows + size :], place[:rows])
    attacks: list[Attack] = list(single_out_beside(table, drawn, stream=streams("single out")))
    by_column: dict[str, Any] = {}
    if len(columns) > 1:
        inference = infer(table, stream=streams("infer"), people=drawn, among=len(places))  # `table` has people, too
        attacks.append(inference.overall)
        by_column = {column.name: asdict(one) for column, one in zip(columns, inference.columns, strict=True)}
    closest = asdict(find_closest(table, drawn))
    near = asdict(find_near_rows(table, drawn, **_pick_known(compared.policy)))
    sampled = {"attacked_sample": {"tried": len(places), "among": among}} if len(places) < among else {}
    found = {"attacks": [asdict(attack) for attack in attacks], "inference": by_column, "closest": closest, "nearest": near}
    return found | sampled


def _pick_known(policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return what an attacker knows about a person and wants to know: quasi-identifiers, and all other columns (none if every
    column is a quasi-identifier). Without quasi-identifiers every column in turn, with all others known."""
    names = tuple(policy.released_columns)
    quasi = tuple(name for name in names if policy.columns[name].role == "quasi")
    return {"known": quasi or names, "secrets": tuple(name for name in names if name not in quasi)}
