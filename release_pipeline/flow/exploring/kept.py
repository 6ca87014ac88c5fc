"""Results of simulations in files of their own, and what was made of them: numbers and texts alone, so that a file that somebody
else put there can do nothing."""

from __future__ import annotations

import dataclasses
import io
import json
import types
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from release_pipeline.flow.exploring.document import ExploreDocument
from release_pipeline.flow.files import write_bytes
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.settings import Setting
from release_pipeline.policy.text import read_yaml
from release_pipeline.stages.simulation import Simulated
from release_pipeline.store.folders import make_private_folder

ENDING, DOCUMENT = ".npz", ".json"
_INDEX = "index"


def keep(file: Path, found: Simulated) -> None:
    """Keep it, for the owner alone."""
    arrays: dict[str, Any] = {}

    def put(array: Any) -> str:
        name = f"a{len(arrays)}"
        arrays[name] = array
        return name

    columns = {name: {figure: put(array) for figure, array in figures.items()} for name, figures in found.columns.items()}
    whole = {figure: put(array) for figure, array in found.whole.items()}
    index = {"draws": found.draws, "columns": columns, "whole": whole, "once": found.once}
    arrays[_INDEX] = np.frombuffer(json.dumps(index).encode(), dtype=np.uint8)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    make_private_folder(file.parent)
    write_bytes(file, content.getvalue())


def read_kept(file: Path) -> Simulated | None:
    """What is kept in a file; None where there is none, or it cannot be read: then it is found anew."""
    try:
        with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as arrays:
            index = json.loads(arrays[_INDEX].tobytes())
            return Simulated(
                index["draws"],
                {name: {key: arrays[one] for key, one in figures.items()} for name, figures in index["columns"].items()},
                {key: arrays[one] for key, one in index["whole"].items()},
                index["once"],
            )
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):
        return None


def keep_document(file: Path, document: ExploreDocument, settings: Sequence[Setting]) -> None:
    """Keep a whole exploration without its ledgers, which change, for the owner alone. `settings`: those of the document."""
    without = dataclasses.replace(document, settings=tuple(dataclasses.replace(one, ledger=None) for one in document.settings))
    told = [{"block": one.block, "trust": one.trust, "min_rows": one.min_rows} for one in settings]
    make_private_folder(file.parent)
    write_bytes(file, json.dumps({"document": to_json(without), "settings": told}).encode())


def read_document(file: Path) -> tuple[ExploreDocument, list[Setting]] | None:
    """What is kept in a file; None where there is none, or it cannot be read."""
    try:
        content = json.loads(file.read_bytes())
        document: ExploreDocument = _make(ExploreDocument, content["document"])
        settings = [
            Setting(read_yaml(one["block"]).value["protect"], bool(one["trust"]), one["min_rows"]) for one in content["settings"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return (document, settings) if len(settings) == len(document.settings) else None


def _make(kind: Any, value: Any) -> Any:
    """A value of a document as JSON has it, as what it was."""
    origin, parts = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        fields = [field.name for field in dataclasses.fields(kind) if field.name in value]
        return cast(Any, kind)(**{name: _make(hints[name], value[name]) for name in fields})
    if origin in (Union, types.UnionType):
        if value is None and type(None) in parts:
            return None
        return _make(next(part for part in parts if part is not type(None)), value)
    if origin is tuple:
        each = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
        return tuple(_make(part, one) for part, one in zip(each, value, strict=True))
    if origin in (dict, Mapping):
        return {str(name): _make(parts[1], one) for name, one in value.items()}
    known = value in parts if origin is Literal else isinstance(value, (int, float) if kind is float else kind)
    if not known:
        raise TypeError("this is no such document.")
    return float(value) if kind is float else value
