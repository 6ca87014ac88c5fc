"""Columns that are tied by a rule which what is published may break: each is masked on its own, whatever the rule says.

A tie is an expectation that compares or adds up columns that are all published, or a derived column that is published beside all
that it is derived of, without being recomputed. It is told where something in it is masked and nothing here shows that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from release_pipeline.policy.derivations import Between, Derived, Difference, Limit, Sum, list_leaves
from release_pipeline.policy.expectations import Comparison, Total
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.policy.kinds.missing import number_of_code
from release_pipeline.policy.model import Policy
from release_pipeline.sentences import POLICY

Rule: TypeAlias = Comparison | Total | Derived
_NINE_DIGITS, _LARGE = Decimal("0.000000001"), 9_000_000  # below which floats have all decimals of nine digits


@dataclass(frozen=True, slots=True)
class Tie:
    """A rule that ties published columns. `name`: of the expectation, or the derived column."""

    name: str
    rule: Rule
    columns: tuple[str, ...]

    @property
    def words(self) -> str:
        """The rule in words."""
        if isinstance(self.rule, Sum | Difference):
            return f"{self.name} = {''.join(self.rule.preview())}"
        if isinstance(self.rule, Derived):
            return POLICY("derive.as", column=self.name, columns=name_some(self.rule.inputs))
        return self.rule.words


def find_ties(policy: Policy) -> list[Tie]:
    """Every rule that what is published may break, in the order of the file: derived columns, then expectations."""
    found = [Tie(name, how, (name, *how.inputs)) for name, how in policy.derive.items() if name not in policy.recomputed_columns]
    rules = ((name, rule) for name, rule in policy.expect.items() if isinstance(rule, Comparison | Total))
    found += [Tie(name, rule, rule.columns) for name, rule in rules]
    return [tie for tie in found if _is_open(policy, tie.columns) and not _is_kept(policy, tie.rule)]


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
    if isinstance(tie.rule, Comparison) and tie.rule.read_as == "dates":
        first, _, last = tie.rule.compare
        return f"Derive what lies between ({{between: [{first}, {last}], unit: day}}), mask that from 0 on, and drop {last}."
    if isinstance(tie.rule, Derived):
        return f"With do: recompute {tie.name} is made of what is published: it keeps the rule, and costs nothing."
    if isinstance(tie.rule, Total):
        return (
            f"Drop {tie.rule.equals}, derive a column of the parts ({{sum: [{', '.join(tie.rule.sum)}]}}) and publish that with "
            "do: recompute."
        )
    first, sign, last = tie.rule.compare
    least = "above 0" if sign == "<" else "0"
    return (
        f"Derive what lies between ({{difference: [{last}, {first}]}}), mask that in a domain from {least} on, drop {last}, and "
        f"publish the sum of {first} and it with do: recompute."
    )


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


def _is_kept(policy: Policy, rule: Rule) -> bool:
    """Whether a rule holds by how columns are made of each other. False where that is not seen."""
    match rule:
        case Comparison(compare=(first, sign, last), read_as="numbers"):
            return _is_ordered(policy, first, last, strictly=sign == "<")
        case Total():
            return _adds_up(policy, rule)
        case _:
            return False


def _made(policy: Policy, name: str) -> Derived | None:
    return policy.derive[name] if name in policy.recomputed_columns else None


def _is_ordered(policy: Policy, first: str, last: str, *, strictly: bool) -> bool:
    """One is the other with what is not below 0 added or taken away, or limited on one side alone. A sum of floats never goes
    down when what is not below 0 is added (`add_signed`); of what is above 0 it goes up where it has all decimals exactly."""
    later, earlier = _made(policy, last), _made(policy, first)
    match later:
        case Sum(sum=parts) if first in parts:
            return _is_added(policy, first, [part for part in parts if part != first], strictly=strictly)
        case Limit(limit=column, top=None) if column == first:
            return not strictly
        case _:
            pass
    match earlier:
        case Difference(difference=(whole, *taken)) if whole == last:
            return _is_added(policy, last, taken, strictly=strictly)
        case Limit(limit=column, bottom=None):
            return column == last and not strictly
        case _:
            return False


def _is_added(policy: Policy, to: str, parts: Sequence[str], *, strictly: bool) -> bool:
    ranges = [_range_of(policy, part) for part in (to, *parts)]
    known = [ends for ends in ranges[1:] if ends is not None]
    if len(known) < len(parts) or any(low < 0 for low, _ in known):
        return False
    if not strictly:
        return True
    exact = ranges[0] is not None and all(_lies_on(policy, part, _NINE_DIGITS) for part in (to, *parts))
    return exact and any(low > 0 for low, _ in known) and sum(max(map(abs, ends)) for ends in ranges if ends) < _LARGE


def _range_of(policy: Policy, name: str) -> tuple[Decimal, Decimal] | None:
    """Between which numbers every published value lies; None where that is not seen."""
    column, how = policy.columns[name], _made(policy, name)
    if isinstance(column, NoiseColumn):
        return column.domain if policy.clamps else None
    if isinstance(column, ListedColumn):
        numbers = _kept_numbers(column)
        return None if numbers is None else (min(numbers), max(numbers))
    if isinstance(how, Limit) and how.bottom is not None and how.top is not None:
        return how.bottom, how.top
    if not isinstance(how, Sum):
        return None
    known = [ends for part in how.sum if (ends := _range_of(policy, part)) is not None]
    if len(known) < len(how.sum):
        return None
    return sum((low for low, _ in known), Decimal(0)), sum((high for _, high in known), Decimal(0))


def _adds_up(policy: Policy, rule: Total) -> bool:
    """Whether one of them is recomputed of the others, and rounding each to the grid moves no sum further than may be."""
    is_made = any(
        (isinstance(how, Sum) and name == rule.equals and set(how.sum) == set(rule.sum))
        or (
            isinstance(how, Difference)
            and how.difference[0] == rule.equals
            and name in rule.sum
            and {name, *how.difference[1:]} == set(rule.sum)
        )
        for name, how in ((name, _made(policy, name)) for name in rule.columns)
    )
    lies = all(_lies_on(policy, name, rule.grid) for name in rule.columns)
    return is_made and (lies or rule.within * 2 >= rule.grid * (len(rule.sum) + 1))


def _lies_on(policy: Policy, name: str, step: Decimal) -> bool:
    """Whether every published value is a multiple of this step."""
    column = policy.columns[name]
    if isinstance(column, NoiseColumn):
        is_on_grid = policy.method.on_grid == "always" or (policy.clamps and policy.method.on_grid == "moved")
        return is_on_grid and not column.grid % step and not column.domain[0] % step
    if isinstance(column, ListedColumn):
        numbers = _kept_numbers(column)
        return numbers is not None and not any(number % step for number in numbers)
    how = _made(policy, name)
    return isinstance(how, Sum | Difference) and all(_lies_on(policy, part, step) for part in how.inputs)


def _kept_numbers(column: ListedColumn) -> list[Decimal] | None:
    """Its values as numbers; None where one is none."""
    read = [number_of_code(str(value)) for value in column.values]
    numbers = [number for number in read if isinstance(number, Decimal)]
    return numbers if len(numbers) == len(read) else None
