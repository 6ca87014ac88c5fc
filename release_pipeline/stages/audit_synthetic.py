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
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import declare_columns, pick_synthetic
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
from release_pipeline.privacy.noise import shuffled_positions
from release_pipeline.stages.audit import (
    LEAST_ATTACKED,
    SEEN,
    Streams,
    label_entries,
    measure_by_group,
    measure_rules,
    round_figures,
    train_models,
    without_reasons,
)
from release_pipeline.stages.compared import Compared, Read
from release_pipeline.stages.entries import find_entries
from release_pipeline.stages.measures.columns import measure_columns
from release_pipeline.stages.measures.features import encode_entries
from release_pipeline.stages.measures.group_means import measure_group_means
from release_pipeline.stages.measures.structure import draw_anew, measure_structure

Remake = Callable[[Read], pa.Table]


def audit_synthetic(
    policy: Policy, read: Read, released: pa.Table, *, remake: Remake, streams: Streams, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Every figure of a synthetic table, as evidence keeps it. `remake`: a table like it, of other records."""
    count = read("records", [next(iter(policy.released_columns))]).num_rows
    compared = Compared(policy, read, released, np.arange(count, dtype=np.intp), released, is_nobodys=True)
    progress("measuring utility")
    figures: dict[str, Any] = {"errors_against": SEEN, **measure_columns(compared)}
    figures["structure"] = _measure_structure(compared, streams)
    if policy.audit.groups:
        figures["subgroups"] = {name: measure_by_group(compared, name) for name in policy.audit.groups}
    figures |= measure_rules(compared)
    if count >= LEAST_ATTACKED:
        progress("attacking a table made without a control group")
        figures |= _attack(compared, remake, streams)
    progress("training models")
    return round_figures({**figures, **train_models(compared, streams)})


def _measure_structure(compared: Compared, streams: Streams) -> dict[str, Any]:
    """How far the tables of one, two and three columns are from the original ones, beside those of records drawn anew."""
    codes: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
    counted = pick_synthetic(compared.policy.columns)
    for name in declare_columns(compared.policy.columns):
        before, after = compared.original(name), compared.released.column(name)
        codes[name] = find_entries(counted[name], before), find_entries(counted[name], after)
    nominal = [name for name in codes if isinstance(counted[name], ListedColumn)]
    return {
        **measure_structure(codes, nominal, streams("tables of columns")),
        "group_means": _measure_group_means(compared, streams),
    }


def _measure_group_means(compared: Compared, streams: Streams) -> dict[str, Any] | None:
    """Of every column of numbers by every column of categories."""
    labels = {
        name: (label_entries(compared.original(name)), label_entries(compared.released.column(name)))
        for name in compared.policy.released_columns
        if name not in compared.policy.noise_columns
    }
    numbers = {
        name: (
            without_reasons(column, compared.original(name).to_numpy()),
            without_reasons(column, compared.released.column(name).to_numpy()),
        )
        for name, column in compared.policy.noise_columns.items()
    }
    return measure_group_means(labels, numbers, draw_anew(compared.originals, streams("means of groups")))


def _attack(compared: Compared, remake: Remake, streams: Streams) -> dict[str, Any]:
    """Attacks on people that a table was made of, and on people that it was made without."""
    count = compared.originals
    order = shuffled_positions(count, streams("control group"))
    size = min(INFERRED, count // 3)
    control, rest = order[:size], np.sort(order[size:])
    targets = order[size : 2 * size]
    kept = pa.array(rest)
    try:
        made = remake(lambda table, columns: compared.read(table, columns).take(kept))
    except InvalidArgument:  # this draw left no row that may occur, as a release's own may: there is nothing to attack
        return {"attacks": [], "inference": {}}
    rows, people = made.num_rows, np.concatenate([targets, control])
    columns: list[AttackedColumn] = []
    for name, column in compared.policy.released_columns.items():
        before, after = compared.original(name), made.column(name)
        if isinstance(column, NoiseColumn):  # on its grid, or nobody would ever be alike
            original, released = compared.seen(name), after.to_numpy()
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
        inference = infer(table, stream=streams("infer"), people=drawn)
        attacks.append(inference.overall)
        by_column = {column.name: asdict(one) for column, one in zip(columns, inference.columns, strict=True)}
    closest = asdict(find_closest(table, drawn))
    near = asdict(find_near_rows(table, drawn, **_pick_known(compared.policy)))
    return {"attacks": [asdict(attack) for attack in attacks], "inference": by_column, "closest": closest, "nearest": near}


def _pick_known(policy: Policy) -> dict[str, tuple[str, ...]]:
    """What somebody knows of a person, and what they would like to: quasi-identifiers and all other columns, none where every
    column is a quasi-identifier. Where none is, every column in turn, with all others known."""
    names = tuple(policy.released_columns)
    quasi = tuple(name for name in names if policy.columns[name].role == "quasi")
    return {"known": quasi or names, "secrets": tuple(name for name in names if name not in quasi)}
