"""The rank-based methods, end to end for one column: the masking kernel.

`mask_column` is one pure function of (values, specification, secret, context): no I/O and no global state, so another engine can
run it unchanged. `catalogue` defines a method: the sums of its clusters, and the rule for its scales.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import Epsilon, EpsilonLike, rho_within
from release_pipeline.mechanisms.accounting.scales import OF_DOMAIN_BY_RHO, PLAIN, ScaleRule
from release_pipeline.mechanisms.accounting.sensitivity import Moves, centroid_loss, column_loss, refuse_scale
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid, IntArray, Number, as_numbers
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value import Budget, ByValue, PureBudget, RhoBudget, usual_centre
from release_pipeline.mechanisms.catalogue import ClaimSpec, find_claim, find_method
from release_pipeline.mechanisms.catalogue.spec import BY_RHO, ZCDP
from release_pipeline.mechanisms.clusters.rank import RankClusters, cut_ranks, rank_records
from release_pipeline.mechanisms.columns.consistency import choose_consistency, isotonic_with_atoms
from release_pipeline.mechanisms.noise import (
    MAX_SCALE,
    MAX_VARIANCE,
    MIN_VARIANCE,
    SECRET_BYTES,
    Context,
    NoiseStream,
    discrete_gaussian,
    discrete_laplace,
    noise_stream,
)

SUM_LIMIT = 2**61
_IDLE = "consistency, clamp, on_grid"
_AT_ONCE = 1 << 15  # draws of simulated noise
_NOBODY = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a release: `definition` dp, idp or zcdp, its epsilon, and the scope that it covers; for zcdp the delta at
    which it is that epsilon, and rho. Never wider than proved."""

    definition: str
    epsilon: Epsilon
    scope: str
    delta: Decimal | None = None
    rho: Epsilon | None = None

    @property
    def budget(self) -> Epsilon:
        """Return what may be lost, in the unit of the definition: epsilon, or rho."""
        return self.epsilon if self.rho is None else self.rho


@dataclass(frozen=True, slots=True, repr=False)
class Statistics:
    """The exact part of one column, before any noise: confidential throughout. Clusters ascend, except for `laplace` (record
    order) and those of several columns together (`vectors`). Without `claim` there is no claim by noise.

    `atoms`, in grid units, ascending: values that consistency may not move. `public_scale`: the scale of every sum, if anybody
    can compute it (`dp-um`, `laplace`). `variance`: of the discrete Gaussian, if the noise is that; `scale` is then about the
    standard deviation. `is_noisy`: false for exact means, which are released without noise, on the grid or not. `are_records`:
    every record is a separate cluster, in record order.
    """

    grid: Grid
    claim: Claim | None
    consistency: str
    cluster: npt.NDArray[np.integer[Any]]
    size: IntArray
    statistic: IntArray
    scale: IntArray
    loss: dict[str, float]
    atoms: tuple[int, ...] = ()
    public_scale: int | None = None
    variance: Fraction | None = None
    is_noisy: bool = True
    are_records: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class MaskedColumn:
    """A masked column: confidential as a whole, so its text form shows no figure of the data.

    Only `claim`, and `values` after a secret shuffle, may be released. The claim of the cluster methods covers the
    list of released values, not which record has which: in record order, or linked to other columns, it does not hold.

    values     released values in record order                 cluster    cluster index of each record, clusters ascending
    statistic  exact (trimmed) sum per cluster, grid units above the domain's lower end
    scale      noise scale of that sum per cluster (0: none)   size       records per cluster
    loss       exact worst-case loss of each scope over all neighbours of these data, in absolute terms

    For a method that counts by value they describe its cells, all stages one after the other: `statistic` how many records are in
    each, `scale` the noise on that, `size` how many numbers of the grid a cell has; `cluster` is the group of k ranks.
    """

    values: FloatArray
    cluster: npt.NDArray[np.integer[Any]]
    size: IntArray
    statistic: IntArray
    scale: IntArray
    claim: Claim
    consistency: str
    loss: dict[str, float]

    def __repr__(self) -> str:
        return f"<MaskedColumn of {len(self.values):,} records, {self.claim}>"


