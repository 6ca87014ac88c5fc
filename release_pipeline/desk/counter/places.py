"""Where the site lies on its machine is no reader's business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from release_pipeline.desk.counter.calls import Document
from release_pipeline.flow.site import Site


def shorten_place(site: Site, words: str) -> str:
    """The words with every path of the site as it is from the site's folder."""
    return words.replace(f"{site.home}/", "").replace(str(site.home), "the site")


def shorten_places(site: Site, document: Document) -> Document:
    """Likewise of every text in a document."""
    return {name: _shorten(site, part) for name, part in document.items()}


def _shorten(site: Site, part: Any) -> Any:
    if isinstance(part, str):
        return shorten_place(site, part)
    if isinstance(part, Mapping):
        return {name: _shorten(site, inner) for name, inner in part.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, list | tuple):
        return [_shorten(site, inner) for inner in part]  # pyright: ignore[reportUnknownVariableType]
    return part
