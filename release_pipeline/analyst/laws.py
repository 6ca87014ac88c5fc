"""The law of a column's noise, as far as public facts tell it, and what they bound of it where the scales are confidential.

Symbols: W, the domain in grid steps; c_j, the size of cluster j; p, how many there are; t_j, the noise scale of its sum; Z_j, a
discrete Laplace number of that scale. `laplace` and `dp-um` have t = ceil(W/eps) for all j: the law is public. The scales of
`idp-ls` and `idp-cbls` depend on the data and are confidential, but bounded, whatever the data (`reach_of`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from release_pipeline.analyst.facts import ColumnFacts, Facts, NoHonestAnswer
from release_pipeline.privacy.budget import Epsilon
from release_pipeline.privacy.catalogue import find_method
from release_pipeline.privacy.figures import show_figure
from release_pipeline.privacy.grid import Grid
from release_pipeline.privacy.scales import PLAIN
from release_pipeline.privacy.sensitivity import scales_for

Kind: TypeAlias = Literal["exact", "drawn", "bound", "no noise", "none"]
LEAST_DRAWS = 50  # from which on the sum of draws that were moved back is taken as normal; shown by simulation
LEAST_ROWS = 100  # from which on what the corrected slopes estimate of the confidential table is known well enough
ROUNDED = 1 + 1e-6  # covers the headroom of the calibration and what its last steps add, where `_check_rounding` lets it
KNOWN = ("laplace", "dp-um")
BOUNDED = ("idp-ls", "idp-cbls")
SIMULATE = "Simulate with made-up data of your own (release_pipeline.analyst.simulate) to see what your analysis would give."
ASK = "Compare with your own knowledge of the method, or ask the publisher."


@dataclass(frozen=True)
class Law:
    """What is known of the noise of one column. `kind`:

    exact      the law of what was added to each value (or to each cluster's sum)
    drawn      the law of the noise as it was drawn; afterwards order or domain were restored, which changed it
    bound      no law, but a bound on the whole column's total
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
        """Of the noise as drawn on the sum of one cluster (of one record for laplace), in the column's own unit."""
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
        return (
            "the records were put into random parts, so that the released values are of another table than the whole one, or "
            "were masked part by part."
        )
    if facts.rows_out < facts.rows_in:
        return "records were dropped to protect small groups, and nobody outside can tell what they had."
    if facts.rows_out > facts.rows_in:
        return "the card counts more records out than in."
    return ""


def decline_release(facts: Facts) -> str:
    """Why nothing can be said of any masked column's mean; empty where something can."""
    why = decline_rows(facts)
    if why:
        return why
    if facts.method == "k-epsilon":
        return "noise inside each class is as large as the class is wide, which is confidential."
    if facts.method == "dp-mdav":
        return "records share clusters of all columns together, and values were moved back into the domain after the noise."
    if facts.method not in (*KNOWN, *BOUNDED, "mdav"):
        return f"the kit does not know the method {facts.method}."
    return ""


def decline_simulation(facts: Facts) -> str:
    """Why a release like this one cannot be made again; empty where it can."""
    if facts.in_parts:
        return "the card does not say who is in which random part."
    if facts.method in ("k-epsilon", "dp-mdav"):
        return "the card lacks options of its method."
    if facts.method not in (*KNOWN, *BOUNDED, "mdav"):
        return f"the kit does not know the method {facts.method}."
    return ""


def advise(facts: Facts) -> str:
    """What helps where the kit declines: to simulate, unless it would decline that too."""
    return ASK if decline_simulation(facts) else SIMULATE


def law_of(facts: Facts, name: str) -> Law:
    """What public facts tell of the noise of a masked column."""
    column = facts.masked_column(name)
    why = decline_release(facts)
    if why:
        return Law(name, "none", f"no law: {why}")
    if facts.method == "mdav":
        return Law(name, "no noise", "no noise: each value is the exact mean of its cluster on the declared grid.")
    grid, _ = declared(column)
    if facts.method in BOUNDED:
        try:
            reach = reach_of(facts, name)
        except NoHonestAnswer as error:
            return Law(name, "none", f"no law: {error.what}")
        words = _bound_words(facts, reach, float(grid.step)) + _say_atoms(facts, column)
        return Law(name, "bound", words, step=grid.step)
    scale = common_scale(column)
    sizes = (int(facts.sizes.min()), int(facts.sizes.max()))
    words = f"exact: {_law_words(facts, scale, sizes, float(grid.step))}."
    kind: Kind = "exact"
    after = ["their order was restored"] if facts.consistency == "isotonic" else []
    after += ["values outside the domain were moved to its ends"] if facts.clamped else []
    after += ["all were moved to the nearest point of the grid"] if was_rounded(facts) else []
    if after:
        kind, words = (
            "drawn",
            f"as drawn, {words.removeprefix('exact: ')} Afterwards {' and '.join(after)}.{_say_atoms(facts, column)}",
        )
    return Law(name, kind, words, scale, sizes, grid.step)


def was_rounded(facts: Facts) -> bool:
    """Whether released values were moved to the nearest point of the grid, each by at most half a step. Those of `laplace` are
    whole steps already; values that were left outside the domain were left off the grid too."""
    return facts.clamped and facts.on_grid and facts.method != "laplace"


def decline_moved(facts: Facts, name: str) -> str:
    """Why nothing can be said of the mean of a column whose atoms were left where they are; empty where something can.

    Order restored keeps a column's total. Kept atoms do not: what lies between two pins of an atom goes to it, and the rest is
    moved to their sides. How far follows from noisy values that nobody sees any more.
    """
    moved = facts.columns[name].atoms and facts.consistency == "isotonic" and facts.method in (*KNOWN, *BOUNDED)
    return (
        "declared atoms were left where they are when order was restored, which moved other values by an unknown amount."
        if moved
        else ""
    )


def _say_atoms(facts: Facts, column: ColumnFacts) -> str:
    return f" Of the column's mean: {why}" if (why := decline_moved(facts, column.name)) else ""


def explain_kit(facts: Facts) -> Iterator[str]:
    """What the kit offers for a release like this one, a sentence each."""
    yield "release_pipeline.analyst reads this package (read_release) and knows the facts of this card, nothing else."
    why = decline_release(facts)
    if why:
        yield f"Means and slopes of masked columns: it declines. The reason: {why}"
        return
    if facts.method == "mdav":
        yield "Means of a masked column over all rows are exact, on the declared grid. Slopes and correlations: it declines."
        return
    if facts.method in KNOWN and facts.clamped and facts.consistency == "none" and facts.draws < LEAST_DRAWS:
        yield f"Means: it declines. The reason: {facts.draws} draws are too few to undo that values were moved into the domain."
    elif facts.method in KNOWN and (not facts.clamped or facts.consistency == "none"):
        law = "the law of the noise, to a close approximation" if facts.clamped else "the exact law of the noise"
        yield f"Means of a whole column (mean): an interval for the confidential table's mean, from {law}."
    else:
        yield (
            "Means of a whole column (mean): an interval from a worst-case bound, which holds for any data and is wide; where it "
            "is wider than the domain the kit declines."
        )
    moved = [name for name in facts.masked if decline_moved(facts, name)]
    if moved:
        yield f"Of {', '.join(moved)} it declines the mean: {decline_moved(facts, moved[0])}"
    why = decline_slope(facts)
    if why:
        yield f"Slopes and correlations: it declines. The reason: {why}"
    else:
        yield (
            "Slopes and correlations (slope, correlation): corrected for attenuation, in intervals that account for the noise. "
            "Where noise hides too much it declines, after a look at the released values: the "
            "level is a share of all releases, and among those that it answers more intervals may miss."
        )
    yield "What your own analysis would give: simulate releases a table that you made up in the same way."


def decline_slope(facts: Facts) -> str:
    """Why links between columns cannot be corrected; empty where they can."""
    if facts.method == "laplace":
        if facts.clamped:
            return (
                "values outside the domain were moved to its ends, so that the noise goes with the values; a release with clamp: "
                "no has no such limit."
            )
        few = facts.rows_out < LEAST_ROWS
        return f"it takes all rows of the release, and {LEAST_ROWS} of them at the least." if few else ""
    if facts.method in ("mdav", "dp-mdav"):
        return "what grouping does to links between columns depends on the data."
    return (
        "each column has clusters of its own, which hide how its values go with others inside a cluster: links come out weaker "
        "by an amount that depends on the data."
    )


def declared(column: ColumnFacts) -> tuple[Grid, Epsilon]:
    """Grid and epsilon of a column with noise."""
    if column.grid is None or column.epsilon is None:
        raise NoHonestAnswer("the card declares no domain, grid or epsilon for it.", where=column.name)
    return column.grid, column.epsilon


def common_scale(column: ColumnFacts) -> int:
    """t = ceil(W / eps), as the release computed it."""
    grid, epsilon = declared(column)
    return int(scales_for(np.array([grid.width]), epsilon)[0])


def reach_of(facts: Facts, name: str) -> Reach:
    """What bounds the noise of a column's total, whatever the confidential data are.

    laplace, dp-um. All scales are t = ceil(W/eps), exactly.

    idp-ls, scope centroid. t_j = ceil(max(W - x_1, x_n)/eps) <= ceil(W/eps).

    Otherwise the scales follow from moves A_j with sum A_j <= B W, B being 2, and 3 for idp-cbls with k = 3 (derived at
    `scales.Sums`).

    Scope centroid (idp-cbls): t_j = ceil(D_j/eps) <= D_j/eps + 1 where D_j > 0, and sum D_j^2 <= (sum D_j)^2.

    Scope column: `calibrate_column` takes w_j = (A_j c_j)^(1/3) sum_i A_i^(2/3) c_i^(-1/3) / eps, makes them smaller by the
    factor loss/eps <= 1 (the loss is at most sum A_j/w_j = eps), and rounds up. With Hoelder's inequality

        sum_i A_i^(2/3) c_i^(-1/3) <= (B W)^(2/3) (sum_i 1/c_i)^(1/3)        sum_j (A_j c_j)^(2/3) <= (B W)^(2/3) (sum_j
        c_j^2)^(1/3) sum_j (A_j c_j)^(1/3)      <= (B W)^(1/3) (sum_j c_j^(1/2))^(2/3)

    hence sum w_j <= (B W / eps) (sum 1/c)^(1/3) (sum c^(1/2))^(2/3) and sum w_j^2 <= (B W / eps)^2 (sum 1/c)^(2/3) (sum
    c^2)^(1/3); both are attained where all A_j and c_j are equal. Rounding up adds at most 1 to each scale (sqrt(p) to the root,
    by Minkowski's inequality), and `ROUNDED` covers the headroom.

    Bias of idp-cbls: T_j - S_j = (x_2 - x_1) - (x_n - x_{n-1}) in cluster j. The first gaps of all clusters are disjoint pieces
    of [0, W], so are the last ones: |sum_j (T_j - S_j)| <= W.
    """
    column = facts.masked_column(name)
    grid, epsilon = declared(column)
    p = facts.draws
    if facts.method in KNOWN or (facts.method == "idp-ls" and facts.scope == "centroid"):
        t = common_scale(column)
        return Reach(p, t, float(p) * t, math.sqrt(p) * t, 0, facts.method in KNOWN)
    sums = find_method(facts.method).sums or PLAIN
    bias = sums.bias * grid.width
    reach = float(sums.reach(facts.k or 1) * grid.width / epsilon.fraction)
    if facts.scope == "centroid":
        return Reach(p, None, reach + p, reach + math.sqrt(p), bias, False)
    _check_rounding(p, float(epsilon), name)
    sizes = facts.sizes.astype(np.float64)
    inverse = float(np.sum(1 / sizes)) ** (1 / 3)
    total = reach * ROUNDED * inverse * float(np.sum(np.sqrt(sizes))) ** (2 / 3) + p
    root = reach * ROUNDED * inverse * float(np.sum(sizes * sizes)) ** (1 / 6) + math.sqrt(p)
    return Reach(p, None, total, root, bias, False)


def _check_rounding(draws: int, epsilon: float, name: str) -> None:
    """Whether `ROUNDED` covers what the calibration adds until the loss that it verifies is at most epsilon.

    That loss exceeds the true one, relatively, by less than d = 2 p 2^-60 / min(eps, 1). The calibration grows its scales by
    2^-30, twice that, and so on, while the verified loss is above eps: before the last step they have grown by F < 1/(1 - d), and
    the last step multiplies them by at most F + 2^-30.
    """
    if 2 * draws * 2.0**-60 / min(epsilon, 1) > 1e-7:
        raise NoHonestAnswer(
            "epsilon is so small for so many clusters that the rounding of the scales is not bounded.",
            where=name,
            remedy=SIMULATE,
        )


def _law_words(facts: Facts, scale: int, sizes: tuple[int, int], step: float) -> str:
    about = math.sqrt(variance_of(scale)) * step
    law = (
        f"a whole number Z of grid steps with P[Z = z] proportional to exp(-|z|/t), t = {scale:,} "
        f"(standard deviation {show_figure(about)} in the column's unit)"
    )
    if facts.method == "laplace":
        return f"each value has {law} added to it, independently of every other value"
    many = f"{sizes[0]:,} records" if sizes[0] == sizes[1] else f"{sizes[0]:,} records (the last one {sizes[1]:,})"
    return f"the sum of each of {facts.draws:,} clusters of {many} has {law} added to it, independently of every other cluster"


def _bound_words(facts: Facts, reach: Reach, step: float) -> str:
    deviation = show_figure(math.sqrt(2) * reach.root * step / facts.rows_in)
    trimmed = (
        f", and trimming can have moved it by at most {show_figure(reach.bias * step / facts.rows_in)}" if reach.bias else ""
    )
    rounded = " and all to the nearest point of the grid" if was_rounded(facts) else ""
    after = (
        f" Afterwards values outside the domain were moved to its ends{rounded}, for which a coarser bound holds."
        if facts.clamped
        else ""
    )
    return (
        "no law: the noise scales depend on the data and are not published. Bounded, whatever the data: the noise of the whole "
        f"column's mean has a standard deviation of at most {deviation} as drawn{trimmed}.{after}"
    )
