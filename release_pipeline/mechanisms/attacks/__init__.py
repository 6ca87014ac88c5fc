"""Singling out, linking and inferring, each with a control group: the three attacks of GEM23, in our own implementation.

An attack without one shows little: anybody who knows that most people have no capital gain can infer it for everybody. GEM23
therefore attacks people who are in the data and people who are not, and calls the difference the risk. Their control group was
held out before anything was released. Here the released table is made from all records. So the control group is drawn from the
people of the table, and the attacker gets the released table without these people's own rows.

This counts what a person's own row reveals beyond the rows of others. It does not count that a person also influenced the rows of
others. The mean of a cluster from which a control person's row is taken out still has 1/k of that person's value in it, and the
position of a cut or a trimmed sum may depend on that person: the measured risk is too low by that. With noise that covers the
whole table the difference is small; with small clusters and no noise it is not. Taking rows out also thins the table, for targets
and control group alike: by at most a third, and for singling out by half.

Nearness is GEM23's, that of Gower: numbers by their difference over the range of the released column, codes equal or not, added
up; a column without any range helps no attacker. All rows that are equally near are found (`neighbours`), and the attacker picks
one of them at random, so successes are expectations, numbers from 0 to 1. Everything is computed against the originals: for a
review, never for the public. Intervals cover the sampling of people, not the noise.

`view` has the attacked table, the attacked people, and the nearest rows; `inferring` and `singling_out` are the attacks;
`criteria` assigns attacks to the three criteria of an anonymised table, and has the attacks for synthetic rows.
"""

from release_pipeline.mechanisms.attacks.criteria import (
    CRITERIA,
    INFERENCE,
    LINKABILITY,
    SINGLING_OUT,
    Claim,
    Closest,
    Criterion,
    NearRows,
    find_closest,
    find_criterion,
    find_near_rows,
    name_attacks,
)
from release_pipeline.mechanisms.attacks.inferring import INFERRED, TARGETS, TOLERANCE, Inference, infer, link
from release_pipeline.mechanisms.attacks.singling_out import ATTEMPTS, PREDICATES, single_out, single_out_beside
from release_pipeline.mechanisms.attacks.view import Attack, Attacked, AttackedColumn, People

__all__ = [
    "ATTEMPTS",
    "CRITERIA",
    "INFERENCE",
    "INFERRED",
    "LINKABILITY",
    "PREDICATES",
    "SINGLING_OUT",
    "TARGETS",
    "TOLERANCE",
    "Attack",
    "Attacked",
    "AttackedColumn",
    "Claim",
    "Closest",
    "Criterion",
    "Inference",
    "NearRows",
    "People",
    "find_closest",
    "find_criterion",
    "find_near_rows",
    "infer",
    "link",
    "name_attacks",
    "single_out",
    "single_out_beside",
]
