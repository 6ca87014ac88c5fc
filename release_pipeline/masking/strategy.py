"""What every strategy does, stage by stage: pure functions of tables, a policy and a secret, without I/O.

`read(table, columns)` gives what the stages before have made: `records`, and the tables of `group`. All of it is confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.audit.audit import Streams
from release_pipeline.audit.compared import Compared
from release_pipeline.audit.gates import Gate, Groups
from release_pipeline.mechanisms.noise import Context
from release_pipeline.policy.values.scalars import OURS
from release_pipeline.rows.columns import AnyTable, Read, read_with

RECORD = f"{OURS}_record"  # the row number of a record in source order, never released
OF_COLUMN = "column_name"  # of a table with rows for each column of the records: which of them a row is of
CLASS = f"{OURS}_class"  # the class of a record, never released
SUPPRESSION = f"{OURS}_suppression"  # next to the columns in what is expected

Progress: TypeAlias = Callable[[str], None]
Contexts: TypeAlias = Sequence[Context]


Figures: TypeAlias = dict[str, dict[str, Any]]  # by column, and name


@dataclass(frozen=True, slots=True)
class Grouped:
    """Records grouped, exact statistics and noise scales: tables for the vault, evidence by column, and facts for everybody."""

    tables: Mapping[str, pa.Table]
    evidence: Figures
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


NOTHING_LEFT = "every record would have to be suppressed, so nothing is left to release."


@dataclass(frozen=True, slots=True)
class Suppressed:
    """What is left of a masked table. `records` lost a cell or are gone, `share` of all; `anonymity`: the smallest group of equal
    quasi-identifiers that is left; `refusal` says why nothing may go on; `figures` are internal."""

    table: AnyTable
    cells: int
    dropped: int
    share: float
    anonymity: int | None
    refusal: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def obstacle(self) -> str:
        """Why there can be no release: the refusal, or that no record is left; empty where there can."""
        return self.refusal or ("" if self.table.num_rows else NOTHING_LEFT)


def describe_scales(scale: npt.NDArray[np.int64], step: float) -> dict[str, float]:
    """The smallest, the middle and the largest noise scale, in a column's own units."""
    return {
        "scale_smallest": float(scale.min()) * step,
        "scale_median": float(np.median(scale)) * step,
        "scale_largest": float(scale.max()) * step,
    }


class Strategy(Protocol):
    """How one family of methods takes records to masked records.

    `suppression_reads`: the stages whose tables `suppress` reads besides the masked one. `makes`: the tables of `group`.
    """

    suppression_reads: ClassVar[tuple[str, ...]]
    makes: ClassVar[tuple[str, ...]]

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """What error to expect of each noise column, before anything is charged: `error`, a mean square over the variance, and
        what else a gate may limit. The same data and method give the same figures. `secret` is none of a release's."""
        ...

    def judge(self, expected: Figures) -> list[Gate]:
        """What else of these figures has a limit, before the charge."""
        ...

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """The exact part, before any noise."""
        ...

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """What is measured with noise before values are made of it only; nothing where noise is on the values of records.
        Stored with the masked table, which `mask` makes of it; it may be published under the same claim."""
        ...

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> AnyTable:
        """The masked records in an order that only the secret knows, each with its `RECORD`."""
        ...

    def suppress(self, read: Read, masked: AnyTable) -> Suppressed:
        """What of the masked records may be released."""
        ...

    def compare(self, read: Read, released: AnyTable) -> Compared:
        """A released table next to the records that it was made of."""
        ...

    def audit(
        self, read: Read, released: AnyTable, *, groups: Groups | None, streams: Streams, progress: Progress
    ) -> dict[str, Any]:
        """Figures of utility and risk against the original: internal. `groups`: those of the released table, measured before;
        `streams` gives random choices by their purpose."""
        ...


def draw_release(
    strategy: Strategy, grouped: Mapping[str, pa.Table], read: Read, *, secret: bytes, context: Contexts = ()
) -> tuple[Suppressed, Read]:
    """A simulated release, and what reads the tables that it was made of. `grouped`: the tables of `Strategy.group`."""
    records = read_with(grouped, read)
    measured = read_with(strategy.measure(records, secret=secret, context=context, progress=be_quiet), records)
    masked = strategy.mask(measured, secret=secret, context=context, progress=be_quiet)
    return strategy.suppress(measured, masked), measured


def be_quiet(_: str) -> None:
    """Report no progress."""


# The figures of all records, by those of each random part of them. Every figure has a rule; one
# without raises.


Ints: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.float64]
ERRORS = ("error", "error_low", "error_high")
EVIDENCE: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "records": sum,
    "clusters": sum,
    "clusters_without_noise": sum,
    "scale_smallest": min,
    "scale_median": max,
    "scale_largest": max,
    "loss_centroid": max,
    "loss_column": max,
    "loss_table": max,
    "epsilon": lambda shares: shares[0],  # the same in every part: one change of a record is in one of them
}


def merge_evidence(of_parts: Sequence[Figures]) -> Figures:
    """Counts added up; of scales and losses the extremes, and of the medians of scales the largest."""
    return {
        name: {
            "parts": len(of_parts),
            **{key: EVIDENCE[key]([part[name][key] for part in of_parts]) for key in of_parts[0][name]},
        }
        for name in of_parts[0]
    }


def merge_expected(of_parts: Sequence[Figures], records: Sequence[Ints], numbers: Callable[[str], Numbers]) -> Figures:
    """Shares, distances and means by the records of each part; mean squares over the variance of all of them, as the method sees
    them. `records`: which ones are in each part; `numbers`: those of a noise column, on its grid."""
    merged: Figures = {}
    weights = [len(rows) / sum(map(len, records)) for rows in records]
    for name in of_parts[0]:
        figures = {key: [part[name][key] for part in of_parts] for key in of_parts[0][name]}
        merged[name] = {key: _MEANS[key](values, weights) for key, values in figures.items() if key not in ERRORS}
        errors = [key for key in ERRORS if key in figures]
        if not errors:
            continue
        known = numbers(name)
        values = [known[rows][~np.isnan(known[rows])] for rows in records]  # those that have a value
        spread = np.multiply([float(np.var(own)) if len(own) else 0.0 for own in values], weights)
        whole = float(np.var(np.concatenate(values))) if sum(map(len, values)) else 0.0
        for key in errors:  # the range of the whole is at most as wide as those of the parts together
            is_known = None not in figures[key]
            merged[name][key] = (float(np.dot(figures[key], spread)) / whole if whole > 0 else 0.0) if is_known else None
    return merged


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.dot(known, weights)) if len(known) == len(values) else None


def _mean_of_lists(values: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    """The shares of all records at each atom are the mean of those of the parts, by their number of records."""
    return np.dot(weights, values).tolist()


_MEANS: Mapping[str, Callable[[Sequence[Any], Sequence[float]], Any]] = {
    "atom_share": _mean,
    "ks": _mean,
    "share": _mean,
    "at_atoms": _mean_of_lists,
}
