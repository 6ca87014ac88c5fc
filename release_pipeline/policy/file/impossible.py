"""Combinations that cannot occur, as a policy declares them: `never: [{age: {below: 15}, marital_status: [married, widowed]}]`. A
rule is met by who meets all of its conditions; they are public facts, and what is done for them costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, PlainSerializer, Tag, ValidationInfo, model_validator

from release_pipeline.mechanisms.basis.figures import join_names
from release_pipeline.policy.values.formats import decimal_text, name_some
from release_pipeline.policy.values.scalars import CANONICAL, Category, Frozen, Name, unique
from release_pipeline.sentences import POLICY

FORMS = "one of {below: x}, {above: x}, {from: a, to: b} and {equals: x}"
MOST_RULES = 100
PARTLY: dict[str, bool] = {"partly": True}  # the context in which a rule may be nothing, for it is wrong and that is told
LONGEST = 1_000  # letters of a rule that is told whole

End: TypeAlias = Decimal | str  # a number, or a date as it is written


def _end(value: Any, info: ValidationInfo) -> End:
    """Of the canonical form, where numbers are texts, a number too."""
    if isinstance(value, str) and value and info.context == CANONICAL:
        try:
            return Decimal(value)
        except InvalidOperation:
            return value
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str) or value == "":
        raise ValueError("must be a number or a date")
    return value if isinstance(value, str) else Decimal(value)


Bound = Annotated[End, BeforeValidator(_end)]


class Range(Frozen):
    """Numbers, or dates, below or above one, from one to another, these included, or equal to one."""

    below: Bound | None = None
    above: Bound | None = None
    first: Annotated[Bound | None, Field(alias="from")] = None
    last: Annotated[Bound | None, Field(alias="to")] = None
    equals: Bound | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Range:
        if tuple(self.ends) not in (("below",), ("above",), ("from", "to"), ("equals",)):
            raise ValueError(f"a range is {FORMS}")
        return self

    @property
    def ends(self) -> dict[str, End]:
        """What is said, by the word that says it."""
        said = {"below": self.below, "above": self.above, "from": self.first, "to": self.last, "equals": self.equals}
        return {word: end for word, end in said.items() if end is not None}

    @property
    def written(self) -> dict[str, str]:
        """As the canonical form has it."""
        return {word: format_end(end) for word, end in self.ends.items()}


def format_end(end: End) -> str:
    """A number or a date as people write it."""
    return end if isinstance(end, str) else decimal_text(end)


def _alone(value: Any) -> Any:
    """One value is a list of one."""
    return cast(object, value) if isinstance(value, list | tuple) else (value,)


def _form_of(value: Any) -> str:
    return "range" if isinstance(value, dict | Range) else "list"


_Listed = Annotated[tuple[Category, ...], Field(min_length=1), AfterValidator(unique), BeforeValidator(_alone)]
_Ranged = Annotated[Range, PlainSerializer(lambda found: found.written)]
Condition: TypeAlias = Annotated[Annotated[_Listed, Tag("list")] | Annotated[_Ranged, Tag("range")], Discriminator(_form_of)]
Conditions: TypeAlias = Mapping[str, Range | tuple[int | str, ...]]


def _of_several(rule: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if len(rule) < 2 and not (info.context == PARTLY and not rule):
        raise ValueError("a rule names two columns or more: what one alone cannot hold is left out of its domain or values")
    return rule


Rule: TypeAlias = Annotated[dict[Name, Condition], AfterValidator(_of_several)]


def describe_rule(rule: Conditions) -> str:
    """A combination in words; of one that has very many values some of them.

    >>> describe_rule({"status": ("child",), "income": Range(above=0)})
    'income above 0 with status child'
    """
    for some in (False, True):
        words = join_names((_describe_condition(name, rule[name], some=some) for name in sorted(rule)), "with")
        if len(words) <= LONGEST:
            return words
    return POLICY("rule.many", columns=name_some(sorted(rule)))


def _describe_condition(column: str, condition: Range | tuple[int | str, ...], *, some: bool) -> str:
    if not isinstance(condition, Range):
        names = [str(value) for value in condition]
        return POLICY("rule.is", column=column, values=name_some(names) if some else join_names(names, "or"))
    ends = condition.written
    if "from" in ends:
        return POLICY("rule.from", column=column, first=ends["from"], last=ends["to"])
    if "below" in ends:
        return POLICY("rule.below", column=column, end=ends["below"])
    if "above" in ends:
        return POLICY("rule.above", column=column, end=ends["above"])
    return POLICY("rule.is", column=column, values=ends["equals"])


def write_rule(rule: Conditions) -> dict[str, Any]:
    """What a rule says, whatever the order in which it is written: equal for rules that say the same."""
    return {
        name: condition.written if isinstance(condition, Range) else sorted(map(str, condition))
        for name, condition in rule.items()
    }
