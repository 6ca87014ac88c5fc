"""Messages on faults in a file that a person wrote: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.file import options
from release_pipeline.policy.file.about import About, Assessment, Contact, Contributor, Coverage, Licence, Party
from release_pipeline.policy.file.derivations import form_of as form_of_derivation
from release_pipeline.policy.file.derivations import known_keys as known_keys_of_derivation
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import options_of
from release_pipeline.policy.file.sections import Audit, Gates, Person, Publish, Review, Scheduled, Source, Suppress, Target
from release_pipeline.policy.file.tables import Grouping, Table
from release_pipeline.policy.hierarchies import form_of, known_keys
from release_pipeline.policy.kinds import KINDS, DropColumn, find_kind
from release_pipeline.policy.kinds.noise import MADE
from release_pipeline.policy.values.formats import ask_for_near
from release_pipeline.policy.values.scalars import Option, option_of
from release_pipeline.policy.values.text import Document, Path, Problem

Validated = TypeVar("Validated")
_MODELS: dict[str, type[BaseModel]] = {
    "source": Source,
    "releases": Scheduled,
    "person": Person,
    "gates": Gates,
    "audit": Audit,
    "review": Review,
    "publish": Publish,
    "about": About,
    "assessment": Assessment,
}
_OF_ABOUT: dict[str, type[BaseModel]] = {
    "licence": Licence,
    "publisher": Party,
    "contact": Contact,
    "contributors": Contributor,
    "coverage": Coverage,
}


def explain_value(
    adapter: TypeAdapter[Validated], value: Any, path: Path, raw: Any, *, known: Iterable[str] | None = None
) -> tuple[Validated | None, list[Problem]]:
    """Return the validated value at `path` of the document `raw`, or None and its problems.

    `known`: the keys that a message may propose; None asks the policy's model.
    """
    try:
        return adapter.validate_python(value), []
    except ValidationError as error:
        return None, list(_explain(error.errors(include_url=False, include_context=True), path, raw, known))


def _explain(errors: Iterable[ErrorDetails], path: Path, raw: Any, known: Iterable[str] | None) -> Iterator[Problem]:
    """Yield one problem for each position in the file. In a union, that of the branch that the steward meant."""
    reported: set[Path] = set()
    for error in sorted(errors, key=_distance):
        where = _real_path((*path, *error["loc"]), raw, error["type"])
        is_identifier = _is_kept_identifier(where, raw)
        where = (*where[:2], "do") if is_identifier else where
        has_better = _distance(error) > 0 and any(other[: len(where)] == where for other in reported)
        if where not in reported and not has_better:
            reported.add(where)
            option = option_of(_model_at(where[:-1], raw), str(where[-1])) if known is None and where else Option()
            what, remedy = _in_words(error, where, known if known is not None else _known(where[:-1], raw), option)
            if is_identifier:
                what, remedy = "an identifier is never released.", "Say do: drop, or give it the role of what it is."
            elif error["type"] == "extra_forbidden" and (misplaced := _find_misplaced(where, raw)):
                what, remedy = f"'{where[-1]}' is not for this method: {misplaced}.", "Remove it."
            elif error["type"] == "extra_forbidden" and (number := _find_decimal_comma(where, raw)):
                what, remedy = "a decimal comma splits a number.", f"Write a decimal point: {number}."
            yield where, what, remedy


def find_empty(raw: dict[str, Any], problems: Iterable[Problem]) -> list[Problem]:
    """Return every key without a value that has no other problem: an optional key must be left out as a whole, because a key that
    is written was meant to have a value. The content of an unknown key has no separate problems."""
    reported = {path for path, _, _ in problems}
    return [
        (where, *_say_empty(str(where[-1]), option_of(_model_at(where[:-1], raw), str(where[-1]))))
        for where in _list_empty(raw, ())
        if not any(where[:length] in reported for length in range(1, len(where) + 1))
    ]


def _list_empty(value: Any, here: Path) -> Iterator[Path]:
    """Yield the keys of mappings that have no value."""
    if isinstance(value, dict):
        for key, part in cast(dict[str, Any], value).items():
            if part is None:
                yield (*here, key)
            else:
                yield from _list_empty(part, (*here, key))
    elif isinstance(value, list):
        for number, part in enumerate(cast(list[Any], value)):
            yield from _list_empty(part, (*here, number))


def _say_empty(name: str, option: Option) -> tuple[str, str]:
    return f"{name} is empty.", option.hint or "Fill it in."


def _find_misplaced(where: Path, raw: Any) -> str:
    """Return why an option of `protect` does not belong to its method; empty if that is not known."""
    if where[:1] != ("protect",):
        return ""
    method = raw["protect"].get("method")
    reasons = (option_of(model, str(where[1])).not_for.get(options_of(method).family) for model in options.OPTIONS.values())
    return next((reason.format(method=method) for reason in reasons if reason), "")


def _is_kept_identifier(where: Path, raw: Any) -> bool:
    """Return whether a fault is of an identifier that is not dropped: its other faults do not matter then."""
    if where[:1] != ("columns",) or len(where) < 2:
        return False
    column = raw["columns"][where[1]]
    written = cast(dict[str, Any], column) if isinstance(column, dict) else {}
    return written.get("role") == "identifier" and written.get("do") not in (None, "drop")


def _find_decimal_comma(where: Path, raw: Any) -> str:
    """Return the key and number that were meant by `{epsilon: 0,5}`, which has two keys; empty if a key is merely unknown."""
    here = raw
    for step in where[:-1]:
        here = here[step]
    keys = list(cast(dict[str, Any], here))
    key = str(where[-1])
    before = keys[max(keys.index(key) - 1, 0)]
    is_split = key.isdecimal() and here[key] is None and type(here[before]) is int
    return f"{before}: {here[before]}.{key}" if is_split else ""


def _distance(error: ErrorDetails) -> int:
    """Return how far the branch of a union with this error is from what the steward can have meant: 0 for that branch itself."""
    match error["type"], error["input"]:
        case ("literal_error", dict() | list()) | ("tuple_type", dict()) | ("model_type", list()):
            return 2
        case ("tuple_type" | "model_type", value) if not isinstance(value, dict | list):
            return 1
        case _:
            return 0


def _real_path(location: tuple[str | int, ...], raw: Any, kind: str) -> Path:
    """Return the path in the file: pydantic adds the names of union branches, which no steward wrote."""
    here, path = raw, list[str | int]()
    for number, step in enumerate(location, start=1):
        if _has(here, step):
            here = here[step]
            path.append(step)
        elif kind == "missing" and number == len(location):
            path.append(step)
    return tuple(path)


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(step, int) and step < len(cast(list[Any], value))
    return isinstance(value, dict) and step in value


def _in_words(error: ErrorDetails, where: Path, known: Iterable[str], option: Option) -> tuple[str, str]:
    name = str(where[-1]) if where else ""
    context = error.get("ctx", {})
    got = "an entry" if "values" in where[2:] and not isinstance(error["input"], dict | list) else _quote(error["input"])
    if error["input"] is None and error["type"] not in ("missing", "extra_forbidden", "model_attributes_type", "model_type"):
        return _say_empty(name, option)
    match error["type"]:
        case "missing" if len(where) > 1 and where[-2] == "domain":
            return "the domain must be [lower, upper].", ""
        case "missing":
            return f"'{name}' is missing.", option.hint
        case "extra_forbidden":
            return f"'{name}' is not known here.", suggest(name, known)
        case options.NOT_A_METHOD:
            methods = [method for model in options.OPTIONS.values() for method in model.methods()]
            return f"{got} is not a method.", f"Allowed: {', '.join(methods)}."
        case "literal_error":
            name = next((str(step) for step in reversed(where) if isinstance(step, str)), name)  # not the position in a list
            return f"{got} is not allowed for {name}.", option.allowed or f"Allowed: {context.get('expected', '')}."
        case "union_tag_not_found":
            return "'do' is missing: what happens to the column?", f"Allowed: {', '.join(KINDS)}."
        case "union_tag_invalid" if cast(Any, error["input"]).get("do") is None:
            return "do is empty: what happens to the column?", f"Allowed: {', '.join(KINDS)}."
        case "union_tag_invalid":
            return (
                f"{_quote(cast(Any, error['input']).get('do'))} is not something to do.",
                f"Allowed: {', '.join(KINDS)}.",
            )
        case "string_pattern_mismatch":
            return (
                f"{got} is not a name.",
                "Use letters, digits and hyphens (policy, people: lower case), a letter first.",
            )
        case "string_type":
            return f"{got} is not a text.", "Put it in quotes if it is meant as one."
        case "int_type":
            return f"{got} is not a whole number.", ""
        case "greater_than_equal":
            return f"{got} is too small.", f"The least allowed is {context.get('ge')}."
        case "greater_than":
            return f"{got} is too small.", f"It must be above {context.get('gt')}."
        case "less_than_equal":
            return f"{got} is too large.", f"The most allowed is {context.get('le')}."
        case "tuple_type" | "too_long":
            return f"{name} must be a list" + (" of two." if error["type"] == "too_long" else "."), option.hint
        case "too_short" if context.get("actual_length"):
            return f"{name} has fewer entries than {context.get('min_length')}.", option.hint
        case "too_short" | "string_too_short":
            return f"{name} is empty.", ""
        case "model_type" | "model_attributes_type" if error["input"] is None and option.hint:
            return f"{name} is empty.", option.hint
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{name} must be a mapping.", option.hint
        case "value_error":
            what = f"{error['msg'].removeprefix('Value error, ').rstrip('.')}."
            return what if isinstance(error["input"], dict | list) else f"{got}: {what}", ""
        case _:
            return f"{got}: {error['msg']}.", ""


def _quote(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(cast(object, value))
    return f"'{text}'" if len(text) <= 100 else f"'{text[:100]}...'"


def _known(where: Path, raw: dict[str, Any]) -> Iterable[str]:
    """Return the keys allowed in the mapping at `where`."""
    if where[:1] == ("columns",) and where[2:] == ("hierarchy",):
        return known_keys(raw["columns"][where[1]]["hierarchy"])
    if _model_at(where, raw) is Grouping:
        return ["column", "groups", "levels"]
    if where[:1] == ("derive",) and len(where) == 2:
        return known_keys_of_derivation(raw["derive"][where[1]])
    return [info.alias or name for name, info in _model_at(where, raw).model_fields.items() if name != MADE]


def _model_at(where: Path, raw: dict[str, Any]) -> type[BaseModel]:
    """Return the model that was meant by the mapping at `where`."""
    match where:
        case ("columns", name, *rest):
            column = raw["columns"][name]
            kind = find_kind(column) or DropColumn
            if rest[:1] == ["hierarchy"]:
                return form_of(column["hierarchy"])
            return kind.missing_form if rest == ["missing"] else kind
        case ("derive", name, *_):
            return form_of_derivation(raw["derive"][name]) or Policy
        case ("about", part, *_) if part in _OF_ABOUT:
            return _OF_ABOUT[str(part)]
        case ("audit", "predict", _):
            return Target
        case ("tables", _, "by", _):
            return Grouping
        case ("tables", _, *_):
            return Table
        case ("protect", *_):
            return options_of(raw["protect"].get("method"))
        case ("suppress", *_):
            protect = cast(dict[str, Any], raw.get("protect") or {})
            is_of_groups = "quasi_groups_below" in cast(dict[str, Any], raw["suppress"])
            return Suppress if is_of_groups else options_of(protect.get("method")).suppression
        case (section, *_):
            return _MODELS.get(str(section), Policy)
        case _:
            return Policy


def suggest(key: str, known: Iterable[str]) -> str:
    """Return a suggestion: the key that was meant, or all known keys."""
    names = list(known)
    return ask_for_near(key, names, f"Known: {', '.join(names)}.", cutoff=0.6)


def raise_problems(document: Document, problems: list[Problem], name: str, *, what: str) -> NoReturn:
    """Raise `PolicyInvalid` with every problem and its line, in the order of the file."""
    located = sorted((document.place_of(path), path, fault, remedy) for path, fault, remedy in problems)
    every = [Fault(name, at.line, at.column, ".".join(map(str, path)), fault, remedy) for at, path, fault, remedy in located]
    faults = {str(fault): fault for fault in every}
    count = f"{len(faults)} error{'s' if len(faults) != 1 else ''}"
    raise PolicyInvalid(f"the {what} has {count}.", problems=tuple(faults), faults=tuple(faults.values()), where=name)
