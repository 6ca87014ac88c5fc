"""Where what an exploration found is written: that of a look stays on the confidential side."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from release_pipeline.flow.exploring.explore import Explored
from release_pipeline.flow.exploring.places import PAGES, check_page, find_folder
from release_pipeline.flow.files import PRIVATE, PUBLIC, check_output, write_text
from release_pipeline.policy.documents import to_json
from release_pipeline.report.exploring.page import render_exploration
from release_pipeline.store.folders import make_private_folder


def write_page(explored: Explored, output: Path | None, *, overwrite: bool) -> Path:
    """The page, where it was asked for; that of a look in the vault, and nowhere else."""
    page = render_exploration(to_json(explored.document))
    check_page(explored.site, output, is_look=explored.document.is_look, overwrite=overwrite)
    if not explored.document.is_look or explored.site is None:
        assert output is not None  # noqa: S101  for the type checker
        write_text(output, page, mode=PUBLIC)
        return output
    folder = find_folder(explored.site)
    make_private_folder(folder)
    name = f"{explored.document.policy}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.html"
    place = output if output is not None else folder / name
    check_output(place, endings=PAGES, overwrite=overwrite)
    write_text(place, page, mode=PRIVATE)
    return place


def write_document(explored: Explored, page: Path) -> Path:
    """The document of a look, beside its page in the vault."""
    place = page.with_suffix(".json")
    write_text(place, json.dumps(to_json(explored.document), indent=2) + "\n", mode=PRIVATE)
    return place
