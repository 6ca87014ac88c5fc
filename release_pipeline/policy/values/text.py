"""YAML as a person wrote it: plain values and the position of each, so that every error can name its line.

Narrower than YAML 1.1 on purpose: `no`, `on` and `12:30` are texts, a number with a point is an exact Decimal, keys are texts,
duplicate keys and anchors are errors.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

import yaml

from release_pipeline.errors import InvalidArgument

Path: TypeAlias = tuple[str | int, ...]
Problem: TypeAlias = tuple[Path, str, str]  # where, what, remedy

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?|[0-9]+[eE][-+]?[0-9]{1,3})")
EMPTY = "the file is empty."
_LONGEST_NUMBER = 100
_NULL = ("", "null", "~")
_LONGEST_KEPT = 1 << 16  # longest text, in characters, whose nodes are kept for the next reading
_DEEPEST = 40  # levels of a file; none with a meaning has more than ten
_MOST_NODES = 25_000  # keys and values: a thousand columns with ten options each have 22,000, and take PyYAML a second
_base: Any = yaml.SafeLoader  # its methods have no types


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Line and column in the file, counted from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Document:
    """The values of a file, the position of every key and entry, and faults of the text itself."""

    value: Any = None
    places: dict[Path, Place] = field(default_factory=dict[Path, Place])
    problems: list[tuple[Path, str, str]] = field(default_factory=list[tuple[Path, str, str]])

    def place_of(self, path: Path) -> Place:
        """Return the position of `path`, or of the nearest key around it that is in the file."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(1, 1))


def read_yaml(text: str) -> Document:
    """Return the document in `text`. Problems of the text are collected in it, not raised."""
    document = Document()
    try:
        node = _compose(text, document)
    except _TooMuch as error:
        document.places[()] = Place(error.mark.line + 1, error.mark.column + 1)
        document.problems.append(((), error.what, error.remedy))
        return document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        document.places[()] = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        document.problems.append(((), f"this is not readable as YAML: {error.problem}.", "Check indentation, colons and quotes."))
        return document
    except yaml.YAMLError:
        document.problems.append(((), "this is not readable as YAML: it holds characters that are no text.", ""))
        return document
    if node is None:
        document.problems.append(((), EMPTY, ""))
        return document
    if not document.problems:  # an alias could stand for itself
        document.value = _build(node, (), document)
    return document


class _TooMuch(Exception):
    """More levels, or more keys and values, than a valid file has; `mark`: where the first excess one begins."""

    def __init__(self, mark: Any, what: str, remedy: str = "") -> None:
        self.mark, self.what, self.remedy = mark, what, remedy
        super().__init__()


class _Loader(yaml.SafeLoader):
    """PyYAML's loader, but it stops at the first excess level (each level costs more the deeper it is), and reports anchors
    instead of following them."""

    def __init__(self, text: str, document: Document) -> None:
        super().__init__(text)
        self._document, self._count = document, 0

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        self._check_depth()
        _base.fetch_flow_collection_start(self, TokenClass)

    def add_indent(self, column: int) -> bool:
        self._check_depth()
        return _base.add_indent(self, column)

    def _check_depth(self) -> None:
        scanner: Any = self
        if scanner.flow_level + len(scanner.indents) >= _DEEPEST:
            raise _TooMuch(scanner.get_mark(), f"this is nested too deeply: more than {_DEEPEST} levels.")

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = _base.peek_event(self)
        self._count += 1
        if self._count > _MOST_NODES:
            what = f"this has more than {_MOST_NODES:,} keys and values."
            raise _TooMuch(event.start_mark, what, "Put long lists into files beside it.")
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
            path: Path = (f"line {place.line}, column {place.column}",)
            self._document.places[path] = place
            self._document.problems.append((path, "anchors and aliases (& and *) are not allowed here.", "Write the value out."))
            event.anchor = None
        if isinstance(event, yaml.AliasEvent):
            _base.get_event(self)
            return yaml.ScalarNode("tag:yaml.org,2002:null", "", event.start_mark, event.end_mark)
        return _base.compose_node(self, parent, index)


def _compose(text: str, document: Document) -> yaml.Node | None:
    node, places, problems = _composed(text) if len(text) <= _LONGEST_KEPT else _composed.__wrapped__(text)
    document.places.update(places)
    document.problems.extend(problems)
    return node


