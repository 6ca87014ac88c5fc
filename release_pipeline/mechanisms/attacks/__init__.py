"""Singling out, linking and inferring, each with a control group: the three attacks of GEM23, by code of our own.

An attack without one says little: anybody who knows that most people have no capital gain infers it of everybody. GEM23 therefore
attacks people who are in the data and people who are not, and calls a risk what the first lose beyond the second. Their control
group was held out before anything was released. Here the released table is made of all records. So the control group is drawn
from the people of the table, and the attacker is given the released table without these people's own rows.

This counts what a person's own row reveals beyond the rows of others. It does not count that a person also had a share in what
happened to the others. The mean of a cluster from which a control person's row is taken out still has 1/k of that person's value
in it, and a cut or a trimmed sum may lie where it does because of that person: the risk found is too low by that. With noise that
covers the whole table the difference is small; with small clusters and no noise it is not. Taking rows out also thins the table,
for targets and control group alike: by at most a third, and for singling out by half.

Nearness is GEM23's, that of Gower: numbers by their difference over the range of the released column, codes equal or not, added
up; a column without any range helps no attacker. Rows that are equally near are all found (`neighbours`), and the attacker takes
any of them with the same chance, so that successes are expectations, numbers from 0 to 1. Everything is computed against the
originals: for a review, never for the public. Intervals are of the people drawn, not of the noise.

`view` has what is attacked, who is, and which rows are nearest; `inferring` and `singling_out` are the attacks; `criteria` says
which attack is tried for which of the three criteria of an anonymised table, and what is left of them where rows are synthetic.
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
