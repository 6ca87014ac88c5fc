"""From the text of a policy file to a `Policy`, or to all of its errors at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, NoReturn, TypeVar, cast, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from release_pipeline.errors import PolicyInvalid, ReleasePipelineError, WrongUsage
from release_pipeline.policy import options
from release_pipeline.policy.declared import Option, option_of
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.hierarchies import Read, expand, form_of, known_keys
from release_pipeline.policy.kinds import KINDS, Column, DropColumn
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import AnyOptions, ProtectSection, options_of
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.rules import find_contradictions
from release_pipeline.policy.scalars import Name
from release_pipeline.policy.sections import Audit, Gates, Person, Publish, Review, Scheduled, Source, Target
from release_pipeline.policy.suppression import Suppress
from release_pipeline.policy.text import Document, Path, Problem, read_yaml

MAX_BYTES = 1_000_000
Validated = TypeVar("Validated")
_COLUMN: TypeAdapter[Any] = TypeAdapter(Column)
_NAME: TypeAdapter[Any] = TypeAdapter(Name)
_PROTECT: TypeAdapter[Any] = TypeAdapter(ProtectSection)
_MODELS: dict[str, type[BaseModel]] = {
    "source": Source,
    "releases": Scheduled,
    "person": Person,
    "gates": Gates,
    "audit": Audit,
    "review": Review,
    "publish": Publish,
}


def load_policy(file: FilePath) -> Policy:
    """The policy in `file`; raises `PolicyInvalid` with every problem and its line when there are any. Files that it names for
    hierarchies are looked for from its own folder on."""
    return parse_policy(read_text(file), name=str(file), read=reader_beside(file))


def refuse_files(name: str) -> str:
    """For a policy that lies nowhere: it cannot name files."""
    raise WrongUsage("there is no folder to look for this file in.", where=name)


def reader_beside(file: FilePath) -> Read:
    """What reads the files that the policy in `file` names."""

    def read(name: str) -> str:
        return read_text(file.parent / name, what="hierarchy")

    return read


def list_files(text: str) -> list[str]:
    """The files that the policy in `text` names for its hierarchies, in order; none where it cannot be read."""
    value = read_yaml(text).value
    columns = cast(dict[str, Any], value).get("columns") if isinstance(value, dict) else None
    hierarchies = [hierarchy for _, hierarchy in _list_hierarchies(columns)]
    return list(dict.fromkeys(file for hierarchy in hierarchies if isinstance(file := hierarchy.get("csv"), str)))


_TOLD = object()  # in the place of a hierarchy whose fault is told already


def _list_hierarchies(columns: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The hierarchies that columns have, by column."""
    for name, column in cast(dict[str, Any], columns).items() if isinstance(columns, dict) else ():
        if isinstance(column, dict) and isinstance(hierarchy := cast(dict[str, Any], column).get("hierarchy"), dict):
            yield name, cast(dict[str, Any], hierarchy)


def _expand_hierarchies(raw: dict[str, Any], read: Read, problems: list[Problem]) -> dict[str, Any]:
    """The policy with the rows of every hierarchy in it, from its CSV or groups; what is wrong with them goes to `problems`."""
    expanded: dict[str, Any] = {}
    for name, hierarchy in _list_hierarchies(raw.get("columns")):
        try:
            expanded[name] = expand(hierarchy, read)
        except ReleasePipelineError as error:
            key = "csv" if "csv" in hierarchy else "groups"
            file = f" ({error.where})" if error.where else ""
            problems.append((("columns", name, "hierarchy", key), f"{error.what.rstrip('.')}{file}.", error.remedy))
            expanded[name] = _TOLD
    if not expanded:
        return raw
    columns = {name: {**c, "hierarchy": expanded[name]} if name in expanded else c for name, c in raw["columns"].items()}
    return {**raw, "columns": columns}


def check_name(policy: Policy, file: FilePath) -> Policy:
    """The policy, if its name is the file's."""
    if policy.policy != file.stem:
        raise ReleasePipelineError(
            f"the policy calls itself '{policy.policy}'.", where=str(file), remedy="Name the file after the policy."
        )
    return policy


def list_policies(site: FilePath) -> list[FilePath]:
    """The policy files of a site, valid or not, by name."""
    return sorted((site / "policies").glob("*.yaml"))


def parse_policy(text: str, *, name: str, read: Read = refuse_files) -> Policy:
    """The policy in `text`; `name` is how messages call the file, `read` gives the text of files that it names."""
    document = read_yaml(text)
    problems: list[Problem] = list(document.problems)
    policy: Policy | None = None
    raw: Any = document.value
    if not isinstance(raw, dict):
        if not problems:
            problems.append(((), "a policy is a mapping that starts with 'policy: NAME'.", ""))
    else:
        raw = _expand_hierarchies(cast(dict[str, Any], raw), read, problems)
        parts = _validate_parts(raw, problems)
        problems += find_contradictions(parts)
        if not problems:
            policy = Policy.model_validate(raw)
    if policy is None:
        raise_problems(document, problems, name, what="policy")
    return policy


