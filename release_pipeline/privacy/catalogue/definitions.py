"""The privacy definitions, from the strongest to the weakest; and the formulas that statements begin with."""

from release_pipeline.privacy.catalogue.spec import Definition, ListLoss

DP = Definition(
    key="dp",
    name="eps-DP",
    short="DP",
    tag="DP",
    strength=0,
    composes=True,
    covers_groups=True,
    groups="; neighbours differ in one record; epsilon is for all the records that a person may have, and for g people at most g "
    "times that",
)
ZCDP = Definition(
    key="zcdp",
    name="(epsilon, delta)-DP, by rho-zCDP (zero-concentrated differential privacy)",
    short="zCDP",
    tag="zCDP",
    strength=1,
    composes=True,
    covers_groups=True,
    groups="; neighbours differ in one record; rho is for all the records that a person may have, and for g people at most g "
    "squared times that",
)
IDP = Definition(
    key="idp",
    name="eps-iDP (individual differential privacy)",
    short="iDP",
    tag="iDP",
    strength=2,
    composes=True,
    covers_groups=False,
    fixes_scales=True,
    groups="; neighbours differ in one record; groups are not covered",
)
K_EPSILON = Definition(
    key="k-epsilon",
    name="(k,eps)-anonymity: stochastic indistinguishability within a class; not differential privacy",
    short="(k,eps)-anonymity",
    tag="(k,eps)",
    strength=3,
    composes=False,
    covers_groups=False,
    groups="; groups of people are not covered",
)
K_ANONYMITY = Definition(
    key="k-anonymity",
    name="k-anonymity on the masked columns; not differential privacy",
    short="k-anonymity",
    tag="k-anonymity",
    strength=4,
    composes=False,
    covers_groups=False,
    groups="; groups of people are not covered",
)
DEFINITIONS = {definition.key: definition for definition in (DP, ZCDP, IDP, K_EPSILON, K_ANONYMITY)}

SAME = ListLoss(factor=lambda _: 1, words="the same epsilon (the moves of one change add up to at most the domain)")
UNBOUNDED = ListLoss(factor=None, words="not bounded")  # a definition that bounds no list

FOR_ALL_TABLES = (
    "For any two tables D and D' of n records that differ in one of them, and every set S of outcomes: P[M(D) in S] <= e^epsilon "
    "P[M(D') in S]. M gives "
)
FOR_ALL_TABLES_RHO = (
    "For any two tables D and D' of n records that differ in one of them, and every alpha > 1: the Renyi divergence of order "
    "alpha of M(D) from M(D') is at most alpha rho; so that for every set S of outcomes P[M(D) in S] <= e^epsilon P[M(D') in S] "
    "+ delta, with the epsilon and the delta that rho was found from. M gives "
)
FOR_ACTUAL_TABLE = (
    "For the actual table D, every table D' that differs from it in one record, and every set S of outcomes: P[M(D) in S] <= "
    "e^epsilon P[M(D') in S] and P[M(D') in S] <= e^epsilon P[M(D) in S], where M has the noise scales of D for both. M gives "
)
SCALES_FIXED = (
    "The claim holds with the noise scales fixed at the actual data: were they calculated anew on the neighbouring table, "
    "nothing would bound what can be told (40 people, idp-cbls, k 5, claimed epsilon 0.01: an attack then proves at least 4.8)."
)
PSEUDORANDOM = "The noise comes from a cipher, so that it holds against whoever cannot tell its stream from chance."


def state_noise(formula: str, outcome: str, more: str = "") -> str:
    """The statement of a mechanism with noise: a formula, what it is about, and what else there is to say."""
    return " ".join(part for part in (f"{formula}{outcome}.", more, PSEUDORANDOM) if part)
