"""From the text of a policy file to a `Policy`, or to all of its errors at once. Short forms are expanded before validation:
lists from files, groups as rows, and dates as numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path as FilePath
from typing import IO, Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError

from release_pipeline.errors import InvalidArgument, PolicyInvalid, ReleasePipelineError, WrongUsage
from release_pipeline.mechanisms.basis.dates import Clock
from release_pipeline.plain_files import open_below, open_plain, read_at_most
from release_pipeline.policy.file.derivations import Derivation
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import AnyOptions, ProtectSection, options_of
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.sections import Publish
from release_pipeline.policy.file.suite import expand_suite
from release_pipeline.policy.file.tables import Table
from release_pipeline.policy.hierarchies import Read, expand
from release_pipeline.policy.kinds import Column
from release_pipeline.policy.kinds.noise import count_targets, count_units, is_dated
from release_pipeline.policy.loading.messages import explain_value, find_empty, raise_problems, suggest
from release_pipeline.policy.rules.rules import find_contradictions
from release_pipeline.policy.values.scalars import CANONICAL, Name, Slug
from release_pipeline.policy.values.text import Document, Path, Problem, read_named, read_yaml

REPORTED = object()  # stands for a part whose fault is already among the problems


def list_lists(columns: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lists of entries that come from a file, by column."""
    for name, column in cast(dict[str, Any], columns).items() if isinstance(columns, dict) else ():
        values = cast(dict[str, Any], column).get("values") if isinstance(column, dict) else None
        if isinstance(values, dict) and "file" in values:
            yield name, cast(dict[str, Any], values)


def expand_lists(raw: dict[str, Any], read: Read, problems: list[Problem]) -> dict[str, Any]:
    """Return the policy with the entries of every list that comes from a file; faults are added to `problems`."""
    columns = cast(Any, raw.get("columns"))
    made: dict[str, Any] = {}
    for name, values in list_lists(columns):
        at: Path = ("columns", name, "values")
        try:
            made[name] = {**columns[name], "values": read_named(values, read)}
        except ReleasePipelineError as error:
            made[name] = {**columns[name], "values": REPORTED}
            key = error.where if error.where in values else "file"
            file = f" ({error.where})" if error.where and key != error.where else ""
            problems.append(((*at, key), f"{error.what.rstrip('.')}{file}.", error.remedy))
    return {**raw, "columns": {**columns, **made}} if made else raw


