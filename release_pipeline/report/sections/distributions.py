"""The section on distributions: what became of each column as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from release_pipeline.privacy.dates import Clock
from release_pipeline.privacy.figures import (
    count_things,
    format_count,
    format_number,
    format_share,
    join_names,
)
from release_pipeline.report.charts.curves import draw_curves
from release_pipeline.report.escaping import end_sentence
from release_pipeline.report.internal_view import (
    AtomView,
    InternalView,
    NoiseColumnView,
    SpreadView,
)
from release_pipeline.report.prose import Name, Sentence, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import FAR, Section, Table
from release_pipeline.report.values import format_difference, format_value
from release_pipeline.sentences import REVIEWERS

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TENTHS = (0.1, 0.9)
_ROUNDING = 1e-12  # of a share
MOST_ATOMS = 5  # that are told in one sentence; the table has all


def describe_distributions(view: InternalView) -> Section:
    """A pair of distribution functions for each masked column."""
    anchor, title = "distributions", REVIEWERS("distributions.title")
    if not view.columns:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    return Section(
        anchor,
        title,
        shows=REVIEWERS("distributions.shows_synthetic") if view.is_synthetic else REVIEWERS("distributions.shows"),
        read=REVIEWERS("distributions.read"),
        sign=REVIEWERS("distributions.sign"),
        says=tuple(_judge_distributions(view)),
        tables=tuple(_draw_curves(column) for column in view.columns),
    )


def _judge_distributions(view: InternalView) -> list[Sentence]:
    known = [column for column in view.columns if is_number(column.ks)]
    if not known:
        return [REVIEWERS("distributions.none")]
    worst = max(known, key=lambda column: column.ks)
    far = [column.name for column in known if column.ks > FAR]
    said: list[Sentence] = [
        review("distributions.largest", gap=format_number(worst.ks), column=Name(worst.name))
        if worst.ks > 0
        else REVIEWERS("distributions.no_gap")
    ]
    if far:
        among = count_things(len(known), "column")
        said.append(
            review(
                "distributions.far", limit=format_number(FAR), count=format_count(len(far)), among=among, columns=list_names(far)
            )
        )
    else:
        said.append(REVIEWERS("distributions.near", limit=format_number(FAR)))
    for column in known:
        if column.atoms:
            said.append(review("distributions.atoms", column=Name(column.name), atoms=describe_atoms(column)))
    if view.released_range:
        said.append(end_sentence(view.released_range))
    return said


def describe_atoms(column: NoiseColumnView) -> str:
    """The share of records at declared atoms before and after, and as expected: those that moved most."""
    moved = sorted(column.atoms, key=lambda atom: -abs(atom.released - (atom.original or 0.0)))
    shown = join_names((_describe_atom(atom) for atom in moved[:MOST_ATOMS]), "semicolon")
    more = len(moved) - MOST_ATOMS
    return REVIEWERS("distributions.more_atoms", atoms=shown, more=more) if more > 0 else shown


def _describe_atom(atom: AtomView) -> str:
    before = REVIEWERS("distributions.too_few") if atom.original is None else format_share(atom.original)
    after = format_share(atom.released)
    if atom.expected is None:
        return REVIEWERS("distributions.atom", value=atom.value, before=before, after=after)
    expected = format_share(atom.expected)
    return REVIEWERS("distributions.atom_expected", value=atom.value, before=before, after=after, expected=expected)


def describe_ks(column: NoiseColumnView) -> str:
    """The Kolmogorov-Smirnov distance, and what was expected of it where that is known."""
    ks = format_number(column.ks)
    if column.expected_ks is None:
        return REVIEWERS("distributions.ks", ks=ks)
    return REVIEWERS("distributions.ks_expected", ks=ks, expected=format_number(column.expected_ks))


def _draw_curves(column: NoiseColumnView) -> Table:
    names = [*list_heads("distributions.spread"), *_mix(list(map(format_share, QUANTILES)), list(map(format_share, TENTHS)))]
    rows = tuple(zip(names, *_list_sides(column.original, column.released, column.clock), strict=True))
    rows += tuple(_list_atom(atom) for atom in column.atoms)
    name, ks, wasserstein = Name(column.name), describe_ks(column), format_difference(column.wasserstein, column.clock)
    legend = review("distributions.caption", column=name, ks=ks, wasserstein=wasserstein)
    beyond = 1 - column.original_curve[-1][1] if column.original_curve else 0.0
    if beyond > _ROUNDING:  # what of the original the picture cannot show
        share = format_share(beyond)
        legend = review("distributions.caption_beyond", column=name, ks=ks, wasserstein=wasserstein, beyond=share)
    heads = list_heads("distributions.head_curves")
    return Table(review("distributions.table", column=name), heads, rows, picture=draw_curves(column), legend=legend)


def _list_sides(original: SpreadView, released: SpreadView, clock: Clock | None) -> list[list[str]]:
    """Original, released, and their difference; a deviation is a difference, too."""
    sides = [_list_spread(side, lambda value: format_value(value, clock)) for side in (original, released)]
    for spread, side in zip((original, released), sides, strict=True):
        side[1] = format_difference(spread.deviation, clock)
    return [*sides, _list_spread(_subtract(released, original), lambda value: format_difference(value, clock))]


def _list_atom(atom: AtomView) -> tuple[str, ...]:
    """The share of records at a declared value."""
    moved = None if atom.original is None else atom.released - atom.original
    shares = map(format_share, (atom.original, atom.released, moved))
    return (REVIEWERS("distributions.share_at", value=atom.value), *shares)


def _list_spread(spread: SpreadView, say: Callable[[float], str]) -> list[str]:
    tenths = [*map(say, spread.deciles)]
    return [say(spread.mean), say(spread.deviation), *_mix([*map(say, spread.quantiles)], tenths)]


def _mix(quantiles: Sequence[str], tenths: Sequence[str]) -> list[str]:
    """Quantiles in ascending order: a tenth comes after the second of the others, nine tenths before the last two."""
    return [*quantiles[:2], *tenths[:1], *quantiles[2:-2], *tenths[1:], *quantiles[-2:]]


def _subtract(released: SpreadView, original: SpreadView) -> SpreadView:
    quantiles = tuple(a - b for a, b in zip(released.quantiles, original.quantiles, strict=True))
    deciles = tuple(a - b for a, b in zip(released.deciles, original.deciles, strict=True))
    return SpreadView(released.mean - original.mean, released.deviation - original.deviation, quantiles, deciles)
