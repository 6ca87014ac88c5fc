"""Where the page of an exploration is written: that of a look stays on the confidential side."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.exploring.explore import Explored
from release_pipeline.flow.files import PRIVATE, PUBLIC, check_output, write_text
from release_pipeline.policy.documents import to_json
from release_pipeline.report.explore import render_exploration
from release_pipeline.store.folders import make_private_folder


def write_page(explored: Explored, output: Path | None, *, overwrite: bool) -> Path:
    """The page, where it was asked for; that of a look in the vault, and nowhere else."""
    page = render_exploration(to_json(explored.document))
    if not explored.document.is_look or explored.site is None:
        assert output is not None  # noqa: S101  for the type checker
        check_output(output, endings=(".html",), overwrite=overwrite)
        write_text(output, page, mode=PUBLIC)
        return output
    folder = explored.site.vault / "looks"
    if output is not None and folder.resolve() not in output.resolve().parents:
        raise WrongUsage(
            "the page of a look shows confidential figures, and stays in the vault.",
            where=str(output),
            remedy=f"Leave -o out: it is written to {folder}.",
        )
    make_private_folder(folder)
    name = f"{explored.document.policy}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.html"
    place = output if output is not None else folder / name
    check_output(place, endings=(".html",), overwrite=overwrite)
    write_text(place, page, mode=PRIVATE)
    return place
