"""Results of simulations in files of their own, and what was made of them: numbers and texts alone, so that a file that somebody
else put there can do nothing."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from release_pipeline.errors import StoreError
from release_pipeline.flow.exploring.document import ExploreDocument
from release_pipeline.flow.files import write_bytes
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.settings import Setting
from release_pipeline.policy.text import read_yaml
from release_pipeline.policy.typed import read_as
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
        document = read_as(ExploreDocument, content["document"], where=str(file))
        settings = [
            Setting(read_yaml(one["block"]).value["protect"], bool(one["trust"]), one["min_rows"]) for one in content["settings"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StoreError):
        return None
    return (document, settings) if len(settings) == len(document.settings) else None