def read_text(file: FilePath, *, what: str = "policy") -> str:
    """The text of a file that is part of a policy."""
    try:
        if file.is_dir():
            raise WrongUsage("this is a directory.", where=str(file), remedy=f"Name the {what} file in it.")
        if file.stat().st_size > MAX_BYTES:
            raise PolicyInvalid(f"this is too large for a {what} (over 1 MB).", problems=(), where=str(file))
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise WrongUsage("there is no such file.", where=str(file), remedy="Check the path.") from None
    except UnicodeDecodeError:
        raise PolicyInvalid("this is not UTF-8 text.", problems=(), where=str(file)) from None
    except OSError as error:
        raise WrongUsage(f"the {what} cannot be read: {error.strerror}.", where=str(file)) from None


def _validate_parts(raw: dict[str, Any], problems: list[Problem]) -> Parts:
    """Every part that is valid by itself; what is wrong with the others goes to `problems`."""
    fields = Policy.model_fields
    for key in raw:
        if key not in fields:
            problems.append(((key,), f"'{key}' is not part of a policy.", _suggest(key, fields)))
    valid: dict[str, Any] = {}
    for key, info in fields.items():
        if key not in raw:
            if info.is_required():
                problems.append(((), f"'{key}' is missing.", ""))
        elif key != "columns":
            valid[key] = _validate(_adapter(key), raw[key], (key,), raw, problems)
    columns, names = _validate_columns(raw, problems)
    return Parts(
        source=valid.get("source"),
        person=valid.get("person"),
        releases=valid.get("releases"),
        protect=valid.get("protect") or _without_faults(raw.get("protect"), problems),
        suppress=valid.get("suppress"),
        gates=valid.get("gates"),
        audit=valid.get("audit"),
        drop=valid.get("drop") or (),
        columns=columns,
        names=names,
        complete=len(columns) == len(names) > 0,
    )


@lru_cache
def _adapter(key: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(Policy, include_extras=True)[key])


def _without_faults(protect: Any, problems: list[Problem]) -> AnyOptions | None:
    """What is left of a faulty `protect` when epsilon and options that are wrong by themselves are set aside: enough to find
    what else it contradicts. None if method or k are among the faults."""
    faults = {path[1] for path, _, _ in problems if path[:1] == ("protect",) and len(path) > 1}
    if not isinstance(protect, dict) or faults & {"method", "k"}:
        return None
    rest = {key: value for key, value in cast(dict[str, Any], protect).items() if key not in faults}
    try:
        needed = {"epsilon": 1} if "epsilon" in options_of(rest.get("method")).model_fields else {}
        return _PROTECT.validate_python({**needed, **rest})
    except ValidationError:
        return None