def expand_dates(raw: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return the policy with masked columns of dates as numbers, and also the limits that models predict; faults are added to
    `problems`."""
    columns, clocks = cast(Any, raw.get("columns")), dict[str, Clock]()
    made: dict[str, Any] = {}
    for name, column in cast(dict[str, Any], columns).items() if isinstance(columns, dict) else ():
        if isinstance(column, dict) and is_dated(cast(dict[str, Any], column)):
            counted = count_units(cast(dict[str, Any], column), ("columns", name), problems)
            made[name] = {**cast(dict[str, Any], column), "domain": REPORTED} if counted is None else counted
            if counted is not None:
                clocks[name] = Clock.read(**counted["dated"])
    return count_targets({**raw, "columns": {**columns, **made}}, clocks, problems) if made else raw


MAX_BYTES = 1_000_000
_LISTS = (".csv", ".tsv", ".txt", ".json")
_COLUMN: TypeAdapter[Any] = TypeAdapter(Column)
_NAME: TypeAdapter[Any] = TypeAdapter(Name)
_TABLE: TypeAdapter[Any] = TypeAdapter(Table)
_DERIVATION: TypeAdapter[Any] = TypeAdapter(Derivation)
_SLUG: TypeAdapter[Any] = TypeAdapter(Slug)
_PROTECT: TypeAdapter[Any] = TypeAdapter(ProtectSection)


def load_policy(file: FilePath) -> Policy:
    """Return the policy in `file`; raises `PolicyInvalid` with every problem and its line if there are any. Files that it names
    are searched in and below its folder."""
    text, read = read_policy(file), reader_beside(file)
    try:
        named = tuple((name, read(name)) for name in list_files(text))
    except ReleasePipelineError:  # parsing reports it, with the line
        return parse_policy(text, name=str(file), read=read)
    return _parse(text, str(file), named)


@lru_cache(maxsize=500)  # files are read each time, but parsed only after a change: a policy is immutable
def _parse(text: str, name: str, named: tuple[tuple[str, str], ...]) -> Policy:
    document = _read_yaml(text)
    return _read_document(document, document.value, name, dict(named).__getitem__)


@lru_cache(maxsize=500)
def _read_yaml(text: str) -> Document:
    """Return the document, parsed once both for the files that it names and for its content: a document is never changed."""
    return read_yaml(text)


def refuse_files(name: str) -> str:
    """Refuse a file: a policy that is not stored in a file cannot name files."""
    raise WrongUsage("there is no folder to look for this file in.", where=name)


def reader_beside(file: FilePath) -> Read:
    """Return a reader of the lists, hierarchies and suite that the policy in `file` names: only files below its folder."""

    def read(name: str) -> str:
        path = FilePath(name)
        if path.suffix.lower() not in _LISTS or any(part.startswith(".") and part != ".." for part in path.parts):
            what = "this is no name of a list or suite."
            remedy = "Name a .csv, .tsv, .txt or .json file below the folder of the policy."
            raise WrongUsage(what, where=name[:200], remedy=remedy)
        return _read(partial(open_below, file.parent, name), "list or suite", name[:200])

    return read


def list_files(text: str) -> list[str]:
    """Return the files that the policy in `text` names for its lists and suite, in order; empty if it cannot be parsed."""
    value = _read_yaml(text).value
    policy = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    named = [values.get("file") for _, values in list_lists(policy.get("columns"))]
    named.append(policy.get("expectations"))
    return list(dict.fromkeys(file for file in named if isinstance(file, str)))


def _expand_groupings(raw: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return the policy with the rows of every group of values that its tables declare; faults are added to `problems`."""
    tables = cast(Any, raw.get("tables"))
    expanded: dict[str, Any] = {}
    for name, table in cast(dict[str, Any], tables).items() if isinstance(tables, dict) else ():
        by = cast(dict[str, Any], table).get("by") if isinstance(table, dict) else None
        if isinstance(by, list):
            parts = [
                _expand(cast(dict[str, Any], part), ("tables", name, "by", number), problems) if isinstance(part, dict) else part
                for number, part in enumerate(cast(list[Any], by))
            ]
            expanded[name] = {**cast(dict[str, Any], table), "by": parts}
    return {**raw, "tables": {**tables, **expanded}} if expanded else raw


def _expand(hierarchy: dict[str, Any], at: Path, problems: list[Problem]) -> Any:
    """Return a hierarchy with its rows, or `REPORTED` after adding its faults to the problems."""
    try:
        return expand(hierarchy)
    except ReleasePipelineError as error:
        problems.append(((*at, "groups"), f"{error.what.rstrip('.')}.", error.remedy))
        return REPORTED


def _expand_hierarchies(raw: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return the policy with the rows of every hierarchy in it, expanded from its groups; faults are added to `problems`."""
    columns = cast(Any, raw.get("columns"))
    expanded: dict[str, Any] = {}
    for name, column in cast(dict[str, Any], columns).items() if isinstance(columns, dict) else ():
        if isinstance(column, dict) and isinstance(hierarchy := cast(dict[str, Any], column).get("hierarchy"), dict):
            at: Path = ("columns", name, "hierarchy")
            expanded[name] = {**cast(dict[str, Any], column), "hierarchy": _expand(cast(dict[str, Any], hierarchy), at, problems)}
    return {**raw, "columns": {**columns, **expanded}} if expanded else raw


def check_name(policy: Policy, file: FilePath) -> Policy:
    """Return the policy if its name is the file's; refused otherwise."""
    if policy.policy != file.stem:
        raise ReleasePipelineError(
            f"the policy calls itself '{policy.policy}'.", where=str(file), remedy="Name the file after the policy."
        )
    return policy


def list_policies(site: FilePath) -> list[FilePath]:
    """Return the policy files of a site, valid or not, by name."""
    return sorted((site / "policies").glob("*.yaml"))


def parse_policy(text: str, *, name: str, read: Read = refuse_files) -> Policy:
    """Return the policy in `text`; raises `PolicyInvalid` with every problem. `name`: the file's name in messages; `read` returns
    the text of files that it names."""
    document = read_yaml(text)
    return _read_document(document, document.value, name, read)


def parse_changed(
    text: str, change: Callable[[dict[str, Any]], dict[str, Any]], *, name: str, read: Read = refuse_files
) -> Policy:
    """Return the policy of `text` after a change: the change is made to the values of the file, before anything is read from it.
    Problems have the position of the values that they are about, or of the nearest value around them in the file."""
    document = read_yaml(text)
    raw = document.value
    return _read_document(document, change(cast(dict[str, Any], raw)) if isinstance(raw, dict) else raw, name, read)


def _read_document(document: Document, raw: Any, name: str, read: Read) -> Policy:
    """Return the policy with these values of a document; raises `PolicyInvalid` with every problem."""
    problems: list[Problem] = list(document.problems)
    policy: Policy | None = None
    if not isinstance(raw, dict):
        if not problems:
            problems.append(((), "a policy is a mapping that starts with 'policy: NAME'.", ""))
    else:
        raw = expand_lists(cast(dict[str, Any], raw), read, problems)
        raw = _expand_hierarchies(raw, problems)
        raw = expand_dates(raw, problems)
        raw = _expand_groupings(raw, problems)
        raw = expand_suite(raw, read, problems)
        parts = _validate_parts(raw, problems)
        problems += find_empty(raw, problems)
        problems += find_contradictions(parts)
        if not problems:
            policy = Policy.model_validate(raw)
    if policy is None:
        raise_problems(document, problems, name, what="policy")
    return policy


def read_policy(file: FilePath) -> str:
    """Return the text of a policy's file. A link in its place is refused: people who write policies may not choose what is
    read."""
    return _read(partial(open_below, file.parent, file.name), "policy", str(file))


def read_text(file: FilePath) -> str:
    """Return the text of a file of the site or of the person who runs the command; a link is followed."""
    return _read(partial(open_plain, file), "file", str(file))


def _read(open_file: Callable[[], IO[bytes]], what: str, where: str) -> str:
    try:
        content = read_at_most(open_file(), MAX_BYTES)
        if content is None:
            raise PolicyInvalid(f"this is too large for a {what} (over 1 MB).", problems=(), where=where)
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except WrongUsage as error:
        error.where = where
        raise
    except FileNotFoundError:
        raise WrongUsage("there is no such file.", where=where, remedy="Check the path.") from None
    except UnicodeDecodeError:
        raise PolicyInvalid("this is not UTF-8 text.", problems=(), where=where) from None
    except OSError as error:
        raise WrongUsage(f"the {what} cannot be read: {error.strerror}.", where=where) from None


def _validate_parts(raw: dict[str, Any], problems: list[Problem]) -> Parts:
    """Return every part that is valid by itself; faults of the others are added to `problems`."""
    fields = Policy.model_fields
    for key in raw:
        if key not in fields:
            problems.append(((key,), f"'{key}' is not part of a policy.", suggest(key, fields)))
    valid: dict[str, Any] = {}
    for key, info in fields.items():
        if key not in raw:
            if info.is_required():
                problems.append(((), f"'{key}' is missing.", ""))
        elif key == "tables":
            valid[key] = _validate_each(key, _SLUG, _TABLE, "tables", "Like people: {by: [state], epsilon: 0.1}.", raw, problems)
        elif key == "derive":
            valid[key] = _validate_each(key, _NAME, _DERIVATION, "how they are made", "Like age_band: {...}.", raw, problems)
        elif key != "columns":
            valid[key] = _validate(_adapter(key), raw[key], (key,), raw, problems)
    columns, names = _validate_columns(raw, problems)
    valid = {"publish": Publish(), **valid} if "publish" not in raw else valid
    known = {field.name for field in dataclasses.fields(Parts)}
    parts = Parts(**{key: part for key, part in valid.items() if key in known and part is not None})
    parts.protect = parts.protect or _without_faults(raw.get("protect"), problems)
    return dataclasses.replace(parts, columns=columns, names=names, complete=len(columns) == len(names) > 0)


@lru_cache
def _adapter(key: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(Policy, include_extras=True)[key])


def _without_faults(protect: Any, problems: list[Problem]) -> AnyOptions | None:
    """Return a faulty `protect` without epsilon and options that are wrong by themselves: enough to find its other
    contradictions. None if method or k are among the faults."""
    faults = {path[1] for path, _, _ in problems if path[:1] == ("protect",) and len(path) > 1}
    if not isinstance(protect, dict) or faults & {"method", "k"}:
        return None
    rest = {key: value for key, value in cast(dict[str, Any], protect).items() if key not in faults}
    if "swap" in faults:
        rest["swap"] = {"k": 2, "within": "kept"}  # swapping is intended, so that columns may be swapped
    try:
        needed = {"epsilon": 1} if "epsilon" in options_of(rest.get("method")).model_fields else {}
        return _PROTECT.validate_python({**needed, **rest})
    except ValidationError:
        return None


def _validate_columns(raw: dict[str, Any], problems: list[Problem]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns that are valid by themselves, and the names of all."""
    declared = raw.get("columns")
    if "columns" not in raw:
        return {}, ()
    if not isinstance(declared, dict) or not declared:
        problems.append((("columns",), "columns must be a mapping from column names to what is done with them.", ""))
        return {}, ()
    columns: dict[str, Any] = {}
    for name, column in cast(dict[str, Any], declared).items():
        if isinstance(column, dict) and any(part is REPORTED for part in cast(dict[str, Any], column).values()):
            continue
        valid = _validate(_COLUMN, column, ("columns", name), raw, problems)
        named = _validate(_NAME, name, ("columns", name), raw, problems)
        if valid is not None and named is not None:
            columns[name] = valid
    return columns, tuple(cast(dict[str, Any], declared))


def _validate_each(
    key: str,
    names: TypeAdapter[Any],
    parts: TypeAdapter[Any],
    what: str,
    remedy: str,
    raw: dict[str, Any],
    problems: list[Problem],
) -> dict[str, Any]:
    """Return the parts of a mapping by name that are valid by themselves; parts with a fault that is already reported are left
    out."""
    if not isinstance(raw[key], dict):
        problems.append(((key,), f"{key} must be a mapping from names to {what}.", remedy))
        return {}
    valid: dict[str, Any] = {}
    for name, part in cast(dict[str, Any], raw[key]).items():
        by = cast(dict[str, Any], part).get("by") if isinstance(part, dict) else None
        if isinstance(by, list) and any(column is REPORTED for column in cast(list[Any], by)):
            continue
        named = _validate(names, name, (key, name), raw, problems)
        if (value := _validate(parts, part, (key, name), raw, problems)) is not None and named is not None:
            valid[named] = value
    return valid


def _validate(adapter: TypeAdapter[Any], value: Any, path: Path, raw: dict[str, Any], problems: list[Problem]) -> Any:
    valid, faults = explain_value(adapter, value, path, raw)
    problems += faults
    return valid


# A policy read from its canonical form: as it was when it was noted, independent of today's rules for policy files.
#
# The canonical form (`Policy.canonical_json`; docs/formats.md has its rules) is JSON whose keys are
# in order, and whose numbers are texts. It holds all of a policy, the rows of its hierarchies too,
# except the order of the columns.


def read_canonical(form: Mapping[str, Any], columns: Sequence[str]) -> Policy:
    """Return the policy of a canonical form, with its columns in this order. Types of its parts are checked, but no rules: it met
    the rules of its time."""
    try:
        hashed_only = options_of(form["protect"]["method"]).canonical_order(masked=[], generalised=[])  # no options
        protect = {name: value for name, value in form["protect"].items() if name not in hashed_only}
        numbers = {name: number for number, name in enumerate(columns)}
        names = sorted(form["columns"], key=lambda name: (numbers.get(name, len(numbers)), name))
        content = {**form, "protect": protect, "columns": {name: form["columns"][name] for name in names}}
        return Policy.model_validate(content, context=CANONICAL)
    except (ValidationError, ReleasePipelineError, KeyError, TypeError, AttributeError):
        raise InvalidArgument("this is not the canonical form of a policy that this version can read.") from None
