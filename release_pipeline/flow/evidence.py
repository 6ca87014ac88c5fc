"""The evidence of a candidate as types: what its folder says of itself, for the people who sign it and those who read it later.

What a type leaves out stays in the file. What only some methods, policies or releases have is empty by default: a release that
gates stopped has less.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from release_pipeline.policy.typed import BeforeValidator, Plain, read_as
from release_pipeline.report.internal_view import CorrelationView, RungView, ShareView, SpreadView
from release_pipeline.stages.gates import Gate
from release_pipeline.store import formats

EVIDENCE = "evidence.json"
Shares: TypeAlias = tuple[float | None, ...]
Read = TypeVar("Read")


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
    """What clamping took from a column: a share of the records, and of the variance."""

    share: float
    variance: float | None = None


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """What was noted of a column before its noise was drawn: errors to expect, or the level that it is released on."""

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
    """The shares of records up to some places, in the original (None: too few to be told) and as released."""

    places: tuple[float, ...]
    original: Shares
    released: Shares


@dataclass(frozen=True, slots=True)
class Spreads:
    """A column in numbers, before and after, and of what its records stand for where they have weights."""

    original: Spread
    released: Spread
    weighted_original: Spread | None = None
    weighted_released: Spread | None = None


@dataclass(frozen=True, slots=True)
class AtomShares:
    """The share of records at each atom, before (None: too few to be told) and after, and with weights where there are some."""

    original: Shares
    released: tuple[float, ...]
    weighted_original: Shares = ()
    weighted_released: Shares = ()


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, beside its control group."""

    name: str
    attack: ShareView
    control: ShareView
    guess: float
    risk: ShareView
    worst: str = ""


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Groups of records that share their released quasi-identifiers."""

    number: int
    smallest: int
    mean: float
    largest: int
    bars: tuple[tuple[int, int, int], ...]
    diversity: dict[str, int]
    prosecutor: float
    journalist: float


@dataclass(frozen=True, slots=True)
class Discrimination:
    """How well a model tells released from original records."""

    model: str
    pmse: float
    by_chance: float | None


@dataclass(frozen=True, slots=True)
class Sample:
    """How many records models, or attacks, were tried on, among how many."""

    tried: int
    among: int


@dataclass(frozen=True, slots=True)
class Learned:
    """What a model learns of one target, from released and from original records."""

    model: str
    released: float
    original: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Every model of one target."""

    models: tuple[Learned, ...]
    guess: float
    trained: int
    tested: int


@dataclass(frozen=True, slots=True)
class SubgroupColumn:
    """A column of one declared group; weighted figures where the policy has a weight. `chance`: the standard deviation of the
    error of as many records drawn at random, `above` how many of these the error lies above that of all."""

    original: float | None
    released: float | None
    error: float | None
    weighted_original: float | None = None
    weighted_released: float | None = None
    chance: float | None = None
    above: float | None = None
    absolute: float | None = None
    weighted_error: float | None = None


@dataclass(frozen=True, slots=True)
class Subgroup:
    """One declared group, and what its records stand for where they have weights; without columns it is too small to be
    measured."""

    label: str
    records: int
    released: int
    columns: dict[str, SubgroupColumn]
    weight: float | None = None
    released_weight: float | None = None


@dataclass(frozen=True, slots=True)
class MapFigures:
    """What places a candidate on the map of risk and utility."""

    error: dict[str, float]
    record_linkage: ShareView | None = None


@dataclass(frozen=True, slots=True)
class Weighted:
    """Mean and quartiles of what the records stand for, and the `plain` mean of the records; None where nothing has a weight."""

    mean: float | None
    plain: float | None
    low: float | None
    median: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class WeightedPair:
    """A column before and after."""

    original: Weighted
    released: Weighted


@dataclass(frozen=True, slots=True)
class Population:
    """What a sample of so many records tells of the population that it was drawn from (`privacy.samples`)."""

    records: int
    sample_uniques: int
    population_uniques: float
    identified: float
    worst: float


@dataclass(frozen=True, slots=True)
class SampleFigures:
    """What records with weights stand for."""

    weight: str
    weighted: dict[str, WeightedPair] = field(default_factory=dict[str, WeightedPair])
    population: Population | None = None


@dataclass(frozen=True, slots=True)
class TieFigures:
    """A rule that ties published columns, and how many of the published records break it: as they came, and as released."""

    name: str
    words: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class RecomputedFigures:
    """How far a recomputed column lies from what the original records make: of numbers error over variance, mean absolute error
    and means, of texts the share of records that have another one."""

    error: float | None = None
    absolute_error: float | None = None
    original: float | None = None
    released: float | None = None
    changed: float | None = None


