"""What catalogues, archives and programs read of a package, each a standard a file: pure functions of the view and of the files
that there are. Only packages whose policy says what the data are have these files: without title, licence and publisher none of
them could be valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from release_pipeline.report.standards.citation import render_citation
from release_pipeline.report.standards.dcat import render_dcat
from release_pipeline.report.standards.ddi import render_ddi
from release_pipeline.report.standards.terms import Files
from release_pipeline.report.view import PublicView

Render: TypeAlias = Callable[[PublicView, Files], str]
STANDARDS: Mapping[str, Render] = {
    "ddi-codebook.xml": render_ddi,
    "dcat.jsonld": render_dcat,
    "CITATION.cff": render_citation,
}


def name_standards(view: PublicView) -> tuple[str, ...]:
    """The files of standards that a package has."""
    return () if view.about is None else tuple(STANDARDS)
