"""What a steward believes that the data look like: `shape`, of which a table is made up that settings are tried on. It is no part
of what is approved: nothing that is released depends on it, and the hash of a policy leaves it out.

    shape:
      rows: 20000
      columns:
        income: {at: {0: 12%}, quantiles: {10%: 4000, 50%: 21000, 90%: 62000, 99%: 180000}}
        sex: {shares: {1: 48%, 2: 52%}}
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt

from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.scalars import Exact, Name, Percent


def _read_key(value: Any) -> Any:
    """Keys of a file are texts: this one is a number."""
    try:
        return Decimal(value) if isinstance(value, str) else value
    except ArithmeticError:
        return value


def _ascends(quantiles: dict[Decimal, Decimal]) -> dict[Decimal, Decimal]:
    ordered = dict(sorted(quantiles.items()))
    values = list(ordered.values())
    if values != sorted(values):
        raise ValueError("must ascend with their shares")
    return ordered


Point = Annotated[Exact, BeforeValidator(_read_key)]


class ColumnSketch(Frozen):
    """A column as it is believed to be. `quantiles`: of its numbers beside those `at` single values, which so many of all records
    have; `missing`: how many have no value, by reason; `shares`: of listed values, those that are not named sharing what is
    left."""

    quantiles: Annotated[dict[Percent, Exact], AfterValidator(_ascends), Option(hint="Like {10%: 4000, 50%: 21000}.")] = Field(
        default_factory=dict[Decimal, Decimal]
    )
    at: Annotated[dict[Point, Percent], Option(hint="Like {0: 12%}.")] = Field(default_factory=dict[Decimal, Decimal])
    missing: Annotated[dict[str, Percent], Option(hint="Like {refused: 5%}.")] = Field(default_factory=dict[str, Decimal])
    shares: Annotated[dict[str, Percent], Option(hint="Like {a: 30%, b: 70%}.")] = Field(default_factory=dict[str, Decimal])


class Sketch(Frozen):
    """`shape`. A column that is not in it is even over its domain, or its values; no column goes together with another."""

    rows: Annotated[StrictInt, Field(ge=20, le=100_000_000), Option(hint="So many records as a release is expected to have.")]
    columns: dict[Name, ColumnSketch] = Field(default_factory=dict[str, ColumnSketch])
