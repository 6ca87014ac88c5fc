"""What catalogues, archives and programs read of a package, each a standard a file: pure functions of the view and of the files
that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from release_pipeline.report.standards.citation import render_citation
from release_pipeline.report.standards.croissant import render_croissant
from release_pipeline.report.standards.dcat import render_dcat
from release_pipeline.report.standards.ddi import render_ddi
from release_pipeline.report.standards.ro_crate import render_ro_crate
from release_pipeline.report.standards.terms import Files
from release_pipeline.report.view import PublicView

CRATE = "ro-crate-metadata.json"
Render: TypeAlias = Callable[[PublicView, Files], str]
STANDARDS: Mapping[str, Render] = {
    "ddi-codebook.xml": render_ddi,
    "croissant.json": render_croissant,
    "dcat.jsonld": render_dcat,
    "CITATION.cff": render_citation,
    CRATE: render_ro_crate,
}
