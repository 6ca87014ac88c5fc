"""The rank-based methods, end to end for one column: the masking kernel.

`mask_column` is one pure function of (values, specification, secret, context): no I/O and no global state, so another engine
can run it unchanged. What a method is stands in `catalogue`: which sums it takes of its clusters, and the rule of its scales.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.budget import Epsilon, EpsilonLike
from release_pipeline.privacy.catalogue import ClaimSpec, find_claim, find_method
from release_pipeline.privacy.consistency import choose_consistency, isotonic_with_atoms
from release_pipeline.privacy.grid import FloatArray, Grid, IntArray, Number, as_numbers
from release_pipeline.privacy.noise import MAX_SCALE, SECRET_BYTES, Context, discrete_laplace, noise_stream
from release_pipeline.privacy.records import ARRAYS, Records
from release_pipeline.privacy.scales import PLAIN, ScaleRule
from release_pipeline.privacy.sensitivity import Moves, centroid_loss, column_loss, refuse_scale

SUM_LIMIT = 2**61
_AT_ONCE = 1 << 15  # draws of simulated noise


@dataclass(frozen=True, slots=True)
class Claim:
    """What is promised: `definition` dp or idp, its epsilon, and the scope that it covers. Never wider than proved."""

    definition: str
    epsilon: Epsilon
    scope: str


@dataclass(frozen=True, slots=True, repr=False)
class Statistics:
    """The exact part of one column, before any noise: confidential throughout. Clusters ascend, except for `laplace` (record
    order) and those of several columns together (`vectors`). Without `claim` there is none that noise makes.

    `atoms`, in grid units, ascending: what consistency may not move. `public_scale`: the scale of every sum where anybody can
    compute it (`dp-um`). `is_noisy`: false for exact means, which are released as they are, on the grid or not.
    """

    grid: Grid
    claim: Claim | None
    consistency: str
    cluster: npt.NDArray[np.intp]
    size: IntArray
    statistic: IntArray
    scale: IntArray
    loss: dict[str, float]
    atoms: tuple[int, ...] = ()
    public_scale: int | None = None
    is_noisy: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class MaskedColumn:
    """A masked column: confidential as a whole, its text form included, which therefore shows no figure of the data.

    What may leave is `values` after a shuffle that nobody else knows, and `claim`. The claim of the cluster methods covers the
    list of released values, not which record has which: in record order, or linked to other columns, it does not hold.

    values     released values in record order                 cluster    cluster index of each record, clusters ascending
    statistic  exact (trimmed) sum per cluster, grid units above the domain's lower end
    scale      noise scale of that sum per cluster (0: none)   size       records per cluster
    loss       exact worst-case loss of each scope over all neighbours of these data, in absolute terms
    """

    values: FloatArray
    cluster: npt.NDArray[np.intp]
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
    secret: bytes | None = None,
    context: Sequence[Context] = (),
) -> MaskedColumn:
    """Mask one numeric column under the claim (definition of `method`, `epsilon`, `scope`).

    Values outside the declared `domain` are clamped and all are snapped to the declared `grid` first; what is released lies on
    the grid again. `k` is the cluster size (3 or more for idp-cbls; none for laplace). `consistency` None means isotonic where it
    is free; what would break the claim is refused. It does not move `atoms`, grid values that readers count. `clamp=False` leaves
    released values where the noise put them, and `on_grid=False` leaves them between the points of the grid, as releases were
    before they lay on it. `secret` (32 bytes) must never mask two different inputs; None takes a fresh one from the operating
    system. Distinct `context` (release, part, column, ...): independent noise.
    """
    if secret is None:
        secret = secrets.token_bytes(SECRET_BYTES)
    declared = Grid.declare(domain, grid)
    exact = compute_statistics(
        values,
        grid=declared,
        atoms=declared.units_of(atoms),
        method=method,
        epsilon=epsilon,
        k=k,
        scope=scope,
        consistency=consistency,
        secret=secret,
        context=context,
    )
    released = add_noise(exact, clamp=clamp, on_grid=on_grid, secret=secret, context=context)
    return MaskedColumn(
        values=ARRAYS.spread(released, exact.cluster),
        cluster=exact.cluster,
        size=exact.size,
        statistic=exact.statistic,
        scale=exact.scale,
        claim=_claim(method, epsilon, scope),
        consistency=exact.consistency,
        loss=exact.loss,
    )


def compute_statistics(
    values: npt.ArrayLike,
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
    records: Records = ARRAYS,
) -> Statistics:
    """The first half of `mask_column`: clusters, exact sums, scales and losses. Only the order of ties uses the secret. `atoms`
    are in grid units, ascending."""
    spec, promised = find_method(method, family="columns"), find_claim(method, scope)
    claim = _claim(method, epsilon, scope)
    k = None if k is None else as_whole(k)
    consistency = choose_consistency(consistency, method=method, scope=scope)
    numbers = as_numbers(values)
    check_sizes(method=method, k=k, grid=grid, epsilon=claim.epsilon, scope=scope, records=len(numbers))
    if len(numbers) == 0:
        raise InvalidArgument("there are no records to mask.", where="values")
    q = grid.quantise(numbers)
    if spec.sums is None or k is None:
        return _statistics_per_record(q, grid, claim, rule_of(promised), consistency, atoms)

    clusters = records.rank(q, k, ties=noise_stream(secret, *context, "ties"))
    del q
    moves = spec.sums.moves(clusters, grid.width)
    scale = rule_of(promised).scales(clusters, moves, grid.width, claim.epsilon)
    lost = {"centroid": centroid_loss(moves, scale), "column": column_loss(moves, scale)}
    _check_loss(method, lost[scope], claim)
    return Statistics(
        grid=grid,
        claim=claim,
        consistency=consistency,
        cluster=clusters.cluster,
        size=clusters.size,
        statistic=spec.sums.take(clusters),
        scale=scale,
        loss=_losses(lost["centroid"], lost["column"]),
        atoms=atoms,
        public_scale=find_public_scale(promised, scale),
    )


def add_noise(
    exact: Statistics,
    *,
    clamp: bool = True,
    on_grid: bool = True,
    secret: bytes,
    context: Sequence[Context],
) -> FloatArray:
    """The second half: the released value of each cluster.

    One discrete Laplace draw per sum, the order restored if asked, moved into the domain and to the nearest point of the grid: a
    function of the noisy list and of public facts, so that no claim changes. With `clamp=False` values stay where noise and order
    leave them; with `on_grid=False` they are moved into the domain alone.
    """
    noise = discrete_laplace(exact.scale, noise_stream(secret, *context, "noise"))
    return _release(exact, noise, clamp=clamp, on_grid=on_grid)


def simulate_noise(
    exact: Statistics, rounds: int, *, clamp: bool = True, secret: bytes, context: Sequence[Context]
) -> Iterator[FloatArray]:
    """What `add_noise` would give with other, independent noise of the same law, so many times: for what is expected without a
    look at the noise that is released. Many rounds are drawn at once, since a draw of few costs as much as one of thousands."""
    stream = noise_stream(secret, *context, "simulated noise")
    at_once = max(1, _AT_ONCE // max(1, len(exact.scale)))
    for begun in range(0, rounds, at_once):
        drawn = discrete_laplace(np.tile(exact.scale, min(at_once, rounds - begun)), stream)
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


def find_public_scale(promised: ClaimSpec, scale: IntArray) -> int | None:
    """The scale of every sum where anybody can compute it from declared facts, as consistency may use it."""
    return int(scale[0]) if promised.rule is not None and promised.rule.is_public else None


def rule_of(promised: ClaimSpec) -> ScaleRule:
    """How the scales of a claim are found; every method that works column by column says it."""
    if promised.rule is None:
        raise InvalidArgument("the method has no noise of single columns.", where="method")
    return promised.rule


def _claim(method: str, epsilon: EpsilonLike, scope: str) -> Claim:
    find_method(method, family="columns")
    promised = find_claim(method, scope)
    budget = Epsilon.of(epsilon)
    if budget.nano == 0:
        raise InvalidArgument("epsilon must be above 0 (at least 0.000000001).", where="epsilon")
    return Claim(promised.definition.key, budget, scope)


def as_whole(k: object) -> int:
    """k as a whole number; anything else is refused."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InvalidArgument("k is not a whole number.", where="k")
    return int(cast(int, k))