def mask_column(
    values: npt.ArrayLike,
    *,
    domain: tuple[Number, Number],
    grid: Number,
    method: str,
    epsilon: EpsilonLike,
    k: int | None = None,
    scope: str = "column",
    consistency: str | None = None,
    atoms: Sequence[Number] = (),
    clamp: bool = True,
    on_grid: bool = True,
    centre: Number | None = None,
    definition: str | None = None,
    delta: Decimal | str | None = None,
    secret: bytes | None = None,
    context: Sequence[Context] = (),
) -> MaskedColumn:
    """Return one numeric column masked under the claim (definition of `method`, `epsilon`, `scope`).

    Values outside the declared `domain` are clamped and all are snapped to the declared `grid` first; released values are on the
    grid again. `k` is the cluster size (3 or more for idp-cbls; none for laplace). `consistency` None means isotonic if it is
    free; a value that would break the claim is refused. It does not move `atoms`, grid values that readers count. `clamp=False`
    leaves released values where the noise put them, and `on_grid=False` leaves them between the points of the grid. `centre`,
    where cells are finest, is for dp-cdf only, whose k is 1 if it is None. `definition="zcdp"` with `delta` (dp-um and dp-cdf):
    `epsilon` is that of (epsilon, delta)-DP, and the noise discrete Gaussian. `secret` (32 bytes) must never mask two different
    inputs; None takes a fresh one from the operating system. Distinct values of `context` (release, part, column, ...) give
    independent noise.
    """
    if secret is None:
        secret = secrets.token_bytes(SECRET_BYTES)
    declared = Grid.declare(domain, grid)
    places = declared.units_of(atoms)
    claim = make_claim(method, epsilon, scope, definition=definition, delta=delta)
    if find_method(method).family == "by-value":
        if consistency is not None or not clamp or not on_grid:
            raise InvalidArgument(f"what {method} releases ascends by itself, in the domain and on the grid.", where=_IDLE)
        of_column = declare_by_value(declared, claim, k=k, centre=centre, atoms=places)
        return _mask_by_value(values, of_column, claim, secret=secret, context=context)
    if centre is not None:
        raise InvalidArgument(f"a centre is for methods that count by value, and {method} has clusters.", where="method")
    exact = compute_statistics(
        values,
        grid=declared,
        atoms=places,
        method=method,
        epsilon=claim.budget,
        k=k,
        scope=scope,
        definition=definition,
        consistency=consistency,
        secret=secret,
        context=context,
    )
    released = add_noise(exact, clamp=clamp, on_grid=on_grid, secret=secret, context=context)
    return MaskedColumn(
        values=released[exact.cluster],
        cluster=exact.cluster,
        size=exact.size,
        statistic=exact.statistic,
        scale=exact.scale,
        claim=claim,
        consistency=exact.consistency,
        loss=exact.loss,
    )


def declare_by_value(grid: Grid, claim: Claim, *, k: int | None, centre: Number | None, atoms: tuple[int, ...]) -> ByValue:
    """Return the declared facts of a column for a method that counts by value, with atoms in grid units; refused for other
    methods. Without a centre, the usual one is used."""
    size = 1 if k is None else as_whole(k)
    if size < 1:
        raise InvalidArgument("k is below 1.", where="k")
    try:
        middle = usual_centre(grid) if centre is None else grid.units_of([centre])[0]
    except InvalidArgument as error:
        raise InvalidArgument(error.what.replace("an atom", "the centre"), where="centre") from None
    budget = budget_of(claim.definition, claim.budget)
    return ByValue(grid, budget, k=size, centre=middle, atoms=atoms)


def budget_of(definition: str, share: Epsilon) -> Budget:
    """Return the budget of a column's counts, in epsilon or in rho."""
    return RhoBudget(share.fraction) if definition == BY_RHO["definition"] else PureBudget(share.fraction)


