"""Utility and risk of a released table against the records that it was made of. Every figure is internal: it informs the people
who decide, and gates nothing (methods.md section 2). What a gate may look at is in `gates`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.sections import Target
from release_pipeline.policy.typed import Plain
from release_pipeline.privacy.attacks import Attack, Attacked, AttackedColumn, infer, link, single_out
from release_pipeline.privacy.noise import Context, NoiseStream, shuffled_positions
from release_pipeline.privacy.risk import record_linkage
from release_pipeline.privacy.utility import (
    choose_places,
    column_error,
    correlation_matrix,
    covariance_matrix,
    describe_spread,
    ks_distance,
    share_at_most,
    share_of_many,
    sse_paper,
    variance_of,
    wasserstein_distance,
)
from release_pipeline.stages.measures.discrimination import tell_apart
from release_pipeline.stages.measures.features import encode_entries, encode_features
from release_pipeline.stages.measures.groups import Groups, journalist_risk
from release_pipeline.stages.measures.prediction import predict
from release_pipeline.stages.shape import measure_atoms

LEAST_ATTACKED = 10  # with fewer records there is nothing to learn from an attack
LINKAGE_SAMPLE = 2_000  # released records that are linked
MODEL_SAMPLE = 5_000  # records of each table that models see
SEEN = "values as the method saw them"  # what errors are measured against; earlier versions took the values as they came
SEED = 1  # of the models' own choices: the same figures for the same tables
DIGITS = 6  # significant ones of a figure: what rounding differs by between processors is beyond them

Numbers = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.intp]
Read: TypeAlias = Callable[[str, Sequence[str] | None], pa.Table]
Streams: TypeAlias = Callable[[Context], NoiseStream]


@dataclass(frozen=True, slots=True)
class Compared:
    """A released table, and of the records that it was made of the columns that it has. `own[i]` is the original of released
    record i. `everybody`: the released quasi-identifiers of all records, suppressed ones too, as somebody would see them who
    knows how they were coarsened."""

    policy: Policy
    read: Read
    released: pa.Table
    own: Places
    everybody: pa.Table

    @property
    def originals(self) -> int:
        """How many records the release was made of."""
        return len(self.original(next(iter(self.policy.noise_columns))))

    def original(self, name: str) -> pa.ChunkedArray:
        """A column of all records."""
        return self.read("records", [name]).column(name)

    def seen(self, name: str) -> Numbers:
        """A noise column of all records as the method saw it: in its domain and on its grid."""
        return self.policy.noise_columns[name].exact_grid.snap(self.original(name).to_numpy())

    def of_released(self, name: str) -> pa.ChunkedArray:
        """A column of the records that were released, in the order of the released ones. Of a generalised column the label that
        the record got: that is what somebody who knows the hierarchy makes of the true value."""
        if name in self.policy.generalised_columns:
            return self.released.column(name)
        return self.original(name).take(pa.array(self.own))


def audit_table(
    compared: Compared, *, groups: Groups | None, streams: Streams, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Every figure of a released table, as evidence keeps it. `groups`: those of the table, which gates are judged on too;
    `streams` gives the random choices of each part by its name."""
    released, own, policy = compared.released, compared.own, compared.policy
    names = list(policy.noise_columns)
    figures: dict[str, Any] = {"errors_against": SEEN}
    progress("linking records")
    tried = shuffled_positions(len(own), streams("linkage"))[:LINKAGE_SAMPLE]
    original = np.empty((compared.originals, len(names)))  # filled column by column: no second copy of the table
    for place, name in enumerate(names):
        original[:, place] = compared.original(name).to_numpy()
    masked = np.column_stack([released.column(name).to_numpy()[tried] for name in names])
    linked = record_linkage(original, masked, own[tried], positions=np.arange(len(tried)), among=len(own))
    figures["record_linkage"] = asdict(linked)
    figures["record_linkage_by_chance"] = 1 / len(original)
    del original
    progress("measuring utility")
    figures |= _measure_columns(compared)
    progress("attacking the released table")
    figures |= _attack(compared, streams)
    if groups is not None:
        risk = journalist_risk(released.select(policy.released_quasi), compared.everybody)
        figures["groups"] = {**groups.to_json(), "journalist": risk}
    progress("training models")
    return round_figures({**figures, **_train(compared, streams)})


def link_within(
    original: Numbers, released: Numbers, own: Places, groups: npt.NDArray[np.int64], *, stream: NoiseStream
) -> dict[str, Any]:
    """Linking as KEA18 has it: only originals of the record's own class count."""
    tried = shuffled_positions(len(own), stream)[:LINKAGE_SAMPLE]
    return asdict(record_linkage(original, released, own, positions=tried, groups=groups))


