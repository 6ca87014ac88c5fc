"""The three criteria of an anonymised table (WP14), and the attacks that test each of them: defined only here.

Singling out: whether records of one person can be isolated. Linkability: whether records about the same person can be joined.
Inference: whether a value follows from those of other columns. An attack that finds little proves nothing; an attack that finds
more than its control group shows what the table reveals about the people in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.attacks.inferring import infer_column
from release_pipeline.mechanisms.attacks.view import Attacked, People, View
from release_pipeline.mechanisms.basis.grid import FloatArray
from release_pipeline.mechanisms.basis.samples import (
    Difference,
    Share,
    measure_share,
    subtract_shares,
)

SINGLING_OUT, LINKABILITY, INFERENCE = "singling_out", "linkability", "inference"


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion and its attacks. `begins`: how the names of its attacks begin. `attacks`: those on all columns together; if
    empty, there is one for each column. Each has a control group. `linkage`: whether record linkage, which has none, is reported
    with them."""

    begins: str
    attacks: tuple[str, ...] = ()
    linkage: bool = False


CRITERIA: Mapping[str, Criterion] = {
    SINGLING_OUT: Criterion("singling out", ("singling out by one column", "singling out by several columns")),
    LINKABILITY: Criterion("linking", ("linking",), linkage=True),
    INFERENCE: Criterion("inferring"),
}


def find_criterion(attack: str) -> tuple[str, str]:
    """Return the criterion that an attack tests, and the column that it infers: empty for an attack on all columns together.

    >>> find_criterion("inferring income"), find_criterion("singling out by one column")
    (('inference', 'income'), ('singling_out', ''))
    """
    for name, criterion in CRITERIA.items():
        if attack.startswith(criterion.begins):
            return name, "" if criterion.attacks else attack.removeprefix(criterion.begins).removeprefix(" ")
    raise InvalidArgument("an attack of this name is tried for no criterion.", where="attack")


def name_attacks(criterion: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the attacks that test a criterion on a table of these columns.

    >>> name_attacks("inference", ["age", "income"])
    ('inferring age', 'inferring income')
    """
    own = CRITERIA[criterion]
    return own.attacks or tuple(f"{own.begins} {column}" for column in columns)


# Synthetic rows near people: what they reveal about people that they were made from, and about strangers.


@dataclass(frozen=True, slots=True)
class Closest:
    """The distance of the nearest released row from people that the table was made from, and from people that it was made
    without: the median of Gower's distance (0 to 1, every column counting equally), and the share of people who have an identical
    row."""

    median: float
    equal: Share
    control_median: float
    control_equal: Share


def find_closest(table: Attacked, people: People) -> Closest:
    """Return the distance to the closest row, for both groups of people."""
    equal, medians = _measure_nearness(View(table.columns, people.left), people, len(table.columns))
    return Closest(medians[0], equal[0], medians[1], equal[1])


@dataclass(frozen=True, slots=True)
class Claim:
    """The share of right values of one column in the nearest row: for people that the table was made from, for people that it was
    made without, and for all originals with the best constant; and the difference of the first two."""

    name: str
    people: Share
    strangers: Share
    guess: float
    beyond: Difference


@dataclass(frozen=True, slots=True)
class NearRows:
    """What synthetic rows reveal to somebody who knows some columns of a person and uses the nearest row as the person's.

    known             the columns that are known
    equal             the share of people that the table was made from for whom some row has exactly the known values
    strangers_equal   that share for people that it was made without; `beyond` is the difference
    median            the median of Gower's distance to the nearest row (0 to 1, every column counting equally)
    strangers_median  that median for strangers
    claims            the results for each secret
    overall           their mean, person by person; None without secrets
    """

    known: tuple[str, ...]
    equal: Share
    strangers_equal: Share
    beyond: Difference
    median: float
    strangers_median: float
    claims: tuple[Claim, ...]
    overall: Claim | None


def find_near_rows(table: Attacked, people: People, *, known: Sequence[str], secrets: Sequence[str]) -> NearRows:
    """Return the attack on every secret with the known columns, for people that released rows were made from and for strangers.

    Each secret is guessed from the known columns. A secret that is itself known is guessed from all other columns of the table,
    known or not: with all columns both known and secret, the attacker knows all but one.

    The attacker picks one of the equally near rows at random; a number is right within the tolerance of `infer`. No row belongs
    to a person, so nothing is linked: a row equal to a stranger is there because many people are like that, or by chance. The
    table reveals about its people the difference between them and strangers.
    """
    if not set(known) | set(secrets) <= {column.name for column in table.columns} or not set(known):
        raise InvalidArgument("nothing is known, or a column is not one of the table's.", where="known")
    columns = [column for column in table.columns if column.name in known]
    view = View(columns, people.left)
    equal, medians = _measure_nearness(view, people, len(columns))
    claims: list[Claim] = []
    sums = [np.zeros(len(some)) for some in (people.targets, people.control)]
    for secret in table.columns:
        if secret.name not in secrets:
            continue
        tried, guess = infer_column(table, secret, people, view if secret.name not in known else None)
        for total, successes in zip(sums, tried, strict=True):
            total += successes
        claims.append(_judge_claim(secret.name, tried[0], tried[1], guess))
    overall = None
    if claims:
        guess = float(np.mean([claim.guess for claim in claims]))
        overall = _judge_claim("", sums[0] / len(claims), sums[1] / len(claims), guess)
    return NearRows(tuple(column.name for column in columns), *equal, subtract_shares(*equal), *medians, tuple(claims), overall)


def _judge_claim(name: str, people: FloatArray, strangers: FloatArray, guess: float) -> Claim:
    right, of_strangers = measure_share(people, among=None), measure_share(strangers, among=None)
    return Claim(name, right, of_strangers, guess, subtract_shares(right, of_strangers))


def _measure_nearness(view: View, people: People, columns: int) -> tuple[tuple[Share, Share], tuple[float, float]]:
    """Return for both groups the shares of people with an identical row, and the median distances."""
    found: list[FloatArray] = [view.nearest(some) / columns for some in (people.targets, people.control)]
    equal = [measure_share((distance == 0).astype(np.float64), among=None) for distance in found]
    medians = [float(np.median(distance)) for distance in found]
    return (equal[0], equal[1]), (medians[0], medians[1])
