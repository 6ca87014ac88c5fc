"""What several standards need of a package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from release_pipeline.report.datapackage import MEDIA_TYPES
from release_pipeline.report.view import PackageView

Files: TypeAlias = Mapping[str, tuple[str, int]]  # SHA-256 in hex and length in bytes of each file, by name


def find_media_type(name: str) -> str:
    """The media type of a file that has rows."""
    return MEDIA_TYPES[name.rpartition(".")[2]]


def list_rows(package: PackageView) -> list[str]:
    """The files that have the rows, format by format."""
    return [name for form in package.card.formats for name in package.name_data(form)]


def drop_unsaid(said: Mapping[str, Any]) -> dict[str, Any]:
    """What was said: nothing that is empty."""
    return {key: value for key, value in said.items() if value not in (None, "", [], {}, ())}


def write_json(document: Mapping[str, Any]) -> str:
    """As all JSON of a package: in one order, ASCII."""
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"
