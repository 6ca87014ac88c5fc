"""The three criteria of an anonymised table (WP14), and the attacks that each of them is tried by: the one place that says so.

Singling out: whether records of one person can be isolated. Linkability: whether records about the same person can be joined.
Inference: whether a value can be told from those of other columns. An attack that finds little proves nothing; one that finds
something beyond its control group has found what the table tells of the people in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.attacks.control import Attack
from release_pipeline.privacy.shares import Share, difference_beyond, wilson_interval

SINGLING_OUT, LINKABILITY, INFERENCE = "singling_out", "linkability", "inference"


@dataclass(frozen=True, slots=True)
class Criterion:
    """`begins`: how the names of its attacks begin. `attacks`: those on all columns together; without, there is one for each
    column. Each is beside a control group. `linkage`: whether record linkage, which has none, is told with them."""

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


def pool_attacks(rounds: Sequence[Attack]) -> Attack:
    """The same attack of several rounds as one: on people, control groups and noise that were drawn anew in each.

    Every round's share of successes is an unbiased estimate of the same mean, over all draws of people, control group and noise,
    and no round knows of another. With tries that are taken as independent within a round, as in any interval here, its variance
    is at most p(1-p)/n for the n people of the round, who are drawn without replacement; so that of the pooled share is at most
    p(1-p)/N for all N tries, and Wilson's interval holds for it, however few people the table has. It says nothing of a
    population that these people were drawn from. `worst` is empty: each round may have another one.
    """
    attack, control = (_pool([getattr(one, side) for one in rounds]) for side in ("attack", "control"))
    guess = sum(one.guess for one in rounds) / len(rounds)
    return Attack(rounds[0].name, attack, control, guess, difference_beyond(attack, control), "")


def _pool(shares: Sequence[Share]) -> Share:
    tried = sum(share.tried for share in shares)
    if not tried:
        return Share(0.0, 0.0, 1.0, 0, None)
    value = sum(share.value * share.tried for share in shares) / tried
    return Share(value, *wilson_interval(min(value, 1.0), tried), tried, None)


def bound_gain(attack: Attack) -> float | None:
    """The most that an attack gains beyond its control group, as far as was tried: the upper end of the 95% interval of the
    risk. 0 where all records have the same value, which anybody who knows the column can name, so that there is nothing to gain;
    None where no attempt could be made, which shows nothing."""
    if not attack.attack.tried:
        return None
    return 0.0 if attack.guess >= 1 else attack.risk.high
