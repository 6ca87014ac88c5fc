"""The part of the reviewers' page that is about columns: of all records, of groups, by weight, and of what was made anew."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from release_pipeline.flow.evidence import AtomShares, AuditFigures, Evidence, Subgroup
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import say_reason
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.plan import make_plan
from release_pipeline.policy.published import labels_of
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.dates import Clock
from release_pipeline.report.internal_view import (
    AtomView,
    Curve,
    NoiseColumnView,
    RecomputedView,
    SampleView,
    SubgroupsView,
    SubgroupView,
    WeightedView,
)
from release_pipeline.sentences import PUBLIC
from release_pipeline.stages.measures.subgroups import LEAST

OUTSIDE = 0.01  # by how much of its edge an error may leave the expected range before that is told


def view_columns(policy: Policy, evidence: Evidence, audit: AuditFigures) -> Iterator[NoiseColumnView]:
    """Every masked column: expected and actual errors, and what became of its distribution."""
    plan = make_plan(policy, rows=evidence.facts["rows_in"])
    is_alike = True
    if policy.swap is not None and policy.method.family == "columns":
        is_alike = policy.consistency == "isotonic"  # or else errors of ranks are smaller than those of records
    for name, column in policy.noise_columns.items():
        noted, spread, taken = evidence.columns[name], audit.spread[name], evidence.clamping.get(name)
        planned = next(part for part in plan.columns if part.name == name)
        expected, low, high = (noted.error, noted.error_low, noted.error_high) if is_alike else (None, None, None)
        actual, curves = audit.error[name], audit.curves[name]
        partitioned = low is not None and high is not None and not low * (1 - OUTSIDE) <= actual <= high * (1 + OUTSIDE)
        yield NoiseColumnView(
            name=name,
            role=column.role,
            epsilon=None if planned.epsilon is None else _say_epsilon(policy, planned.epsilon),
            forecast=PUBLIC("both.no_noise") if planned.noise == 0 else planned.share_words,  # as `check` says it
            expected_error=expected,
            expected_low=low,
            expected_high=high,
            actual_error=actual,
            mean_absolute_error=audit.absolute_error[name],
            partitioned=partitioned,
            original=spread.original,
            released=spread.released,
            ks=audit.ks[name],
            wasserstein=audit.wasserstein[name],
            original_curve=_view_curve(curves.places, curves.original),
            released_curve=_view_curve(curves.places, curves.released),
            clamped=None if taken is None else taken.share,
            clamped_variance=None if taken is None else taken.variance,
            expected_ks=noted.ks,
            atoms=tuple(_view_atoms(column, audit.atoms.get(name), noted.at_atoms or ())),
            clock=column.clock,
            weighted_original=spread.weighted_original,
            weighted_released=spread.weighted_released,
        )


def _say_epsilon(policy: Policy, amount: Epsilon) -> str:
    words = format_nano(amount.nano)
    return PUBLIC("both.rho", rho=words) if policy.protect.by_rho else words


def _view_atoms(column: NoiseColumn, shares: AtomShares | None, expected: Sequence[float]) -> Iterator[AtomView]:
    """The share at each atom, and of the records without a value for each reason; nothing where it was not measured."""
    if shares is None:
        return
    for place, words in enumerate([*map(column.say, column.atoms), *map(say_reason, column.reasons)]):
        forecast = expected[place] if place < len(expected) else None
        weighted = [side[place] for side in (shares.weighted_original, shares.weighted_released) if side]
        yield AtomView(words, shares.original[place], shares.released[place], forecast, *weighted)


def _view_curve(places: Sequence[float], shares: Sequence[float | None]) -> Curve:
    """The points that may be told."""
    return tuple((place, share) for place, share in zip(places, shares, strict=True) if share is not None)


def view_sample(policy: Policy, audit: AuditFigures) -> SampleView | None:
    """What records stand for, where they have weights; None where nothing was measured."""
    sample = audit.sample
    if sample is None:
        return None
    columns = tuple(
        WeightedView(
            name, *(tuple(asdict(side).values()) for side in (pair.original, pair.released)), clock=find_clock(policy, name)
        )
        for name, pair in sample.weighted.items()
    )
    population = sample.population
    if population is None:
        return SampleView(sample.weight, columns)
    return SampleView(
        sample.weight,
        columns,
        population.records,
        population.sample_uniques,
        population.population_uniques,
        population.identified,
        population.worst,
    )


def view_recomputed(policy: Policy, audit: AuditFigures) -> Iterator[RecomputedView]:
    """Every recomputed column."""
    for name, figures in audit.recomputed.items():
        yield RecomputedView(name, "; ".join(policy.derive[name].preview()), **asdict(figures))


def find_clock(policy: Policy, name: str) -> Clock | None:
    column = policy.columns.get(name)
    return column.clock if isinstance(column, NoiseColumn) else None


def view_subgroups(policy: Policy, evidence: Evidence, audit: AuditFigures) -> Iterator[SubgroupsView]:
    """Every declared column of groups."""
    names = tuple(audit.error)
    clocks = {name: clock for name in names if (clock := find_clock(policy, name)) is not None}
    for by, groups in audit.subgroups.items():
        meanings = labels_of(policy.columns[by])
        expected = [evidence.columns[name].group_errors.get(by, {}) if name in evidence.columns else {} for name in names]
        shown = tuple(
            replace(
                _view_subgroup(group, names, weighted=policy.weight is not None),
                label=_name_entry(group.label, meanings),
                expected=tuple(own.get(group.label, math.nan) for own in expected) if any(expected) else (),
            )
            for group in groups
        )
        yield SubgroupsView(by, names, shown, tuple(audit.error.values()), LEAST, clocks)


def _name_entry(entry: str, meanings: Mapping[str, str]) -> str:
    """With what it means, where the policy says."""
    return f"{entry} ({meanings[entry]})" if entry in meanings else entry


def _view_subgroup(group: Subgroup, names: tuple[str, ...], *, weighted: bool) -> SubgroupView:
    weights = () if group.weight is None or group.released_weight is None else (group.weight, group.released_weight)
    if not group.columns:
        return SubgroupView(group.label, group.records, group.released, weights=weights)
    found = [group.columns[name] for name in names]
    is_compared = any(one.chance is not None for one in found)
    return SubgroupView(
        group.label,
        group.records,
        group.released,
        tuple(_or_nan(one.original) for one in found),
        tuple(_or_nan(one.released) for one in found),
        tuple(_or_nan(one.error) for one in found),
        tuple((_or_nan(one.weighted_original), _or_nan(one.weighted_released)) for one in found) if weighted else (),
        tuple(_or_nan(one.chance) for one in found) if is_compared else (),
        tuple(_or_nan(one.above) for one in found) if is_compared else (),
        tuple(_or_nan(one.absolute) for one in found) if is_compared else (),
        tuple(_or_nan(one.weighted_error) for one in found) if is_compared and weighted else (),
        weights,
    )


def _or_nan(figure: float | None) -> float:
    return math.nan if figure is None else figure
