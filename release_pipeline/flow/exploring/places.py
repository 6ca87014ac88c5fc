"""Where the pages of explorations may lie: those of a look in the vault alone. Asked before anything is noted or read."""

from __future__ import annotations

from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.files import check_output
from release_pipeline.flow.site import Site

PAGES = (".html",)


def find_folder(site: Site) -> Path:
    """The folder in the vault where looks are kept; refused where a link leads out of it."""
    folder = site.vault / "looks"
    for part in (folder, folder / "results", folder / "results" / "documents"):
        if part.is_symlink():
            raise ReleasePipelineError(
                "this is a link, and what looks show must stay in the vault. Nothing was read.",
                where=str(part),
                remedy="Put a folder in its place, or remove it: it is made anew.",
            )
    return folder


def check_page(site: Site | None, output: Path | None, *, is_look: bool, overwrite: bool) -> None:
    """Refuse a page that could not be written, or not there."""
    if is_look and site is not None:
        folder = find_folder(site)
        if output is not None and folder.resolve() not in output.resolve().parents:
            raise WrongUsage(
                "the page of a look shows confidential figures, and stays in the vault.",
                where=str(output),
                remedy=f"Leave -o out: it is written to {folder}.",
            )
    if output is not None:
        check_output(output, endings=PAGES, overwrite=overwrite)
