"""The law of a column's noise, as far as public facts tell it, and what they bound of it where the scales are confidential.

Symbols: W, the domain in grid steps; c_j, the size of cluster j; p, how many there are; t_j, the noise scale of its sum; Z_j, a
discrete Laplace number of that scale. Where the method's rule is public, t = ceil(W/eps) for all j, and so is the law. Other
scales depend on the data and are confidential, but bounded, whatever the data (`reach_of`). What is known of a method is the
catalogue's: one that it does not have, of a later version, is declined in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from release_pipeline.analyst.facts import ColumnFacts, Facts, NoHonestAnswer
from release_pipeline.privacy.budget import Epsilon
from release_pipeline.privacy.catalogue import METHODS
from release_pipeline.privacy.figures import format_count, join_names, show_figure
from release_pipeline.privacy.grid import Grid
from release_pipeline.privacy.scales import PLAIN
from release_pipeline.sentences import ANALYST, KIT

Kind: TypeAlias = Literal["exact", "drawn", "bound", "counts", "no noise", "none"]
LEAST_DRAWS = 50  # from which on the sum of draws that were moved back is taken as normal; shown by simulation
LEAST_ROWS = 100  # from which on what the corrected slopes estimate of the confidential table is known well enough


@dataclass(frozen=True)
class Law:
    """What is known of the noise of one column. `kind`:

    exact      the law of what was added to each value (or to each cluster's sum)
    drawn      the law of the noise as it was drawn; afterwards order or domain were restored, which changed it
    bound      no law, but a bound on the whole column's total
    counts     the law of the noise on counts of records, of which all values were made
    no noise   the values are exact means of clusters
    none       nothing that public facts bound

    `scale` t and the `sizes` of clusters (smallest, largest) are None where the law is not known: `words` says why.
    """

    column: str
    kind: Kind
    words: str
    scale: int | None = None
    sizes: tuple[int, int] | None = None
    step: Fraction | None = None

    @property
    def standard_deviation(self) -> float:
        """Of the noise as drawn on the sum of one cluster (of one record where each has its own), in the column's own unit."""
        if self.scale is None or self.step is None:
            raise NoHonestAnswer(self.words, where=self.column)
        return math.sqrt(variance_of(self.scale)) * float(self.step)


@dataclass(frozen=True)
class Reach:
    """What bounds the noise of a column's total sum_j Z_j, in grid steps.

    `draws` p; `scale`: the common scale, or one that no t_j exceeds, else None; `total` >= sum t_j; `root` >= sqrt(sum t_j^2);
    `bias` >= |sum of what trimming moved|; `exact`: all scales are `scale`.
    """

    draws: int
    scale: int | None
    total: float
    root: float
    bias: int
    exact: bool


def variance_of(scale: int) -> float:
    """sigma^2 = 1 / (2 sinh(1/(2t))^2) of the discrete Laplace, about 2 t^2.

    >>> round(variance_of(1), 4), round(variance_of(1000) / 1e6, 4)
    (1.8413, 2.0)
    """
    return 0.5 / math.sinh(0.5 / scale) ** 2


def fourth_cumulant_of(scale: int) -> float:
    """sigma^2 + 3 sigma^4: the logarithm of the moment generating function is -ln(1 - sigma^2 (cosh s - 1))."""
    square = variance_of(scale)
    return square + 3 * square * square


def overshoot_of(scale: int) -> tuple[float, float]:
    """Mean and variance of how far a discrete Laplace number lies beyond a point on its way out, given that it got there: the
    geometric tail has no memory, so both are those of P[G = g] = (1 - q) q^g with q = exp(-1/t), wherever the point is."""
    mean = 1 / math.expm1(1 / scale)
    return mean, mean * (1 + mean)


def decline_rows(facts: Facts) -> str:
    """Why the released rows do not stand for the confidential table, whatever was done to a column; empty where they do."""
    if facts.in_parts:
        return KIT("decline.parts")
    if facts.rows_out < facts.rows_in:
        return KIT("decline.dropped")
    if facts.rows_out > facts.rows_in:
        return KIT("decline.more_rows")
    return ""


def decline_method(facts: Facts) -> str:
    """Why nothing is known of the method: it is of a later version, or not ours; empty where the catalogue has it."""
    if facts.method not in METHODS:
        return KIT("decline.method", method=facts.method)
    if facts.scope not in facts.spec.scopes:
        return KIT("decline.scope", scope=facts.scope, method=facts.method)
    if facts.by_rho and facts.spec.family == "columns":
        return KIT("decline.by_rho")
    return ""


def decline_release(facts: Facts) -> str:
    """Why nothing can be said of any masked column's mean; empty where something can."""
    return decline_rows(facts) or decline_method(facts) or facts.spec.kit.means


def decline_simulation(facts: Facts) -> str:
    """Why a release like this one cannot be made again; empty where it can."""
    if facts.in_parts:
        return ANALYST("decline.unknown_parts")
    if facts.has_reasons:
        return ANALYST("decline.reasons")
    return decline_method(facts) or facts.spec.kit.simulation


def advise(facts: Facts) -> str:
    """What helps where the kit declines: to simulate, unless it would decline that too."""
    return ANALYST("advice.ask") if decline_simulation(facts) else ANALYST("advice.simulate")


def law_of(facts: Facts, name: str) -> Law:
    """What public facts tell of the noise of a masked column."""
    column = facts.masked_column(name)
    if not decline_method(facts) and facts.spec.family == "by-value":
        return Law(name, "counts", KIT("law.of_counts"))
    if not decline_method(facts) and facts.spec.family == "whole-table":
        return Law(name, "counts", KIT("law.of_synthetic"))
    why = decline_release(facts)
    if why:
        return Law(name, "none", KIT("law.none", why=why))
    if not facts.spec.is_noisy:
        return Law(
            name,
            "no noise",
            KIT("law.no_noise")
            if column.clock is None
            else KIT("law.no_noise_whole", unit=KIT.read_section("unit")[column.clock.unit]),
        )
    grid, _ = declared(column)
    if not facts.rule.is_public:
        try:
            reach = reach_of(facts, name)
        except NoHonestAnswer as error:
            return Law(name, "none", KIT("law.none", why=error.what))
        words = _describe_bound(facts, column, reach, float(grid.step))
        return Law(name, "bound", _describe_mean(facts, column, words), step=grid.step)
    scale = common_scale(facts, column)
    sizes = (int(facts.sizes.min()), int(facts.sizes.max()))
    law = _describe_law(facts, column, scale, sizes, float(grid.step))
    after = [KIT("law.order")] if facts.consistency == "isotonic" else []
    after += [KIT("law.ends")] if facts.clamped else []
    after += [KIT("law.rounded")] if was_rounded(facts) else []
    if not after:
        return Law(name, "exact", KIT("law.exact", law=law), scale, sizes, grid.step)
    words = KIT("law.drawn", law=law, steps=KIT("law.and").join(after))
    return Law(name, "drawn", _describe_mean(facts, column, words), scale, sizes, grid.step)


def was_rounded(facts: Facts) -> bool:
    """Whether released values were moved to the nearest point of the grid, each by at most half a step. Those with whole steps of
    noise on single records are there already; values that were left outside the domain were left off the grid too."""
    return facts.clamped and facts.on_grid and facts.spec.on_grid == "moved"


def decline_moved(facts: Facts, name: str) -> str:
    """Why nothing can be said of the mean of a column whose atoms were left where they are; empty where something can.

    Order restored keeps a column's total. Kept atoms do not: what lies between two pins of an atom goes to it, and the rest is
    moved to their sides. How far follows from noisy values that nobody sees any more.
    """
    moved = facts.columns[name].atoms and facts.consistency == "isotonic" and facts.spec.family == "columns"
    return KIT("decline.moved") if moved else ""


def _describe_mean(facts: Facts, column: ColumnFacts, law: str) -> str:
    """The law, and why the kit declines the mean where it does."""
    why = decline_moved(facts, column.name)
    return KIT("law.mean", law=law, why=why) if why else law


def explain_kit(facts: Facts) -> Iterator[str]:
    """What the kit offers for a release like this one, a sentence each."""
    yield KIT("kit.reads")
    if made := [name for name, column in facts.columns.items() if column.made is not None and not facts.is_exact(name)]:
        yield KIT("kit.made", names=join_names(made))
    if facts.tables:
        yield KIT("kit.tables", names=join_names(table.name for table in facts.tables))
    if weighted := [table.name for table in facts.tables if table.weight is not None]:
        yield KIT("kit.weighted_tables", names=join_names(weighted))
    if not decline_method(facts) and facts.spec.family == "by-value":
        yield KIT("kit.counts_in_parts") if facts.in_parts else KIT("kit.counts")
        yield KIT("kit.no_slopes", why=decline_slope(facts))
        if not facts.in_parts:
            yield KIT("kit.simulate")
        return
    if not decline_method(facts) and facts.spec.family == "whole-table":
        yield KIT("kit.synthetic")
        yield KIT("kit.rerun")
        yield KIT("kit.no_slopes", why=decline_slope(facts))
        yield KIT("kit.no_combining")
        return
    why = decline_release(facts)
    if why:
        yield KIT("kit.declines", why=why)
        return
    if not facts.spec.is_noisy:
        yield KIT("kit.exact")
        return
    if not facts.rule.is_public or (facts.clamped and facts.consistency != "none"):
        yield KIT("kit.mean_by_bound")
    elif not facts.clamped:
        yield KIT("kit.mean_by_law")
    elif facts.draws < LEAST_DRAWS:
        yield KIT("kit.few_draws", draws=facts.draws)
    else:
        yield KIT("kit.mean_by_law_closely")
    moved = [name for name in facts.masked if decline_moved(facts, name)]
    if moved:
        yield KIT("kit.moved", names=join_names(moved), why=decline_moved(facts, moved[0]))
    why = decline_slope(facts)
    yield KIT("kit.no_slopes", why=why) if why else KIT("kit.slopes")
    yield KIT("kit.simulate")


def decline_slope(facts: Facts) -> str:
    """Why links between columns cannot be corrected; empty where they can: where every record has public noise of its own, and
    stayed where that put it."""
    why = decline_method(facts) or (KIT("decline.swapped") if facts.swap is not None else facts.spec.kit.slopes)
    if why:
        return why
    if facts.clamped:
        return KIT("decline.ends")
    return KIT("decline.few_rows", least=LEAST_ROWS) if facts.rows_out < LEAST_ROWS else ""


def declared(column: ColumnFacts) -> tuple[Grid, Epsilon]:
    """Grid and epsilon of a column with noise."""
    if column.grid is None or column.epsilon is None:
        raise NoHonestAnswer("the card declares no domain, grid or epsilon for it.", where=column.name)
    return column.grid, column.epsilon


def common_scale(facts: Facts, column: ColumnFacts) -> int:
    """The scale of every sum, as the release computed it: where anybody can."""
    grid, epsilon = declared(column)
    scale = facts.rule.public_scale(grid.width, epsilon)
    if scale is None:
        raise NoHonestAnswer("the noise scales depend on the data and are not published.", where=column.name)
    return scale


def reach_of(facts: Facts, name: str) -> Reach:
    """What bounds the noise of a column's total, whatever the confidential data are: by the rule that its scales follow
    (`privacy.scales`), and by what taking its sums can have moved."""
    grid, epsilon = declared(facts.masked_column(name))
    sums = facts.spec.sums or PLAIN
    bounds = facts.rule.bound_all(sums, k=facts.k or 1, sizes=facts.sizes, width=grid.width, epsilon=epsilon)
    if bounds is None:
        raise NoHonestAnswer(KIT("decline.rounding"), where=name, remedy=ANALYST("advice.simulate"))
    return Reach(facts.draws, bounds.scale, bounds.total, bounds.root, sums.bias * grid.width, facts.rule.is_public)


def _describe_law(facts: Facts, column: ColumnFacts, scale: int, sizes: tuple[int, int], step: float) -> str:
    deviation, t = _show_amount(column, math.sqrt(variance_of(scale)) * step), format_count(scale)
    if facts.spec.by_record:
        return KIT("law.of_records", scale=t, deviation=deviation)
    clusters, size, last = map(format_count, (facts.draws, *sizes))
    if size == last:
        return KIT("law.of_clusters", clusters=clusters, size=size, scale=t, deviation=deviation)
    return KIT("law.of_clusters_but_the_last", clusters=clusters, size=size, last=last, scale=t, deviation=deviation)


def _show_amount(column: ColumnFacts, amount: float) -> str:
    return show_figure(amount) if column.clock is None else column.clock.name_span(show_figure(amount))


def _describe_bound(facts: Facts, column: ColumnFacts, reach: Reach, step: float) -> str:
    deviation = _show_amount(column, math.sqrt(2) * reach.root * step / facts.rows_in)
    bias = _show_amount(column, reach.bias * step / facts.rows_in)
    law = KIT("law.bound_trimmed", deviation=deviation, bias=bias) if reach.bias else KIT("law.bound", deviation=deviation)
    if not facts.clamped:
        return law
    return KIT("law.bound_ends_rounded", law=law) if was_rounded(facts) else KIT("law.bound_ends", law=law)
