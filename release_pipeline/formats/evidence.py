"""The evidence of a candidate as types: what its folder records for the people who sign it and for later readers.

Keys that a type leaves out stay in the file. Fields that only some methods, policies or releases have are empty by default: a
release that gates stopped has fewer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from release_pipeline.audit.gates import Gate
from release_pipeline.formats import versions as formats
from release_pipeline.formats.attack_views import CriterionView, NearView, RungView, ShareView
from release_pipeline.formats.internal_view import (
    ClassesView,
    ClosestView,
    CorrelationView,
    LookView,
    PredictionView,
    SampleView,
    SpreadView,
    StructureView,
    SubgroupView,
)
from release_pipeline.policy.documents import Plain, read_as

EVIDENCE = "evidence.json"
Shares: TypeAlias = tuple[float | None, ...]


def _spread(content: Plain | SpreadView) -> Plain | SpreadView:
    if not isinstance(content, Mapping):
        return content
    known: Mapping[str, Any] = content
    mean, deviation, *quantiles = _numbers([known["mean"], known["deviation"], *known["quantiles"]])
    return SpreadView(mean, deviation, tuple(quantiles), tuple(_numbers(known["deciles"])))


def _numbers(figures: Iterable[float | None]) -> Iterator[float]:
    return (math.nan if figure is None else figure for figure in figures)


Spread: TypeAlias = Annotated[SpreadView, BeforeValidator(_spread)]
Judged: TypeAlias = Annotated[Gate, BeforeValidator(Gate.from_json)]


@dataclass(frozen=True, slots=True)
class Clamped:
    """The effect of clamping on a column: the share of the records, and of the variance, that it removed."""

    share: float
    variance: float | None = None


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """Figures of a column noted before its noise was drawn: expected errors, or the level that it is released on."""

    error: float | None = None
    error_low: float | None = None
    error_high: float | None = None
    relative_error: float | None = None
    atom_share: float | None = None
    ks: float | None = None
    group_mean: float | None = None
    group_error: float | None = None
    group_errors: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    at_atoms: tuple[float, ...] | None = None
    level: int | None = None
    mean_level: float | None = None
    mean_width: float | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """The shares of records up to each of some values, in the original (None: too few to show) and as released."""

    places: tuple[float, ...]
    original: Shares
    released: Shares


@dataclass(frozen=True, slots=True)
class Spreads:
    """Summary figures of a column, before and after."""

    original: Spread
    released: Spread


@dataclass(frozen=True, slots=True)
class AtomShares:
    """The share of records at each atom, before (None: too few to show) and after."""

    original: Shares
    released: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The number of records that were attacked, and of all."""

    tried: int
    among: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFigures:
    """Figures of a candidate measured against the original, keyed by column where they are per column."""

    error: dict[str, float]
    absolute_error: dict[str, float]
    ks: dict[str, float]
    wasserstein: dict[str, float]
    curves: dict[str, Distribution]
    spread: dict[str, Spreads]
    atoms: dict[str, AtomShares] = field(default_factory=dict[str, AtomShares])
    attacked_sample: Sample | None = None
    correlations: CorrelationView | None = None
    rank_correlations: CorrelationView | None = None
    groups: ClassesView | None = None
    predictions: dict[str, PredictionView] = field(default_factory=dict[str, PredictionView])
    subgroups: dict[str, tuple[SubgroupView, ...]] = field(default_factory=dict[str, tuple[SubgroupView, ...]])
    suppressed: dict[str, int] = field(default_factory=dict[str, int])
    share_suppressed: float | None = None
    record_linkage: ShareView | None = None
    record_linkage_by_chance: float = 0.0
    linkage_ladder: tuple[RungView, ...] = ()
    sse_paper: float | None = None
    sample: SampleView | None = None
    structure: StructureView | None = None
    closest: ClosestView | None = None
    nearest: NearView | None = None
    information_loss: dict[str, float] = field(default_factory=dict[str, float])
    relative_error: dict[str, float | None] = field(default_factory=dict[str, float | None])


NOTHING = AuditFigures(error={}, absolute_error={}, ks={}, wasserstein={}, curves={}, spread={})


@dataclass(frozen=True, slots=True)
class BudgetStep:
    """The amount that one release took from the budget, in its unit; None is infinity."""

    release: str
    amount: int | None


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of the population, with the release's own charge included."""

    name: str
    unit: str
    in_releases: bool
    cap: int
    spent: int | None
    remaining: int
    steps: tuple[BudgetStep, ...]


@dataclass(frozen=True, slots=True)
class SuiteFigures:
    """An expectation of the steward's own suite, and how many records break it."""

    type: str
    columns: str
    broken: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a release. `facts`: the public ones, also in the registry. `audit`: figures measured against the original,
    empty if gates stopped the release before; `read_audit` reads it. `foreseen_ladder`: what a simulated release links, if the
    gate on it stopped the release."""

    release: str
    gates: tuple[Judged, ...]
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    columns: dict[str, ColumnFigures] = field(default_factory=dict[str, ColumnFigures])
    clamping: dict[str, Clamped] = field(default_factory=dict[str, Clamped])
    audit: dict[str, Any] = field(default_factory=dict[str, Any])
    budget: Budget | None = None
    checks_passed: dict[str, int] = field(default_factory=dict[str, int])
    own_suite: tuple[SuiteFigures, ...] = ()
    warnings: tuple[str, ...] = ()
    looks: tuple[LookView, ...] = ()
    criteria: tuple[CriterionView, ...] = ()
    foreseen_ladder: tuple[RungView, ...] = ()

    def read_audit(self) -> AuditFigures:
        """Return the figures measured against the original; all are empty if gates stopped the release before."""
        return read_as(AuditFigures, self.audit, where=self.release) if self.audit else NOTHING


def read_evidence(document: Mapping[str, Any], *, where: str) -> Evidence:
    """Return the evidence in a document; raises if the document is not valid evidence."""
    return read_as(Evidence, formats.EVIDENCE.read(document, where=where), where=where)


def load_evidence(candidate: Path) -> Evidence:
    """Return the evidence in the folder of a candidate."""
    file = candidate / EVIDENCE
    return read_evidence(json.loads(file.read_text(encoding="utf-8")), where=str(file))