def check_sizes(*, method: str, k: int | None, grid: Grid, epsilon: Epsilon, scope: str, records: int) -> None:
    """Refuse what might not be exact: a k that the method does not take, sums or noise beyond 64 bits.

    A function of public facts alone, the number of records among them: what passes here is refused for no data
    (`ScaleRule.worst`). With more records in more clusters scales can be larger, so that what is refused for some is refused for
    more.
    """
    spec, rule = find_method(method, family="columns"), rule_of(find_claim(method, scope))
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
    if rule.worst(spec.sums or PLAIN, k=size, clusters=clusters, width=grid.width, epsilon=epsilon) > MAX_SCALE:
        raise refuse_scale(clusters if rule.grows else None)


def _statistics_per_record(
    q: IntArray, grid: Grid, claim: Claim, rule: ScaleRule, consistency: str, atoms: tuple[int, ...]
) -> Statistics:
    """`laplace`: every record is its own cluster, in record order; nothing about the order of the values is used."""
    public = rule.public_scale(grid.width, claim.epsilon)
    if public is None:
        raise InvalidArgument("a method that masks every record on its own has a public scale.", where="method")
    scale = np.array([public])
    reach = max(grid.width - int(q.min()), int(q.max()))
    worst = Moves(np.array([reach]), np.array([0]))
    _check_loss("the method", column_loss(worst, scale), claim)
    return Statistics(
        grid=grid,
        claim=claim,
        consistency=consistency,
        cluster=np.arange(len(q), dtype=np.intp),
        size=np.ones(len(q), dtype=np.int64),
        statistic=q,
        scale=np.full(len(q), scale[0]),
        loss=_losses(column_loss(worst, scale), column_loss(worst, scale)),
        atoms=atoms,
    )


def _check_loss(method: str, lost: Fraction | float, claim: Claim) -> None:
    """Refuse noise that is too small for what is claimed of it, by the accountant, whatever an entry of the catalogue says. With
    entries that are proved it never happens, whatever the data."""
    if lost > claim.epsilon.fraction:
        what = f"the noise of {method} is too small for its claim: its entry in the catalogue is wrong."
        raise InvalidArgument(what, where="method", remedy="Do not use it, and report this.")


def _losses(centroid: object, column: object) -> dict[str, float]:
    return {"centroid": float(cast(float, centroid)), "column": float(cast(float, column))}
