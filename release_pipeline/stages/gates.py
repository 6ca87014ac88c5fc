"""The limits that a policy sets, and what stands against them: the error to expect, and the released table alone.

No gate is judged on a figure that compares released values with original ones: passing it would tell of the noise that was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from release_pipeline.policy.sections import Gates
from release_pipeline.stages.measures.groups import Groups

ERROR = "expected error"
EXPECTED, ALONE = "expected from the data and the noise scales, before any noise", "of the released table alone"
ATTACKED = "attacks on simulated releases before the charge: the upper end of the 95% interval"
LINKED = "simulated releases before the charge: the one that links most"
BLOCKED = "proved, not measured: how often a value is right, on average, of whom somebody names by the rest of the row"
OF_BLOCKS = "of the blocks in which values are swapped, before any noise"
NOBODYS = "rows are synthetic: no row has an original that it could be linked to"


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit that the policy sets and what stands against it. `at_least`: the limit is the smallest value that passes. `basis`:
    what the figure is of. `column`: the one that it is for, if it is for one."""

    name: str
    value: float
    limit: float
    at_least: bool = False
    basis: str = EXPECTED
    column: str = ""

    @property
    def is_of_error(self) -> bool:
        """Whether it limits a mean squared error."""
        return self.name.startswith(ERROR)

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit (NaN is not)."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def figure(self) -> float | None:
        """The value; None where there is none."""
        return None if np.isnan(self.value) else self.value

    @property
    def words(self) -> str:
        """What to say when it does not pass: never the value, which may be computed from the data; and of the released table,
        which is withheld, not even what about it."""
        return self.describe("the figure is in the vault")

    def describe(self, where: str) -> str:
        """The same, with words on where the figure is."""
        if self.basis == ALONE:
            return "a limit on the groups of the released table is not met (which one, and the figure, are in the vault)."
        if self.basis == LINKED:
            return f"all released columns together link more than {100 * self.limit:g}% of the rows ({where})."
        side = "under" if self.at_least else "over"
        return f"the {self.name} is {side} the limit {self.limit:g} ({where})."

    def to_json(self) -> dict[str, Any]:
        """As a note keeps it: None for a figure that there is not."""
        return {**asdict(self), "value": self.figure}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Gate:
        """The gate that a note tells of."""
        if not stored.keys() <= {field.name for field in fields(cls)}:
            raise TypeError("a gate has other parts than these")
        return cls(
            name=stored["name"],
            value=float("nan") if stored["value"] is None else stored["value"],
            limit=stored["limit"],
            at_least=stored["at_least"],
            basis=stored["basis"],
            column=stored["column"],
        )


def judge_gates(figures: Mapping[str, Mapping[str, Any]], gates: Gates) -> list[Gate]:
    """One gate for each column and kind of figure with a limit; a column without the figure fails."""
    kinds = (
        ("error", ERROR, gates.expected_error),
        ("relative_error", "expected relative error", gates.relative_error),
        ("atom_share", "expected difference of the share at an atom", gates.atom_share),
        ("ks", "expected Kolmogorov-Smirnov distance", gates.ks),
        ("group_mean", "expected difference of the mean of a group", gates.group_mean),
        ("group_error", "error to expect in the worst served group", gates.group_error),
    )
    found: list[Gate] = []
    for figure, words, limits in kinds:
        for name, limit in limits.items():
            value = figures.get(name, {}).get(figure)
            found.append(Gate(f"{words} of {name}", np.nan if value is None else float(value), float(limit), column=name))
    return found


def judge_groups(groups: Groups | None, gates: Gates) -> list[Gate]:
    """One gate for each limit on the groups of released quasi-identifiers; without groups each fails."""

    def gate(name: str, value: float | None, limit: float, column: str = "") -> Gate:
        return Gate(name, np.nan if value is None else value, limit, True, ALONE, column)

    found: list[Gate] = []
    if gates.anonymity_k is not None:
        smallest = None if groups is None else groups.smallest
        found.append(gate("smallest group of released quasi-identifiers", smallest, gates.anonymity_k))
    for name, least in gates.l_diversity.items():
        value = None if groups is None else groups.diversity[name]
        found.append(gate(f"l-diversity of {name}", value, least, name))
    return found
