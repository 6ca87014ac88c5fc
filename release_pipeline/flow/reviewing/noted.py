"""What evidence names in words, in the language that is spoken: gates, attacks and models. Evidence has them in English; a name
that is not known here, of another version, is told as it was noted."""

from __future__ import annotations

import re
from collections.abc import Callable

from release_pipeline.sentences import REVIEWERS

_GATES: dict[str, Callable[[str], str]] = {
    "expected error": lambda column: REVIEWERS("gate.error", column=column),
    "expected relative error": lambda column: REVIEWERS("gate.relative_error", column=column),
    "expected difference of the share at an atom": lambda column: REVIEWERS("gate.atom_share", column=column),
    "expected Kolmogorov-Smirnov distance": lambda column: REVIEWERS("gate.ks", column=column),
    "expected difference of a quantile": lambda column: REVIEWERS("gate.quantile", column=column),
    "expected difference of the mean of a group": lambda column: REVIEWERS("gate.group_mean", column=column),
    "error to expect in the worst served group": lambda column: REVIEWERS("gate.group_error", column=column),
    "l-diversity": lambda column: REVIEWERS("gate.l_diversity", column=column),
    "t-closeness": lambda column: REVIEWERS("gate.t_closeness", column=column),
}
_OF_TABLE: dict[str, Callable[[], str]] = {
    "smallest group of released quasi-identifiers": lambda: REVIEWERS("gate.smallest"),
    "linkage by all released columns": lambda: REVIEWERS("gate.linkage"),
    "marketer risk": lambda: REVIEWERS("gate.marketer"),
    "suppression of small groups": lambda: REVIEWERS("gate.suppression"),
    "number of records that suppression leaves": lambda: REVIEWERS("gate.left"),
    "suppression to expect in all": lambda: REVIEWERS("gate.suppression_in_all"),
    "suppression to expect after the noise": lambda: REVIEWERS("gate.suppression_after_noise"),
}
_BASES: dict[str, Callable[[], str]] = {
    "expected from the data and the noise scales, before any noise": lambda: REVIEWERS("basis.expected"),
    "of the released table alone": lambda: REVIEWERS("basis.alone"),
    "attacks on simulated releases before the charge: the upper end of the 95% interval": lambda: REVIEWERS("basis.attacked"),
    "simulated releases before the charge: the one that links most": lambda: REVIEWERS("basis.linked"),
    "rows are synthetic: no row has an original that it could be linked to": lambda: REVIEWERS("basis.nobodys"),
}
_ATTACKS: dict[str, Callable[[], str]] = {
    "singling out by one column": lambda: REVIEWERS("attack.singling_by_one"),
    "singling out by several columns": lambda: REVIEWERS("attack.singling_by_several"),
    "linking": lambda: REVIEWERS("attack.linking"),
    "inferring": lambda: REVIEWERS("attack.inferring"),
    "record linkage": lambda: REVIEWERS("attack.record_linkage"),
}
_GAIN = re.compile("gain of (.+) beyond its control group")
_MODELS: dict[str, Callable[[], str]] = {
    "logistic regression": lambda: REVIEWERS("model.regression"),
    "classification tree": lambda: REVIEWERS("model.tree"),
    "random forest": lambda: REVIEWERS("model.forest"),
    "gradient boosting": lambda: REVIEWERS("model.boosting"),
}


def say_gate(name: str, column: str) -> str:
    """What a gate limits, of a column where it is for one.

    >>> say_gate("expected error of income", "income"), say_gate("marketer risk", ""), say_gate("luck of income", "income")
    ('expected error of income', 'marketer risk', 'luck of income')
    >>> say_gate("gain of inferring income beyond its control group", "income")
    'gain of inferring income beyond its control group'
    """
    if (gain := _GAIN.fullmatch(name)) is not None:
        return REVIEWERS("gate.gain", attack=say_attack(gain[1]))
    of_column = _GATES.get(name.removesuffix(f" of {column}")) if column else None
    if of_column is not None:
        return of_column(column)
    return _OF_TABLE[name]() if name in _OF_TABLE else name


def say_basis(basis: str) -> str:
    """What its figure is of."""
    return _BASES[basis]() if basis in _BASES else basis


def say_attack(name: str) -> str:
    """What was tried, on which column where it is on one.

    >>> say_attack("linking"), say_attack("inferring income")
    ('linking', 'inferring income')
    """
    if name in _ATTACKS:
        return _ATTACKS[name]()
    start, _, column = name.partition(" ")
    return REVIEWERS("attack.inferring_column", column=column) if start == "inferring" else name


def say_model(name: str) -> str:
    """What learned."""
    return _MODELS[name]() if name in _MODELS else name