def _mask_by_value(
    values: npt.ArrayLike, declared: ByValue, claim: Claim, *, secret: bytes, context: Sequence[Context]
) -> MaskedColumn:
    """Return the column ranked and counted, with a value for every rank."""
    numbers = as_numbers(values)
    if len(numbers) == 0:
        raise InvalidArgument("there are no records to mask.", where="values")
    records = len(numbers)
    column, cluster = rank_records(declared.grid.quantise(numbers), declared.k, noise_stream(secret, *context, "ties"))
    stages = declared.measure(column.count_within, records, noise_stream(secret, *context, "counts"))
    lost = sum((stage.noise.loss for stage in stages), Fraction(0))
    _check_loss("the method", lost, claim)
    return MaskedColumn(
        values=declared.release(stages, records).at(cut_ranks(records, declared.k)[0])[cluster],
        cluster=cluster,
        size=np.concatenate([np.diff(stage.edges) for stage in stages]),
        statistic=np.concatenate([column.count_within(stage.edges) for stage in stages]),
        scale=np.concatenate([np.full(len(stage.counts), stage.noise.spread) for stage in stages]),
        claim=claim,
        consistency="none",
        loss=_losses(lost, lost),
    )


def compute_statistics(
    values: npt.ArrayLike | Tally,
    *,
    grid: Grid,
    method: str,
    epsilon: EpsilonLike,
    k: int | None,
    scope: str,
    consistency: str | None,
    secret: bytes,
    context: Sequence[Context],
    atoms: tuple[int, ...] = (),
    definition: str | None = None,
) -> Statistics:
    """Return the first half of `mask_column`: clusters, exact sums, scales and losses. Only the order of ties uses the secret.
    `values`: those of the records; for cluster methods, the tally of their grid units is enough for everything except `cluster`,
    which is then empty. `atoms` are in grid units, ascending. With `definition="zcdp"` the argument epsilon is rho."""
    spec, promised = find_method(method, family="columns"), find_claim(method, scope, **_options_of(definition))
    claim = Claim(promised.definition.key, _positive(epsilon), scope)
    k = None if k is None else as_whole(k)
    consistency = choose_consistency(consistency, method=method, scope=scope)
    numbers = values if isinstance(values, Tally) else as_numbers(values)
    check_sizes(method=method, k=k, grid=grid, epsilon=claim.epsilon, scope=scope, records=len(numbers), definition=definition)
    if len(numbers) == 0:
        raise InvalidArgument("there are no records to mask.", where="values")
    if spec.sums is None or k is None:
        if isinstance(numbers, Tally):
            raise InvalidArgument(f"{method} masks every record on its own: a tally has no records.", where="values")
        return _statistics_per_record(grid.quantise(numbers), grid, claim, rule_of(promised), consistency, atoms)

    column, cluster = numbers, _NOBODY
    if not isinstance(column, Tally):
        column, cluster = rank_records(grid.quantise(column), k, noise_stream(secret, *context, "ties"))
    clusters = RankClusters.of(column, k)
    moves = spec.sums.moves(clusters, grid.width)
    scale = rule_of(promised).scales(clusters, moves, grid.width, claim.epsilon)
    variance = find_variance(promised, grid, claim.epsilon)
    lost: dict[str, Fraction | float] = {"centroid": centroid_loss(moves, scale), "column": column_loss(moves, scale)}
    if variance is not None:
        lost = {
            "centroid": squared_loss(moves.worst.max(keepdims=True), variance),
            "column": max(squared_loss(moves.up, variance), squared_loss(moves.down, variance)),
        }
    _check_loss(method, lost[scope], claim)
    return Statistics(
        grid=grid,
        claim=claim,
        consistency=consistency,
        cluster=cluster,
        size=clusters.size,
        statistic=spec.sums.take(clusters),
        scale=scale,
        loss=_losses(lost["centroid"], lost["column"]),
        atoms=atoms,
        public_scale=find_public_scale(promised, scale),
        variance=variance,
    )


def add_noise(
    exact: Statistics,
    *,
    clamp: bool = True,
    on_grid: bool = True,
    secret: bytes,
    context: Sequence[Context],
) -> FloatArray:
    """Return the released value of each cluster: the second half of `mask_column`.

    Each sum gets one discrete Laplace draw; the order is restored if requested, and values are moved into the domain and to the
    nearest point of the grid: a function of the noisy list and of public facts, so no claim changes. With `clamp=False` values
    stay where noise and order leave them; with `on_grid=False` they are moved into the domain only.
    """
    noise = _draw(exact, 1, noise_stream(secret, *context, "noise"))
    return _release(exact, noise, clamp=clamp, on_grid=on_grid)


