"""site.yaml: which keys it has, and how each is said. What stands under `spark`, `alerts`, `lineage`, `targets` and `desk` is
read where it is used, with faults of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from release_pipeline.policy.load import read_text
from release_pipeline.policy.messages import raise_problems, suggest
from release_pipeline.policy.text import EMPTY, Document, Problem, read_yaml
from release_pipeline.policy.typed import Plain
from release_pipeline.store.memory import LEAST, format_size, read_size

FILE = "site.yaml"
ENGINES = ("auto", "memory", "duckdb", "spark")
LATER = ("spark", "upstream", "alerts", "lineage", "targets", "desk")  # sections, which may be empty
LOOKS = ("allowed", "forbidden")  # at confidential records, for parameters


@dataclass(frozen=True, slots=True)
class _Setting:
    """What a key takes, how that is said, and the words that it may be, if not any."""

    kind: type
    said: str
    words: tuple[str, ...] = ()


_KNOWN = {
    "officer": _Setting(str, "officer: FINGERPRINT"),
    "service_key": _Setting(str, "service_key: FILE"),
    "internal_metrics_in_ui": _Setting(bool, "internal_metrics_in_ui: true"),
    "looks": _Setting(str, "looks: forbidden", LOOKS),
    "memory": _Setting(str, "memory: 8 GiB"),
    "engine": _Setting(str, "engine: auto", ENGINES),
    "spill": _Setting(str, "spill: FOLDER"),
    "spark": _Setting(dict, "spark: {url: 'sc://spark.example.org:15002', storage: FOLDER}"),
    "upstream": _Setting(dict, "upstream: {POLICY: ASSET/KEY}"),
    "alerts": _Setting(list, "a list, each {on: [blocked], webhook: '${ALERTS_URL}'}"),
    "lineage": _Setting(dict, "lineage: {openlineage: URL or FOLDER}"),
    "targets": _Setting(dict, "targets: {NAME: {to: FOLDER or ADDRESS}}"),
    "desk": _Setting(dict, "desk: {people: {NAME: [auditor]}}"),
}


def read_document(file: Path) -> Document | None:
    """The file as it stands, with the place of every key; None where it is left out or empty."""
    if not file.is_file():
        return None
    document = read_yaml(read_text(file))
    if [what for _, what, _ in document.problems] == [EMPTY]:
        return None
    if document.problems:
        raise_problems(document, document.problems, str(file), what="file")
    return document


def read_settings(file: Path) -> dict[str, Any]:
    """What the file says; refused with every fault, its line, and what may stand there."""
    document = read_document(file)
    if document is None:
        return {}
    if problems := list(_find_faults(document.value)):
        raise_problems(document, problems, str(file), what="file")
    return cast(dict[str, Any], document.value)


def read_section(file: Path, name: str, find_faults: Callable[[Plain], Iterable[Problem]]) -> Plain:
    """What stands under a key, None where nothing does; refused with every fault that is found in it, and its line."""
    document = read_document(file)
    settings: Plain = None if document is None else document.value
    if document is None or not isinstance(settings, dict) or name not in settings:
        return None
    said = settings[name]
    if problems := list(find_faults(said)):
        raise_problems(document, problems, str(file), what="file")
    return said


def _find_faults(said: Plain) -> Iterator[Problem]:
    if not isinstance(said, dict):
        yield (), "settings are keys with values.", f"As in: {_KNOWN['memory'].said}."
        return
    for name, value in said.items():
        known = _KNOWN.get(name)
        if known is None:
            yield (name,), f"'{name}' is not known here.", suggest(name, _KNOWN)
        elif value is None and name in LATER:  # every line below it is commented out
            continue
        elif type(value) is not known.kind or (known.words and value not in known.words):
            allowed = f"Allowed: {', '.join(known.words)}." if known.words else f"Say it as in: {known.said}."
            yield (name,), f"{name} is not said as it should be.", allowed
        elif name == "memory" and (read_size(str(value)) or 0) < LEAST:
            yield (name,), f"memory is no size of {format_size(LEAST)} or more.", "Say it as in 8 GiB or 400 MB."