@dataclass(frozen=True, slots=True)
class PairDistance:
    """How far the table of two columns is from the original one."""

    one: str
    other: str
    distance: float


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The mean of one column in one group, before and after; `off` over the standard deviation of the column."""

    by: str
    label: str
    column: str
    original: float
    released: float
    off: float
    records: int


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """How far means of groups are off on average, beside records drawn anew, and the worst of those compared."""

    mean: float
    by_chance: float
    compared: int
    worst: tuple[GroupMean, ...]


@dataclass(frozen=True, slots=True)
class StructureFigures:
    """How far synthetic tables of one, two and three columns are from the original ones on average, beside records drawn anew."""

    columns: dict[str, float]
    columns_by_chance: float | None
    pairs: float | None
    pairs_by_chance: float | None
    worst_pairs: tuple[PairDistance, ...]
    triples: float | None
    triples_by_chance: float | None
    triples_tried: int
    group_means: GroupMeans | None = None


@dataclass(frozen=True, slots=True)
class ClosestFigures:
    """How far the nearest synthetic row is from people that rows were made of, and from people that they were made without."""

    median: float
    equal: ShareView | None
    control_median: float
    control_equal: ShareView | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One share less another, with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Claim:
    """How often the value of a nearest row is right of people that rows were made of, and of strangers."""

    name: str
    people: ShareView
    strangers: ShareView
    guess: float
    beyond: Difference


@dataclass(frozen=True, slots=True)
class NearRows:
    """What rows near people tell somebody who knows some columns of them (`privacy.attacks.NearRows`)."""

    known: tuple[str, ...]
    equal: ShareView
    strangers_equal: ShareView
    beyond: Difference
    median: float
    strangers_median: float
    claims: tuple[Claim, ...] = ()
    overall: Claim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFigures(MapFigures):
    """What was measured of a candidate against the original, by column where it is of one."""

    absolute_error: dict[str, float]
    ks: dict[str, float]
    wasserstein: dict[str, float]
    curves: dict[str, Distribution]
    spread: dict[str, Spreads]
    atoms: dict[str, AtomShares] = field(default_factory=dict[str, AtomShares])
    attacks: tuple[Attack, ...] = ()
    attacked_sample: Sample | None = None
    inference: dict[str, Attack] = field(default_factory=dict[str, Attack])
    correlations: CorrelationView | None = None
    rank_correlations: CorrelationView | None = None
    groups: GroupFigures | None = None
    discrimination: tuple[Discrimination, ...] = ()
    model_sample: Sample | None = None
    predictions: dict[str, Prediction] = field(default_factory=dict[str, Prediction])
    subgroups: dict[str, tuple[Subgroup, ...]] = field(default_factory=dict[str, tuple[Subgroup, ...]])
    suppressed: dict[str, int] = field(default_factory=dict[str, int])
    share_suppressed: float | None = None
    record_linkage_by_chance: float = 0.0
    linkage_ladder: tuple[RungView, ...] = ()
    sse_paper: float | None = None
    sample: SampleFigures | None = None
    ties: tuple[TieFigures, ...] = ()
    structure: StructureFigures | None = None
    closest: ClosestFigures | None = None
    nearest: NearRows | None = None
    recomputed: dict[str, RecomputedFigures] = field(default_factory=dict[str, RecomputedFigures])
    information_loss: dict[str, float] = field(default_factory=dict[str, float])
    relative_error: dict[str, float | None] = field(default_factory=dict[str, float | None])


@dataclass(frozen=True, slots=True)
class Predecessor:
    """An earlier candidate of the policy on the map."""

    release: str
    error: float
    linkage: float


@dataclass(frozen=True, slots=True)
class BudgetStep:
    """What one release took from the budget, in its unit; None is infinity."""

    release: str
    amount: int | None


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of the population as it was with the release's own charge."""

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
class LookFigures:
    """A look at the data before the charge, as its event has it."""

    event: int
    noted: str
    by: str
    on: str
    compared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CriterionFigures:
    """One attack on the released table, by the criterion that it is tried for: how often it succeeds (`rate`), the same against
    its control group, and what is `beyond`; none of record linkage, which has no control group. Where the policy has a `limit`:
    what was `foreseen` before the charge, and the `most` of it, which the limit is on. `column`: the one that is inferred."""

    criterion: str
    attack: str
    rate: ShareView
    guess: float
    column: str = ""
    control: ShareView | None = None
    beyond: ShareView | None = None
    foreseen: ShareView | None = None
    most: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a release. `facts`: the public ones, which the registry has too. `audit`: what was measured against the
    original, nothing where gates stopped it before; `figures_of` reads it. `foreseen_ladder`: what a simulated release links, of
    one that the gate on it stopped."""

    release: str
    gates: tuple[Judged, ...]
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    columns: dict[str, ColumnFigures] = field(default_factory=dict[str, ColumnFigures])
    clamping: dict[str, Clamped] = field(default_factory=dict[str, Clamped])
    audit: dict[str, Any] = field(default_factory=dict[str, Any])
    predecessors: tuple[Predecessor, ...] = ()
    budget: Budget | None = None
    checks_passed: dict[str, int] = field(default_factory=dict[str, int])
    own_suite: tuple[SuiteFigures, ...] = ()
    warnings: tuple[str, ...] = ()
    looks: tuple[LookFigures, ...] = ()
    criteria: tuple[CriterionFigures, ...] = ()
    foreseen_ladder: tuple[RungView, ...] = ()

    def figures_of(self, kind: type[Read]) -> Read:
        """What was measured against the original, as one of the two types of it."""
        return read_as(kind, self.audit, where=self.release)


def read_evidence(document: Mapping[str, Any], *, where: str) -> Evidence:
    """Evidence as it was written."""
    return read_as(Evidence, formats.EVIDENCE.read(document, where=where), where=where)


def load_evidence(candidate: Path) -> Evidence:
    """That of a candidate, from its folder."""
    file = candidate / EVIDENCE
    return read_evidence(json.loads(file.read_text(encoding="utf-8")), where=str(file))
