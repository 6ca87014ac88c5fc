"""The part of the reviewers' page about columns: of all records, and of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from release_pipeline.audit.subgroups import LEAST
from release_pipeline.formats.evidence import AtomShares, AuditFigures, Evidence
from release_pipeline.formats.internal_view import AtomView, Curve, NoiseColumnView, SubgroupsView
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.policy import Policy
from release_pipeline.policy.file.published import labels_of
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.plans.plan import make_plan
from release_pipeline.policy.values.formats import say_reason
from release_pipeline.sentences import PUBLIC

OUTSIDE = 0.01  # by what share of its edge an error may leave the expected range before the page reports it


def view_columns(policy: Policy, evidence: Evidence, audit: AuditFigures) -> Iterator[NoiseColumnView]:
    """Yield every masked column: expected and actual errors, and the change of its distribution."""
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
            forecast=PUBLIC("both.no_noise") if planned.noise == 0 else planned.share_words,  # as `check` writes it
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
        )


def _say_epsilon(policy: Policy, amount: Epsilon) -> str:
    words = format_nano(amount.nano)
    return PUBLIC("both.rho", rho=words) if policy.protect.by_rho else words


def _view_atoms(column: NoiseColumn, shares: AtomShares | None, expected: Sequence[float]) -> Iterator[AtomView]:
    """Yield the share at each atom, and of the records without a value for each reason; nothing where it was not measured."""
    if shares is None:
        return
    for place, words in enumerate([*map(column.say, column.atoms), *map(say_reason, column.reasons)]):
        forecast = expected[place] if place < len(expected) else None
        yield AtomView(words, shares.original[place], shares.released[place], forecast)


def _view_curve(places: Sequence[float], shares: Sequence[float | None]) -> Curve:
    """Return the points that may be shown."""
    return tuple((place, share) for place, share in zip(places, shares, strict=True) if share is not None)


def view_subgroups(policy: Policy, evidence: Evidence, audit: AuditFigures) -> Iterator[SubgroupsView]:
    """Yield every declared column of groups."""
    for by, groups in audit.subgroups.items():
        meanings = labels_of(policy.columns[by])
        expected = {name: noted.group_errors.get(by, {}) for name, noted in evidence.columns.items()}
        shown = tuple(
            replace(
                group,
                label=_name_entry(group.label, meanings),
                columns={
                    name: replace(figures, expected=expected.get(name, {}).get(group.label))
                    for name, figures in group.columns.items()
                },
            )
            for group in groups
        )
        yield SubgroupsView(by, shown, audit.error, LEAST)


def _name_entry(entry: str, meanings: Mapping[str, str]) -> str:
    """Return the entry with its meaning, where the policy has one."""
    return f"{entry} ({meanings[entry]})" if entry in meanings else entry
