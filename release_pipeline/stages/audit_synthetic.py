"""Utility and risk of synthetic rows against the records that their counts were taken of: internal, as all of an audit is.

No row is anybody's, so that there is nothing to link and no error of a record. What people can lose is what the table tells of
those that it was made of, beyond what it tells of others: the mechanism is run once more, on the records without a control group,
with noise that is never released, and attacks on both are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import pick_synthetic
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.privacy.attacks import (
    INFERRED,
    Attack,
    Attacked,
    AttackedColumn,
    People,
    find_closest,
    find_near_rows,
    infer,
    single_out_beside,
)
from release_pipeline.privacy.noise import drawn_positions, shuffled_first, take_secret
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.stages.audit import (
    ATTACKED_SAMPLE,
    LEAST_ATTACKED,
    Streams,
    draw_attacked,
    measure_by_group,
    measure_rules,
    round_figures,
    train_models,
    without_reasons,
)
from release_pipeline.stages.column_table import take_few
from release_pipeline.stages.compared import Compared, Numbers, Read
from release_pipeline.stages.counted import Counting
from release_pipeline.stages.measures.columns import measure_counted
from release_pipeline.stages.measures.features import encode_entries
from release_pipeline.stages.measures.group_means import Grouping, measure_group_means
from release_pipeline.stages.measures.structure import measure_structure

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
    """Every figure of a synthetic table, as evidence keeps it. `remake`: a table like it, of other records."""
    policy = compared.policy
    progress("measuring utility")
    few = draw_attacked(compared, streams)
    figures = measure_counted(compared, few, before, after)
    figures["structure"] = _measure_structure(few, before, after, streams)
    if policy.audit.groups:
        figures["subgroups"] = {name: measure_by_group(few, name) for name in policy.audit.groups}
    figures |= measure_rules(few)
    if compared.originals >= LEAST_ATTACKED:
        progress("attacking a table made without a control group")
        figures |= attack_without_control(compared, remake, streams, among=before.records)
    progress("training models")
    return round_figures({**figures, **train_models(few, streams)})


def _measure_structure(compared: Compared, before: Counting, after: Counting, streams: Streams) -> dict[str, Any]:
    """How far the tables of one, two and three columns are from the original ones, beside those of records drawn anew."""
    columns = pick_synthetic(compared.policy.columns)
    nominal = [name for name in before.encoders if isinstance(columns[name], ListedColumn)]
    random = make_random(take_secret(streams("tables of columns")))
    sizes = {name: encoder.size for name, encoder in before.encoders.items()}
    return {
        **measure_structure(sizes, before, after, nominal, random),
        "group_means": _measure_group_means(compared, streams),
    }


def _measure_group_means(compared: Compared, streams: Streams) -> dict[str, Any] | None:
    """Of every column of numbers by every column of categories."""
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
    """Attacks on people that a table was made of, and on people that it was made without, among so many. Of more than
    `ATTACKED_SAMPLE` records a table that is made of so many of them is attacked, as if there were no others: who is left out
    of it is in no row."""
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
    for name, column in compared.policy.released_columns.items():
        before, after = take_few(compared.original(name), places), made.column(name)
        if isinstance(column, NoiseColumn):  # on its grid, or nobody would ever be alike
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
    """What somebody knows of a person, and what they would like to: quasi-identifiers and all other columns, none where every
    column is a quasi-identifier. Where none is, every column in turn, with all others known."""
    names = tuple(policy.released_columns)
    quasi = tuple(name for name in names if policy.columns[name].role == "quasi")
    return {"known": quasi or names, "secrets": tuple(name for name in names if name not in quasi)}
