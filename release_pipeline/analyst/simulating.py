"""Made-up tables put through the method of a release again: what its noise does to any figure."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.counts import counts_by_value
from release_pipeline.analyst.facts import (
    ColumnFacts,
    Facts,
    NoHonestAnswer,
    SwapFacts,
    read_facts,
)
from release_pipeline.analyst.laws import declared, decline_simulation
from release_pipeline.analyst.release import Arrays, Release, count_moments, read_columns
from release_pipeline.analyst.rerun import MOST, find_unmoved, holds_released_values
from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.accounting.budget import epsilon_of
from release_pipeline.mechanisms.basis.grid import IntArray, as_numbers
from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.mechanisms.clusters.mdav import describe_alike, make_blocks, swap_positions
from release_pipeline.mechanisms.columns.methods import add_noise, mask_column
from release_pipeline.mechanisms.noise import SECRET_BYTES, noise_stream, shuffled_positions
from release_pipeline.mechanisms.vectors.vectors import MdavSpec, compute_vectors, quantise_columns
from release_pipeline.sentences import ANALYST

MAKE_UP = "Make up a table that could be like the confidential one: spread_ties makes its columns from released ones."


def simulate(
    table: Mapping[str, npt.ArrayLike], like: Release | Facts | Mapping[str, Any], *, secret: bytes | None = None
) -> Release:
    """Your own made-up `table`, released as the facts of `like` say (a release, or a card as read from JSON).

    Each masked column gets the card's method with its domain, grid, epsilon, k, scope, order, atoms, clamping and rounding, and
    the rows leave shuffled; other columns of the table go along as they are, and small groups of them are not suppressed. A fresh
    secret each time; with a `secret` of 32 bytes the same table gives the same release. Never pass confidential data: no budget
    is kept.

    A released table is refused (`ties`): it would come back as it was, or nearly, and seem certain. `spread_ties` makes one up
    from it.
    """
    given = cast(object, like)
    if not isinstance(given, Release | Facts | Mapping):
        raise InvalidType(
            "this is no release and no card.", where="like", remedy="Pass what read_release gives, or the card as read from JSON."
        )
    facts = like.facts if isinstance(like, Release) else like if isinstance(like, Facts) else read_facts(like)
    why = decline_simulation(facts)
    if why:
        raise NoHonestAnswer(f"this release cannot be made again: {why}", remedy=ANALYST("advice.ask"))
    columns = read_columns(table, "table")
    absent = [name for name in facts.masked if name not in columns]
    if absent or len({len(values) for values in columns.values()}) != 1:
        raise InvalidArgument("the table needs every masked column, all of one length.", where=", ".join(absent))
    secret = secrets.token_bytes(SECRET_BYTES) if secret is None else secret
    rows = len(next(iter(columns.values())))
    clocks = {name: clock for name in facts.masked if (clock := facts.columns[name].clock) is not None}
    columns = {**columns, **{name: count_moments(columns[name], clock, name) for name, clock in clocks.items()}}
    if isinstance(like, Release):
        _refuse_released(columns, like)
    masked: Arrays = _mask(facts, columns, secret)
    if facts.swap is not None:
        masked = {**masked, **_swap(facts.swap, columns, masked, secret)}
    masked = {**masked, **{name: clock.restore(masked[name]) for name, clock in clocks.items()}}
    order = shuffled_positions(rows, noise_stream(secret, "simulated release", "shuffle"))
    known = {name: facts.columns.get(name) or _kept(name, values) for name, values in columns.items()}
    made = dataclasses.replace(facts, rows_in=rows, rows_out=rows, columns=known, tables=())
    data = {name: masked.get(name, values)[order] for name, values in columns.items()}
    return Release(made, data)


def _swap(swap: SwapFacts, columns: Arrays, masked: Arrays, secret: bytes) -> Arrays:
    """The columns whose values change places, each by itself inside blocks of alike records."""
    absent = [name for name in (*swap.within, *swap.columns) if name not in columns]
    if absent:
        what = "values change places, and the table lacks columns that say between which records."
        raise InvalidArgument(what, where=", ".join(absent))
    numbers = [as_numbers(columns[name], name=name) for name in swap.columns if name in masked]  # categories make no blocks
    kept = [np.unique(columns[name], return_inverse=True)[1].reshape(-1) for name in swap.within]
    cell = group_by([np.zeros(len(numbers[0]), dtype=np.int64), *kept])
    features = describe_alike([column.astype(np.float64) for column in numbers])
    block = make_blocks(features, cell, swap.records)
    found: dict[str, npt.NDArray[Any]] = {}
    for name in swap.columns:
        source = swap_positions(block, noise_stream(secret, "simulated release", name, "swap"))
        found[name] = masked.get(name, columns[name])[source]
    return found


def _refuse_released(columns: Arrays, like: Release) -> None:
    """Refuse a table that holds the release's own values, where records share values by clusters."""
    for name in like.facts.masked if like.facts.k is not None and not counts_by_value(like.facts) else ():
        grid = like.facts.columns[name].grid
        if grid is None:
            continue
        mine, theirs = grid.quantise(as_numbers(columns[name], name=name)), grid.quantise(like._numbers(name))  # pyright: ignore[reportPrivateUsage]
        if holds_released_values(mine, theirs):
            raise NoHonestAnswer(
                "most of its different values are those of the release, whose clusters of equal records get too little noise, or "
                "none: it would seem certain.",
                where=name,
                remedy=f"{MAKE_UP} Where a table of your own has these values for a reason, pass release.facts, not the release.",
            )


