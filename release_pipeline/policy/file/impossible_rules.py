"""What rules about combinations that cannot occur (`never`) must agree on with the columns, and which entries meet them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms.whole_table.impossible import (
    MOST_PARTS,
    Ends,
    Impossible,
    find_edges,
    find_sides,
    is_anything_left,
)
from release_pipeline.policy.file.impossible import FORMS, MOST_RULES, Conditions, End, Range, write_rule
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.policy.values.formats import ask_for_near, name_some
from release_pipeline.policy.values.text import Path, Problem

HERE: Path = ("protect", "never")
Columns = Mapping[str, NoiseColumn | ListedColumn]


def find_met(column: NoiseColumn | ListedColumn, condition: Range | tuple[int | str, ...]) -> tuple[Ends, ...]:
    """The entries of a column that meet a condition. What is wrong with it is an error whose `where` says at which word."""
    width = column.exact_grid.width if isinstance(column, NoiseColumn) else len(column.values) - 1
    met = (_find_range(column, condition),) if isinstance(column, NoiseColumn) else _find_values(column, condition)
    if sum(last - first + 1 for first, last in met) > width:
        remedy = "Name less of it, or leave the column out of the rule."
        raise InvalidArgument("this is every value that the column can hold.", where="", remedy=remedy)
    return met


def read_rules(never: Sequence[Conditions], columns: Columns, places: Mapping[str, int]) -> tuple[Impossible, ...]:
    """The rules, as entries of columns by their places."""
    return tuple(_read_rule(rule, columns, places) for rule in never)


def _read_rule(rule: Conditions, columns: Columns, places: Mapping[str, int]) -> Impossible:
    if len(rule) < 2 or not rule.keys() <= columns.keys():
        raise InvalidArgument("a rule is not about two columns or more that are counted.", where="never")
    return Impossible({places[name]: find_met(columns[name], condition) for name, condition in rule.items()})


def check_never(parts: Parts, never: Sequence[Conditions], columns: Columns) -> Iterator[Problem]:
    """Every rule says something that can be said of these columns, and all of them together leave something to occur."""
    if len(never) > MOST_RULES:
        yield HERE, f"there are {len(never):,} rules: {MOST_RULES} at the most.", "Leave out those that others imply."
        return
    faults = False
    seen: list[object] = []
    for number, rule in enumerate(never):
        if not rule:  # a fault of its own, which is told
            faults = True
            seen.append(None)
            continue
        found = list(_check_rule(parts, rule, columns, (*HERE, number)))
        if (said := write_rule(rule)) in seen:
            what = f"rule {seen.index(said) + 1} says the same."
            found.append(((*HERE, number), what, "Remove one."))
        seen.append(said)
        faults = faults or bool(found)
        yield from found
    if never and not faults and all(name in columns and _is_sound(columns[name]) for rule in never for name in rule):
        yield from _check_together(never, columns)


def _check_rule(parts: Parts, rule: Conditions, columns: Columns, here: Path) -> Iterator[Problem]:
    for name, condition in rule.items():
        at = (*here, name)
        if name in columns:
            if not _is_sound(columns[name]):
                continue  # a fault of the column, which says so
            try:
                find_met(columns[name], condition)
            except ReleasePipelineError as error:
                yield (*at, error.where) if error.where else at, error.what, error.remedy
        elif name in parts.columns:
            yield at, f"'{name}' is not made anew: its do is not synthesise.", "Name columns with do: synthesise."
        elif name not in parts.names:  # of a column with a fault the column says so
            yield at, f"'{name}' is no column.", ask_for_near(name, columns, "Name columns with do: synthesise.")


def _is_sound(column: NoiseColumn | ListedColumn) -> bool:
    """Whether a column has a grid, if it is one of numbers."""
    try:
        return not isinstance(column, NoiseColumn) or column.exact_grid.width > 0
    except ReleasePipelineError:
        return False


def _check_together(never: Sequence[Conditions], columns: Columns) -> Iterator[Problem]:
    """Columns are in no more parts than tables of pairs have room for, and there is a combination that meets no rule."""
    names = sorted({name for rule in never for name in rule})
    rules = read_rules(never, columns, {name: place for place, name in enumerate(names)})
    widths: dict[int, int] = {}
    for place, name in enumerate(names):
        column = columns[name]
        widths[place] = column.exact_grid.width if isinstance(column, NoiseColumn) else len(column.values) - 1
        ordered = isinstance(column, NoiseColumn)
        parted = len(find_edges(rules, place, widths[place])) + 1 if ordered else len({*find_sides(rules, place, widths[place])})
        if parted > MOST_PARTS:
            what = f"the rules put '{name}' into {parted} parts, and each must be counted by itself: {MOST_PARTS} at the most."
            yield HERE, what, "Use the same ends in several rules, or leave some out."
    may_lack = {place: bool(columns[name].reasons) for place, name in enumerate(names)}
    if not is_anything_left(rules, widths, may_lack):
        yield HERE, f"together the rules leave nothing that {name_some(names)} could hold.", "Leave some out."


def _find_range(column: NoiseColumn, condition: Range | tuple[int | str, ...]) -> Ends:
    said = "dates" if column.clock is not None else "numbers"
    if not isinstance(condition, Range):
        what = f"it is a column of {said}, and they are named by a range."
        raise InvalidArgument(what, where="", remedy=f"Say {FORMS}.")
    ends, width = condition.ends, column.exact_grid.width
    units = {word: _find_unit(column, end, word) for word, end in ends.items()}
    match units:
        case {"below": end}:
            first, last = 0, end - 1
        case {"above": end}:
            first, last = end + 1, width
        case {"equals": end}:
            first, last = end, end
        case _:
            first, last = units["from"], units["to"]
    if first > last:
        raise InvalidArgument(
            f"the domain has no {said[:-1]} there.", where=next(iter(ends)), remedy="Name a range that has some."
        )
    return first, last


def _find_unit(column: NoiseColumn, end: End, word: str) -> int:
    """The point of the grid."""
    if column.clock is None and isinstance(end, str):
        raise InvalidArgument("this is no number.", where=word, remedy="Name a number of the domain, without quotes.")
    if column.clock is not None and not isinstance(end, str):
        raise InvalidArgument("this is no date.", where=word, remedy="Name a date of the domain, like 1990-01-31.")
    grid = column.exact_grid
    try:
        value = column.clock.find(end) if column.clock is not None and isinstance(end, str) else end
    except ReleasePipelineError as error:
        raise InvalidArgument(error.what, where=word, remedy=error.remedy) from None
    units = (Fraction(Decimal(value)) - grid.lo) / grid.step
    if not 0 <= units <= grid.width:
        low, high = column.domain_texts
        raise InvalidArgument("this is outside the domain.", where=word, remedy=f"It goes from {low} to {high}.")
    if units.denominator != 1:
        remedy = f"Name the lower end of the domain and a whole number of steps of {column.grid_text}."
        raise InvalidArgument("this is off the grid, so that no value could be there.", where=word, remedy=remedy)
    return int(units)


def _find_values(column: ListedColumn, condition: Range | tuple[int | str, ...]) -> tuple[Ends, ...]:
    if isinstance(condition, Range):
        remedy = "List its values, like [married, widowed]."
        raise InvalidArgument("it is a column of entries, and has no ranges.", where="", remedy=remedy)
    known = {str(value): place for place, value in enumerate(column.values)}
    unknown = [str(value) for value in condition if str(value) not in known]
    if unknown:
        what = f"'{unknown[0]}' is none of the column's declared values." if len(unknown) == 1 else "values are not declared: "
        what = what if len(unknown) == 1 else f"{what}{name_some(unknown)}."
        raise InvalidArgument(what, where="", remedy=ask_for_near(unknown[0], known, "Name declared values; a code is none."))
    places = sorted(known[str(value)] for value in condition)
    return tuple((place, place) for place in places)