def _measure_columns(compared: Compared) -> dict[str, Any]:
    """The closed formulas: errors record by record, which are the method's and so against what it saw; and against the original
    as it came, distances of distributions, moments, and links between columns."""
    names = list(compared.policy.noise_columns)
    found: dict[str, dict[str, Any]] = {
        figure: {} for figure in ("error", "absolute_error", "ks", "wasserstein", "spread", "curves")
    }
    atoms: dict[str, Any] = {}
    originals, seen, masked = list[Numbers](), list[Numbers](), list[Numbers]()
    for name in names:
        everybody: Numbers = compared.original(name).to_numpy()
        y: Numbers = compared.released.column(name).to_numpy()
        of_all = compared.seen(name)
        x = of_all[compared.own]
        found["error"][name] = column_error(x, y, variance=variance_of(of_all))
        found["absolute_error"][name] = float(np.mean(np.abs(x - y)))
        found["ks"][name] = ks_distance(everybody, y)
        found["wasserstein"][name] = wasserstein_distance(everybody, y)
        found["spread"][name] = {"original": asdict(describe_spread(everybody)), "released": asdict(describe_spread(y))}
        column = compared.policy.noise_columns[name]
        if column.atoms:
            atoms[name] = measure_atoms(column, everybody, y)
        places = choose_places(y)
        shares = {"original": share_of_many(everybody, places), "released": share_at_most(y, places).tolist()}
        found["curves"][name] = {"places": places.tolist(), **shares}
        originals.append(everybody[compared.own])
        seen.append(x)
        masked.append(y)
    covariances = {"original": covariance_matrix(originals), "released": covariance_matrix(masked)}
    return {
        **found,
        **({"atoms": atoms} if atoms else {}),
        "sse_paper": sse_paper(seen, masked),
        "covariances": {"names": names, **{side: found.tolist() for side, found in covariances.items()}},
        "correlations": {"names": names, **{side: correlation_matrix(found).tolist() for side, found in covariances.items()}},
    }


def _attack(compared: Compared, streams: Streams) -> dict[str, Any]:
    """The three attacks on all released columns, and inference column by column. Linking and inferring need two columns, and all
    of them somebody to compare with."""
    columns: list[AttackedColumn] = []
    for name, column in compared.policy.released_columns.items():
        after = compared.released.column(name)
        if isinstance(column, NoiseColumn):
            columns.append(AttackedColumn(name, compared.original(name).to_numpy(), after.to_numpy(), compared.own))
        else:
            columns.append(AttackedColumn(name, *encode_entries([compared.of_released(name), after])))
    if compared.released.num_rows < LEAST_ATTACKED:
        return {"attacks": [], "inference": {}}
    table, attacks = Attacked(tuple(columns)), list[Attack]()
    by_column: dict[str, Any] = {}
    if len(columns) > 1:
        attacks.append(link(table, stream=streams("link")))
        inference = infer(table, stream=streams("infer"))
        attacks.append(inference.overall)
        by_column = {column.name: asdict(one) for column, one in zip(columns, inference.columns, strict=True)}
    attacks[:0] = single_out(table, stream=streams("single out"))
    return {"attacks": [asdict(attack) for attack in attacks], "inference": by_column}


def _train(compared: Compared, streams: Streams) -> dict[str, Any]:
    """What models tell: on the same persons of both tables, a random sample where there are many."""
    released, policy = compared.released, compared.policy
    tried = shuffled_positions(released.num_rows, streams("models"))[:MODEL_SAMPLE]
    after = released.select(list(policy.released_columns)).take(pa.array(tried))
    before = pa.table({name: compared.of_released(name).take(pa.array(tried)) for name in after.column_names})
    original, masked = encode_features([before, after])
    figures: dict[str, Any] = {
        "model_sample": {"tried": len(tried), "among": released.num_rows},
        "discrimination": [asdict(one) for one in tell_apart(original, masked, seed=SEED, stream=streams("shuffled tables"))],
        "predictions": {},
    }
    for name, target in policy.audit.predict.items():
        rest = [place for place, other in enumerate(after.column_names) if other != name]
        truth, said = _says_yes(before.column(name), target), _says_yes(after.column(name), target)
        if rest:
            figures["predictions"][name] = asdict(predict(original[:, rest], truth, masked[:, rest], said, seed=SEED))
    return figures


def _says_yes(column: pa.ChunkedArray, target: Target) -> npt.NDArray[np.bool_]:
    if target.above is not None:
        return column.to_numpy() > float(target.above)
    return np.array([entry is not None and str(entry) == str(target.equals) for entry in column.to_pylist()], dtype=np.bool_)


def round_figures(figures: Plain) -> Any:
    """Figures as evidence keeps them: six significant digits, and None for what there is not."""
    if isinstance(figures, Mapping):
        return {name: round_figures(figure) for name, figure in figures.items()}
    if isinstance(figures, list | tuple):
        return [round_figures(figure) for figure in figures]
    if isinstance(figures, float):
        return float(f"{figures:.{DIGITS}g}") if np.isfinite(figures) else None
    return figures
