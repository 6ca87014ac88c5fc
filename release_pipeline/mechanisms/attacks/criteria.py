"""The three criteria of an anonymised table (WP14), and the attacks that each of them is tried by: the one place that says so.

Singling out: whether records of one person can be isolated. Linkability: whether records about the same person can be joined.
Inference: whether a value follows from those of other columns. An attack that finds little proves nothing; one that finds
something beyond its control group has found what the table reveals of the people in it.
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
    """`begins`: how the names of its attacks begin. `attacks`: those on all columns together; without, there is one for each
    column. Each has a control group. `linkage`: whether record linkage, which has none, is reported with them."""

    begins: str
    attacks: tuple[str, ...] = ()
    linkage: bool = False


CRITERIA: Mapping[str, Criterion] = {
    SINGLING_OUT: Criterion("singling out", ("singling out by one column", "singling out by several columns")),
    LINKABILITY: Criterion("linking", ("linking",), linkage=True),
    INFERENCE: Criterion("inferring"),
}


def find_criterion(attack: str) -> tuple[str, str]:
    """The criterion that an attack is tried for, and the column that it infers: empty for those on all columns together.

    >>> find_criterion("inferring income"), find_criterion("singling out by one column")
    (('inference', 'income'), ('singling_out', ''))
    """
    for name, criterion in CRITERIA.items():
        if attack.startswith(criterion.begins):
            return name, "" if criterion.attacks else attack.removeprefix(criterion.begins).removeprefix(" ")
    raise InvalidArgument("an attack of this name is tried for no criterion.", where="attack")


def name_attacks(criterion: str, columns: Iterable[str]) -> tuple[str, ...]:
    """The attacks that a criterion is tried by on a table of these columns.

    >>> name_attacks("inference", ["age", "income"])
    ('inferring age', 'inferring income')
    """
    own = CRITERIA[criterion]
    return own.attacks or tuple(f"{own.begins} {column}" for column in columns)


# Rows near people, where rows are synthetic: what they reveal of people that they were made of, and
# of strangers.


@dataclass(frozen=True, slots=True)
class Closest:
    """How far the nearest released row is from people that the table was made of, and from people that it was made without: the
    median of Gower's distance (0 to 1, a column counting alike), and the share of people who have a row just like theirs."""

    median: float
    equal: Share
    control_median: float
    control_equal: Share


def find_closest(table: Attacked, people: People) -> Closest:
    """The distance to the closest row, for both."""
    equal, medians = _measure_nearness(View(table.columns, people.left), people, len(table.columns))
    return Closest(medians[0], equal[0], medians[1], equal[1])


@dataclass(frozen=True, slots=True)
class Claim:
    """What a person's nearest row says of one column, taken for the person's own: how often that is right of people that the
    table was made of, of people that it was made without, and of all originals for the best constant; and how much more often
    of the first."""

    name: str
    people: Share
    strangers: Share
    guess: float
    beyond: Difference


@dataclass(frozen=True, slots=True)
class NearRows:
    """What synthetic rows reveal to somebody who knows some columns of a person and takes the nearest row for the person's.

    known             the columns that are known
    equal             the share of people that the table was made of for whom some row has exactly what is known of them
    strangers_equal   the same of people that it was made without; `beyond` is the difference
    median            the median of Gower's distance to the nearest row (0 to 1, a column counting alike)
    strangers_median  the same
    claims            each secret
    overall           their mean, person by person; none where there is no secret
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
    """The attack on every secret with what is known, for people that released rows were made of and for strangers.

    Each secret is sought by the known columns, whatever the other secrets are. One that is among the known itself is sought by
    all other columns of the table, known or not: so somebody who knows all but one is looked at, who has everything as known and
    as secret.

    Of rows that are equally near the attacker takes any with the same chance; a number is right within the tolerance of
    `infer`. No row is an own one, so that nothing is linked: a row just like a stranger is there because people like that are
    many, or by chance. The table reveals of its people what is more for them than for strangers.
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
    """The shares of people for whom a row is just alike, and the median distances, each for both."""
    found: list[FloatArray] = [view.nearest(some) / columns for some in (people.targets, people.control)]
    equal = [measure_share((distance == 0).astype(np.float64), among=None) for distance in found]
    medians = [float(np.median(distance)) for distance in found]
    return (equal[0], equal[1]), (medians[0], medians[1])
