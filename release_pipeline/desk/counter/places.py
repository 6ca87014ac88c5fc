"""Where the site lies on its machine is no reader's business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from release_pipeline.desk.counter.calls import Document
from release_pipeline.flow.site import Site


def shorten_places(site: Site, document: Document) -> Document:
    """The document with every path of the site as it is from the site's folder."""
    return {name: _shorten(f"{site.home}/", part) for name, part in document.items()}


def _shorten(home: str, part: Any) -> Any:
    if isinstance(part, str):
        return part.replace(home, "")
    if isinstance(part, Mapping):
        return {name: _shorten(home, inner) for name, inner in part.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, list | tuple):
        return [_shorten(home, inner) for inner in part]  # pyright: ignore[reportUnknownVariableType]
    return part