def _draw(exact: Statistics, rounds: int, stream: NoiseStream) -> IntArray:
    """Return noise for every sum, so many times one after the other."""
    if exact.variance is not None:
        return discrete_gaussian(exact.variance, rounds * len(exact.scale), stream)
    return discrete_laplace(np.tile(exact.scale, rounds), stream)


def simulate_noise(
    exact: Statistics,
    rounds: int,
    *,
    clamp: bool = True,
    secret: bytes,
    context: Sequence[Context],
) -> Iterator[FloatArray]:
    """Yield what `add_noise` would give with independent noise of the same distribution, so many times: for forecasts that do not
    depend on the released noise. Many rounds are drawn at once, because a small draw costs as much as one of thousands."""
    stream = noise_stream(secret, *context, "simulated noise")
    at_once = max(_AT_ONCE // max(len(exact.scale), 1), 1)
    for begun in range(0, rounds, at_once):
        drawn = _draw(exact, min(at_once, rounds - begun), stream)
        for noise in drawn.reshape(-1, len(exact.scale)):
            yield _release(exact, noise, clamp=clamp, on_grid=True)


def _release(exact: Statistics, noise: IntArray, *, clamp: bool, on_grid: bool) -> FloatArray:
    sums = exact.statistic + noise
    if exact.consistency == "isotonic":
        released = isotonic_with_atoms(sums, exact.size, exact.atoms, scale=exact.public_scale)
    else:
        released = sums / exact.size
    if clamp:
        np.clip(released, 0, exact.grid.width, out=released)
        if on_grid and exact.is_noisy:
            np.rint(released, out=released)
    return exact.grid.restore(released)


def squared_loss(changes: IntArray, variance: Fraction) -> Fraction:
    """Return the exact rho that sums lose under discrete Gaussian noise if they change by so much at once: sum of squares / (2
    variance)."""
    return sum((Fraction(change * change) for change in changes.tolist()), Fraction(0)) / (2 * variance)


def find_public_scale(promised: ClaimSpec, scale: IntArray) -> int | None:
    """Return the scale of every sum if anybody can compute it from declared facts, as consistency may use it: that of a discrete
    Laplace with the same standard deviation. Else None."""
    if promised.rule is None or not promised.rule.is_public:
        return None
    return int(scale[0]) if promised.rule is not OF_DOMAIN_BY_RHO else max(round(int(scale[0]) / math.sqrt(2)), 1)


def find_variance(promised: ClaimSpec, grid: Grid, share: Epsilon) -> Fraction | None:
    """Return the variance of the noise on every sum, if it is the discrete Gaussian: a function of declared facts. Else None."""
    return OF_DOMAIN_BY_RHO.variance(grid.width, share) if promised.rule is OF_DOMAIN_BY_RHO else None


def rule_of(promised: ClaimSpec) -> ScaleRule:
    """Return the rule for the scales of a claim; every method that works column by column has one."""
    if promised.rule is None:
        raise InvalidArgument("the method has no noise of single columns.", where="method")
    return promised.rule


def make_claim(
    method: str, epsilon: EpsilonLike, scope: str, *, definition: str | None = None, delta: Decimal | str | None = None
) -> Claim:
    """Return what a method promises with these options; refused if the catalogue has no such claim."""
    promised, budget = find_claim(method, scope, **_options_of(definition)), _positive(epsilon)
    if (promised.definition is ZCDP) != (delta is not None):
        what = "delta is missing: it is the delta at which epsilon holds." if delta is None else "only zcdp has a delta."
        raise InvalidArgument(what, where="delta")
    if delta is None:
        return Claim(promised.definition.key, budget, scope)
    exact = Decimal(delta)
    rho = Epsilon(rho_within(budget.nano, exact))
    if rho.nano == 0:
        raise InvalidArgument("epsilon is too small for this delta: nothing of rho is left.", where="epsilon")
    return Claim(promised.definition.key, budget, scope, exact, rho)


def _options_of(definition: str | None) -> dict[str, str]:
    """Return the options of a claim by rho, or those of a claim under a method's own definition."""
    return {} if definition is None else {"definition": definition}


def _positive(epsilon: EpsilonLike) -> Epsilon:
    budget = Epsilon.of(epsilon)
    if budget.nano == 0:
        raise InvalidArgument("epsilon must be above 0 (at least 0.000000001).", where="epsilon")
    return budget


def as_whole(k: object) -> int:
    """Return k as a whole number; anything else is refused."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InvalidArgument("k is not a whole number.", where="k")
    return int(cast(int, k))


def check_sizes(
    *, method: str, k: int | None, grid: Grid, epsilon: Epsilon, scope: str, records: int, definition: str | None = None
) -> None:
    """Refuse a k that the method does not take, and sums or noise beyond 64 bits, which would not be exact.

    It depends only on public facts, including the number of records: what passes here is refused for no data (`ScaleRule.worst`).
    More records in more clusters can have larger scales, so what is refused for a number of records is refused for larger ones.
    """
    spec, rule = find_method(method, family="columns"), rule_of(find_claim(method, scope, **_options_of(definition)))
    if spec.sums is None:
        if k not in (None, 1):
            raise InvalidArgument(f"{method} masks every record on its own and has no k.", where="k", remedy="Leave k out.")
    elif k is None:
        raise InvalidArgument(f"{method} needs k, the number of records per cluster.", where="k")
    elif k < spec.least_k:
        raise InvalidArgument(f"{method} needs k of at least {spec.least_k}.", where="k")
    size = k or 1
    if (2 * size - 1) * grid.width >= SUM_LIMIT:
        raise InvalidArgument(
            "cluster sums would not fit 64-bit integers.",
            remedy="Use a smaller k, a coarser grid or a narrower domain.",
        )
    clusters = max(records // size, 1)
    variance = OF_DOMAIN_BY_RHO.variance(grid.width, epsilon) if rule is OF_DOMAIN_BY_RHO else None
    if variance is not None and not MIN_VARIANCE <= variance <= MAX_VARIANCE:
        raise refuse_scale()
    if rule.worst(spec.sums or PLAIN, k=size, clusters=clusters, width=grid.width, epsilon=epsilon) > MAX_SCALE:
        raise refuse_scale(clusters if rule.grows else None)


def _statistics_per_record(
    q: IntArray, grid: Grid, claim: Claim, rule: ScaleRule, consistency: str, atoms: tuple[int, ...]
) -> Statistics:
    """Return the statistics of `laplace`: every record is its own cluster, in record order; the order of the values is not
    used."""
    public = rule.public_scale(grid.width, claim.epsilon)
    if public is None:
        raise InvalidArgument("a method that masks every record on its own has a public scale.", where="method")
    furthest = max(grid.width - int(q.min()), int(q.max()))
    worst, scale = Moves(np.array([furthest]), np.array([0])), np.array([public])
    lost = column_loss(worst, scale)
    _check_loss("the method", lost, claim)
    cluster, size = cut_ranks(len(q), 1)
    return Statistics(
        grid=grid,
        claim=claim,
        consistency=consistency,
        cluster=cluster,
        size=size,
        statistic=q,
        scale=np.full(len(q), public, dtype=np.int64),
        loss=_losses(lost, lost),
        atoms=atoms,
        public_scale=public,
        are_records=True,
    )


def _check_loss(method: str, lost: Fraction | float, claim: Claim) -> None:
    """Refuse noise that is too small for its claim, by the accountant, independent of the catalogue's entry. With proved entries
    it never happens, for any data."""
    if lost > claim.epsilon.fraction:
        what = f"the noise of {method} is too small for its claim: its entry in the catalogue is wrong."
        raise InvalidArgument(what, where="method", remedy="Do not use it, and report this.")


def _losses(centroid: object, column: object) -> dict[str, float]:
    return {"centroid": float(cast(float, centroid)), "column": float(cast(float, column))}