@lru_cache(
    maxsize=16
)  # every stage of a release reads the same few files again, and PyYAML takes hundredths of a second for each
def _composed(text: str) -> tuple[yaml.Node | None, dict[Path, Place], list[tuple[Path, str, str]]]:
    """Return the parts that nobody changes: the nodes, their positions, and the problems found on the way."""
    document = Document()
    loader: Any = _Loader(text, document)
    return loader.get_single_node(), document.places, document.problems


def _build(node: yaml.Node, path: Path, document: Document) -> Any:
    document.places.setdefault(path, Place(node.start_mark.line + 1, node.start_mark.column + 1))
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, i), document) for i, item in enumerate(node.value)]
    result: dict[str, Any] = {}
    for key, item in node.value:
        if not isinstance(key, yaml.ScalarNode):
            document.problems.append((path, "a key must be a plain text.", ""))
            continue
        name = unicodedata.normalize("NFC", str(key.value))
        here = (*path, name)
        start = Place(key.start_mark.line + 1, key.start_mark.column + 1)
        if name in result:
            first = document.places[here].line
            twice = (*path, f"{name} (line {start.line})")
            document.places[twice] = start
            document.problems.append((twice, f"'{name}' stands here a second time (first in line {first}).", "Remove one."))
            continue
        document.places[here] = start
        result[name] = _build(item, here, document)
    return result


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    if node.style is not None:  # quoted or block: a text
        return text
    if text.lower() in _NULL:
        return None
    if text in ("true", "false"):
        return text == "true"
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    return text


# Lists of entries from files that a policy names: `{file: lists/towns.csv}`, or `{file: ..., column: town}`. Their content is
# part of the policy and of its hash, as if it were written in the policy.


KEYS = ("file", "column")
MOST_ENTRIES = 50_000


def read_named(spec: Mapping[str, Any], read: Callable[[str], str]) -> list[str]:
    """Return the entries of the named file. Raises `ReleasePipelineError` with the fault and its key."""
    unknown = [key for key in spec if key not in KEYS]
    if unknown:
        raise InvalidArgument(f"'{unknown[0]}' is not known here.", where=unknown[0], remedy=f"Known: {', '.join(KEYS)}.")
    name = spec["file"]
    if not isinstance(name, str) or not name:
        raise InvalidArgument("file must name a file.")
    return read_list(read(name), spec.get("column"))


def read_list(text: str, column: Any = None) -> list[str]:
    """Return one column of a CSV, whose first line names the columns, separated by commas or semicolons.

    >>> read_list("code;town\\n1;Ash\\n2;Elm\\n", "town")
    ['Ash', 'Elm']
    """
    first = text.split("\n", 1)[0]
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=";" if ";" in first and "," not in first else ",") if row]
    except csv.Error:
        raise InvalidArgument("this is not readable as CSV.") from None
    if not rows:
        raise InvalidArgument("the file is empty.")
    index = _find_column([name.strip() for name in rows[0]], column)
    entries = [row[index].strip() if index < len(row) else "" for row in rows[1:]]
    if not entries:
        raise InvalidArgument("the file lists nothing: its first line names the columns.", remedy="Add one, like 'town'.")
    if len(entries) > MOST_ENTRIES:
        raise InvalidArgument(f"the file lists more than {MOST_ENTRIES:,} entries.")
    for number, entry in enumerate(entries, start=1):
        if not entry or not entry.isprintable():
            raise InvalidArgument(f"entry {number:,} of the file is empty, or cannot be printed.", remedy="Repair the file.")
    if len(set(entries)) < len(entries):
        twice = next(number for number, entry in enumerate(entries) if entry in entries[:number])
        raise InvalidArgument(f"the file lists an entry twice: number {twice + 1:,}.", remedy="List each once.")
    return entries


def _find_column(header: list[str], column: Any) -> int:
    if column is None:
        if len(header) > 1:
            what = f"the file has {len(header)} columns, and none is named."
            raise InvalidArgument(what, where="column", remedy="Name it: {file: FILE, column: NAME}.")
        return 0
    if header.count(str(column)) != 1:
        what = f"the file has no column '{column}'." if str(column) not in header else f"the file has '{column}' twice."
        raise InvalidArgument(what, where="column", remedy="Look at its first line.")
    return header.index(str(column))
