"""What each mechanism promises, as one formal statement: the short form of docs/mechanisms.md, which has the proofs.

One text for each mechanism, and one place for it: the card, `check` and the reviewers' page take theirs from here. A test looks
whether every method, scope, statistic and order has one, and its section in that document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from release_pipeline.policy.model import Policy, ProtectClasses, ProtectVectors

SCALES_FIXED = (
    "The claim holds with the noise scales fixed at the actual data: were they calculated anew on the neighbouring table, "
    "nothing would bound what can be told (40 people, idp-cbls, k 5, claimed epsilon 0.01: an attack then proves at least 4.8)."
)

_DP = (
    "For any two tables D and D' of n records that differ in one of them, and every set S of outcomes: P[M(D) in S] <= e^epsilon "
    "P[M(D') in S]. M gives "
)
_IDP = (
    "For the actual table D, every table D' that differs from it in one record, and every set S of outcomes: P[M(D) in S] <= "
    "e^epsilon P[M(D') in S] and P[M(D') in S] <= e^epsilon P[M(D) in S], where M has the noise scales of D for both. M gives "
)
_LIST = "for each masked column, with its part of epsilon, the noisy {sums} of all its clusters in ascending order"
_ONE = "for each masked column, with its part of epsilon, the noisy {sum} of one cluster, by its number in ascending order"
_ALL_ROWS = "the masked columns of all rows in random order"
_ONE_VECTOR = "the noisy {sums} of all masked columns of one cluster, by its number along the order"
_PSEUDORANDOM = "The noise comes from a cipher, so that it holds against whoever cannot tell its stream from chance."


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A method at one scope: its section in docs/mechanisms.md, and its statement."""

    section: str
    statement: str


def _noisy(formula: str, outcome: str, more: str = "") -> str:
    return " ".join(part for part in (f"{formula}{outcome}.", more, _PSEUDORANDOM) if part)


_PLAIN, _TRIMMED = {"sum": "sum", "sums": "sums"}, {"sum": "trimmed sum", "sums": "trimmed sums"}
_LAPLACE = Mechanism(
    "laplace: scopes centroid and column",
    _noisy(
        _DP, "for each masked column, with its part of epsilon, every record's number with noise of its own, record by record"
    ),
)
_UM = Mechanism("dp-um: scopes centroid and column", _noisy(_DP, _LIST.format(**_PLAIN)))
_PLAIN_VECTOR = Mechanism("dp-mdav, plain sums: scope centroid", _noisy(_DP, _ONE_VECTOR.format(**_PLAIN)))
_TRIMMED_VECTOR = Mechanism("dp-mdav, trimmed sums: scope centroid", _noisy(_IDP, _ONE_VECTOR.format(**_TRIMMED)))
_TRIMMED_TABLE = Mechanism("dp-mdav, trimmed sums: scope table", _noisy(_IDP, _ALL_ROWS))
_COLUMN_LOSS = "The whole list of a column can lose more than epsilon."

MECHANISMS: Mapping[tuple[str, ...], Mechanism] = {  # method and scope; for dp-mdav also statistic and order
    ("laplace", "centroid"): _LAPLACE,
    ("laplace", "column"): _LAPLACE,
    ("dp-um", "centroid"): _UM,
    ("dp-um", "column"): _UM,
    ("idp-ls", "centroid"): Mechanism("idp-ls: scope centroid", _noisy(_IDP, _ONE.format(**_PLAIN), _COLUMN_LOSS)),
    ("idp-ls", "column"): Mechanism("idp-ls: scope column", _noisy(_IDP, _LIST.format(**_PLAIN))),
    ("idp-cbls", "centroid"): Mechanism("idp-cbls: scope centroid", _noisy(_IDP, _ONE.format(**_TRIMMED), _COLUMN_LOSS)),
    ("idp-cbls", "column"): Mechanism("idp-cbls: scope column", _noisy(_IDP, _LIST.format(**_TRIMMED))),
    ("dp-mdav", "centroid", "plain", "corner"): _PLAIN_VECTOR,
    ("dp-mdav", "centroid", "plain", "hilbert"): _PLAIN_VECTOR,
    ("dp-mdav", "centroid", "trimmed", "corner"): _TRIMMED_VECTOR,
    ("dp-mdav", "centroid", "trimmed", "hilbert"): _TRIMMED_VECTOR,
    ("dp-mdav", "table", "plain", "corner"): Mechanism("dp-mdav, plain sums: scope table, order corner", _noisy(_DP, _ALL_ROWS)),
    ("dp-mdav", "table", "plain", "hilbert"): Mechanism(
        "dp-mdav, plain sums: scope table, order hilbert", _noisy(_DP, _ALL_ROWS)
    ),
    ("dp-mdav", "table", "trimmed", "corner"): _TRIMMED_TABLE,
    ("dp-mdav", "table", "trimmed", "hilbert"): _TRIMMED_TABLE,
    ("mdav", "cluster"): Mechanism(
        "mdav: scope cluster",
        "Every combination of masked values in the table stands in k rows or more. No probability is bounded: there is no noise.",
    ),
    ("k-epsilon", "class"): Mechanism(
        "k-epsilon: scope class",
        "Every combination of labels in the table stands in k rows or more. Let two records of one class exchange their masked "
        "numbers, with classes and noise scales as they are: the probability that the noise gives one of them the numbers y "
        "changes by a factor of at most e^epsilon; that it is kept by suppression too, and released so, by at "
        "most e^(2 epsilon). " + _PSEUDORANDOM,
    ),
}


def state_claim(policy: Policy) -> str:
    """The formal statement of a policy's mechanism, for as many records as a person has, and for random parts."""
    protect = policy.protect
    more = (protect.statistic, protect.order) if isinstance(protect, ProtectVectors) else ()
    parts = [MECHANISMS[(protect.method, protect.scope, *more)].statement]
    if policy.records_per_person > 1 and policy.adds_up:
        parts.append(f"It holds as well for tables that differ in up to {policy.records_per_person} records of one person.")
    if policy.parts > 1 and isinstance(protect, ProtectClasses):
        parts.append("A class is all records of the release with the same labels, whichever random part they are of.")
    elif policy.parts > 1 and policy.adds_up:
        parts.append(
            "M does so for each random part of the records, and this is said of all parts together, in whatever releases."
        )
    return " ".join(parts)