def _validate_columns(raw: dict[str, Any], problems: list[Problem]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The columns that are valid by themselves, and the names of all."""
    declared = raw.get("columns")
    if "columns" not in raw:
        return {}, ()
    if not isinstance(declared, dict) or not declared:
        problems.append((("columns",), "columns must be a mapping from column names to what is done with them.", ""))
        return {}, ()
    columns: dict[str, Any] = {}
    for name, column in cast(dict[str, Any], declared).items():
        if isinstance(column, dict) and cast(dict[str, Any], column).get("hierarchy") is _TOLD:
            continue
        found = _validate(_COLUMN, column, ("columns", name), raw, problems)
        named = _validate(_NAME, name, ("columns", name), raw, problems)
        if found is not None and named is not None:
            columns[name] = found
    return columns, tuple(cast(dict[str, Any], declared))


def _validate(adapter: TypeAdapter[Any], value: Any, path: Path, raw: dict[str, Any], problems: list[Problem]) -> Any:
    found, faults = explain_value(adapter, value, path, raw)
    problems += faults
    return found


def explain_value(
    adapter: TypeAdapter[Validated], value: Any, path: Path, raw: Any, *, known: Iterable[str] | None = None
) -> tuple[Validated | None, list[Problem]]:
    """The validated value at `path` of the document `raw`, or what is wrong with it in words.

    `known`: the keys that a message may propose; None asks the policy's model.
    """
    try:
        return adapter.validate_python(value), []
    except ValidationError as error:
        return None, list(_explain(error.errors(include_url=False, include_context=True), path, raw, known))


def _explain(errors: Iterable[ErrorDetails], path: Path, raw: Any, known: Iterable[str] | None) -> Iterator[Problem]:
    """One problem per place, in words. Of a union's branches, the one that the steward meant is told."""
    told: set[Path] = set()
    for error in sorted(errors, key=_distance):
        where = _real_path((*path, *error["loc"]), raw, error["type"])
        better_told = _distance(error) > 0 and any(place[: len(where)] == where for place in told)
        if where not in told and not better_told:
            told.add(where)
            option = option_of(_model_at(where[:-1], raw), str(where[-1])) if known is None and where else Option()
            what, remedy = _in_words(error, where, known if known is not None else _known(where[:-1], raw), option)
            if error["type"] == "extra_forbidden" and (misplaced := _find_misplaced(where, raw)):
                what, remedy = f"'{where[-1]}' is not for this method: {misplaced}.", "Remove it."
            yield where, what, remedy


def _find_misplaced(where: Path, raw: Any) -> str:
    """Why an option of `protect` is not one of its method; empty where nobody can tell."""
    if where[:1] != ("protect",):
        return ""
    method = raw["protect"].get("method")
    reasons = (option_of(model, str(where[1])).not_for.get(options_of(method).family) for model in options.OPTIONS.values())
    return next((reason.format(method=method) for reason in reasons if reason), "")


def _distance(error: ErrorDetails) -> int:
    """How far the branch of a union that this error is of is from what the steward can have meant: 0 is that branch itself."""
    match error["type"], error["input"]:
        case ("literal_error", dict() | list()) | ("tuple_type", dict()) | ("model_type", list()):
            return 2
        case ("tuple_type" | "model_type", value) if not isinstance(value, dict | list):
            return 1
        case _:
            return 0


def _real_path(location: tuple[str | int, ...], raw: Any, kind: str) -> Path:
    """The path in the file: pydantic adds the names of union branches, which no steward wrote."""
    here, path = raw, list[str | int]()
    for place, step in enumerate(location):
        if _has(here, step):
            here = here[step]
            path.append(step)
        elif kind == "missing" and place == len(location) - 1:
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
    if error["input"] is None and error["type"] not in ("missing", "model_attributes_type", "model_type"):
        return f"{name} is empty.", option.hint or "Fill it in."
    match error["type"]:
        case "missing" if len(where) > 1 and where[-2] == "domain":
            return "the domain must be [lower, upper].", ""
        case "missing":
            return f"'{name}' is missing.", option.hint
        case "extra_forbidden":
            return f"'{name}' is not known here.", _suggest(name, known)
        case options.NOT_A_METHOD:
            methods = [method for model in options.OPTIONS.values() for method in model.methods()]
            return f"{got} is not a method.", f"Allowed: {', '.join(methods)}."
        case "literal_error":
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
            return f"{name} must be a list" + (" of two." if error["type"] == "too_long" else "."), ""
        case "too_short" | "string_too_short":
            return f"{name} is empty.", ""
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{name} must be a mapping.", ""
        case "value_error":
            return f"{got}: {error['msg'].removeprefix('Value error, ').rstrip('.')}.", ""
        case _:
            return f"{got}: {error['msg']}.", ""


def _quote(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(cast(object, value))
    return f"'{text}'" if len(text) <= 100 else f"'{text[:100]}...'"


def _known(where: Path, raw: dict[str, Any]) -> Iterable[str]:
    """The keys that may stand in the mapping at `where`."""
    if where[:1] == ("columns",) and where[2:] == ("hierarchy",):
        return known_keys(raw["columns"][where[1]]["hierarchy"])
    return _model_at(where, raw).model_fields


def _model_at(where: Path, raw: dict[str, Any]) -> type[BaseModel]:
    """What was meant by the mapping at `where`."""
    match where:
        case ("columns", name, *rest):
            column = raw["columns"][name]
            kind = KINDS.get(str(column.get("do")), DropColumn)
            if rest == ["hierarchy"]:
                return form_of(column["hierarchy"])
            return kind.missing_form if rest == ["missing"] else kind
        case ("audit", "predict", _):
            return Target
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


def _suggest(key: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(key, names, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(names)}."


def raise_problems(document: Document, problems: list[Problem], name: str, *, what: str) -> NoReturn:
    """Raise `PolicyInvalid` with every problem, each with its line, in the order of the file."""
    located = sorted((document.place_of(path), path, words, remedy) for path, words, remedy in problems)
    told = (Fault(name, place.line, place.column, _dotted(path), words, remedy) for place, path, words, remedy in located)
    faults = {str(fault): fault for fault in told}
    count = f"{len(faults)} error{'s' if len(faults) != 1 else ''}"
    raise PolicyInvalid(f"the {what} has {count}.", problems=tuple(faults), faults=tuple(faults.values()), where=name)


def _dotted(path: Path) -> str:
    return ".".join(str(step) for step in path)
