"""Derived columns that published rows may contradict: each is masked by itself, like what it is derived of.

A tie is a derived column that is published next to all that it is derived of, without being recomputed. `check` warns of it where
something in it is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from release_pipeline.policy.derivations import Between, Derived, Difference, Sum, list_leaves
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.model import Policy
from release_pipeline.sentences import POLICY


@dataclass(frozen=True, slots=True)
class Tie:
    """A derived column, and how it is made of published ones."""

    name: str
    rule: Derived
    columns: tuple[str, ...]

    @property
    def words(self) -> str:
        """The rule in words."""
        if isinstance(self.rule, Sum | Difference):
            return f"{self.name} = {''.join(self.rule.preview())}"
        return POLICY("derive.as", column=self.name, columns=name_some(self.rule.inputs))


def find_ties(policy: Policy) -> list[Tie]:
    """The derived columns that published rows may contradict, in the order of the file."""
    made = policy.recomputed_columns
    ties = [Tie(name, how, (name, *how.inputs)) for name, how in policy.derive.items() if name not in made]
    return [tie for tie in ties if _is_open(policy, tie.columns)]


def warn_of_ties(policy: Policy) -> Iterator[str]:
    """A sentence for each, with the way out."""
    for tie in find_ties(policy):
        masked = [name for name in dict.fromkeys(tie.columns) if _leaves(policy, name) & _list_masked(policy)]
        how = f"{name_some(masked)} {'are masked each on its own' if len(masked) > 1 else 'is masked'}"
        yield f"{tie.name}: {how}, so that published rows may break the rule ({tie.words}). {_way_out(tie)}"


def _way_out(tie: Tie) -> str:
    if isinstance(tie.rule, Between):
        first, last = tie.rule.between
        return f"Publish two of the three: {first} and {tie.name} tell {last} as well as they can."
    return f"With do: recompute {tie.name} is made of what is published: it keeps the rule, and costs nothing."


def _is_open(policy: Policy, columns: tuple[str, ...]) -> bool:
    """Whether all of them are published as values, and one of them is masked."""
    published = policy.noise_columns.keys() | policy.listed_columns.keys() | policy.recomputed_columns.keys()
    return set(columns) <= published and any(_leaves(policy, name) & _list_masked(policy) for name in columns)


def _list_masked(policy: Policy) -> set[str]:
    """Those that are published with other values than they have: of synthetic rows all."""
    return {*policy.noise_columns, *(policy.listed_columns if policy.protect.is_synthetic else ())}


def _leaves(policy: Policy, name: str) -> set[str]:
    made = policy.recomputed_columns
    return set(list_leaves(policy.derive, made, name)) if name in made else {name}
