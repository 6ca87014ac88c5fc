"""The types of the catalogue: a definition, a method, and each of its claims. The entries are in `entries`, by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.scales import ScaleRule, Sums

Family: TypeAlias = Literal["columns", "by-value", "whole-table", "vectors", "mdav", "classes"]
OnGrid: TypeAlias = Literal["moved", "always", "no"]
BY_RHO: Mapping[str, str] = {"definition": "zcdp"}  # the options of a claim whose budget is rho


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A privacy definition: its name at three lengths, and what follows from the definition only.

    `strength`: a smaller number implies at least as much, except zcdp and idp, neither of which implies the other. `composes`:
    epsilons of releases about the same people add up to a bound, so that a cap can name one. `covers_groups`: g people lose at
    most g epsilon. `fixes_scales`: it holds with the noise scales fixed at the actual data. `groups`: the sentence on groups
    after the name.
    """

    key: str
    name: str
    short: str
    tag: str
    strength: int
    composes: bool
    covers_groups: bool
    fixes_scales: bool = False
    groups: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLoss:
    """The largest loss of the whole list of a column's values, in multiples of the epsilon of one centroid. `factor` takes the
    number of clusters; None if widths and order of the columns matter, too. `text`: the factor in a sentence; `counts`: whether
    the number of clusters matters."""

    factor: Callable[[int], Fraction | int] | None
    text: str
    counts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSpec:
    """The promise of a method at one scope: never wider than proved in the `section` of docs/mechanisms.md.

    `options`: those of the method that this claim is for, by name. `statement`: the formal statement, word for word that of the
    section. `rule`: the rule for noise scales, for methods that work column by column. `lists`: what a column's whole list can
    lose. `covers_table`: if no other column is released, a bound holds for everything that a reader sees. `restores_order`: empty
    if that is free, else why it would break the claim. `keeps_atoms`: clusters of equal values have no noise.
    """

    scope: str
    definition: Definition
    section: str
    statement: str
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    rule: ScaleRule | None = None
    lists: ListLoss
    covers_table: bool = False
    restores_order: str = ""
    keeps_atoms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """Why the analyst's kit declines, each empty if it answers. `means`: for means, and for the noise distribution; `slopes`: for
    links between columns."""

    means: str = ""
    slopes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSpec:
    """A method, in one place.

    `summary`: what it does, in a line. `paper`: where it is from; `key`: that in docs/bibliography.md. `claims`: every
    combination of scope and options that is proved. `sums`: what is published of a cluster, for methods that work column by
    column; None for a method that masks every record separately. `takes_k`: whether it has clusters or classes, and `is_noisy`
    whether it has noise. `on_grid`: whether released values are on the declared grid without rounding (always), or moved there
    (moved).
    """

    name: str
    family: Family
    summary: str
    paper: str
    key: str
    claims: tuple[ClaimSpec, ...]
    sums: Sums | None = None
    takes_k: bool = True
    is_noisy: bool = True
    on_grid: OnGrid = "moved"
    kit: Kit = Kit()

    def __post_init__(self) -> None:
        """Refuse an incomplete entry: nothing may be drawn or charged with half of the facts about a method."""
        if not self.claims:
            raise InvalidArgument(f"{self.name} claims nothing.", where="method")
        kinds = [(claim.scope, *sorted(claim.options.items())) for claim in self.claims]
        if len(set(kinds)) != len(kinds):
            raise InvalidArgument(f"{self.name} has two claims of the same scope and options.", where="method")
        by_column = self.family == "columns"
        if any((claim.rule is not None) != by_column for claim in self.claims):
            what = "needs a rule for the noise scales of every claim" if by_column else "has scales of its own, and takes no rule"
            raise InvalidArgument(f"{self.name} {what}.", where="method")
        if by_column and any(
            claim.rule is not None and not claim.rule.is_public and not claim.definition.fixes_scales for claim in self.claims
        ):
            what = "claims for all tables, with scales that follow from the data"
            raise InvalidArgument(f"{self.name} {what}.", where="method")
        if self.takes_k != (self.sums is not None) and by_column:
            raise InvalidArgument(f"{self.name} needs the sums of its clusters, or has no k.", where="method")
        if by_column and self.sums is None and not all(claim.rule is not None and claim.rule.is_public for claim in self.claims):
            raise InvalidArgument(f"{self.name} masks every record on its own, and needs a public scale.", where="method")
        if any(claim.lists.factor is None and claim.definition.composes for claim in self.claims) and by_column:
            raise InvalidArgument(f"{self.name} needs what a column's whole list can lose.", where="method")

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the scopes of its claims."""
        return tuple(dict.fromkeys(claim.scope for claim in self.claims))

    @property
    def least_k(self) -> int:
        """Return the smallest cluster that its sums are defined for; 1 if it has none."""
        return 1 if self.sums is None else self.sums.least_k

    @property
    def by_record(self) -> bool:
        """Return whether every record is masked separately."""
        return self.family == "columns" and self.sums is None


# The privacy definitions, from the strongest to the weakest; and the formulas at the beginning of statements.


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

SAME = ListLoss(factor=lambda _: 1, text="the same epsilon (the moves of one change add up to at most the domain)")
UNBOUNDED = ListLoss(factor=None, text="not bounded")  # a definition that bounds no list

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
    "The guarantee holds with the noise scales fixed at the actual data. If they were calculated again on the neighbouring "
    "table, nothing would bound what can be revealed (40 people, idp-cbls, k 5, claimed epsilon 0.01: an attack then proves at "
    "least 4.8)."
)
PSEUDORANDOM = "The noise comes from a cipher: this holds against anyone who cannot tell its stream from true randomness."


def state_noise(formula: str, outcome: str, more: str = "") -> str:
    """Return the statement of a mechanism with noise: a formula, what it is about, and any additions."""
    return " ".join(part for part in (f"{formula}{outcome}.", more, PSEUDORANDOM) if part)