def _refuse_unmoved(where: str, units: IntArray, cluster: npt.NDArray[np.integer[Any]], scale: IntArray) -> None:
    """Refuse a table of which most would come back as it was, whatever the secret."""
    if find_unmoved(units, cluster, scale) > MOST:
        raise NoHonestAnswer(
            "most of its different values would come back exactly as they are, in clusters of equal records without noise: that "
            "is how a released table looks, and it would seem certain.",
            where=where,
            remedy=MAKE_UP,
        )


def _mask(facts: Facts, columns: Arrays, secret: bytes) -> dict[str, npt.NDArray[np.float64]]:
    if facts.spec.family == "mdav":
        grids = [grid for name in facts.masked if (grid := facts.columns[name].grid) is not None]
        units = quantise_columns([columns[name] for name in facts.masked], grids)
        made = compute_vectors(units, grids=grids, spec=MdavSpec(facts.k or 2), secret=secret, context=("simulated release",))
        _refuse_unmoved(", ".join(facts.masked), units, made[0].cluster, made[0].scale)
        return {
            name: add_noise(part, secret=secret, context=("simulated release", name))[part.cluster]
            for name, part in zip(facts.masked, made, strict=True)
        }
    masked: dict[str, npt.NDArray[np.float64]] = {}
    for name in facts.masked:
        grid = facts.columns[name].grid
        if grid is None:
            raise NoHonestAnswer("the card declares no domain or grid for it.", where=name)
        made = mask_column(
            columns[name],
            domain=(grid.lo, grid.hi),
            grid=grid.step,
            method=facts.method,
            k=facts.k,
            scope=facts.scope,
            atoms=tuple(map(facts.columns[name].number_text, facts.columns[name].atoms)),
            **_options_of(facts, facts.columns[name]),
            secret=secret,
            context=("simulated release", name),
        )
        if facts.k is not None and not counts_by_value(facts):
            units = grid.quantise(as_numbers(columns[name], name=name))
            _refuse_unmoved(name, units[:, np.newaxis], made.cluster, made.scale)
        masked[name] = made.values
    return masked


def _options_of(facts: Facts, column: ColumnFacts) -> dict[str, Any]:
    """The options of masking that a family of methods has for itself."""
    if facts.delta is not None and column.rho is not None:  # the epsilon of one record at this delta
        delta = Decimal(facts.delta)
        found: dict[str, Any] = {"epsilon": Epsilon(epsilon_of(column.rho.nano, delta)), "definition": "zcdp", "delta": delta}
    else:
        found = {"epsilon": declared(column)[1]}
    if counts_by_value(facts):
        centre = None if column.centre is None else column.number_text(column.centre)
        return {**found, "centre": centre}
    return {**found, "consistency": facts.consistency, "clamp": facts.clamped, "on_grid": facts.on_grid}


def _kept(name: str, values: npt.NDArray[Any]) -> ColumnFacts:
    return ColumnFacts(name, "keep", "number" if values.dtype.kind in "iuf" else "string")
